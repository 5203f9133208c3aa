"""Tables and labels as a classifier reads them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.utils import get_tags
from sklearn.utils.validation import (
    check_consistent_length,
    column_or_1d,
    validate_data,
)

from missratio.ratio import check_no_infinity


def read_labelled(owner: Any, X: Any, y: ArrayLike) -> tuple[Any, Any]:
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
    labels = np.asarray(column_or_1d(y, warn=True))
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError("Input y contains NaN or infinity: labels must be finite.")
    check_consistent_length(X, labels)
    return X, labels


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
    takes_sparse = get_tags(owner.estimator).input_tags.sparse
    table = validate_data(
        owner,
        X,
        reset=reset,
        dtype=None,
        accept_sparse=["csr", "csc"] if takes_sparse else False,
        ensure_all_finite=False,
    )
    if not issparse(table) and table.dtype.kind == "f":
        check_no_infinity(table)
    return table
