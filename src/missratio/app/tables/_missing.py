"""What is missing of a labelled table, and whether its columns vary."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from missratio._base.blocks import rows_with_nan
from missratio._base.threads import one_blas_thread, share
from missratio._base.typing import FloatArray, IntArray

# Numbers that people write for a value that isn't there.
_SENTINELS = [sign * (10.0**digits - 1.0) for digits in range(2, 7) for sign in (-1, 1)]
# Rows are read in blocks that fit the cache.
BLOCK_ROWS = 2**13


@dataclass(frozen=True)
class MissingCounts:
    """What is missing of each class.

    Parameters
    ----------
    missing : dict from label to ndarray of shape (n_columns,)
        How many cells are missing.
    incomplete : dict from label to int
        How many rows have a missing cell.
    """

    missing: dict[Any, IntArray]
    incomplete: dict[Any, int]

    @classmethod
    def of(cls, X: FloatArray, y: NDArray[Any], labels: Iterable[Any]) -> MissingCounts:
        """Look over a table, in one reading.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_columns)
            NaN where missing.
        y : ndarray of shape (n_rows,)
        labels : iterable
        """

        def lossy(start: int) -> IntArray:
            found = rows_with_nan(X[start : start + BLOCK_ROWS])
            return start + np.flatnonzero(found)

        with one_blas_thread(X.size) as threads:
            found = share(lossy, range(0, len(X), BLOCK_ROWS), threads)
        rows = np.concatenate(found)
        gaps, owner = np.isnan(X[rows]), y[rows]
        of_label = {label: owner == label for label in labels}
        return cls(
            {label: gaps[mine].sum(axis=0) for label, mine in of_label.items()},
            {label: int(mine.sum()) for label, mine in of_label.items()},
        )


def varies(column: FloatArray) -> bool:
    """Whether a column has two different values, missing ones apart.

    Looks no further than it has to.
    """
    first = np.nan
    for start in range(0, len(column), BLOCK_ROWS):
        block = column[start : start + BLOCK_ROWS]
        known = block[~np.isnan(block)]
        if not len(known):
            continue
        if np.isnan(first):
            first = known[0]
        if (known != first).any():
            return True
    return False


def sentinels(X: FloatArray, names: Sequence[str]) -> list[str]:
    """Say which columns may have a number for what is missing, such as -999.

    It is at the end of the column's range, stands in several rows, and is further from
    the other values than these are from each other.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_columns)
    names : sequence of str
        Of the first columns, those to look at.
    """
    notes = []
    ends = [np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)]
    for end in ends:
        for j in np.flatnonzero(np.isin(end[: len(names)], _SENTINELS)).tolist():
            column, value = X[:, j], end[j]
            others = column[(column != value) & ~np.isnan(column)]
            count = int((column == value).sum())
            if count < 2 or not len(others):
                continue
            gap = np.abs(others - value).min()
            if gap > max(np.ptp(others), 10.0):
                notes.append(
                    f"Column {names[j]!r} is {value:g} in {count} rows, far from all "
                    f"its other values. If that means missing, say --missing-value "
                    f"{value:g}."
                )
    return notes
