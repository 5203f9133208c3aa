"""Ratios that are fitted to complete rows, with the weights that make up for the rest.

A Gaussian kernel or a classifier needs every column of a row. Where rows or entries are
missing, a complete row stands for those that are not, with the weight 1/P(complete):
by the paper's Lemma main_prob its weighted means are those of what was there.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from missratio._base.threads import one_blas_thread
from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.ratio._base import given
from missratio.ratio._build import CompleteRows
from missratio.ratio._reading import ReadingRatio
from missratio.rows import (
    ClassRows,
    KnownWeights,
    Normalization,
    WeightSums,
    effective_size,
    refuse_source,
    warn_if_contradicted,
    warn_of_concentration,
)
from missratio.weights import SampleSize


@dataclass(frozen=True, slots=True)
class WeightedTable:
    """A class's complete rows, with weights that sum to one.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_columns)
    weights : ndarray of shape (n_rows,)
    """

    rows: FloatArray
    weights: FloatArray

    @classmethod
    def of(cls, complete: CompleteRows) -> WeightedTable:
        """Bring a class's complete rows together."""
        if not complete.sums.count[0]:
            raise ValueError(
                f"Class {complete.rows.label!r} has no row in which everything is "
                f"observed (of {complete.sums.n_rows}), and this ratio needs complete "
                "rows. Use NaiveBayesRatio, fewer columns, or more rows."
            )
        found = complete.rows
        table = found.source.block(0, found.n_rows).rows.astype(np.float64)
        weights = np.ones(len(table))
        if isinstance(found.weighing, KnownWeights):
            weights = found.weighing.weights
        return cls(table, weights / weights.sum())

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, chosen: BoolArray | IntArray) -> WeightedTable:
        """Some of the rows, with weights that sum to one again."""
        weights = self.weights[chosen]
        return WeightedTable(self.rows[chosen], weights / weights.sum())


@dataclass(frozen=True, slots=True)
class TwoTables:
    """The complete rows of the numerator and of the denominator."""

    numerator: WeightedTable
    denominator: WeightedTable


class CompleteRowsRatio(ReadingRatio):
    """A ratio that is learned from the complete rows of both classes.

    A subclass says how, in `_fit_tables`, and how it is evaluated, in
    `_complete_log_ratio`. Reading, weighing and missing values are the same for all.
    """

    basis: Any = "linear"
    normalize: Normalization = "hajek"

    effective_sample_size_: dict[Any, SampleSize]

    @abstractmethod
    def _fit_tables(self, tables: TwoTables) -> None:
        """Learn from weighted complete rows."""

    @abstractmethod
    def _complete_log_ratio(self, rows: FloatArray) -> FloatArray:
        """The log ratio at complete rows."""

    @abstractmethod
    def _score_tables(self, tables: TwoTables) -> float:
        """How well the ratio fits weighted complete rows; the larger the better."""

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        inclusion: ArrayLike | None = None,
    ) -> Self:
        """Learn the ratio from labelled rows.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_columns)
            NaN where a value is missing.
        y : array-like of shape (n_rows,)
            Two labels. The one sorted last is the numerator: 1 of {0, 1}.
        sample_weight : array-like of shape (n_rows,), optional
            Further weights of the rows, which multiply the inverse-probability ones.
        inclusion : array-like of shape (n_rows,) or (n_rows, n_columns), optional
            The probability with which each row, or entry, is in the table by design,
            for classes without a missingness model: 1 where it was observed, the share
            looked up where it was looked up, 0 where it is still missing (NaN).

        Returns
        -------
        Self
            The fitted estimator.
        """
        refuse_source(self, X, "Bring some of them into memory, or fit KLIEP.")
        read = self._read(X, given(y), sample_weight, inclusion, reset=True)
        classes = self._both_classes(read, fit=True)
        found = [CompleteRows.of(rows) for rows in classes]
        tables = TwoTables(*(WeightedTable.of(complete) for complete in found))
        sums = [complete.sums for complete in found]
        self.effective_sample_size_ = {
            rows.label: effective_size(rows, each)
            for rows, each in zip(classes, sums, strict=True)
        }
        with one_blas_thread(read.table.size):
            self._fit_tables(tables)
        for rows, each in zip(classes, sums, strict=True):
            _warn_of_weights(rows, each, stacklevel=3)
        return self

    def predict_log_ratio(self, X: Any) -> FloatArray:
        """The logarithm of the estimated density ratio.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_columns)
            NaN is accepted where the estimator has a missingness model.

        Returns
        -------
        ndarray of shape (n_rows,)
            −inf where the estimated ratio is zero, NaN for a row that has a missing
            value.
        """
        table = self._read_rows(X).astype(np.float64, copy=False)
        complete = ~np.isnan(table).any(axis=1)
        log_ratio = np.full(len(table), np.nan)
        if complete.any():
            log_ratio[complete] = self._complete_log_ratio(table[complete])
        return log_ratio

    def score(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        inclusion: ArrayLike | None = None,
    ) -> float:
        """How well the ratio fits rows: minus the loss that it was chosen by.

        Weights for missing values are included, so that it can choose parameters in a
        grid search.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_columns)
        y : array-like of shape (n_rows,)
        sample_weight : array-like of shape (n_rows,), optional
        inclusion : array-like of shape (n_rows,) or (n_rows, n_columns), optional
            As for ``fit``.

        Returns
        -------
        float
            The larger the better.
        """
        read = self._read(X, y, sample_weight, inclusion, reset=False)
        found = [CompleteRows.of(rows) for rows in self._both_classes(read)]
        return self._score_tables(TwoTables(*map(WeightedTable.of, found)))


def _warn_of_weights(rows: ClassRows, sums: WeightSums, stacklevel: int) -> None:
    """Warn where a few rows carry a class's weight, or the rows contradict φ."""
    warn_of_concentration(rows, sums, None, lambda: (), stacklevel + 1)
    warn_if_contradicted(rows, True, stacklevel + 1)
