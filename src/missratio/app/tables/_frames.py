"""Dataframes of any kind as the tables that files are read into."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import narwhals.stable.v2 as nw

from missratio._base.hints import listed
from missratio.exceptions import TableError


def as_arrow(X: Any, columns: Sequence[str] | None = None) -> Any:
    """Some columns of a dataframe as a PyArrow table, null where missing.

    Parameters
    ----------
    X : dataframe
        Of pandas, polars, PyArrow or another library that narwhals knows.
    columns : sequence of str, optional
        Those to take; all by default.
    """
    frame = _frame(X)
    wanted = list(columns) if columns is not None else frame.columns
    import pyarrow

    arrays = {}
    for name in wanted:
        try:
            arrays[name] = frame.get_column(name).to_arrow()
        except (pyarrow.ArrowException, TypeError) as error:
            raise TableError(
                f"Column {name!r} holds values of several kinds: {error}. Make numbers "
                "or texts of it."
            ) from error
    return pyarrow.table(arrays)


def column_names(X: Any) -> list[str]:
    """The names of a dataframe's columns; refuses what has none, or doubled ones."""
    names = [str(name) for name in _frame(X).columns]
    doubled = sorted(name for name, count in Counter(names).items() if count > 1)
    if doubled:
        raise TableError(f"The table has several columns named {listed(doubled)}.")
    return names


def _frame(X: Any) -> nw.DataFrame[Any]:
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        raise TypeError(
            "The model finds columns by their names: give a dataframe of pandas, "
            f"polars or PyArrow, got {type(X).__name__}."
        )
    return frame
