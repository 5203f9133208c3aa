"""What is missing of a labelled table, and whether its columns vary."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from missratio._blocks import rows_with_nan
from missratio._threads import one_blas_thread, share
from missratio._typing import FloatArray, IntArray

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
