"""What a certificate can't say by itself: copies among rows, and no power."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.spatial import KDTree
from scipy.special import gammaln

from missratio._base.reading import as_numeric_array
from missratio._base.typing import FloatArray, IntArray

# So many rows of the other class tell whether any is recognised.
MOST_ROWS = 1000
# A column that has this many values, as a share of the distinct rows, is continuous.
DISTINCT = 0.5
# Rows that occur more often than this on average are kinds, and not copies of units.
MOST_COPIES = 10
# Rows this many steps of a column's last place apart, or fewer, are near each other.
NEAR = 5
# From which share of repeated rows on it is said.
REPEATED = 0.05
# How unlikely their numbers must be for rows that are drawn independently.
SURPRISING = 0.001


class NoPowerWarning(UserWarning):
    """A certificate holds, but no row is given to the other class."""


class RepeatedRowsWarning(UserWarning):
    """Calibration rows are copies of training rows, or of each other."""


def warn_without_power(calibrated: FloatArray, threshold: float, other: Any) -> None:
    """Warn where a certified threshold lies above all scores.

    Parameters
    ----------
    calibrated : ndarray of shape (n_rows,)
        Scores of calibration rows.
    threshold : float
    other : ndarray of shape (n_other,), or None
        Scores of rows of the other class.
    """
    seen = calibrated[calibrated > -np.inf]
    if len(seen) and seen.min() == seen.max():
        what = f"all {len(seen)} calibration rows have the same score"
    elif other is not None and len(other) and not (other > threshold).any():
        what = f"none of {len(other)} rows of the other class scores above it"
    else:
        return
    warnings.warn(
        f"The threshold {threshold:.6g} is certified, but has no power: {what}, so "
        "(nearly) every row gets the controlled class. Take an estimator that tells "
        "the classes apart, a larger alpha, or more calibration rows.",
        NoPowerWarning,
        stacklevel=2,
    )


def warn_of_repeated_rows(rows: Any, training: Any = None) -> None:
    """Warn where calibration rows are copies of training rows, or of each other.

    Independent rows coincide, too, where values are rounded or are categories. Nothing
    is said of rows that chance explains: see `_are_copies`.

    Parameters
    ----------
    rows, training : array-like or dataframe of shape (n, n_columns)
        Of the controlled class; no training rows where they are not known.
    """
    try:
        own = _complete(rows)
        known = own[:0] if training is None else _complete(training)
    except ValueError:
        # Columns that are not numbers.
        return
    table = np.concatenate([own, known])
    _, first, places, counts = np.unique(
        _fingerprints(table), return_index=True, return_inverse=True, return_counts=True
    )
    places = places.ravel()
    trained = np.isin(places[: len(own)], places[len(own) :])
    twice = np.bincount(places[: len(own)], minlength=len(counts))[places[: len(own)]]
    affected = trained | (twice > 1)
    if not len(own) or affected.mean() < REPEATED:
        return
    if not _are_copies(table[first], counts):
        return
    if trained.mean() >= REPEATED:
        what = (
            f"{trained.mean():.0%} of the calibration rows are training rows as well. "
            "The estimator knows these rows, so its scores on them are not those of "
            "new rows"
        )
    else:
        what = (
            f"{affected.mean():.0%} of the calibration rows are there more than once. "
            "Copies say nothing new, and are counted as if they did"
        )
    warnings.warn(
        f"{what}, and the certificate does not hold. Calibrate with rows that took no "
        "part in fitting. Where one unit has several rows, say by groups= which rows "
        "are of one unit.",
        RepeatedRowsWarning,
        stacklevel=2,
    )


def _are_copies(distinct: FloatArray, counts: IntArray) -> bool:
    """Whether independent rows would hardly coincide as often as these.

    Either of two facts says so.

    1. Rows with a continuous column coincide, and nothing is near them. Rounded values
       coincide where others lie a few steps of the last place away. Rows of a few kinds
       occur more than ten times each.
    2. Numbers of copies vary less than chance lets them. Let m_k be the expected number
       of distinct rows that occur k times. If rows are independent, whatever their law,
       k·m_k² ≤ (k + 1)·m_{k−1}·m_{k+1}.
    """
    values = max(len(np.unique(column)) for column in distinct.T)
    repeated = np.flatnonzero(counts > 1)
    continuous = values >= DISTINCT * len(distinct)
    units = counts.mean() <= MOST_COPIES
    if continuous and units and len(repeated) >= REPEATED * len(distinct):
        scaled = np.column_stack([column / _step(column) for column in distinct.T])
        # The nearest one of each is the row itself.
        away, _ = KDTree(scaled).query(
            scaled[repeated], 2, p=np.inf, distance_upper_bound=NEAR + 0.5
        )
        if np.count_nonzero(away[:, 1] == np.inf) >= REPEATED * len(distinct):
            return True
    return _regularity(counts) < SURPRISING


def _step(column: FloatArray) -> float:
    """The smallest difference between two values, but for rounding errors; or one."""
    gaps = np.diff(np.unique(column))
    gaps = gaps[gaps > 1e-9 * np.ptp(column)]
    return float(gaps.min()) if len(gaps) else 1.0


def _regularity(counts: IntArray) -> float:
    """The p-value of rows that occur k times being too many, over all k together.

    Where k·m_k² = (k + 1)·m_{k−1}·m_{k+1}, the law of the three numbers given their sum
    and the sum of their copies is known, and only one of them is free.
    """
    often = np.bincount(counts, minlength=2)
    often = np.append(often, 0)
    tested = [k for k in range(2, len(often) - 1) if often[k] > 1]
    smallest = 1.0
    for k in tested:
        fewer, own, more = (int(often[j]) for j in (k - 1, k, k + 1))
        both = np.arange((fewer + own + more - abs(more - fewer)) // 2 + 1)
        low, high = both + max(fewer - more, 0), both + max(more - fewer, 0)
        middle = fewer + own + more - low - high
        log_mass = -(
            gammaln(low + 1.0)
            + gammaln(middle + 1.0)
            + gammaln(high + 1.0)
            + low * gammaln(k)
            + middle * gammaln(k + 1.0)
            + high * gammaln(k + 2.0)
        )
        mass = np.exp(log_mass - log_mass.max())
        smallest = min(smallest, float(mass[middle >= own].sum() / mass.sum()))
    return smallest * max(len(tested), 1)


def _complete(rows: Any) -> FloatArray:
    table = as_numeric_array(rows).astype(np.float64)
    # No zero is negative.
    return np.ascontiguousarray(table[~np.isnan(table).any(axis=1)] + 0.0)


def _fingerprints(table: FloatArray) -> Any:
    """A number for each row, the same for equal rows."""
    factors = np.random.default_rng(0).integers(2**63, size=table.shape[1], dtype="u8")
    with np.errstate(over="ignore"):
        return (table.view(np.uint64) * (2 * factors + 1)).sum(axis=1, dtype=np.uint64)
