"""Runs on a data set: a split, what class 1 loses, and which of it is looked up."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from missratio._typing import BoolArray, FloatArray, IntArray
from missratio.missingness import LogisticMissingness, corrupt


@dataclass(frozen=True)
class SplitSizes:
    """How a run is made of a data set.

    Parameters
    ----------
    train_rows : int
        Class-0 rows to fit with; the others calibrate.
    test_rows : int
        Class-1 rows to test with; the others are fitted with.
    queries : int
        Missing values of each feature that are looked up.
    """

    train_rows: int
    test_rows: int
    queries: int


@dataclass(frozen=True, eq=False)
class RealTable:
    """A data set with two classes.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_columns)
        NaN where the data set itself lacks a value. Runs read it column by column, so
        columns should be contiguous.
    is_numerator : ndarray of bool of shape (n_rows,)
    """

    X: FloatArray
    is_numerator: BoolArray

    @cached_property
    def rows(self) -> tuple[IntArray, IntArray]:
        """The rows of class 0 and of class 1."""
        return np.flatnonzero(~self.is_numerator), np.flatnonzero(self.is_numerator)

    @cached_property
    def has_nan(self) -> bool:
        """Whether the data set itself lacks values."""
        return bool(np.isnan(self.X).any())

    @cached_property
    def mean(self) -> FloatArray:
        """The mean of each column, NaN left out."""
        return np.asarray(np.nanmean(self.X, axis=0))

    @cached_property
    def spread(self) -> FloatArray:
        """The standard deviation of each column, NaN left out."""
        return np.asarray(np.nanstd(self.X, axis=0))

    @cached_property
    def numbers(self) -> list[int]:
        """The columns that are not indicators: they have more than two values."""
        distinct = [len(np.unique(column[~np.isnan(column)])) for column in self.X.T]
        return [j for j, count in enumerate(distinct) if count > 2]

    @cached_property
    def digest(self) -> str:
        """A checksum of the values and the classes."""
        state = hashlib.sha256(self.X.T.tobytes())
        state.update(self.is_numerator.tobytes())
        return state.hexdigest()

    def take(self, rows: IntArray) -> FloatArray:
        """Some rows, their columns contiguous."""
        return self.X.T.take(rows, axis=1).T

    def loss(self, share: float | None) -> Loss:
        """φ_j(z) = expit(shift_j − s_j (z − m_j)/sd_j), for both signs s_j.

        m and sd are those of the whole data set.

        Parameters
        ----------
        share : float or None
            Experiment 2: the shift gives φ_j this mean over both classes. None,
            experiment 1: there is no shift.
        """
        slopes = 1.0 / self.spread, -1.0 / self.spread
        if share is None:
            rising, falling = (LogisticMissingness(-s * self.mean, s) for s in slopes)
        else:
            rising, falling = (
                LogisticMissingness.from_proportion(self.X, s, share) for s in slopes
            )
        return Loss(rising, falling)


@dataclass(frozen=True, eq=False)
class Loss:
    """Two models for each column: φ rises with its value, or falls.

    Parameters
    ----------
    rising, falling : LogisticMissingness
    """

    rising: LogisticMissingness
    falling: LogisticMissingness

    def draw(self, rng: np.random.Generator) -> LogisticMissingness:
        """One of the two for each column, by chance."""
        falls = rng.integers(0, 2, np.size(self.rising.coef)).astype(bool)
        return LogisticMissingness(
            np.where(falls, self.falling.intercept, self.rising.intercept),
            np.where(falls, self.falling.coef, self.rising.coef),
        )


@dataclass(frozen=True, eq=False)
class RealRun:
    """One split of a data set, normalised, and what its class-1 training rows lost.

    Parameters
    ----------
    table : RealTable
        What was split.
    numerator : ndarray of shape (n_numerator, n_columns)
        Class-1 training rows, NaN where lost.
    complete : ndarray of shape (n_numerator, n_columns)
        The same rows before they lost anything.
    revealed : ndarray of shape (n_numerator, n_columns)
        Lost values that were looked up; NaN elsewhere.
    denominator, calibration : ndarray of shape (n_rows, n_columns)
        Class-0 rows to fit and to calibrate with.
    test : ndarray of shape (n_test, n_columns)
        Class-1 rows to test with.
    missingness : LogisticMissingness
        φ of normalised class-1 rows.
    seed : int
        For learners that draw.
    """

    table: RealTable
    numerator: FloatArray
    complete: FloatArray
    revealed: FloatArray
    denominator: FloatArray
    calibration: FloatArray
    test: FloatArray
    missingness: LogisticMissingness
    seed: int

    @property
    def is_lossy(self) -> bool:
        """Whether anything was lost."""
        return bool(np.isnan(self.numerator).any())

    def linear_scores(self, coef: FloatArray) -> tuple[FloatArray, FloatArray]:
        """θᵀz of the calibration and the test rows; rows that are alike score alike."""
        calibration, test = self.calibration * coef, self.test * coef
        return calibration.sum(axis=1), test.sum(axis=1)


def draw_run(
    table: RealTable,
    sizes: SplitSizes,
    loss: Loss,
    rng: np.random.Generator,
    *,
    corrected: bool,
) -> RealRun:
    """Split a data set and let its class-1 training rows lose entries."""
    # 1. Split each class.
    rows_0, rows_1 = (rng.permutation(rows) for rows in table.rows)
    train, calibrating = np.split(rows_0, [sizes.train_rows])
    testing, training = np.split(rows_1, [sizes.test_rows])
    parts = [table.take(rows) for rows in (train, calibrating, training, testing)]
    # 2. Fill the data set's own NaN.
    if table.has_nan:
        parts = _filled(parts, table.mean, corrected)
    denominator, calibration, complete, test = parts
    # 3. Lose entries of class 1, column by column, by their value before any scaling.
    phi = loss.draw(rng)
    numerator, revealed = complete.copy(order="F"), np.full_like(complete, np.nan)
    for j, (intercept, slope) in enumerate(zip(*_log_odds(phi), strict=True)):
        model = LogisticMissingness(intercept, slope)
        numerator[:, j : j + 1] = corrupt(complete[:, j : j + 1], model, rng)
        # 4. Look some of them up.
        (lost,) = np.nonzero(np.isnan(numerator[:, j]))
        queried = rng.choice(lost, min(sizes.queries, len(lost)), replace=False)
        revealed[queried, j] = complete[queried, j]
    # 5. Normalise by class 0 and what is left of class 1.
    centre, scale = _scaling(denominator, numerator)
    for rows in (numerator, complete, revealed, denominator, calibration, test):
        rows -= centre
        rows /= scale
    intercept, slope = _log_odds(phi)
    phi = LogisticMissingness(intercept + slope * centre, slope * scale)
    return RealRun(
        table, numerator, complete, revealed, denominator, calibration, test, phi,
        int(training[0]),
    )  # fmt: skip


def _log_odds(phi: LogisticMissingness) -> tuple[FloatArray, FloatArray]:
    return np.asarray(phi.intercept), np.asarray(phi.coef)


def _filled(
    parts: Sequence[FloatArray], otherwise: FloatArray, corrected: bool
) -> list[FloatArray]:
    """Splits with means for NaN: published, those of each split by itself.

    A mean of a split tells its class, since splits are made by class; corrected, all
    splits take the means of the training rows of both classes.
    """
    sums, counts = zip(*map(_sums, parts), strict=True)
    if corrected:
        # Class 0 and class 1 to fit with.
        pooled = (sums[0] + sums[2]) / np.maximum(counts[0] + counts[2], 1)
        means = [np.where(counts[0] + counts[2] > 0, pooled, otherwise)] * len(parts)
    else:
        means = [
            np.where(count > 0, total / np.maximum(count, 1), otherwise)
            for total, count in zip(sums, counts, strict=True)
        ]
    return [
        np.where(np.isnan(rows), mean, rows)
        for rows, mean in zip(parts, means, strict=True)
    ]


def _sums(rows: FloatArray) -> tuple[FloatArray, IntArray]:
    """Of each column the sum and the number of the values that are known."""
    known = ~np.isnan(rows)
    return np.where(known, rows, 0.0).sum(axis=0), known.sum(axis=0)


def _scaling(
    denominator: FloatArray, numerator: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Means and standard deviations of the columns, NaN left out."""
    columns = [
        np.concatenate([below, above[~np.isnan(above)]])
        for below, above in zip(denominator.T, numerator.T, strict=True)
    ]
    centre = np.array([column.mean() for column in columns])
    scale = np.array([column.std() for column in columns])
    return centre, np.where(scale > 0.0, scale, 1.0)
