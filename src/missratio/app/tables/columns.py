"""Columns of a table: which are numbers, which categories, and both as a matrix."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from missratio._base.hints import did_you_mean, listed
from missratio._base.storable import storable
from missratio._base.typing import FloatArray, IntArray
from missratio._files import TableFile
from missratio._files.cells import DATE, Cells, Mark, NotNumbersError, held_by
from missratio._files.tables import LONGEST_NAME, MOST_COLUMNS
from missratio.exceptions import Message, TableError

SHOWN, MORE_SHOWN = 8, 12
MOST_LEVELS = 100
BLANK = ""
"""The level of a missing category, where that is a level of its own."""
_CORRECT = "Correct it, or leave it blank if it is missing."
_DATES = (
    "make a number of it, such as an age or the days since a date, or take it for "
    "categories (--categorical)"
)
_PANDAS_NAME = re.compile(r"__index_level_\d+__|Unnamed: \d+")


def as_arrow(X: Any, columns: Sequence[str]) -> Any:
    """Some columns of a dataframe as a PyArrow table, null where missing.

    Parameters
    ----------
    X : dataframe
        Of pandas, polars, PyArrow or another library that narwhals knows.
    columns : sequence of str
    """
    import pyarrow

    try:
        return as_frame(X).select(columns).to_arrow()
    except (pyarrow.ArrowException, TypeError) as error:
        raise TableError(
            f"A column holds values of several kinds: {error}. Make numbers or texts "
            "of it."
        ) from error


def as_frame(X: Any) -> nw.DataFrame[Any]:
    """A dataframe of any library; refuses what has no names of columns."""
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        raise TypeError(
            "The model finds columns by their names: give a dataframe of pandas, "
            f"polars or PyArrow, got {type(X).__name__}."
        )
    return frame


@storable()
@dataclass(frozen=True)
class TableColumn:
    """A column of a table.

    Parameters
    ----------
    name : str
    levels : tuple of str, or None
        Categories, the reference first; None for a column of numbers.
    """

    name: str
    levels: tuple[str, ...] | None = None

    @property
    def width(self) -> int:
        """How many columns of the matrix it takes."""
        return 1 if self.levels is None else len(self.levels) - 1

    @property
    def encoded_names(self) -> list[str]:
        """What these are called."""
        if self.levels is None:
            return [self.name]
        return [f"{self.name}={level or '(blank)'}" for level in self.levels[1:]]


@storable()
@dataclass(frozen=True)
class Encoder:
    """Rows of a table as rows of numbers.

    Numbers stay as they are, NaN where missing, and come first. A category is a one in
    the column of its level, and zeros for the first level, the reference. One that is
    missing, or that was never seen, is NaN in all of them: such a row can't be scored.

    Parameters
    ----------
    columns : tuple of TableColumn
        Numbers first.
    cells : Cells
    """

    columns: tuple[TableColumn, ...]
    cells: Cells

    @property
    def width(self) -> int:
        """How many columns the matrix has."""
        return sum(column.width for column in self.columns)

    @property
    def names(self) -> list[str]:
        """The columns of the table that are used."""
        return [column.name for column in self.columns]

    @property
    def n_numeric(self) -> int:
        """How many of them are numbers."""
        return sum(column.levels is None for column in self.columns)

    @property
    def encoded_names(self) -> list[str]:
        """The columns of the matrix."""
        return [name for column in self.columns for name in column.encoded_names]

    @property
    def places(self) -> dict[str, IntArray]:
        """The columns of the matrix that each column of the table takes."""
        ends = np.cumsum([column.width for column in self.columns]).tolist()
        return {
            column.name: np.arange(end - column.width, end)
            for column, end in zip(self.columns, ends, strict=True)
        }

    @property
    def indicators(self) -> dict[str, IntArray]:
        """The same of categories alone."""
        return dict(list(self.places.items())[self.n_numeric :])

    def texts(self, table: Any, column: str) -> list[str | None]:
        """What a column of a table says; None where a cell is missing."""
        texts: list[str | None] = self.cells.texts(table[column]).to_pylist()
        return texts

    def with_marks(self, marks: tuple[Mark, ...]) -> Encoder:
        """The same for a file with other decimal marks."""
        return replace(self, cells=replace(self.cells, marks=marks))

    def encode(
        self,
        table: Any,
        first_row: int = 0,
        place: Callable[[int], str] = lambda row: f"row {row + 1}",
    ) -> FloatArray:
        """The matrix of a table or record batch.

        Parameters
        ----------
        table : PyArrow table or record batch
            With the columns needed, in any order.
        first_row : int
            The place of its first row, for messages.
        place : callable
            Where a row is, from its number, for messages.

        Returns
        -------
        ndarray of shape (n_rows, width)
        """
        import pyarrow

        X: FloatArray = np.empty((len(table), self.width))
        for column, places in zip(self.columns, self.places.values(), strict=True):
            cells = table.column(column.name)
            try:
                if column.levels is None:
                    X[:, places[0]] = self.cells.numbers(cells)
                else:
                    X[:, places] = self._indicators(column.levels, cells)
            except NotNumbersError as error:
                doubt = f" {error.doubt}" if error.doubt else ""
                raise TableError(
                    f"Column {column.name!r} holds numbers: {error.text!r} in "
                    f"{place(first_row + error.row)} is not one.{doubt} {_CORRECT}"
                ) from error
            except pyarrow.ArrowException as error:
                kind = "numbers" if column.levels is None else "texts"
                raise TableError(
                    f"Column {column.name!r} holds {kind}: it is of type {cells.type}. "
                    f"Make {kind} of it, as they were when the model was fitted."
                ) from error
        for row, j in np.argwhere(np.isinf(X)).tolist():
            raise TableError(
                f"Column {self.encoded_names[j]!r} must be finite: got {X[row, j]} in "
                f"{place(first_row + row)}. {_CORRECT}"
            )
        return X

    def _indicators(self, levels: tuple[str, ...], cells: Any) -> FloatArray:
        import pyarrow
        from pyarrow import compute

        texts = self.cells.texts(cells)
        if pyarrow.types.is_boolean(cells.type):
            # Files spell them as they like: True, TRUE or true.
            levels = tuple(level.lower() for level in levels)
        if BLANK in levels:
            texts = compute.fill_null(texts, BLANK)
        codes = compute.index_in(texts, value_set=pyarrow.array(levels)).fill_null(-1)
        codes = codes.to_numpy(zero_copy_only=False)[:, None]
        return np.where(codes < 0, np.nan, codes == np.arange(1, len(levels)))

    def check_columns(
        self,
        present: Sequence[str],
        allowed: Sequence[str],
        remedy: str = "Copy them to the output (--keep), or leave them out (--drop).",
    ) -> None:
        """Refuse a table that lacks columns, or has others.

        Parameters
        ----------
        present : sequence of str
            The columns of the table.
        allowed : sequence of str
            Those that may be there as well.
        remedy : str
            What to do about others.
        """
        absent = [name for name in self.names if name not in present]
        if absent:
            free = [name for name in present if name not in self.names]
            hint = did_you_mean(absent[0], free) if len(absent) == 1 else ""
            raise TableError(
                f"The model needs {len(self.names)} columns, and the table lacks "
                f"{listed(absent, SHOWN)}.{hint} Add what is absent, or rename columns."
            )
        extra = [name for name in present if name not in {*self.names, *allowed}]
        if extra:
            raise TableError(
                "The table has columns that the model doesn't know: "
                f"{listed(extra, SHOWN)}. {remedy}"
            )


def check_names(source: TableFile, option: str, names: Sequence[str]) -> None:
    """Refuse columns that a table doesn't have, all of them at once."""
    absent = [name for name in names if name not in source.names]
    if not absent:
        return
    more = [source.sheet_note] if source.sheet_note else []
    if len(source.names) == 1 and source.path.suffix != ".parquet":
        more.append(
            "If lines come before the column names, say in which line these are: "
            "--header-row 4."
        )
    verb = "is not a column" if len(absent) == 1 else "are not columns"
    hints = "".join(did_you_mean(n, source.names) for n in absent[:MORE_SHOWN])
    claim = f"{option} {listed(absent, MORE_SHOWN)} {verb} of {source.path}.{hints}"
    has = f"It has {listed(source.names, MORE_SHOWN)}."
    raise TableError(" ".join([claim, has, *more]))


def named_columns(source: TableFile, given: Iterable[str]) -> list[str]:
    """Names as they were given to an option, several of them with commas between.

    Parameters
    ----------
    source : TableFile
        A column of it may have a comma in its name.
    given : iterable of str
    """
    names: list[str] = []
    for words in given:
        if words in source.names or "," not in words:
            names.append(words)
        else:
            names += [word.strip() for word in words.split(",") if word.strip()]
    return list(dict.fromkeys(names))


def read_columns(
    table: Any,
    names: Sequence[str],
    source: TableFile,
    cells: Cells,
    categorical: Sequence[str],
    blank_level: bool,
    place: Callable[[int], str],
) -> tuple[Encoder, Any, list[Message]]:
    """Find out what columns hold; what is wrong with any of them is said at once.

    Parameters
    ----------
    table : PyArrow table
    names : sequence of str
        The columns to find out about.
    source : TableFile
        Where the table is from.
    cells : Cells
    categorical : sequence of str
        Columns that are categories though they look like numbers.
    blank_level : bool
        Whether a missing category is a level of its own.
    place : callable
        Where a row is, from its number, for messages.

    Returns
    -------
    encoder : Encoder
    table : PyArrow table
        The same columns, of which those of numbers are read.
    notes : list of Message
        What may not be as it was meant.
    """
    import pyarrow

    columns, problems, numbers = [], {}, {}
    notes = list(map(Message.plain, source.notes))
    for name in names:
        column, forced = table.column(name), name in categorical
        problem = None
        if _PANDAS_NAME.fullmatch(name):
            problem = (
                "had no name when pandas wrote the table: that is how it writes its "
                "row numbers, which say nothing about new rows"
            )
        elif held_by(column.type) == "dates":
            problem = f"holds dates: {_DATES}"
        elif not forced:
            try:
                numbers[name] = values = cells.numbers(column)
            except NotNumbersError as error:
                count, known, text = error.n_wrong, error.n_known, error.text
                if error.doubt is not None:
                    problem = f"has numbers in doubt: {error.doubt[:-1]}"
                # Where more than half of a column are numbers, the rest are taken for
                # slips.
                elif count < 0.5 * known:
                    problem = (
                        f"has {known - count} numbers and {count} cell(s) that are "
                        f"not: {text!r} in {place(error.row)} is the first. "
                        f"Correct them; or --missing-value {text!r} if that means "
                        f"missing; or --categorical {shlex.quote(name)} if the numbers "
                        "are names"
                    )
                elif count < known:
                    facts = {"name": name, "text": text, "count": count, "known": known}
                    claim = (
                        "Column {name!r} is taken for one of categories: {count} of "
                        "its {known} values, such as {text!r}, aren't numbers."
                    )
                    notes.append(Message(claim, facts=facts))
            else:
                columns.append(TableColumn(name))
                if np.isnan(values).all():
                    problem = "has no value in any row"
                elif np.fmin.reduce(values) == np.fmax.reduce(values):
                    problem = "has one value only: nothing can be learned from it"
        if problem is None and name not in numbers:
            counts = {
                each["values"]: each["counts"]
                for each in cells.texts(column).value_counts().to_pylist()
            }
            blank = [BLANK] * bool(counts.pop(None, 0) and blank_level)
            levels = sorted(counts, key=lambda level: (-counts[level], level))
            if levels and not forced and all(map(DATE.fullmatch, levels)):
                problem = f"holds dates, such as {levels[0]!r}: {_DATES}"
            elif max(map(len, levels), default=0) > LONGEST_NAME:
                problem = f"has texts of more than {LONGEST_NAME} characters"
            elif len(levels) > MOST_LEVELS:
                problem = (
                    f"has {len(levels)} different texts, such as {listed(levels[:3])}, "
                    f"and a column of categories may have {MOST_LEVELS}. Is it a name "
                    "or a date?"
                )
            elif not levels:
                problem = "has no value in any row"
            elif len(levels) == 1 and not blank:
                problem = f"is {levels[0]!r} in every row: nothing can be learned"
            columns.append(TableColumn(name, (*levels, *blank)))
        if problem is not None:
            end = "" if problem.endswith("?") else "."
            drop = f"--drop {shlex.quote(name)}"
            problems[drop] = f"column {name!r} {problem}{end} Leave it out ({drop})."
    if len(problems) == 1:
        raise TableError(f"{source.path}, {next(iter(problems.values()))}")
    if problems:
        raise TableError(
            f"{source.path}: {len(problems)} columns can't be used as they are:\n"
            + "\n".join(f"- {problem}" for problem in problems.values())
            + f"\nTo leave all of them out: {' '.join(problems)}"
        )
    columns.sort(key=lambda column: column.levels is not None)
    encoder = Encoder(tuple(columns), cells)
    if encoder.width > MOST_COLUMNS:
        raise TableError(
            f"{source.path}: its columns take {encoder.width:,} columns of numbers, as "
            "a category takes one for each level but the first, and there may be "
            f"{MOST_COLUMNS:,}. Leave some out (--drop)."
        )
    known = {name: numbers.get(name, table.column(name)) for name in table.column_names}
    return encoder, pyarrow.table(known), notes
