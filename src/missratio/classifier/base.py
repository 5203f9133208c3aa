"""What every certified classifier does alike, around its estimator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping
from sklearn.utils.validation import check_is_fitted

from missratio._base.callbacks import CallbackSupportMixin
from missratio._base.hints import another_type, check_number
from missratio._base.typing import FloatArray
from missratio.classifier.reading import read_rows
from missratio.classifier.scores import complete_mask
from missratio.classifier.training import complete_weights, find_models
from missratio.missingness import Missingness, RowInclusion

DEPLOYMENTS = ("complete", "as-observed")
INFEASIBLE = ("raise", "reject_all")


class CertifiedClassifier(
    CallbackSupportMixin, ClassifierMixin, MetaEstimatorMixin, BaseEstimator
):
    """A classifier around an estimator, that is calibrated on rows of its own."""

    estimator: Any
    missingness: Mapping[Any, Missingness] | None
    deployment: str
    classes_: Any

    def get_metadata_routing(self) -> MetadataRouter:
        """Fit parameters go to the estimator.

        Returns
        -------
        MetadataRouter
        """
        mapping = MethodMapping().add(caller="fit", callee="fit")
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(estimator=self.estimator, method_mapping=mapping)
        )

    def row_weights(self, X: Any, y: ArrayLike) -> FloatArray | None:
        """Weights with which to measure errors on complete rows.

        Under deployment "complete" a row that has lost a value always gets the
        controlled class, so errors among all rows say nothing about complete rows.
        Errors among the complete ones do, with the weights 1/(1 − φ) of their class.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_columns)
        y : array-like of shape (n_rows,)

        Returns
        -------
        ndarray of shape (n_rows,), or None
            0 for a row that has lost a value; None where all rows count the same.

        Raises
        ------
        ValueError
            Where rows have lost values and their class has no model.
        """
        check_is_fitted(self, "certificate_")
        X = read_rows(self, X, reset=False)
        if self.deployment == "as-observed" or issparse(X) or complete_mask(X).all():
            return None
        models = self._resolve_missingness()
        return complete_weights(X, np.asarray(y), self.classes_.tolist(), models)

    def _resolve_missingness(self) -> Mapping[Any, Missingness] | None:
        """The models by label: the classifier's own, or the estimator's."""
        names = getattr(self, "feature_names_in_", None)
        return find_models(self.missingness, self.estimator, self.classes_, names)

    def _check_estimator(self) -> None:
        """Refuse what can't be fitted."""
        given = self.estimator
        if isinstance(given, type) or not hasattr(given, "fit"):
            what = repr(given)
            if isinstance(given, type):
                what = f"the class {given.__name__}; write {given.__name__}()"
            raise TypeError(
                "estimator must be a density ratio or a classifier, such as KLIEP() or "
                f"LogisticRegression(): got {what}."
            )

    def __sklearn_tags__(self) -> Any:
        """NaN and sparse tables where the estimator takes them."""
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.allow_nan = (
            inner.input_tags.allow_nan or self.missingness is not None
        )
        return tags

    def _drawn(
        self, inclusion: ArrayLike | None, X: Any, y: Any
    ) -> RowInclusion | None:
        """The draw by which rows are there; None where that isn't asked for."""
        if inclusion is None:
            return None
        if self.deployment != "complete":
            raise ValueError(
                "inclusion is for deployment='complete': rows as they are observed are "
                "calibrated as they are. Leave it out, and the answers too."
            )
        return RowInclusion.of(inclusion, complete_mask(X), X.shape[1], y)


def not_a_class(controlled: Any, labels: list[Any]) -> ValueError:
    """The controlled class is not among the classes."""
    return ValueError(
        f"controlled_class={controlled!r} is not among the classes {labels}. Say which "
        f"of them is to be controlled.{another_type(controlled, labels)}"
    )


def check_factor(name: str, factor: float) -> None:
    """Refuse a factor that odds, or a ratio, can't be wrong by."""
    check_number(name, factor)
    if not 1.0 <= factor < np.inf:
        raise ValueError(f"{name} must be 1 or more, and finite: got {factor}.")
