"""Rows of large tables: which have a NaN, and some of them as a table of their own."""

from __future__ import annotations

import math
from functools import reduce
from typing import Any

import narwhals.stable.v2 as nw
import narwhals.stable.v2.selectors as ns
import numpy as np
from sklearn.utils import _safe_indexing

from missratio._base.typing import BoolArray, FloatArray, IntArray


def unmasked(X: Any) -> Any:
    """A masked array with NaN, or None among texts, for a mask; all else as it is.

    scikit-learn takes the values under a mask for observed ones.
    """
    if not isinstance(X, np.ma.MaskedArray):
        return X
    if X.dtype.kind in "biuf":
        return np.ma.filled(X.astype(np.float64), np.nan)
    return np.ma.filled(X.astype(object), None)


def any_by_row(mask: BoolArray) -> BoolArray:
    """Say which rows of a mask hold a True; quicker than ``any`` where rows are short.

    Examples
    --------
    >>> any_by_row(np.array([[True, False], [False, False]]))
    array([ True, False])
    """
    # From about 32 columns on a loop over columns takes longer.
    if not 0 < mask.shape[1] <= 32:
        return np.asarray(mask.any(axis=1))
    return reduce(np.logical_or, mask.T)


def inverse_where_positive(values: FloatArray) -> FloatArray:
    """One over the values, 0 where they are 0.

    Examples
    --------
    >>> inverse_where_positive(np.array([0.5, 0.0]))
    array([2., 0.])
    """
    inverse = np.zeros(values.shape)
    np.divide(1.0, values, out=inverse, where=values > 0.0)
    return inverse


def rows_with_nan(X: FloatArray) -> BoolArray:
    """Say which rows of a floating table hold a NaN."""
    n_rows, width = X.shape
    if X.flags.f_contiguous or width < 8:
        return any_by_row(np.isnan(X))
    # Eight columns at once take a quarter to a half of the time.
    mask = np.zeros((n_rows, 8 * math.ceil(width / 8)), dtype=bool)
    np.isnan(X, out=mask[:, :width])
    return any_by_row(mask.view(np.uint64) != 0)


def take_rows(X: Any, index: IntArray) -> Any:
    """Some rows of an array, sparse matrix or dataframe, by their numbers.

    NumPy's take is the quickest way, and shares a table among threads; but it copies a
    table whole, each time, unless its rows lie one after another.

    Parameters
    ----------
    X : array, sparse matrix or dataframe of shape (n_rows, n_columns)
    index : ndarray of int

    Examples
    --------
    >>> take_rows(np.array([[1.0], [2.0], [3.0]]), np.array([2, 0]))
    array([[3.],
           [1.]])
    """
    if not isinstance(X, np.ndarray) or X.ndim != 2:
        return _safe_indexing(X, index)
    # An index out of range was refused before: clipping only saves the check.
    if X.flags.c_contiguous:
        return np.take(X, index, axis=0, mode="clip")
    if X.flags.f_contiguous:
        return np.take(X.T, index, axis=1, mode="clip").T
    return np.asarray(X[index])


def in_double(X: Any) -> Any:
    """Rows with their single-precision numbers in double precision.

    So a row has one score, whichever precision its values are asked for in.
    """
    if getattr(X, "dtype", None) is not None:
        return X.astype(np.float64) if X.dtype == np.float32 else X
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame) or nw.Float32 not in frame.schema.values():
        return X
    return frame.with_columns(ns.by_dtype(nw.Float32).cast(nw.Float64)).to_native()
