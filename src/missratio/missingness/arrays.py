"""Tables in, numeric arrays out: the checks that every reader of X shares.

A missing entry is NaN (or a null of the table's own kind, which becomes NaN). Large
tables are read in blocks of rows, so that no temporary as large as the table is made.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray

from missratio._base.blocks import any_by_row, rows_with_nan, unmasked
from missratio._base.hints import listed
from missratio._base.typing import FloatArray

BLOCK_ENTRIES = 2**18
"""Entries of a block of rows: 2 MiB of float64, which fits the cache."""

_LISTED = 5


def as_frame(X: Any) -> "nw.DataFrame[Any] | None":
    """Return X as a narwhals frame, or None where X is not an eager dataframe."""
    if isinstance(X, np.ndarray):
        # narwhals takes 0.2 ms to find that out, as long as a small column's draws.
        return None
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    return frame if isinstance(frame, nw.DataFrame) else None


_USERS_NAMES: ContextVar[tuple[str, ...]] = ContextVar("_USERS_NAMES", default=())


@contextmanager
def columns_named(names: Sequence[str]) -> Iterator[None]:
    """Name the columns of arrays in messages, where the user's table has names."""
    token = _USERS_NAMES.set(tuple(names))
    try:
        yield
    finally:
        _USERS_NAMES.reset(token)


def column_name(X: Any, column: int) -> str:
    """Name a column for a message: its label in a dataframe, else its index."""
    frame = as_frame(X)
    if frame is not None:
        return repr(frame.columns[column])
    names = _USERS_NAMES.get()
    return repr(names[column]) if np.shape(X)[1:] == (len(names),) else str(column)


@contextmanager
def only_numbers(X: Any) -> Iterator[None]:
    """Name what can't be made numbers of, and refuse dates, which scikit-learn counts.

    Parameters
    ----------
    X : array-like or dataframe
        What is converted inside.

    Raises
    ------
    ValueError
        In place of one that names a text and not its column, and for dates and times
        in a dataframe or an array.
    """
    if isinstance(X, np.ndarray) and X.dtype.kind in "mM":
        raise ValueError(
            f"X must be numeric: got values of type {X.dtype}. Make numbers of them, "
            "such as the days since some date, NaN where one is missing."
        )
    frame = as_frame(X)
    if frame is not None and any(kind.is_temporal() for kind in frame.schema.values()):
        raise _not_numeric(frame)
    try:
        yield
    except (TypeError, ValueError) as error:
        if isinstance(nw.from_native(X, pass_through=True), nw.LazyFrame):
            raise TypeError(
                "X is a LazyFrame, and holds no rows yet: give X.collect()."
            ) from error
        if frame is None or all(map(_converts, frame.iter_columns())):
            raise
        raise _not_numeric(frame) from error


def _not_numeric(frame: "nw.DataFrame[Any]") -> ValueError:
    foreign = [each.name for each in frame.iter_columns() if not _converts(each)]
    return ValueError(
        f"X must be numeric: column(s) {listed(foreign, _LISTED)} are not. Leave them "
        "out, or make numbers of them: of dates such as the days since some date, of "
        "texts by pandas.get_dummies or scikit-learn's OneHotEncoder."
    )


def _converts(column: Any) -> bool:
    """Whether a column is one of numbers, or of what scikit-learn makes numbers of."""
    if _is_number(column.dtype):
        return True
    if column.dtype.is_temporal():
        return False
    try:
        np.asarray(column.to_numpy(), dtype=np.float64)
    except (TypeError, ValueError):
        return False
    return True


def _is_number(kind: Any) -> bool:
    return bool(kind.is_numeric() or kind == nw.Boolean)


def names_or_numbers(X: Any, width: int) -> tuple[str, ...]:
    """The names of a dataframe's columns; "0", "1", … for what has none."""
    frame = as_frame(X)
    return tuple(map(str, range(width) if frame is None else frame.columns))


def with_values(X: Any, values: NDArray[Any]) -> Any:
    """Values as an array, or as a dataframe like X."""
    frame = as_frame(X)
    if frame is None:
        return values
    columns = [
        nw.new_series(name, values[:, j].copy(), backend=frame.implementation)
        for j, name in enumerate(frame.columns)
    ]
    return frame.with_columns(*columns).to_native()


def column_names(X: Any) -> list[str] | None:
    """The names of a dataframe's columns; None for what has none."""
    frame = as_frame(X)
    return None if frame is None else list(frame.columns)


def joined(names: Sequence[str]) -> str:
    """Join names for a message, the first few of them where there are many."""
    more = len(names) - _LISTED
    return ", ".join(names[:_LISTED]) + (f" and {more} more" if more > 0 else "")


def as_numeric_array(X: Any) -> NDArray[Any]:
    """Return X as a two-dimensional real array, without a copy where X is one already.

    Parameters
    ----------
    X : array-like or dataframe of shape (n, d)
        Numbers; None, a null or a masked entry is a missing value.

    Returns
    -------
    ndarray of shape (n, d)
        Of X's own boolean, integer or floating type, else float64. NaN is missing.

    Raises
    ------
    ValueError
        Where X is not two-dimensional, has no column, or has values that are not
        numbers.
    """
    frame = as_frame(X)
    array = _array_from_frame(frame) if frame is not None else _array_from_array_like(X)
    if array.ndim != 2 or array.shape[1] == 0:
        raise ValueError(
            "X must be two-dimensional, (rows, features), with one feature or more: "
            f"got shape {array.shape}. For one feature use X.reshape(-1, 1)."
        )
    return array


def _array_from_frame(frame: "nw.DataFrame[Any]") -> NDArray[Any]:
    schema = frame.schema
    foreign = [name for name, dtype in schema.items() if not _is_number(dtype)]
    if foreign:
        raise ValueError(
            f"X must be numeric: column(s) {listed(foreign, _LISTED)} are not. Encode "
            "or drop them."
        )
    if any(dtype != nw.Float64 for dtype in schema.values()):
        frame = frame.select(nw.all().cast(nw.Float64))
    return frame.to_numpy()


def _array_from_array_like(X: Any) -> NDArray[Any]:
    array = np.asarray(unmasked(X))
    if array.dtype.kind in "biuf":
        return array
    try:
        if array.dtype.kind != "O":
            raise TypeError(f"values of type {array.dtype}")
        return array.astype(float)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"X must be numeric: got {error}. Encode or drop what is not a number."
        ) from error


def row_blocks(shape: tuple[int, int]) -> Iterator[slice]:
    """Yield slices of consecutive rows that hold about `BLOCK_ENTRIES` entries each."""
    n_rows, n_columns = shape
    step = max(1, BLOCK_ENTRIES // n_columns)
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def float_blocks(
    table: NDArray[Any], source: Any
) -> Iterator[tuple[slice, FloatArray]]:
    """Yield the rows of a table block by block as float64, none of them infinite.

    `source` is what the caller was given; it names the column in the error. The blocks
    are read-only: they may be views of the caller's data.
    """
    for rows in row_blocks((table.shape[0], table.shape[1])):
        block = table[rows].astype(np.float64, copy=False)
        infinite = np.isinf(block)
        if infinite.any():
            row, column = np.argwhere(infinite)[0]
            raise ValueError(
                f"X must be finite or NaN: got {block[row, column]} at row "
                f"{rows.start + row}, column {column_name(source, column)}. Correct "
                "the entry, or set it to NaN if it is missing."
            )
        block.flags.writeable = False
        yield rows, block


def check_no_partial_row(block: FloatArray, first_row: int) -> None:
    """Refuse rows of which some entries are missing and some are not.

    The block of rows starts at `first_row`.
    """
    rows = np.flatnonzero(rows_with_nan(block))
    missing = np.isnan(block[rows])
    partial = any_by_row(~missing)
    if partial.any():
        at = int(np.argmax(partial))
        raise ValueError(
            f"A rowwise missingness model loses whole rows: row {first_row + rows[at]} "
            f"has {missing[at].sum()} of {missing.shape[1]} entries missing. Use a "
            "per-feature model (rowwise=False), or set the whole row to NaN."
        )


def read_only_parameter(value: ArrayLike, name: str) -> FloatArray:
    """Copy a parameter, a scalar or one per feature, into a read-only float array."""
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} must be a number or a vector of numbers: got {value!r}."
        ) from error
    if array.ndim > 1 or array.size == 0:
        raise ValueError(
            f"{name} must be a number or a vector with one entry per feature: "
            f"got shape {array.shape}."
        )
    array.flags.writeable = False
    return array


def common_width(**parameters: FloatArray) -> int | None:
    """Return the size that vector parameters agree on; None if all are scalars."""
    widths = {name: value.size for name, value in parameters.items() if value.ndim}
    if len(set(widths.values())) > 1:
        sizes = ", ".join(f"{name} has {size}" for name, size in widths.items())
        raise ValueError(
            f"Parameters must have one entry per feature, or be scalar: {sizes} "
            "entries."
        )
    return next(iter(widths.values()), None)
