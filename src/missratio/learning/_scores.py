"""A table's columns, standardised: what instruments and tests are computed from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from missratio._base.threads import one_blas_thread, share
from missratio._base.typing import BoolArray, FloatArray, IntArray


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
        """Functions for tests: the same, of columns as normal scores.

        Quantiles of the normal law at the ranks of values have light tails, and spread
        what a skewed column crowds together. Ties share the middle of their ranks.
        """
        scores = np.zeros(self.values.shape, order="F")

        def score(j: int) -> None:
            order = self.order[j]
            scores[order, j] = _normal_scores(self.values[order, j])

        with one_blas_thread(scores.size) as threads:
            share(score, range(len(self.order)), threads)
        return self._with_masks(scores)

    def _with_masks(self, values: FloatArray) -> FloatArray:
        masks = self.missing - self.missing.mean(axis=0)
        return np.concatenate([values, masks, np.ones((len(masks), 1))], axis=1)


def _normal_scores(ordered: FloatArray) -> FloatArray:
    """Normal scores of values in increasing order, standardised; 0 if all are equal."""
    starts = np.flatnonzero(np.diff(ordered, prepend=-np.inf) > 0.0)
    ends = np.append(starts[1:], len(ordered))
    scores = ndtri((starts + ends) / (2.0 * len(ordered)))
    counts = ends - starts
    scores = scores - scores @ counts / len(ordered)
    spread = np.sqrt((scores**2) @ counts / len(ordered))
    return np.repeat(scores / (spread or 1.0), counts)
