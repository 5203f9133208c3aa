"""One classifier for each imputation, their scores averaged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from missratio._base.callbacks import CallbackSupportMixin, run_tasks, with_callbacks_of
from missratio._base.storable import storable
from missratio._base.typing import FloatArray
from missratio.tensor import in_library_of, on_host


def _has(method: str) -> Any:
    return available_if(lambda self: hasattr(self.estimator, method))


@storable()
@dataclass(eq=False, repr=False)
class ImputationEnsemble(
    CallbackSupportMixin, ClassifierMixin, MetaEstimatorMixin, BaseEstimator
):
    """The mean of classifiers that were each fitted to one imputation.

    Imputed values differ from one imputation to the next, and their noise averages out.

    Parameters
    ----------
    imputer : imputer
        With `fit_impute(X, y)` and `impute(X)`, such as `TiltedImputer`; its
        `n_imputations` says how many classifiers there are.
    estimator : classifier
        With `decision_function` or `predict_proba`.

    Attributes
    ----------
    imputer_ : imputer
    estimators_ : list of classifiers
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : ndarray

    Examples
    --------
    >>> import numpy as np
    >>> import missratio as mr
    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> Z0, Z1 = rng.normal(0, 1, (400, 2)), rng.normal(1, 1, (400, 2))
    >>> phi = mr.LogisticMissingness(0.0, [1.0, -1.0])
    >>> X = np.concatenate([Z0, mr.corrupt(Z1, phi, rng)])
    >>> y = np.repeat([0, 1], 400)
    >>> imputer = mr.TiltedImputer({1: phi}, n_imputations=5, random_state=0)
    >>> ensemble = mr.ImputationEnsemble(imputer, LogisticRegression()).fit(X, y)
    >>> len(ensemble.estimators_), ensemble.predict([[2.0, 2.0], [-1.0, -1.0]])
    (5, array([1, 0]))
    """

    imputer: Any
    estimator: Any

    def fit(
        self, X: Any, y: ArrayLike, inclusion: ArrayLike | None = None, **params: Any
    ) -> Self:
        """Impute, and fit a clone of the estimator to each completed table.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_columns)
            NaN where a value is missing.
        y : array-like of shape (n_rows,)
        inclusion : array-like of shape (n_rows,) or (n_rows, n_columns), optional
            For the imputer, where values were looked up.
        **params : dict
            Such as `sample_weight`, for the estimator's fit.

        Returns
        -------
        Self
            The fitted ensemble.
        """
        self.imputer_ = clone(with_callbacks_of(self, self.imputer))
        more = {} if inclusion is None else {"inclusion": inclusion}
        X, y = on_host(X), on_host(y)
        tables = self.imputer_.fit_impute(X, y, **more)
        self.estimators_ = run_tasks(
            self,
            "imputation",
            tables,
            lambda table: clone(self.estimator).fit(table, y, **params),
        )
        self.classes_ = self.estimators_[0].classes_
        self.n_features_in_ = self.imputer_.n_features_in_
        if hasattr(self.imputer_, "feature_names_in_"):
            self.feature_names_in_ = self.imputer_.feature_names_in_
        return self

    @_has("decision_function")
    def decision_function(self, X: Any) -> FloatArray:
        """The mean of the classifiers' decision functions.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_columns)
            If a value is missing, each classifier gets its own imputation.

        Returns
        -------
        ndarray of shape (n_rows,), or (n_rows, n_classes) for more than two
            The larger, the more like the second class, or like each class.
        """
        return self._mean("decision_function", X)

    @_has("predict_proba")
    def predict_proba(self, X: Any) -> FloatArray:
        """The mean of the classifiers' class probabilities.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_columns)

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            In the order of `classes_`.
        """
        return self._mean("predict_proba", X)

    def predict(self, X: Any) -> Any:
        """The class with the largest mean score.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_columns)

        Returns
        -------
        ndarray of shape (n_rows,)
            A label for each row.
        """
        decides = hasattr(self.estimator, "decision_function")
        scores = self._mean("decision_function" if decides else "predict_proba", X)
        places = scores > 0.0 if scores.ndim == 1 else np.argmax(scores, axis=1)
        return in_library_of(X, self.classes_[places.astype(np.intp)])

    def _mean(self, method: str, X: Any) -> FloatArray:
        check_is_fitted(self, "estimators_")
        tables = self.imputer_.impute(on_host(X))
        scores = [
            getattr(model, method)(table)
            for model, table in zip(self.estimators_, tables, strict=True)
        ]
        return np.asarray(np.mean(scores, axis=0))

    def __sklearn_tags__(self) -> Any:
        """As the estimator, and missing values are welcome."""
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        if inner.classifier_tags is not None:
            tags.classifier_tags = inner.classifier_tags
        tags.input_tags.allow_nan = get_tags(self.imputer).input_tags.allow_nan
        return tags
