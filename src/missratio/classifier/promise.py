"""What a threshold is to guarantee, and what rows that it is chosen by stand for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from missratio._base.reading import as_coded_array
from missratio._base.storable import storable
from missratio._base.typing import FloatArray, IntArray
from missratio.exceptions import Remedy
from missratio.learning import LearnedMissingness
from missratio.missingness import Missingness, RowInclusion, once
from missratio.threshold import CalibrationSample, Rule, Selection, looked_up_sample
from missratio.weights import (
    HEAVIEST,
    complete_row_weight_edges,
    inverse_probability_weights,
    row_weights,
)

# Columns that lose values beyond which the band stands for the region.
MOST_COLUMNS = 8


@dataclass(frozen=True)
class Promise:
    """P(error of a class above α) ≤ δ, how the threshold is chosen, and by which rows.

    Parameters
    ----------
    label, wrong : object
        The class, and the one or those that its rows must not get.
    alpha, delta : float
    rule : str or Rule
    odds_factor : float
        By what factor the odds of being missing may be wrong.
    on_infeasible : {"raise", "reject_all"}
    held, training : ndarray of int
        Rows of the class that calibrate, and others.
    model : Missingness or None
        Why rows of the class are missing; None where none can be, or it was drawn which
        of them are there.
    design : RowInclusion or None
        By what draw those that calibrate are there, where that takes φ's place.
    missingness_delta : float or None
        The part of δ that a learned φ may be out of its region with; None for half.
    group : object
        The group of rows that it is about; None for all.
    fallback : object
        The class of rows without a score; None for the label.
    remedies : tuple of str
        What else helps where nothing can be certified.
    columns : tuple or None
        The columns that scores are made of, where these are not all.
    kept : float
        The share of the columns with a learned φ that these are. Each column's region
        is the one that it has beside all others.
    """

    label: Any
    wrong: Any
    alpha: float
    delta: float
    rule: str | Rule
    odds_factor: float
    on_infeasible: str
    held: IntArray
    training: IntArray
    model: Missingness | None
    design: RowInclusion | None
    missingness_delta: float | None = None
    group: Any = None
    fallback: Any = None
    remedies: tuple[str, ...] = (Remedy.REJECT_ALL,)
    columns: tuple[Any, ...] | None = None
    kept: float = 1.0

    @property
    def parts(self) -> tuple[float, float]:
        """The parts of δ: that a learned φ is out of its region, and the rule's."""
        part = 0.0
        if self.model is not None and self.model.learned:
            part = self.missingness_delta or self.delta / 2.0
        return part, self.delta - part

    @property
    def trust(self) -> Trust:
        """How far the weights by the model are trusted, before a cap is chosen."""
        part = self.kept * self.parts[0] or None
        return Trust(self.model, part, self.odds_factor)


@storable()
@dataclass(frozen=True)
class Trust:
    """How far the weights of the controlled class are trusted.

    Parameters
    ----------
    model : Missingness or None
        Why its rows are missing; None where none is.
    delta : float or None
        φ lies within its band at this level; None takes it at its word.
    odds_factor : float
        By what factor the odds of being missing may be wrong beyond that.
    cap : float or None
        Rows that may weigh more get the controlled class, so that all that are left
        weigh less, however close to 1 φ comes.
    point : Missingness or None
        The one φ of a learned model's region that rows are weighed by; None for the
        band. The cap counts by the band all the same, so that all φ of the region have
        the same rows within reach.
    """

    model: Missingness | None
    delta: float | None = None
    odds_factor: float = 1.0
    cap: float | None = None
    point: Missingness | None = None

    @property
    def searched(self) -> bool:
        """Whether every φ of a region calibrates, instead of a band round them.

        A φ of whole rows in several columns has a region of too many dimensions.
        """
        model = self.model
        if not isinstance(model, LearnedMissingness) or self.delta is None:
            return False
        if model.rowwise and np.size(model.coef) > 1:
            return False
        return sum(evidence is not None for evidence in model.evidence) <= MOST_COLUMNS

    @property
    def at_point(self) -> Trust:
        """Trust in that φ alone, for rows within reach."""
        return Trust(self.point, None, self.odds_factor, self.cap)

    def widened(self, factor: float) -> Trust:
        """The estimated odds wrong by up to a factor, of rows within the same reach."""
        cap = self.cap
        if cap is not None and self.model is not None:
            more = max(factor / self.odds_factor, 1.0)
            if self.model.rowwise:
                cap = 1.0 + (cap - 1.0) * more
            else:
                cap = math.exp(min(more * math.log(cap), 700.0))
        return Trust(self.point or self.model, None, factor, cap)

    def score(
        self, X: Any, scores: FloatArray, heaviest: FloatArray | None = None
    ) -> FloatArray:
        """Scores of any rows, −∞ where too little is ever observed.

        Parameters
        ----------
        X : array or dataframe of shape (n_rows, n_columns)
        scores : ndarray of shape (n_rows,)
        heaviest : ndarray of shape (n_rows,), optional
            The largest that the rows' weights may be, where that is known.
        """
        if self.cap is None:
            return scores
        if heaviest is None:
            heaviest = self.edges(X)[1]
        return np.where(heaviest > self.cap, -np.inf, scores)

    def edges(self, X: Any) -> tuple[FloatArray, FloatArray]:
        """The least and the largest that the weights of complete rows may be."""
        if self.model is None:
            return np.ones(X.shape[0]), np.ones(X.shape[0])
        return complete_row_weight_edges(
            X, self.model, delta=self.delta, odds_factor=self.odds_factor
        )

    def bound(self, n_columns: int) -> float | None:
        """The largest weight of a row that can be in a tail; None if unknown."""
        if self.model is None:
            return 1.0
        known = self.model.weight_bound(n_columns, self.odds_factor)
        bounds = [bound for bound in (known, self.cap) if bound is not None]
        return min(bounds, default=None)


@dataclass(frozen=True)
class Weighted:
    """Scored rows of one class, and what they stand for: computed once, and carried.

    Parameters
    ----------
    X : array or dataframe of shape (n_rows, n_columns)
        NaN where a value is missing.
    scores : ndarray of shape (n_rows,)
    weights, low, high : ndarray of shape (n_rows,)
        What rows stand for, 0 where any entry is missing, and the least and the largest
        that this may be.
    entries : ndarray of shape (n_rows,) or (n_rows, n_columns)
        The weights 1/(1 − φ) that these are made of.
    draws : ndarray of shape (n_rows,), or None
        Random numbers for rules that keep rows at random.
    coin : float
        One more random number for these rules.
    inclusion : RowInclusion or None
        By what draw rows are there, where that takes the place of φ.
    """

    X: Any
    scores: FloatArray
    weights: FloatArray
    low: FloatArray
    high: FloatArray
    entries: FloatArray
    draws: FloatArray | None = None
    coin: float = 1.0
    inclusion: RowInclusion | None = None

    @classmethod
    def by(cls, trust: Trust, X: Any, scores: FloatArray, **more: Any) -> Weighted:
        """Rows with their weights: φ is evaluated here, and nowhere else.

        All φ that a learned one may be see the same numbers: they are read once.
        """
        X = X if trust.delta is None else as_coded_array(X)
        entries = weights = np.ones(len(scores))
        if trust.model is not None:
            entries = weights = inverse_probability_weights(X, trust.model)
            if trust.model.groups is not None:
                entries = weights = entries[:, once(trust.model.groups)]
            if entries.ndim == 2:
                weights = row_weights(entries)
        low = high = weights
        if trust.delta is not None:
            low, high = trust.edges(X)
        elif trust.odds_factor != 1.0:
            low, high = widened_weights(entries, trust.odds_factor)
        # The edges are kept from being huge; rounding apart, this is all that clipping
        # does.
        weights = np.clip(weights, low, high)
        return cls(X, scores, weights, low, high, entries, **more)

    def at(self, trust: Trust) -> Weighted:
        """The same by the one φ of a region that a trust is in."""
        scores, drawn = trust.score(self.X, self.scores, self.high), self.draws
        return Weighted.by(trust.at_point, self.X, scores, draws=drawn, coin=self.coin)

    def sample(self, trust: Trust) -> CalibrationSample:
        """Rows of the controlled class, as a rule sees them."""
        if trust.point is not None:
            return self.at(trust).sample(trust.at_point)
        if (drawn := self.inclusion) is not None:
            scores = np.where(drawn.complete, self.scores, np.nan)
            return looked_up_sample(
                scores, drawn.probability, drawn.strata, expected=drawn.expected
            )
        if trust.model is None:
            return CalibrationSample.build(self.scores)
        certain = trust.delta is None and trust.odds_factor == 1.0
        return CalibrationSample.build(
            trust.score(self.X, self.scores, self.high),
            np.clip(self.weights, self.low, self.high),
            trust.bound(self.X.shape[1]),
            None if certain else (self.low, self.high),
            self.draws,
            coin=self.coin,
        )


def widened_weights(
    entries: FloatArray, factor: float
) -> tuple[FloatArray, FloatArray]:
    """The least and the largest weight of rows whose odds may be wrong by a factor."""
    edges = []
    for times in (1.0 / factor, factor):
        with np.errstate(over="ignore"):
            weights = np.where(entries > 0.0, 1.0 + times * (entries - 1.0), 0.0)
            weights = weights if weights.ndim == 1 else weights.prod(axis=1)
            edges.append(np.minimum(weights, HEAVIEST))
    return edges[0], edges[1]


@storable()
@dataclass(frozen=True)
class Calibration:
    """What a threshold was chosen from, so that it can be chosen at any level α.

    Parameters
    ----------
    sample : CalibrationSample
        The calibration rows, as the rule sees them.
    trust : Trust
        How far their weights are trusted.
    rule : Rule
        Fixed before their scores were seen.
    delta : float
        The part of δ that is the rule's.
    rounding : tuple of two floats
        How far thresholds are moved up, so that rounding can't lift a row above them:
        2ε, ε being the first as a multiple of a score's size, its absolute value plus
        the second.
    others : tuple of Calibration
        The same rows under other φ that a learned model leaves possible. A threshold
        is certified by all of them.
    """

    sample: CalibrationSample
    trust: Trust
    rule: Rule
    delta: float
    rounding: tuple[float, float] = (0.0, 0.0)
    others: tuple[Calibration, ...] = ()

    def select(self, alphas: Sequence[float]) -> list[Selection]:
        """The thresholds that the rule certifies at some levels.

        Parameters
        ----------
        alphas : sequence of float
        """
        chosen = [[self.rule.select(self.sample, a, self.delta) for a in alphas]]
        chosen += [other.select(alphas) for other in self.others]
        strictest = []
        for selections in zip(*chosen, strict=True):
            limits = [
                np.inf if x.threshold is None else x.threshold for x in selections
            ]
            one, highest = selections[int(np.argmax(limits))], max(limits)
            if np.isfinite(highest):
                # Rounding can't lift a row above it then.
                relative, scale = self.rounding
                highest += 2.0 * relative * (abs(highest) + scale)
                one = replace(one, threshold=highest)
            strictest.append(one)
        return strictest

    def threshold(self, alpha: float) -> float:
        """The one at a level; infinite where none is certified."""
        threshold = self.select([alpha])[0].threshold
        return math.inf if threshold is None else threshold
