"""Tables and labels as a classifier reads them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from missratio._base.blocks import take_rows
from missratio._base.reading import check_no_infinity, read_labels, read_table
from missratio._base.typing import IntArray
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
    return X, read_labels(on_host(y), X)


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
    sparse = hasattr(X, "columns") or get_tags(owner.estimator).input_tags.sparse
    table = read_table(
        owner,
        X if hasattr(X, "columns") else on_host(X),
        reset=reset,
        keep_frame=True,
        dtype=None,
        accept_sparse=["csr", "csc"] if sparse else False,
    )
    if isinstance(table, np.ndarray) and table.dtype.kind == "f":
        check_no_infinity(table)
    return table


def calibrated_rows(classifier: Any, labels: Any) -> IntArray:
    """The rows of a table that a classifier was calibrated with.

    After `calibrate` its rows of the controlled class are those that it got.
    """
    held = np.flatnonzero(labels == classifier.certificate_.controlled_class)
    among = getattr(classifier, "_calibrating", None)
    if among is not None:
        held = held[among[among < len(held)]]
    return np.asarray(getattr(classifier, "calibration_index_", held))


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
    X = read_rows(classifier, X, reset=False)
    labels = read_labels(y, X)
    held = calibrated_rows(classifier, labels)
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
