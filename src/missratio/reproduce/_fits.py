"""Naive-Bayes ratios, learned φ and thresholds of many runs, by the library.

Naive Bayes reads each column by itself. So the columns of many runs can stand side by
side in one table, and one fit does for all of them.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import numpy as np

from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.learning import LearnedMissingness, learn_missingness
from missratio.missingness import LogisticMissingness, Missingness
from missratio.ratio import KLIEP, NaiveBayesRatio
from missratio.threshold import BinomialRule, CalibrationSample

INFINITE = 100.0
"""What stands for an infinite coefficient: beside it no other column counts."""
SEPARATED_SLOPE = 100.0
"""What the published code took for an infinite slope, in standard deviations."""


@dataclass(frozen=True, eq=False)
class WeightedRows:
    """Rows that naive Bayes can't tell from a sample, fewer where values repeat.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_columns)
    weights : ndarray of shape (n_rows,)
        How many rows of the sample each stands for.
    """

    rows: FloatArray
    weights: FloatArray

    @classmethod
    def side_by_side(cls, samples: Sequence[FloatArray]) -> WeightedRows:
        """Merge rows of samples of one shape, whose columns stand side by side.

        Each column is sorted by itself. Neighbours that are then the same in all
        columns become one row: 100,316 rows of the weather become some 3,500, and
        nothing is approximated.
        """
        rows = np.concatenate(samples, axis=1)
        rows.sort(axis=0)
        starts = np.zeros(len(rows), dtype=bool)
        starts[:1] = True
        for column in rows.T:
            # NaN comes last, and is the same as NaN.
            last = min(int(np.searchsorted(column, np.nan)), len(column) - 1)
            starts[1 : last + 1] |= column[1 : last + 1] != column[:last]
        (first,) = np.nonzero(starts)
        weights = np.diff(first, append=len(rows)).astype(np.float64)
        return cls(rows[first], weights)


def beside(samples: Sequence[FloatArray]) -> FloatArray:
    """The samples' columns side by side; a single sample as it is."""
    return samples[0] if len(samples) == 1 else np.concatenate(samples, axis=1)


def naive_bayes_coef(
    ratio: NaiveBayesRatio, numerator: WeightedRows, denominator: WeightedRows
) -> FloatArray:
    """Fit a ratio and return θ̂ of each column.

    Returns
    -------
    ndarray of shape (n_columns,)
        ±100 where no finite optimum exists, since the numerator's weighted mean lies
        outside the range of the denominator's values.
    """
    X, y = stacked(numerator.rows, denominator.rows)
    weights = np.concatenate([numerator.weights, denominator.weights])
    with quiet():
        ratio.fit(X, y, sample_weight=weights)
    infinite = np.copysign(INFINITE, ratio.coef_)
    return np.where(ratio.column_converged_, ratio.coef_, infinite)


def weighted_naive_bayes(phi: Missingness) -> NaiveBayesRatio:
    """M-KLIEP column by column, by the printed objective: sums are divided by n."""
    return NaiveBayesRatio(KLIEP(normalize="horvitz-thompson"), {1: phi})


def stacked(
    numerator: FloatArray, denominator: FloatArray
) -> tuple[FloatArray, IntArray]:
    """Class-1 rows, class-0 rows below them, and their labels."""
    labels = np.repeat([1, 0], [len(numerator), len(denominator)])
    return np.concatenate([numerator, denominator], axis=0), labels


def learned_missingness(
    X: FloatArray, revealed: FloatArray, *, corrected: bool
) -> LogisticMissingness:
    """φ̂ of normalised class-1 rows, by `learn_missingness`.

    Corrected: with Firth's penalty. Published: by maximum likelihood, and where the
    values looked up are separated from those observed, a slope of ±100 through the
    midpoint.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_columns)
        NaN where missing.
    revealed : ndarray of shape (n_rows, n_columns)
        Values that were looked up; NaN elsewhere.
    """
    if corrected:
        return _from_lookups(X, revealed, "firth")
    intercept, slope, separated = _published_slopes(X, revealed)
    if not separated.any():
        return _from_lookups(X, revealed, "ml")
    if not separated.all():
        others = _from_lookups(X.T[~separated].T, revealed.T[~separated].T, "ml")
        intercept[~separated], slope[~separated] = others.intercept, others.coef
    return LogisticMissingness(intercept, slope)


def _from_lookups(
    X: FloatArray, revealed: FloatArray, method: Literal["firth", "ml"]
) -> LogisticMissingness:
    """The paper's way: each column from its own values alone."""
    with quiet():
        learned = learn_missingness(X, revealed, method, from_table=False, check=False)
    # Entries go missing one by one here, so that no columns are a category.
    assert isinstance(learned, LearnedMissingness)
    return learned.as_known()


def _published_slopes(
    X: FloatArray, revealed: FloatArray
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Intercepts and slopes where separation makes them infinite, and where that is."""
    (low, high), (lowest, highest) = _extent(X), _extent(revealed)
    above, below = lowest > high, highest < low
    slope = np.where(above, SEPARATED_SLOPE, -SEPARATED_SLOPE)
    midpoint = np.where(above, lowest + high, highest + low) / 2.0
    with np.errstate(divide="ignore", invalid="ignore"):
        found = (~np.isnan(revealed)).sum(axis=0) / np.isnan(X).sum(axis=0)
        intercept = -slope * midpoint - np.log(found)
    return intercept, slope, above | below


def _extent(X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The smallest and the largest value of each column; NaN where there is none."""
    return np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)


def certified_threshold(scores: FloatArray, alpha: float, delta: float) -> float:
    """The binomial rule's order statistic (the paper's Algorithm 2).

    Parameters
    ----------
    scores : ndarray of shape (n_rows,)
        Of the calibration rows.
    alpha, delta : float

    Returns
    -------
    float
        Infinite where there are too few rows.
    """
    sample = CalibrationSample.build(scores)
    threshold = BinomialRule().select(sample, alpha, delta).threshold
    return np.inf if threshold is None else threshold


@contextmanager
def quiet() -> Iterator[None]:
    """Leave out warnings of single fits: of many runs one looks at the curves."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield
