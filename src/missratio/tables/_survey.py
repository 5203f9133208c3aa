"""What is missing of a labelled table, and how far its values reach, in one reading."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from missratio._blocks import rows_with_nan
from missratio._threads import one_blas_thread, share
from missratio._typing import BoolArray, FloatArray, IntArray

# Rows are read in blocks that fit the cache.
BLOCK_ROWS = 2**13


@dataclass(frozen=True)
class Survey:
    """A look at every cell of a labelled table.

    Parameters
    ----------
    low, high : ndarray of shape (n_columns,)
        The least and the largest value of each column; NaN where it has none.
    missing : dict from label to ndarray of shape (n_columns,)
        How many cells are missing.
    incomplete : dict from label to int
        How many rows have a missing cell.
    """

    low: FloatArray
    high: FloatArray
    missing: dict[Any, IntArray]
    incomplete: dict[Any, int]

    @classmethod
    def of(cls, X: FloatArray, y: NDArray[Any], labels: Iterable[Any]) -> Survey:
        """Look over a table.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_columns)
            NaN where missing.
        y : ndarray of shape (n_rows,)
        labels : iterable
        """
        starts = range(0, len(X), BLOCK_ROWS)
        with one_blas_thread(X.size) as threads:
            lows, highs, gaps, owners = zip(
                *share(lambda start: _look(X, y, start), starts, threads), strict=True
            )
        gap, owner = np.concatenate(gaps), np.concatenate(owners)
        of_label = {label: owner == label for label in labels}
        return cls(
            np.fmin.reduce(np.array(lows)),
            np.fmax.reduce(np.array(highs)),
            {label: gap[mine].sum(axis=0) for label, mine in of_label.items()},
            {label: int(mine.sum()) for label, mine in of_label.items()},
        )


def _look(
    X: FloatArray, y: NDArray[Any], start: int
) -> tuple[FloatArray, FloatArray, BoolArray, NDArray[Any]]:
    """Extremes of a block; which cells its incomplete rows lack, and their labels."""
    block = X[start : start + BLOCK_ROWS]
    rows = np.flatnonzero(rows_with_nan(block))
    low, high = np.fmin.reduce(block), np.fmax.reduce(block)
    return low, high, np.isnan(block[rows]), y[start + rows]
