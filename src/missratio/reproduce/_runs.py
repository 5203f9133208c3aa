"""Runs on a data set: a split, what class 1 loses, and which of it is looked up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from missratio._base.typing import BoolArray, FloatArray, IntArray
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

    def take(self, rows: IntArray) -> FloatArray:
        """Some rows, their columns contiguous."""
        return self.X.T.take(rows, axis=1).T


@dataclass(frozen=True, eq=False)
class Loss:
    """φ_j(z) = expit(shift_j − s_j (z − m_j)/sd_j), where each s_j is ±1 by chance.

    Parameters
    ----------
    models : pair of LogisticMissingness
        With all s_j = −1, and with all s_j = 1.
    """

    models: tuple[LogisticMissingness, LogisticMissingness]

    @classmethod
    def of(cls, table: RealTable, share: float | None) -> Loss:
        """Take m and sd from the whole data set.

        Parameters
        ----------
        table : RealTable
        share : float or None
            Experiment 2: the shift gives φ_j this mean over both classes. None,
            experiment 1: there is no shift.
        """
        slope = 1.0 / np.nanstd(table.X, axis=0)
        if share is None:
            mean = np.nanmean(table.X, axis=0)
            models = [LogisticMissingness(-s * mean, s) for s in (slope, -slope)]
        else:
            models = [
                LogisticMissingness.from_proportion(table.X, s, share)
                for s in (slope, -slope)
            ]
        return cls((models[0], models[1]))

    def draw(self, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Draw the signs, and return intercepts and slopes of the log-odds of φ."""
        rising, falling = self.models
        falls = rng.integers(0, 2, np.size(rising.coef)).astype(bool)
        return (
            np.where(falls, falling.intercept, rising.intercept),
            np.where(falls, falling.coef, rising.coef),
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
        """θᵀz of the calibration and the test rows."""
        return _linear_score(self.calibration, coef), _linear_score(self.test, coef)


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
    parts = [table.take(rows) for rows in (train, training, calibrating, testing)]
    # 2. Fill the data set's own NaN.
    if table.has_nan:
        parts = _filled(parts, corrected)
    denominator, complete, calibration, test = parts
    # 3. Lose entries of class 1, column by column, by their value before any scaling.
    intercepts, slopes = loss.draw(rng)
    numerator, lost, queried = complete.copy(order="F"), [], []
    for j, log_odds in enumerate(zip(intercepts, slopes, strict=True)):
        phi = LogisticMissingness(*log_odds)
        numerator[:, j : j + 1] = corrupt(complete[:, j : j + 1], phi, rng)
        # 4. Look some of them up.
        lost.append(np.flatnonzero(np.isnan(numerator[:, j])))
        n_queries = min(sizes.queries, len(lost[j]))
        queried.append(rng.choice(lost[j], n_queries, replace=False))
    # 5. Normalise by class 0 and what is left of class 1.
    every = (numerator, complete, denominator, calibration, test)
    centre = _means(denominator, numerator, lost)
    for rows in every:
        rows -= centre
    scale = np.sqrt(_means(denominator, numerator, lost, power=2))
    scale[scale == 0.0] = 1.0
    for rows in every:
        rows /= scale
    revealed = np.full_like(complete, np.nan)
    for j, own in enumerate(queried):
        revealed[own, j] = complete[own, j]
    phi = LogisticMissingness(intercepts + slopes * centre, slopes * scale)
    return RealRun(
        table, numerator, complete, revealed, denominator, calibration, test, phi,
        int(training[0]),
    )  # fmt: skip


def _linear_score(rows: FloatArray, coef: FloatArray) -> FloatArray:
    """θᵀz, added up column by column, so that rows which are alike score alike."""
    score = np.zeros(len(rows))
    for column, slope in zip(rows.T, coef, strict=True):
        score += slope * column
    return score


def _filled(parts: Sequence[FloatArray], corrected: bool) -> list[FloatArray]:
    """Splits with means for NaN: published, those of each split by itself.

    A mean of a split tells its class, since splits are made by class; corrected, all
    splits take the means of the first two, the training rows of both classes.
    """
    if corrected:
        means = [np.nanmean(np.concatenate(parts[:2]), axis=0)] * len(parts)
    else:
        means = [np.nanmean(rows, axis=0) for rows in parts]
    pairs = zip(parts, means, strict=True)
    return [np.where(np.isnan(rows), mean, rows) for rows, mean in pairs]


def _means(
    denominator: FloatArray,
    numerator: FloatArray,
    lost: Sequence[IntArray],
    *,
    power: int = 1,
) -> FloatArray:
    """Means of both classes' values or squares, column by column, without the lost."""
    means = np.empty(len(lost))
    for j, own in enumerate(lost):
        known = numerator[:, j].copy()
        known[own] = 0.0
        columns = (np.ascontiguousarray(denominator[:, j]), known)
        total = sum(each.sum() if power == 1 else each @ each for each in columns)
        means[j] = total / (len(denominator) + len(known) - len(own))
    return means
