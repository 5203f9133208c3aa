"""Ratios of rows that are tensors, where they lie."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted

from missratio.basis import LinearBasis
from missratio.tensor import as_numpy, check_rows, like


def predict_tensor(ratio: Any, X: Any) -> Any:
    """The log ratios of a tensor's rows, on its device.

    Parameters
    ----------
    ratio : JointRatio
    X : tensor of shape (n_rows, n_columns)
    """
    check_is_fitted(ratio)
    check_rows(X, ratio.n_features_in_, allow_nan=ratio._allows_nan())
    features = X
    if type(ratio.basis_) is not LinearBasis:
        features = like(X, ratio._evaluate_basis(as_numpy(X), as_numpy(X)))
    score = features @ like(X, as_numpy(ratio.coef_)) + float(ratio.intercept_)
    return score if ratio._is_log_linear() else score.clamp(min=0.0).log()
