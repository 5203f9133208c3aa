"""A table's columns, standardised: what instruments and tests are computed from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from missratio._threads import one_blas_thread, share
from missratio._typing import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class ScoredTable:
    """Standardised values and masks, and how each column's values are ordered.

    Parameters
    ----------
    values : ndarray of shape (n_rows, n_columns)
        Of mean 0 and unit variance where observed, 0 where missing or where the column
        is constant.
    missing : ndarray of bool of shape (n_rows, n_columns)
    order : list of ndarray of int
        For each column its observed rows, by increasing value.
    """

    values: FloatArray
    missing: BoolArray
    order: list[IntArray]

    @classmethod
    def of(cls, table: FloatArray) -> ScoredTable:
        """Standardise every column; none of them is missing throughout."""
        missing: BoolArray = np.isnan(table)
        values = np.zeros(table.shape, order="F")

        def standardise(j: int) -> IntArray:
            rows = np.flatnonzero(~missing[:, j])
            column = table[rows, j]
            centred = column - column.mean()
            values[rows, j] = centred / (float(centred.std()) or 1.0)
            return rows[np.argsort(column, kind="stable")]

        with one_blas_thread(table.size) as threads:
            order = share(standardise, range(table.shape[1]), threads)
        return cls(values, missing, order)

    def prediction_features(self) -> FloatArray:
        """What columns are predicted from: values, centred masks and a constant."""
        return self._with_masks(self.values)

    def test_features(self) -> FloatArray:
        """Functions for tests: the same, on a scale without heavy tails.

        asinh is linear about the mean and logarithmic in the tails.
        """
        return self._with_masks(np.arcsinh(self.values))

    def _with_masks(self, values: FloatArray) -> FloatArray:
        masks = self.missing - self.missing.mean(axis=0)
        return np.concatenate([values, masks, np.ones((len(masks), 1))], axis=1)
