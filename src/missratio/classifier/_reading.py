"""Tables and labels as a classifier reads them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.utils import get_tags
from sklearn.utils.validation import (
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from missratio._base.blocks import take_rows, unmasked
from missratio.ratio import check_no_infinity
from missratio.tensor import on_host

_ROUNDING = 1e-9


def read_labelled(owner: Any, X: Any, y: ArrayLike | None) -> tuple[Any, Any]:
    """Rows to fit on, and their labels.

    Parameters
    ----------
    owner : estimator
        Meta-estimator with a parameter `estimator`; it notes names and width.
    X : array-like, sparse matrix or dataframe of shape (n_rows, n_columns)
    y : array-like of shape (n_rows,)
    """
    if y is None:
        raise ValueError(
            f"This {type(owner).__name__} estimator requires y to be passed, but the "
            "target y is None."
        )
    X = read_rows(owner, X, reset=True)
    labels = np.asarray(column_or_1d(on_host(y), warn=True))
    if labels.dtype.kind == "O":
        labels = _of_one_type(labels)
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError("Input y contains NaN or infinity: labels must be finite.")
    check_consistent_length(X, labels)
    return X, labels


def _of_one_type(objects: Any) -> Any:
    """Labels that came as objects; refuse missing ones, and texts among others."""
    labels = objects.tolist()
    missing = [
        row
        for row, label in enumerate(labels)
        if label is None or (isinstance(label, float) and np.isnan(label))
    ]
    if missing:
        raise ValueError(
            f"Every row needs a label: y has none for row {missing[0]} ({len(missing)} "
            "such). Leave out rows whose class is not known."
        )
    texts = [label for label in labels if isinstance(label, str)]
    others = [label for label in labels if not isinstance(label, str)]
    if texts and others:
        raise ValueError(
            f"The labels of y must be of one type: got {others[0]!r}, of type "
            f"{type(others[0]).__name__}, and the string {texts[0]!r}. Convert them, "
            "such as by y.astype(str)."
        )
    # Numbers as such, so that they sort and compare as numbers.
    return np.asarray(labels) if others and not np.ndim(others[0]) else objects


def read_rows(owner: Any, X: Any, *, reset: bool) -> Any:
    """Check names and width; dataframes stay what they are.

    Parameters
    ----------
    owner : estimator
        Meta-estimator with a parameter `estimator`.
    X : array-like, sparse matrix or dataframe of shape (n_rows, n_columns)
    reset : bool
        Whether to note names and width, rather than to check them.
    """
    if hasattr(X, "columns"):
        validate_data(owner, X, reset=reset, skip_check_array=True)
        return X
    X = on_host(X)
    takes_sparse = get_tags(owner.estimator).input_tags.sparse
    table = validate_data(
        owner,
        unmasked(X),
        reset=reset,
        dtype=None,
        accept_sparse=["csr", "csc"] if takes_sparse else False,
        ensure_all_finite=False,
    )
    if not issparse(table) and table.dtype.kind == "f":
        check_no_infinity(table)
    return table


def check_same_rows(classifier: Any, X: Any, y: ArrayLike) -> None:
    """Refuse rows other than those that a fitted classifier was calibrated with.

    Parameters
    ----------
    classifier : NeymanPearsonClassifier
    X, y : array-like
        The rows that it was fitted with, in their order. After `calibrate`, those of
        the controlled class are the ones that it was calibrated with, in their order.
    """
    check_is_fitted(classifier, "threshold_")
    X, labels = read_rows(classifier, X, reset=False), np.asarray(column_or_1d(y))
    check_consistent_length(X, labels)
    held = np.flatnonzero(labels == classifier.certificate_.controlled_class)
    held = getattr(classifier, "calibration_index_", held)
    kept, same = classifier.calibration_.sample, len(held) and held.max() < len(labels)
    if same:
        found = classifier.calibration_sample(take_rows(X, held))
        same = found.n_rows == kept.n_rows and found.n_observed == kept.n_observed
        same = same and np.allclose(found.values, kept.values, _ROUNDING, _ROUNDING)
    if not same:
        raise ValueError(
            "X and y are not the rows that the classifier's certificate is about. Give "
            "the rows that it was fitted with, in the same order; after calibrate, "
            "those of the controlled class that it was calibrated with."
        )
