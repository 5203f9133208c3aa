"""X and y as every estimator reads them: tables in, arrays of numbers and labels out.

A missing entry is NaN (or a null of the table's own kind, which becomes NaN). Large
tables are read in blocks of rows, so that no temporary as large as the table is made.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.validation import validate_data

from missratio._base.blocks import unmasked
from missratio._base.hints import listed, nearest
from missratio._base.storable import storable
from missratio._base.typing import FloatArray

BLOCK_ENTRIES = 2**18
"""Entries of a block of rows: 2 MiB of float64, which fits the cache."""

_LISTED = 5


FLOATS = [np.float64, np.float32]
"""Of single precision where the user's table is."""


def read_table(
    owner: Any,
    X: Any,
    *,
    reset: bool,
    keep_frame: bool = False,
    finite: bool | str = False,
    dtype: Any = FLOATS,
) -> Any:
    """A table as an estimator takes it; its names and width are noted or checked.

    Parameters
    ----------
    owner : estimator
    X : array-like or dataframe of shape (n_rows, n_columns)
        A masked value is missing.
    reset : bool
        Whether to note names and width, rather than to check them.
    keep_frame : bool, default=False
        Whether a dataframe stays what it is, for an estimator within.
    finite : bool or "allow-nan", default=False
        Whether NaN and infinities are refused here; False where they are seen to later.
    dtype
        As of scikit-learn's `check_array`.

    Returns
    -------
    ndarray of shape (n_rows, n_columns), or X itself
    """
    if type(X).__module__.partition(".")[0] in ("dask", "dask_expr"):
        raise TypeError(
            f"{type(owner).__name__} takes a table in memory here, and this is a Dask "
            "collection. Map over its partitions, as by X.map_partitions(model.predict)"
            " (map_blocks for an array), or bring some rows into memory."
        )
    if keep_frame and as_frame(X) is not None:
        validate_data(owner, X, reset=reset, skip_check_array=True)
        return X
    plain = type(X) is np.ndarray and X.ndim == 2 and X.size and X.dtype in FLOATS
    if plain and dtype is FLOATS:
        # What can be wrong with such a table is found in no time; scikit-learn takes a
        # tenth of a small fit for it.
        if reset and not finite:
            owner.n_features_in_ = X.shape[1]
            owner.__dict__.pop("feature_names_in_", None)
            return X
        named, width = hasattr(owner, "feature_names_in_"), X.shape[1]
        known = not (reset or named) and width == getattr(owner, "n_features_in_", 0)
        if known and (not finite or check_no_infinity(X) or finite == "allow-nan"):
            return X
    if dtype is FLOATS:
        refuse_foreign(X)
    return validate_data(
        owner, unmasked(X), reset=reset, dtype=dtype, ensure_all_finite=finite
    )


def read_labels(y: Any, X: Any = None) -> NDArray[Any]:
    """Labels, one for each row of X: of one type, none missing, and finite.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
    X : sized, optional

    Examples
    --------
    >>> read_labels(["sick", "well"])
    array(['sick', 'well'], dtype='<U4')
    """
    plain = type(y) is np.ndarray and y.ndim == 1 and y.dtype.kind in "biu"
    # Nothing can be wrong with such labels; a twelfth of a small fit would find out.
    # pandas knows the type of its nullable integers better than scikit-learn.
    values = y.to_numpy() if hasattr(y, "to_numpy") else unmasked(y)
    labels = y if plain else np.asarray(column_or_1d(values, warn=True))
    if not len(labels):
        raise ValueError("y has no labels: give one row or more.")
    if X is not None:
        # A sparse table has a shape, and no length.
        n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
        if not plain or n_rows != len(labels):
            check_consistent_length(X, labels)
    kind = labels.dtype.kind
    if kind not in "fO":
        return labels
    # NaN is unequal to itself, and pandas' NA neither equal nor not.
    known = labels == labels if kind == "f" else [str(y == y) == "True" for y in labels]
    empty = False if kind == "f" else [y is None for y in labels]
    missing = np.flatnonzero(~np.array(known, dtype=bool) | empty)
    if len(missing):
        raise ValueError(
            f"Every row needs a label: y has none for row {missing[0]} ({len(missing)} "
            "such). Leave out rows whose class is not known."
        )
    if kind == "f":
        if not np.isfinite(labels).all():
            raise ValueError("Input y contains infinity: labels must be finite.")
        return labels
    texts = [label for label in labels if isinstance(label, str)]
    others = [label for label in labels if not isinstance(label, str)]
    if texts and others:
        raise ValueError(
            f"The labels of y must be of one type: got {others[0]!r}, of type "
            f"{type(others[0]).__name__}, and the string {texts[0]!r}. Convert them, "
            "such as by y.astype(str)."
        )
    # Numbers as such, so that they sort and compare as numbers.
    is_scalar = bool(others) and not np.ndim(others[0])
    return np.asarray(others) if is_scalar else labels


def as_frame(X: Any) -> "nw.DataFrame[Any] | None":
    """Return X as a narwhals frame, or None where X is no dataframe."""
    if isinstance(X, np.ndarray):
        # narwhals takes 0.2 ms to find that out, as long as a small column's draws.
        return None
    try:
        frame = nw.from_native(X, pass_through=True)
    except nw.exceptions.DuplicateError as error:
        raise ValueError(f"Rename columns of X that share a name: {error}") from error
    if isinstance(frame, nw.LazyFrame):
        raise TypeError(
            "X is a LazyFrame, and holds no rows yet: give X.collect(). Map over its "
            "partitions if it is Dask's, as by X.map_partitions(model.predict)."
        )
    return frame if isinstance(frame, nw.DataFrame) else None


def as_array(X: Any) -> NDArray[Any]:
    """Return X as an array, one of numbers with NaN for what is masked or None.

    Examples
    --------
    >>> as_array([[1, None], [2, 3]])
    array([[ 1., nan],
           [ 2.,  3.]])
    """
    array = np.asarray(unmasked(X))
    if array.dtype.kind == "O":
        with suppress(TypeError, ValueError):
            return array.astype(np.float64)
    return array


def column_names(X: Any) -> list[str] | None:
    """The names of a dataframe's columns; None for what has none."""
    frame = as_frame(X)
    return None if frame is None else list(frame.columns)


def names_or_numbers(X: Any, width: int) -> tuple[str, ...]:
    """The names of a dataframe's columns; "0", "1", … for what has none."""
    return tuple(map(str, column_names(X) or range(width)))


def column_places(
    columns: Sequence[Any], known: Sequence[Any], parameter: str
) -> NDArray[np.intp]:
    """Where columns are that a parameter names or numbers: each once, rising.

    Parameters
    ----------
    columns : sequence of str or int
    known : sequence
        The names of all columns, or their numbers.
    parameter : str
    """
    places = []
    for column in columns:
        numbered = isinstance(column, (int, np.integer)) and 0 <= column < len(known)
        if column not in known and not numbered:
            raise ValueError(
                f"{parameter} names {column!r}, and X has {listed(known, 10)}."
                f"{nearest(column, known)}"
            )
        places.append(known.index(column) if column in known else int(column))
    return np.unique(places).astype(np.intp)


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
    names = column_names(X) or _USERS_NAMES.get()
    return repr(names[column]) if np.shape(X)[1:] == (len(names),) else str(column)


def refuse_foreign(X: Any) -> None:
    """Refuse texts by their columns, dates, which scikit-learn counts, and lazy frames.

    Parameters
    ----------
    X : array-like or dataframe
    """
    if isinstance(X, np.ndarray):
        if X.dtype.kind in "mM":
            raise ValueError(
                f"X must be numeric: got values of type {X.dtype}. Make numbers of "
                "them, such as the days since some date, NaN where one is missing."
            )
        return
    frame, foreign = as_frame(X), []
    if frame is None:
        return
    for column in frame.iter_columns():
        kind = column.dtype
        if not (kind.is_numeric() or kind == nw.Boolean):
            try:
                # scikit-learn makes numbers of these, and of dates, which are none.
                np.asarray(column.to_numpy(), dtype=np.float64)
                converts = not kind.is_temporal()
            except (TypeError, ValueError):
                converts = False
            foreign += [] if converts else [column.name]
    if foreign:
        raise ValueError(
            f"X must be numeric: column(s) {listed(foreign, _LISTED)} are not. Leave "
            "them out, or make numbers of them: of dates such as the days since some "
            "date, of texts by pandas.get_dummies or scikit-learn's OneHotEncoder."
        )


def with_values(X: Any, values: NDArray[Any]) -> Any:
    """Values as an array, or as a dataframe like X, whose words they are codes of."""
    frame, words = as_frame(X), word_levels(X)
    if frame is None:
        return values
    columns = []
    for j, column in enumerate(frame.iter_columns()):
        numbers, backend = values[:, j].copy(), frame.implementation
        if j in words:
            word_of = dict(zip(category_codes(words[j]), words[j], strict=True))
            lost = np.flatnonzero(np.isnan(numbers) | column.is_null().to_numpy())
            new = [word_of.get(code) for code in numbers[lost].tolist()]
            columns.append(column.scatter(lost.tolist(), new))
        else:
            columns.append(nw.new_series(column.name, numbers, backend=backend))
    return frame.with_columns(*columns).to_native()


def joined(names: Sequence[str]) -> str:
    """Join names for a message, the first few of them where there are many."""
    more = len(names) - _LISTED
    return ", ".join(names[:_LISTED]) + (f" and {more} more" if more > 0 else "")


def category_codes(categories: Sequence[Any]) -> FloatArray:
    """What φ sees: categories that are numbers as they are, others as their places."""
    if all(isinstance(value, (int, float, bool, np.number)) for value in categories):
        return np.array(categories, dtype=np.float64)
    return np.arange(len(categories), dtype=np.float64)


def word_levels(X: Any) -> dict[int, list[Any]]:
    """The levels of each column of words, by its position, in the order of their codes.

    Those of its type, sorted, whichever of them the rows have. Texts have no such list:
    theirs are those of the rows.
    """
    frame, levels = as_frame(X), dict[int, list[Any]]()
    for j, column in enumerate([] if frame is None else frame.iter_columns()):
        if column.dtype in _LEVELS:
            levels[j] = sorted(column.cat.get_categories().to_list())
        elif column.dtype in (nw.String, nw.Object):
            values = column_values(column)
            if _numbers(values, texts=True) is None:
                levels[j] = sorted({x for x in values if x is not None}, key=str)
    return levels


def as_coded(X: Any) -> tuple[Any, list[int]]:
    """A table with words as φ sees them, as numbers; and the positions of texts.

    A word is its place among the levels of its column (`word_levels`).
    """
    frame: Any = as_frame(X)
    coded, texts = [], list[int]()
    for j, levels in word_levels(X).items():
        column = frame.get_column(frame.columns[j])
        codes = dict(zip(levels, category_codes(levels), strict=True)) | {None: np.nan}
        numbers = np.array([codes[value] for value in column_values(column)])
        new = nw.new_series(column.name, numbers, backend=column.implementation)
        coded.append(new)
        texts += [] if column.dtype in _LEVELS else [j]
    return frame.with_columns(*coded).to_native() if coded else X, texts


def as_coded_array(X: Any) -> NDArray[Any]:
    """As `as_numeric_array`, with words as φ sees them."""
    return as_numeric_array(X if isinstance(X, np.ndarray) else as_coded(X)[0])


# What a word is read as that is not among the levels of its column: it sorts last.
UNKNOWN_WORD = "\U0010ffff"
_LEVELS = (nw.Categorical, nw.Enum)


def column_values(column: Any) -> list[Any]:
    """The values of a column, None for a blank of whichever kind."""
    blanks = column.is_null().to_list()
    pairs = zip(column.to_list(), blanks, strict=True)
    return [None if blank else value for value, blank in pairs]


def _numbers(values: list[Any], texts: bool) -> list[float] | None:
    """Values as numbers; None where some are none, or are texts and these don't count.

    Examples
    --------
    >>> _numbers(["12.5", None], texts=True)
    [12.5, nan]
    """
    if not texts and any(isinstance(value, str) for value in values):
        return None
    try:
        return [math.nan if value is None else float(value) for value in values]
    except (TypeError, ValueError):
        return None


@storable()
@dataclass(frozen=True)
class WordColumns:
    """Columns of words, which every later table is read as the first one was.

    A row has one score then, whichever library and type of texts it comes in, and
    whichever kind of null its blanks are.

    Parameters
    ----------
    library : str
        Of the first table; "" where that was no dataframe.
    columns : mapping from str to tuple or str
        By name of the column its levels, sorted, where words are read as categories;
        else what pandas calls the type of its texts. Other columns are numbers.
    seen : mapping from str to tuple
        By name of the column the words of the rows that an estimator was fitted to.
    """

    library: str
    columns: Mapping[str, Any]
    seen: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, X: Any, *, as_levels: bool) -> "WordColumns":
        """The columns of a first table that are words.

        Parameters
        ----------
        X : array-like or dataframe
        as_levels : bool
            Whether texts are numbers where all of them are, and categories otherwise.
        """
        frame, columns = as_frame(X), dict[str, Any]()
        if frame is None:
            return cls("", columns)
        for column in frame.iter_columns():
            kind = column.dtype
            if kind in _LEVELS:
                levels = column.cat.get_categories().to_list()
                if all(isinstance(level, str) for level in levels):
                    levels = sorted({*levels} - {UNKNOWN_WORD})
                    columns[column.name] = (*levels, UNKNOWN_WORD)
            elif kind in (nw.String, nw.Object):
                values = column_values(column)
                if _numbers(values, as_levels) is not None:
                    continue
                words = sorted({str(value) for value in values if value is not None})
                # scikit-learn's encoders don't take pandas' NA among texts.
                dtype = str(getattr(column.to_native(), "dtype", "object"))
                dtype = "str" if dtype == "str" else "object"
                columns[column.name] = (*words, UNKNOWN_WORD) if as_levels else dtype
        return cls(frame.implementation.value, columns)

    def read(self, X: Any) -> Any:
        """A table, of a dataframe one in the library and types of the first."""
        frame = as_frame(X)
        if frame is None:
            return X
        library: Any = frame.implementation.value
        moved = bool(self.columns) and library != self.library
        library = self.library if moved else library
        changed = []
        for column in frame.iter_columns():
            name, kind = column.name, column.dtype
            if name in self.columns:
                column = self._words(column, library)
            elif kind in (nw.String, nw.Object) or (
                kind == nw.Boolean and column.null_count()
            ):
                values = column_values(column)
                numbers = _numbers(values, texts=True)
                if numbers is None:
                    other = next(x for x in values if _numbers([x], True) is None)
                    raise ValueError(
                        f"Column {name!r} held numbers in fitting, and has {other!r} "
                        "here. Give numbers, or a blank where one is missing."
                    )
                column = nw.new_series(name, numbers, backend=library)
            elif moved:
                column = nw.new_series(name, column.to_numpy(), backend=library)
            else:
                if kind.is_float():
                    named = column.to_frame().to_native()
                    check_no_infinity(column.to_numpy()[:, None], named)
                continue
            changed.append(column)
        if moved:
            return nw.from_dict({c.name: c for c in changed}).to_native()
        return frame.with_columns(*changed).to_native() if changed else X

    def seen_in(self, X: Any) -> "WordColumns":
        """The same, with an estimator that is fitted to these rows."""
        seen = {name: {*words} - {None} for name, words in self._texts(X)}
        return replace(self, seen={k: tuple(sorted(x)) for k, x in seen.items()})

    def unseen(self, X: Any) -> dict[str, list[str | None]]:
        """By column the words that no estimator was fitted to; None in other rows."""
        known = {name: {None, *words} for name, words in self.seen.items()}
        return {
            name: [None if word in known[name] else word for word in words]
            for name, words in self._texts(X)
            if name in known
        }

    def _texts(self, X: Any) -> Iterator[tuple[str, list[str | None]]]:
        """The columns of words of a table: their names, and texts or None."""
        frame: Any = as_frame(X) if self.columns else None
        for name in [] if frame is None else frame.columns:
            if name in self.columns:
                values = column_values(frame[name])
                yield name, [None if x is None else str(x) for x in values]

    def _words(self, column: Any, library: Any) -> Any:
        """A column of words as that of the first table was."""
        levels, in_pandas = self.columns[column.name], library == "pandas"
        blank = math.nan if in_pandas else None
        words = [blank if x is None else str(x) for x in column_values(column)]
        if isinstance(levels, str) or library == "pyarrow":
            dtype = None if in_pandas else nw.String()
            series = nw.new_series(column.name, words, dtype, backend=library)
            native = series.to_native()
            native = native.astype(levels) if in_pandas else native
            return nw.from_native(native, series_only=True)
        known = {blank, *levels}
        words = [word if word in known else UNKNOWN_WORD for word in words]
        return nw.new_series(column.name, words, nw.Enum(levels), backend=library)


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
    if type(X) is np.ndarray and X.dtype.kind == "f" and X.ndim == 2 and X.shape[1]:
        return X
    refuse_foreign(X)
    frame = as_frame(X)
    if frame is not None:
        if any(kind != nw.Float64 for kind in frame.schema.values()):
            frame = frame.select(nw.all().cast(nw.Float64))
        array = frame.to_numpy()
        if array.dtype.kind == "O":
            # pandas has no array of several columns of Arrow's with blanks.
            array = np.array([column.to_numpy() for column in frame.iter_columns()]).T
    else:
        array = as_array(X)
        try:
            if array.dtype.kind not in "biufO":
                raise TypeError(f"values of type {array.dtype}")
            # Objects that are no numbers say so.
            array = array.astype(float) if array.dtype.kind == "O" else array
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"X must be numeric: got {error}. Encode or drop what is not a number."
            ) from error
    if array.ndim != 2 or array.shape[1] == 0:
        raise ValueError(
            "X must be two-dimensional, (rows, features), with one feature or more: "
            f"got shape {array.shape}. For one feature use X.reshape(-1, 1)."
        )
    return array


def read_floats(X: Any, name: str = "X", *, coded: bool = False) -> FloatArray:
    """X as an array of float64 without infinities, where no estimator owns it.

    Words are refused, or read as φ does (`as_coded_array`).
    """
    try:
        array = as_coded_array(X) if coded else as_numeric_array(X)
        table: FloatArray = array.astype(np.float64, copy=False)
        check_no_infinity(table, X)
    except ValueError as error:
        raise ValueError(re.sub(r"\bX\b", name, str(error))) from error
    return table


def row_blocks(shape: tuple[int, ...]) -> Iterator[slice]:
    """Yield slices of consecutive rows that hold about `BLOCK_ENTRIES` entries each."""
    n_rows, n_columns = shape
    step = max(1, BLOCK_ENTRIES // n_columns)
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def check_no_infinity(
    X: NDArray[Any], source: Any = None, row_number: Callable[[int], object] = int
) -> bool:
    """Refuse infinities, and say whether X is free of NaN as well.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_columns)
    source : array or dataframe, optional
        What the caller was given; it names the column in the error.
    row_number : callable
        What a row is called in the error.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        if math.isfinite(X.sum()):
            return True
    complete = True
    for rows in row_blocks(X.shape):
        infinite = np.isinf(X[rows])
        if infinite.any():
            row, column = np.argwhere(infinite)[0].tolist()
            name = column if source is None else column_name(source, column)
            raise ValueError(
                f"Input X contains infinity at row {row_number(rows.start + row)}, "
                f"column {name}. Replace it by NaN if the value is missing, or by a "
                "number."
            )
        complete = complete and not np.isnan(X[rows]).any()
    return complete
