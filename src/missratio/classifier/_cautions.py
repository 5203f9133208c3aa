"""What can be seen to be wrong with a calibration, and is said as a warning."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.sparse import issparse

from missratio._base.typing import FloatArray
from missratio.missingness.arrays import as_numeric_array

# So many rows of the other class tell whether any is recognised.
MOST_ROWS = 1000
# A column with so many values, as a share of the rows, is continuous.
DISTINCT = 0.5
# Of a row that stands there more often nothing is said.
MOST_COPIES = 10
# From which share of repeated rows on it is said.
REPEATED = 0.05


class NoPowerWarning(UserWarning):
    """A certificate holds, but no row is given to the other class."""


class RepeatedRowsWarning(UserWarning):
    """Calibration rows are among the rows that the estimator was fitted on."""


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


def warn_of_repeated_rows(rows: Any, training: Any) -> None:
    """Warn where calibration rows occur among the training rows.

    In a table of discrete columns some occur twice by chance; nothing is said there.

    Parameters
    ----------
    rows, training : array-like or dataframe of shape (n, n_columns)
        Of the controlled class.
    """
    if issparse(rows) or issparse(training):
        return
    try:
        known, own = _complete(training), _complete(rows)
    except ValueError:
        # Columns that are not numbers.
        return
    values = [len(np.unique(column)) for column in own.T]
    if not len(own) or max(values) < DISTINCT * len(own):
        return
    # Rows that stand there many times, such as rows of zeros, are alike by chance.
    prints, others = _fingerprints(own), _fingerprints(known)
    seen, counts = np.unique(np.concatenate([prints, others]), return_counts=True)
    prints = prints[np.isin(prints, seen[counts <= MOST_COPIES])]
    if not len(prints):
        return
    repeated = float(np.isin(prints, others).mean())
    if repeated < REPEATED:
        return
    warnings.warn(
        f"{repeated:.0%} of the calibration rows are training rows as well. The "
        "estimator knows these rows, so its scores on them are not those of new rows, "
        "and the certificate does not hold. Calibrate with rows that took no part in "
        "fitting; where one unit has several rows, split by unit.",
        RepeatedRowsWarning,
        stacklevel=2,
    )


def _complete(rows: Any) -> FloatArray:
    table = as_numeric_array(rows).astype(np.float64)
    # No zero is negative.
    return np.ascontiguousarray(table[~np.isnan(table).any(axis=1)] + 0.0)


def _fingerprints(table: FloatArray) -> Any:
    """A number for each row, the same for equal rows."""
    factors = np.random.default_rng(0).integers(2**63, size=table.shape[1], dtype="u8")
    with np.errstate(over="ignore"):
        return (table.view(np.uint64) * (2 * factors + 1)).sum(axis=1, dtype=np.uint64)
