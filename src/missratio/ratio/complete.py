"""Ratios that are fitted to complete rows, with the weights that make up for the rest.

A Gaussian kernel or a classifier needs every column of a row. Where rows or entries are
missing, a complete row stands for those that are not, with the weight 1/P(complete):
by the paper's Lemma main_prob its weighted means are those of what was there.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_expit
from sklearn import get_config
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from missratio._base.storable import storable
from missratio._base.threads import one_blas_thread
from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.ratio.base import MissingnessParameter, ReadingRatio, check_choice, given
from missratio.ratio.fit import CompleteRows
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


CalibrationMethod = Literal["sigmoid", "isotonic", "temperature"]


@storable()
class ClassifierRatio(CompleteRowsRatio):
    """Density ratio r̂(z) = P̂(1|z)/P̂(0|z) from any classifier, the classes balanced.

    By Bayes' rule, the odds of class 1 given z are the density ratio times the prior
    odds. The classifier is fitted to complete rows weighted by 1/P(complete), and each
    class is scaled to half of the weight. The prior odds are then one, and log r̂ is
    the classifier's log-odds.

    Parameters
    ----------
    estimator : classifier, default=None
        With `predict_proba`, or with a `decision_function` that is calibrated; its
        `fit` takes `sample_weight`, or that of a pipeline's last step does. It is
        cloned. None stands for ``LogisticRegression()``.
        ``HistGradientBoostingClassifier()`` makes boosted trees a ratio.
    missingness : mapping from class to Missingness, "ignore" or None, default=None
        Why values are missing; a class left out is complete. NaN in a class without a
        model is an error. "ignore" drops rows with missing values. The classifier
        sees complete rows only, even if it could take others.
    calibration : {"sigmoid", "isotonic", "temperature"} or None, default=None
        Whether to calibrate the probabilities, and how, as scikit-learn's
        `CalibratedClassifierCV` does. Ratios are odds: a classifier that is too sure
        of itself gives ratios that are too extreme.
    cv : int, default=5
        The number of folds for the calibration.

    Attributes
    ----------
    estimator_ : classifier
        The fitted classifier, calibrated if `calibration` is set.
    classes_ : ndarray of shape (2,)
        The denominator's and the numerator's label.
    effective_sample_size_ : dict from class to SampleSize
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_columns,)

    Examples
    --------
    >>> import numpy as np
    >>> import missratio as mr
    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X1, X0 = rng.normal(1, 1, (500, 1)), rng.normal(0, 1, (2000, 1))
    >>> ratio = mr.density_ratio(X1, X0, mr.ClassifierRatio(LogisticRegression(C=100)))
    >>> ratio.predict_ratio([[0.5], [2.0]]).round(1)
    array([1. , 4.6])
    """

    estimator_: Any

    def __init__(
        self,
        estimator: Any = None,
        missingness: MissingnessParameter = None,
        calibration: CalibrationMethod | None = None,
        cv: int = 5,
    ) -> None:
        self.estimator = estimator
        self.missingness = missingness
        self.calibration = calibration
        self.cv = cv

    def _fit_tables(self, tables: TwoTables) -> None:
        inner = LogisticRegression() if self.estimator is None else self.estimator
        inner = clone(inner)
        parameter = weight_parameter(inner)
        if self.calibration is not None:
            check_choice("calibration", self.calibration, get_args(CalibrationMethod))
            inner = CalibratedClassifierCV(inner, method=self.calibration, cv=self.cv)
            parameter = "sample_weight"
        elif not hasattr(inner, "predict_proba"):
            raise TypeError(
                f"{type(inner).__name__} has no predict_proba, and a ratio is the odds "
                'of its probabilities. Set calibration="sigmoid", or use a classifier '
                "that has it."
            )
        rows, labels, weights = balanced(tables)
        self.estimator_ = inner.fit(rows, labels, **{parameter: weights})

    def _complete_log_ratio(self, rows: FloatArray) -> FloatArray:
        probability = np.asarray(self.estimator_.predict_proba(rows), dtype=np.float64)
        with np.errstate(divide="ignore"):
            return np.log(probability[:, 1]) - np.log(probability[:, 0])

    def _score_tables(self, tables: TwoTables) -> float:
        """Minus the balanced log loss, plus log 2 so that a ratio of one has 0."""
        own, other = tables.numerator, tables.denominator
        found = own.weights @ log_expit(self._complete_log_ratio(own.rows))
        found += other.weights @ log_expit(-self._complete_log_ratio(other.rows))
        return float(found / 2.0 + np.log(2.0))


def balanced(tables: TwoTables) -> tuple[FloatArray, Any, FloatArray]:
    """Both classes' rows as one table, with labels, and weights of one on average.

    Each class has half of the weight.
    """
    own, other = tables.numerator, tables.denominator
    rows = np.concatenate([own.rows, other.rows])
    labels = np.repeat([1, 0], [len(own), len(other)])
    weights = np.concatenate([own.weights, other.weights]) * len(rows) / 2.0
    return rows, labels, weights


def weight_parameter(estimator: Any) -> str:
    """What the parameter for sample weights is called in an estimator's fit."""
    if get_config()["enable_metadata_routing"]:
        # A pipeline hands it to the steps that request it.
        return "sample_weight"
    last, prefix = estimator, ""
    while isinstance(last, Pipeline):
        prefix += f"{last.steps[-1][0]}__"
        last = last.steps[-1][1]
    if not has_fit_parameter(last, "sample_weight"):
        raise ValueError(
            f"{type(last).__name__} takes no sample_weight, so weights for missing "
            "rows can't reach it. Use one that does, or a ratio of missratio."
        )
    return f"{prefix}sample_weight"
