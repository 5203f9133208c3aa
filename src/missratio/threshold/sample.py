"""Calibration rows as threshold rules see them."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from missratio._base.storable import storable
from missratio._base.typing import BoolArray, FloatArray, IntArray


@storable()
@dataclass(frozen=True)
class LookUps:
    """Which observed rows were complete, and which were drawn to be looked up.

    Parameters
    ----------
    stratum : ndarray of int of shape (n_observed,)
        0 for a complete row, s for one that was drawn from stratum s of the incomplete
        ones. One that was drawn and not found is there with a score of +∞.
    incomplete : ndarray of int of shape (n_strata,)
        Incomplete rows, whether looked up or not, of strata 1, 2, …
    not_found : int
        How many of the rows drawn were not found.
    expected : tuple of float, or None
        The share of rows that are incomplete, and of these that are looked up, in other
        rows than these.
    """

    stratum: IntArray
    incomplete: IntArray
    not_found: int = 0
    expected: tuple[float, float] | None = None

    def check(self, n_observed: int, n_rows: int) -> None:
        """Refuse look-ups that can't be those of so many rows, observed and all."""
        shares = np.asarray(self.expected or (0.0, 0.0), dtype=np.float64)
        columns = self.stratum, self.incomplete
        sound = (
            all(isinstance(c, np.ndarray) and c.dtype.kind == "i" for c in columns)
            and self.stratum.shape == (n_observed,)
            and self.stratum.min(initial=0) >= 0
            and self.stratum.max(initial=0) <= len(self.incomplete)
            and (self.drawn <= self.incomplete).all()
            and n_observed - self.drawn.sum() + sum(self.incomplete.tolist()) == n_rows
            and shares.shape == (2,)
            and ((shares >= 0.0) & (shares <= 1.0)).all()
        )
        if not sound:
            raise ValueError("A calibration sample's look-ups are not what it says.")

    @property
    def drawn(self) -> IntArray:
        """How many of the incomplete rows were drawn, by stratum."""
        return np.bincount(self.stratum, minlength=len(self.incomplete) + 1)[1:]


class Ranked(NamedTuple):
    """Observed rows with the largest score first, and sums over the highest of them."""

    order: IntArray
    """Where the rows are in the sample."""
    scores: FloatArray
    weights: FloatArray
    low: FloatArray
    """The least that the weights may be."""
    high: FloatArray
    """The largest that they may be."""
    masses: FloatArray
    """The sums of the weights of the 0, 1, …, n_observed highest rows."""
    n_scored: int
    """How many rows have a score above −∞, and so can be in a tail."""


@storable()
@dataclass(frozen=True)
class CalibrationSample:
    """Scores of the observed rows of the controlled class, and their weights.

    Parameters
    ----------
    values : ndarray of shape (n_observed,)
        Scores.
    masses : ndarray of shape (n_observed,), or None
        Weights W = 1/(1 − φ) of the same rows; None where all are one.
    n_rows : int
        All rows, the missing ones included.
    bound : float or None
        B = 1/(1 − ‖φ‖∞), which no weight of a row that has a score above −∞ exceeds;
        None where it is not known.
    edges : pair of ndarray of shape (n_observed,), or None
        The least and the largest that each weight may be, where φ is not known exactly;
        None where it is. A rule takes the worse of the two wherever it uses a weight.
    draws : ndarray of shape (n_observed,), or None
        A number for each row, uniform in [0, 1) and drawn once, for rules that keep
        rows at random; None where none is needed, as all weights are one.
    lookups : LookUps or None
        Which rows were looked up, where that is why they have a score.
    coin : float
        One more such number, by which rules that keep rows at random have exactly the
        level δ; 1 where none was drawn, so that they stay below it.
    """

    values: FloatArray = field(repr=False)
    masses: FloatArray | None = field(repr=False)
    n_rows: int
    bound: float | None
    edges: tuple[FloatArray, FloatArray] | None = field(default=None, repr=False)
    draws: FloatArray | None = field(default=None, repr=False)
    lookups: LookUps | None = None
    coin: float = 1.0

    @classmethod
    def build(
        cls,
        scores: ArrayLike,
        weights: ArrayLike | None = None,
        bound: float | None = None,
        edges: tuple[FloatArray, FloatArray] | None = None,
        draws: FloatArray | None = None,
        random_state: int | np.random.Generator | None = 0,
        coin: float = 1.0,
    ) -> CalibrationSample:
        """Leave out missing rows: those of weight zero.

        Parameters
        ----------
        scores : array-like of shape (n_rows,)
            Where the weight is zero they are not looked at.
        weights : array-like of shape (n_rows,), optional
            None for complete rows; the bound is then 1.
        bound : float, optional
        edges : pair of ndarray of shape (n_rows,), optional
            Bounds on the weights, where these are uncertain.
        draws : ndarray of shape (n_rows,), optional
            A number in [0, 1) for each row; None draws them, and the coin.
        random_state : int, Generator or None, default=0
            For `draws` and the coin, where none are given.
        coin : float, default=1.0
            One more, to go with `draws`.

        Returns
        -------
        CalibrationSample
        """
        values = np.asarray(scores, dtype=np.float64)
        if values.ndim != 1:
            raise ValueError(f"scores must be one-dimensional, got {values.shape}.")
        n_rows, masses = len(values), None
        if weights is None:
            bound, edges, draws, coin = 1.0, None, None, 1.0
        else:
            columns = (weights, *(edges or ()))
            given = [np.asarray(column, dtype=np.float64) for column in columns]
            for column in given:
                sound = np.isfinite(column) & (column >= 0.0)
                if column.shape != values.shape or not sound.all():
                    raise ValueError(
                        "weights must be finite and not negative, one for each score: "
                        f"got shapes {column.shape} and {values.shape}."
                    )
                heaviest = column.max(where=values > -np.inf, initial=0.0)
                if bound is not None and heaviest > bound * (1 + 1e-9):
                    raise ValueError(
                        f"A weight of {heaviest:.6g} exceeds the bound {bound:.6g} "
                        "that the largest missing probability implies: one of the two "
                        "is wrong."
                    )
            masses = given[0]
            observed = masses > 0.0
            if edges is not None:
                low, high = given[1:]
                if not ((low <= masses) & (masses <= high)).all():
                    raise ValueError("weights must lie between their edges.")
                edges = low[observed], high[observed]
            if draws is None:
                rng = np.random.default_rng(random_state)
                draws, coin = rng.uniform(size=n_rows), float(rng.uniform())
            if not observed.all():
                values, masses = values[observed], masses[observed]
                draws = draws[observed]
        if np.isnan(values).any():
            raise ValueError(
                "An observed calibration row has a score of NaN. Score complete rows, "
                "or give rows that can't be scored a weight of zero."
            )
        return cls(values, masses, n_rows, bound, edges, draws, None, coin)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what can be computed again."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def check(self) -> None:
        """Refuse a sample that `build` would not make, such as one from a file."""
        columns = [self.values, self.masses, self.draws, *(self.edges or ())]
        sound = all(
            isinstance(column, np.ndarray)
            and column.dtype == np.float64
            and column.shape == (len(self.values),)
            and not np.isnan(column).any()
            for column in columns
            if column is not None
        )
        sound = sound and isinstance(self.coin, float) and 0.0 <= self.coin <= 1.0
        if not (sound and len(self.values) <= self.n_rows):
            raise ValueError("A calibration sample's columns don't fit together.")
        again = self.build(self.values, self.weights, self.bound, self.edges)
        if again.n_observed < self.n_observed:
            raise ValueError("A calibration sample's rows are not what it says.")
        if self.lookups is not None:
            self.lookups.check(len(self.values), self.n_rows)

    def repeated(self, times: int, rng: np.random.Generator) -> CalibrationSample:
        """As if so many times as many rows of the same kind had come.

        Parameters
        ----------
        times : int
        rng : Generator
            For new draws.
        """
        every = np.tile(np.arange(self.n_observed), times)
        return replace(
            self,
            values=self.values[every],
            masses=None if self.masses is None else self.masses[every],
            n_rows=times * self.n_rows,
            edges=self.edges and (self.edges[0][every], self.edges[1][every]),
            draws=rng.uniform(size=len(every)),
            lookups=None,
            coin=1.0,
        )

    @cached_property
    def n_scored(self) -> int:
        """How many rows have a score above −∞."""
        return int(np.count_nonzero(self.values > -np.inf))

    @cached_property
    def ranked(self) -> Ranked:
        """The rows by their scores, the largest first."""
        order, n_scored = np.argsort(-self.values, kind="stable"), self.n_scored
        scores, weights = self.values[order], self.weights[order]
        masses = np.zeros(len(order) + 1)
        np.cumsum(weights, out=masses[1:])
        low = high = weights
        if self.edges is not None:
            low, high = self.edges[0][order], self.edges[1][order]
        return Ranked(order, scores, weights, low, high, masses, n_scored)

    def kept(self, bound: float) -> tuple[BoolArray, BoolArray]:
        """Rows that are kept with probability W/B, the largest score first.

        Parameters
        ----------
        bound : float
            B; rows of a larger weight are kept for certain.

        Returns
        -------
        by_least, by_largest : ndarray of bool of shape (n_observed,)
            By the least and by the largest that the weights may be.
        """
        if self.masses is None and bound == 1.0:
            every = np.ones(self.n_observed, dtype=bool)
            return every, every
        if self.draws is None:
            raise ValueError(
                "Rows can't be kept at random: the sample has no draws. Make it by "
                "CalibrationSample.build, with its random_state."
            )
        ranked, draws = self.ranked, self.draws[self.ranked.order] * bound
        return draws < ranked.low, draws < ranked.high

    @property
    def weights(self) -> FloatArray:
        """The weights of the observed rows."""
        return np.ones(len(self.values)) if self.masses is None else self.masses

    @property
    def n_observed(self) -> int:
        """How many rows are observed."""
        return len(self.values)

    @property
    def n_known(self) -> int:
        """How many of these are complete: those drawn and not found left out."""
        return self.n_observed - (self.lookups.not_found if self.lookups else 0)

    @property
    def effective_rows(self) -> float:
        """Kish's effective sample size of the weights."""
        total = float(self.weights.sum())
        return total**2 / float((self.weights**2).sum()) if total > 0.0 else 0.0

    def threshold(self, n_tail: int) -> float:
        """The smallest threshold above which there are at most n_tail rows.

        A threshold below every observed score is never given.
        """
        place = min(n_tail, max(self.n_scored, 1) - 1)
        if self.masses is None and "ranked" not in vars(self):
            # One order statistic: a sort takes ten times as long.
            return float(-np.partition(-self.values, place)[place])
        return float(self.ranked.scores[place])

    def estimated_error(self, threshold: float) -> float:
        """The weighted share of rows that score above a threshold (Hájek)."""
        return float(np.average(self.values > threshold, weights=self.masses))
