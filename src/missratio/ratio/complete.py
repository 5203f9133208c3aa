"""Ratios that are fitted to complete rows, with the weights that make up for the rest.

A Gaussian kernel or a classifier needs every column of a row. Where rows or entries are
missing, a complete row stands for those that are not, with the weight 1/P(complete):
by the paper's Lemma main_prob its weighted means are those of what was there.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import log_expit
from sklearn import get_config
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from missratio import rows as class_rows
from missratio._base.reading import WordColumns, as_coded, read_table
from missratio._base.storable import storable
from missratio._base.threads import one_blas_thread
from missratio._base.typing import FloatArray
from missratio.ratio import base
from missratio.ratio.base import BaseRatio, Two
from missratio.rows import ClassRows, WeightSums
from missratio.tensor import on_host


@dataclass(frozen=True, slots=True)
class WeightedTable:
    """A class's complete rows, (n_rows, n_columns), with weights that sum to one."""

    rows: FloatArray
    weights: FloatArray

    @classmethod
    def of(cls, complete: tuple[ClassRows, WeightSums]) -> WeightedTable:
        """Bring a class's complete rows together."""
        rows, sums = complete
        if not sums.count[0]:
            raise base.no_complete_row(rows.label, sums.n_rows)
        table = rows.source.every(1).block().rows.astype(np.float64)
        weights = rows.known
        weights = np.ones(len(table)) if weights is None else weights
        return cls(table, weights / weights.sum())

    def __len__(self) -> int:
        return len(self.rows)


class CompleteRowsRatio(BaseRatio):
    """A ratio that is learned from the complete rows of both classes.

    A subclass says how, in `_learn_tables`, and how it is evaluated, in
    `_complete_log_ratio`. Reading, weighing and missing values are the same for all.
    """

    @abstractmethod
    def _learn_tables(self, tables: Two[WeightedTable], rows: Two[ClassRows]) -> None:
        """Learn from weighted complete rows, which came from these."""

    @abstractmethod
    def _complete_log_ratio(self, rows: FloatArray) -> FloatArray:
        """The log ratio at complete rows."""

    def _learn(self, two: Two[ClassRows]) -> None:
        complete = two.map(lambda rows: rows.complete())
        tables = complete.map(WeightedTable.of)
        pairs = [(rows, sums) for rows, (_, sums) in zip(two, complete, strict=True)]
        self.effective_sample_size_ = {
            rows.label: class_rows.effective_size(rows, sums) for rows, sums in pairs
        }
        with one_blas_thread(sum(rows.source.size for rows in two)):
            self._learn_tables(tables, complete.map(lambda pair: pair[0]))
        for rows, sums in pairs:
            class_rows.warn_of_weights(rows, sums, None, lambda: ())

    def _log_ratio(self, X: Any) -> FloatArray:
        finite = True if self._missingness() is None else "allow-nan"
        table = read_table(self, on_host(X), reset=False, finite=finite)
        table = table.astype(np.float64, copy=False)
        complete = ~np.isnan(table).any(axis=1)
        log_ratio = np.full(len(table), np.nan)
        if complete.any():
            log_ratio[complete] = self._complete_log_ratio(table[complete])
        return log_ratio


def log_loss(ratio: BaseRatio, two: Two[ClassRows]) -> float:
    """The log loss of a fitted ratio's odds at complete rows, the classes balanced."""
    tables = [WeightedTable.of(rows.complete()) for rows in two]
    with warnings.catch_warnings():
        # Columns have no names here.
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        numerator, denominator = (ratio._log_ratio(table.rows) for table in tables)
    total = tables[0].weights @ log_expit(numerator)
    return -float(total + tables[1].weights @ log_expit(-denominator)) / 2.0


@storable()
@dataclass(eq=False, repr=False)
class ClassifierRatio(CompleteRowsRatio):
    """Density ratio r̂(z) = P̂(1|z)/P̂(0|z) from any classifier, the classes balanced.

    By Bayes' rule, the odds of class 1 given z are the density ratio times the prior
    odds. The classifier is fitted to complete rows weighted by 1/P(complete), and each
    class is scaled to half of the weight. The prior odds are then one, and log r̂ is
    the classifier's log-odds.

    Parameters
    ----------
    estimator : classifier, default=None
        With `predict_proba`; its `fit` takes `sample_weight`, or that of a pipeline's
        last step does. It is cloned. None stands for ``LogisticRegression()``.
        ``HistGradientBoostingClassifier()`` makes boosted trees a ratio. Ratios are
        odds: a classifier that is too sure of itself gives ratios that are too extreme.
        ``CalibratedClassifierCV(classifier)`` calibrates it.
    missingness : mapping from class to Missingness, "ignore" or None, default=None
        Why values are missing; a class left out is complete. NaN in a class without a
        model is an error. "ignore" drops rows with missing values. The classifier
        sees complete rows only, even if it could take others.

    Attributes
    ----------
    estimator_ : classifier
        The fitted classifier.
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

    estimator: Any = None
    missingness: base.MissingnessParameter = None
    _words: WordColumns = field(default=WordColumns("", {}), init=False)

    def _inner(self) -> Any:
        inner = LogisticRegression() if self.estimator is None else self.estimator
        return clone(inner)

    def _coded(self, X: Any, *, reset: bool = False) -> Any:
        """Categories as numbers, for a classifier that takes those as categories."""
        if reset:
            self._words = WordColumns.of(X, as_levels=True)
        if not hasattr(self._inner(), "categorical_features"):
            return X
        return as_coded(self._words.read(X))[0]

    def _read(self, X: Any, *rest: Any, reset: bool, **more: Any) -> Two[ClassRows]:
        return super()._read(self._coded(X, reset=reset), *rest, reset=reset, **more)

    def _log_ratio(self, X: Any) -> FloatArray:
        return super()._log_ratio(self._coded(X))

    def _learn_tables(self, tables: Two[WeightedTable], rows: Two[ClassRows]) -> None:
        inner = self._inner()
        if words := self._words.columns:
            names = self.feature_names_in_.tolist()
            inner.set_params(categorical_features=[names.index(x) for x in words])
        parameter = weight_parameter(inner)
        if not hasattr(inner, "predict_proba"):
            raise TypeError(
                f"{type(inner).__name__} has no predict_proba, and a ratio is the odds "
                "of its probabilities. Wrap it in CalibratedClassifierCV."
            )
        # Each class has half of the weight, and weights are one on average.
        X = np.concatenate([table.rows for table in tables])
        labels = np.repeat([1, 0], [len(table) for table in tables])
        weights = np.concatenate([table.weights for table in tables]) * len(X) / 2.0
        self.estimator_ = inner.fit(X, labels, **{parameter: weights})

    def _complete_log_ratio(self, rows: FloatArray) -> FloatArray:
        probability = np.asarray(self.estimator_.predict_proba(rows), dtype=np.float64)
        with np.errstate(divide="ignore"):
            return np.log(probability[:, 1]) - np.log(probability[:, 0])

    def _score_rows(self, two: Two[ClassRows]) -> float:
        # A ratio of one has 0.
        return float(np.log(2.0)) - log_loss(self, two)


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
