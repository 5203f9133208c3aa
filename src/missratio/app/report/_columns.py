"""The columns of a table: names, values where they are numbers, what is missing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
from scipy.sparse import issparse

from missratio._typing import BoolArray, FloatArray


class Column(NamedTuple):
    """One column.

    Parameters
    ----------
    name : str
    values : ndarray of shape (n,), or None
        None where they are no numbers.
    missing : ndarray of bool of shape (n,)
    """

    name: str
    values: FloatArray | None
    missing: BoolArray


def columns_of(X: Any, names: list[str]) -> Iterator[Column]:
    """Each column of an array or dataframe; none of a sparse table.

    Parameters
    ----------
    X : array or dataframe of shape (n, d)
    names : list of str
        Of an array's columns.
    """
    if issparse(X):
        return
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        for name in frame.columns:
            yield _of_series(str(name), frame.get_column(name))
        return
    table = np.asarray(X)
    for j in range(table.shape[1]):
        yield _of_array(names[j], table[:, j])


def _of_series(name: str, column: nw.Series[Any]) -> Column:
    missing = column.is_null().to_numpy().astype(bool)
    if not (column.dtype.is_numeric() or column.dtype == nw.Boolean):
        return Column(name, None, missing)
    values = column.cast(nw.Float64).fill_null(np.nan).to_numpy().astype(np.float64)
    return Column(name, values, missing | np.isnan(values))


def _of_array(name: str, column: Any) -> Column:
    if column.dtype.kind in "fiub":
        values = column.astype(np.float64)
        return Column(name, values, np.isnan(values))
    missing = np.array([v is None or v != v for v in column.tolist()], dtype=bool)
    return Column(name, None, missing)
