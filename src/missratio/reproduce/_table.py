"""A data set whose columns are codes into their few distinct values.

All that a one-dimensional fit needs of a column is how often each value occurs: weights
are functions of the value, and so are missing probabilities. A column of a hundred
thousand rows is then a histogram of some hundred entries, and nothing is approximated.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from missratio._typing import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class CodedTable:
    """A table with two classes, column by column.

    Parameters
    ----------
    values : ndarray of shape (n_columns, n_rows)
        NaN where the data set itself lacks a value.
    codes : ndarray of int of shape (n_columns, n_rows)
        Which entry of the grid each value is.
    grid : ndarray of shape (n_columns, n_codes)
        The distinct values, filled up with the largest; the last entry stands for NaN
        and is NaN.
    is_numerator : ndarray of bool of shape (n_rows,)
    """

    values: FloatArray
    codes: NDArray[np.int32]
    grid: FloatArray
    is_numerator: BoolArray

    @classmethod
    def from_rows(cls, X: FloatArray, is_numerator: BoolArray) -> CodedTable:
        """Code the columns of X, of shape (n_rows, n_columns)."""
        distinct = [np.unique(column[~np.isnan(column)]) for column in X.T]
        n_codes = 1 + max(len(values) for values in distinct)
        grid = np.full((len(distinct), n_codes), np.nan)
        codes = np.full((len(distinct), len(X)), n_codes - 1, dtype=np.int32)
        for j, values in enumerate(distinct):
            grid[j, :-1] = values[-1]
            grid[j, : len(values)] = values
            known = ~np.isnan(X[:, j])
            codes[j, known] = np.searchsorted(values, X[known, j])
        columns = np.ascontiguousarray(X.T, dtype=np.float64)
        return cls(columns, codes, grid, np.asarray(is_numerator, dtype=bool))

    @property
    def n_columns(self) -> int:
        """The number of columns."""
        return len(self.grid)

    @property
    def n_codes(self) -> int:
        """The length of a histogram: distinct values of the richest column, and NaN."""
        return int(self.grid.shape[1])

    @cached_property
    def rows(self) -> tuple[IntArray, IntArray]:
        """The rows of class 0 and of class 1."""
        return np.flatnonzero(~self.is_numerator), np.flatnonzero(self.is_numerator)

    @cached_property
    def has_nan(self) -> bool:
        """Whether the data set itself lacks values."""
        return bool((self.codes == self.n_codes - 1).any())

    @cached_property
    def digest(self) -> str:
        """A checksum of the values and the classes."""
        state = hashlib.sha256(self.values.tobytes())
        state.update(self.is_numerator.tobytes())
        return state.hexdigest()

    @cached_property
    def counts(self) -> FloatArray:
        """The histograms of all rows, of shape (n_columns, n_codes)."""
        return self.count(np.arange(self.values.shape[1]))

    @cached_property
    def mean(self) -> FloatArray:
        """Of each column, NaN left out."""
        return np.asarray(np.nanmean(self.values, axis=1))

    @cached_property
    def spread(self) -> FloatArray:
        """The standard deviation of each column, NaN left out."""
        return np.asarray(np.nanstd(self.values, axis=1))

    def count(self, rows: IntArray) -> FloatArray:
        """The histograms of some rows, of shape (n_columns, n_codes)."""
        return np.stack(
            [
                np.bincount(codes.take(rows), minlength=self.n_codes)
                for codes in self.codes
            ]
        ).astype(np.float64)

    def mean_of(self, counts: FloatArray) -> FloatArray:
        """The column means of histograms, NaN left out; the table's where all is."""
        known = counts[:, :-1]
        total = known.sum(axis=1)
        sums = (known * self.grid[:, :-1]).sum(axis=1)
        return np.where(total > 0.0, sums / np.maximum(total, 1.0), self.mean)

    def filled_grid(self, fill: FloatArray) -> FloatArray:
        """The grid with a value for NaN in each column."""
        grid = self.grid.copy()
        grid[:, -1] = fill
        return grid

    def filled_values(self, rows: IntArray, fill: FloatArray) -> FloatArray:
        """The values of some rows, of shape (n_columns, n_rows), NaN filled."""
        values = self.values.take(rows, axis=1)
        if self.has_nan:
            values = np.where(np.isnan(values), fill[:, None], values)
        return values
