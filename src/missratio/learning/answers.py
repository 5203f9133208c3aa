"""What was found out of a plan's cells, checked line by line."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from importlib import import_module
from pathlib import Path
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from sklearn.utils import check_consistent_length

from missratio._base.blocks import any_by_row
from missratio._base.hints import did_you_mean, listed
from missratio._base.reading import (
    as_frame,
    as_numeric_array,
    float_blocks,
    names_or_numbers,
    read_labels,
    with_values,
)
from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio._files import TableFile, open_table, written_whole
from missratio._files.delimited import ragged
from missratio._files.numbers import (
    Mark,
    canonical,
    decimal_marks,
    is_blank,
    parse_number,
    parse_position,
    with_formula,
    without_formula,
)
from missratio._files.workbooks import EXCEL_LINES, close_workbook, write_cell
from missratio.exceptions import DestinationError, Message, Remedy, TableError

# Consonants only: no spreadsheet takes such a word for a number, a date or a boolean.
_LETTERS = "bcdfghjkmnpqrstvwxz"
_WORD_LENGTH = 8


@dataclass(frozen=True, eq=False)
class MissingCells:
    """Which cells of X are missing, and the class of every row.

    Parameters
    ----------
    missing : ndarray of bool of shape (n_rows, n_features)
    codes : ndarray of int of shape (n_rows,)
        Each row's place among the classes.
    classes : list
        Labels, sorted; ``[None]`` for a table without labels.
    feature_names : tuple of str
        The columns of a dataframe, or "0", "1", ... for those of an array.
    """

    missing: BoolArray
    codes: IntArray
    classes: list[Any]
    feature_names: tuple[str, ...]

    @classmethod
    def of(cls, X: Any, y: Any = None) -> MissingCells:
        """Read a table and its labels, None for rows of a single class."""
        array = as_numeric_array(X)
        missing = np.empty(array.shape, dtype=bool)
        for rows, block in float_blocks(array, X):
            missing[rows] = np.isnan(block)
        feature_names = names_or_numbers(X, array.shape[1])
        _check_distinct(feature_names, "Features")
        if y is None:
            codes = np.zeros(len(missing), dtype=np.intp)
            return cls(missing, codes, [None], feature_names)
        classes, codes = _read_labels(y)
        check_consistent_length(missing, codes)
        return cls(missing, codes, classes, feature_names)

    @property
    def labelled(self) -> bool:
        """Whether rows have labels."""
        return self.classes != [None]

    @cached_property
    def fingerprint(self) -> str:
        """A digest of the shape, the names of the features, and what is missing.

        Neither labels nor observed values are in it: a label is checked by itself, and
        a value may be stored with more or fewer digits.
        """
        digest = blake2b(repr(self.missing.shape).encode(), digest_size=16)
        digest.update(repr(self.feature_names).encode())
        digest.update(np.packbits(self.missing, axis=None).tobytes())
        return digest.hexdigest()

    def counts(self, cells: BoolArray) -> IntArray:
        """Count marked cells by class and feature, of shape (n_classes, n_features)."""
        return np.stack(
            [cells[self.codes == code].sum(axis=0) for code in range(len(self.classes))]
        )


def table_word(fingerprint: str, *, rowwise: bool) -> str:
    """The first half of a key: of which table, and whether rows or cells are asked."""
    return _word(f"{fingerprint} {'rows' if rowwise else 'cells'}")


def cell_word(fingerprint: str, row: int, column: int, draw: int) -> str:
    """The second half of a key: which cell, and as which it was drawn.

    It guards against slips, not forgery.
    """
    return _word(f"{fingerprint} {row} {column} {draw}")


def stream(*names: str) -> tuple[int, ...]:
    """The spawn key of a stream of its own for these names, whatever others are."""
    return tuple(
        int.from_bytes(blake2b(name.encode(), digest_size=8).digest()) for name in names
    )


def _word(text: str) -> str:
    number = int.from_bytes(blake2b(text.encode(), digest_size=8).digest())
    letters = []
    for _ in range(_WORD_LENGTH):
        number, letter = divmod(number, len(_LETTERS))
        letters.append(_LETTERS[letter])
    return "".join(letters)


def _read_labels(y: Any) -> tuple[list[Any], IntArray]:
    classes, codes = np.unique(read_labels(y), return_inverse=True)
    _check_distinct(classes.tolist(), "Classes")
    return classes.tolist(), codes


def _check_distinct(names: Any, what: str) -> None:
    """Refuse names that a spreadsheet can't tell apart, such as 1 and 1.0."""
    spellings = [canonical(name) for name in names]
    if len(set(spellings)) < len(spellings):
        same = [name for name in names if spellings.count(canonical(name)) > 1]
        raise ValueError(f"{what} must have different names: got {listed(same[:5])}.")


Columns = dict[str, list[Any]]

SHEET = "queries"
HOW_TO_FILL_IN = (
    "From the top down, as far as you get, in the units of the table. Write 'not "
    "found' where a value can't be had."
)
_PACKAGES = {"pyarrow.parquet": "pyarrow", "xlsxwriter": "xlsxwriter"}


@dataclass(frozen=True)
class Lines:
    """The lines of a table that was read, blank ones left out.

    Parameters
    ----------
    columns : dict of str to list
    places : list of str
        Where each line is, for messages.
    marks : frozenset of {",", "."}
        The decimal marks of the file, for columns that don't settle it themselves.
    """

    columns: Columns
    places: list[str]
    marks: frozenset[Mark] = frozenset()


def write_table(
    columns: Columns, path: str | Path, *, force: bool, escape_formulas: bool
) -> None:
    """Write columns as a CSV, Parquet or Excel file, whole or not at all.

    A file that exists is left as it is unless `force` is true.
    """
    path = Path(path)
    if escape_formulas and path.suffix.lower() == ".csv":
        columns = {name: _escaped(cells) for name, cells in columns.items()}
    write = _WRITERS.get(path.suffix.lower())
    if write is None:
        raise ValueError(
            f"The kind of a file is told by its suffix: got {path.name!r}. Choose one "
            f"of {listed(_WRITERS)}."
        )
    if path.is_file() and not force:
        raise DestinationError(
            Message(
                "{file} exists, and may have answers in it.",
                facts={"file": path},
                remedies=("choose another name", Remedy.OVERWRITE),
            )
        )
    with written_whole(path, force=force) as draft:
        write(columns, draft)


def _escaped(cells: list[Any]) -> list[Any]:
    return [without_formula(each) if isinstance(each, str) else each for each in cells]


def read_table(source: Any, required: Sequence[str]) -> Lines:
    """Read a table with a header from a file or a dataframe.

    Columns other than the required ones may be there or not, in any order.
    """
    frame = as_frame(source)
    if frame is not None:
        columns = {str(name): frame[name].to_list() for name in frame.columns}
        places = [f"line {line} of the dataframe" for line in range(len(frame))]
        lines = Lines(columns, places)
    elif isinstance(source, str | Path):
        # Spreadsheets on Windows save in an encoding of their own. A name misread is
        # noticed later: features must be those of X.
        table = open_table(Path(source), fallback="cp1252", preferred=SHEET)
        lines = _from_file(table)
    else:
        raise TypeError(
            f"Answers are read from a path or a dataframe: got {type(source).__name__}."
        )
    _check_header(lines.columns, required)
    kept = [
        line
        for line in range(len(lines.places))
        if not all(is_blank(lines.columns[name][line]) for name in required)
    ]
    return Lines(
        {name: [cells[line] for line in kept] for name, cells in lines.columns.items()},
        [lines.places[line] for line in kept],
        lines.marks,
    )


def _from_file(table: TableFile) -> Lines:
    """All lines of a file. Cells that are absent from the end of a line are blank."""
    table.check_doubled()
    names, numbers, lines = table.names, [], []
    for number, line in table.lines():
        if not all(is_blank(cell) for cell in line[len(names) :]):
            raise ragged(table.file, number, len(line), len(names))
        numbers.append(number)
        lines.append(line)
    return Lines(
        {
            name: [_cell(line[place]) if place < len(line) else None for line in lines]
            for place, name in enumerate(names)
            if name
        },
        [f"{table.path.name}, line {number}" for number in numbers],
        frozenset(table.marks),
    )


def _cell(cell: Any) -> Any:
    return with_formula(cell) if isinstance(cell, str) else cell


def _check_header(columns: Columns, required: Sequence[str]) -> None:
    absent = [name for name in required if name not in columns]
    if absent:
        raise TableError(
            f"A plan has the columns {listed(required)}: {listed(absent)} not found "
            f"among {listed(columns)}. Keep the header as it was written."
        )


def _optional_module(name: str) -> Any:
    """Import a module of the extra `tables`, or say how to get it."""
    try:
        return import_module(name)
    except ImportError as error:
        package = _PACKAGES[name]
        raise ImportError(
            f"This kind of file needs {package}: install it, or missratio's extra "
            "with all of them, by pip install 'missratio[tables]'. CSV needs nothing."
        ) from error


def _write_csv(columns: Columns, path: Path) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(columns)
    writer.writerows(
        ["" if cell is None else cell for cell in row]
        for row in zip(*columns.values(), strict=True)
    )
    # Excel takes a file without the mark for one in the system's old encoding; other
    # readers are better off without it, so only text that needs it gets it.
    content = text.getvalue()
    encoding = "utf-8" if content.isascii() else "utf-8-sig"
    path.write_bytes(content.encode(encoding))


def _write_parquet(columns: Columns, path: Path) -> None:
    parquet, arrow = _optional_module("pyarrow.parquet"), import_module("pyarrow")
    parquet.write_table(
        arrow.table(columns), path, write_page_checksum=True, compression="zstd"
    )


def _write_excel(columns: Columns, path: Path) -> None:
    n_lines = len(next(iter(columns.values())))
    if n_lines >= EXCEL_LINES:
        raise ValueError(
            f"An Excel sheet has {EXCEL_LINES} lines, and the plan {n_lines + 1}: "
            "write it as CSV or Parquet."
        )
    book = _optional_module("xlsxwriter").Workbook(path)
    sheet = book.add_worksheet(SHEET)
    bold = book.add_format({"bold": True})
    to_fill_in = book.add_format({"bg_color": "#FFF8DC"})
    for place, (name, cells) in enumerate(columns.items()):
        width = max(len(str(cell)) for cell in [name, *cells])
        sheet.set_column(place, place, min(width + 2, 40))
        sheet.write_string(0, place, name, bold)
        style = to_fill_in if name == "value" else None
        if name == "value":
            sheet.write_comment(0, place, HOW_TO_FILL_IN)
        for line, cell in enumerate(cells, start=1):
            write_cell(sheet, line, place, cell, style)
    sheet.freeze_panes(1, 0)
    close_workbook(book)


_WRITERS: dict[str, Callable[[Columns, Path], None]] = {
    ".csv": _write_csv,
    ".parquet": _write_parquet,
    ".xlsx": _write_excel,
}


NOT_FOUND = frozenset({"not found", "not-found", "notfound"})
"""What marks a value that was looked for and can't be had, in lower case."""
_KEY = re.compile(r"([a-z]+)-([a-z]+)")
_SHOWN = 5

Levels = Mapping[str, Sequence[str]]
"""What the numbers 0, 1, … of a feature stand for, by its name."""


def check_table(lines: Lines, cells: MissingCells) -> list[bool]:
    """Refuse a plan of another table; say which lines ask for whole rows."""
    kinds = {
        table_word(cells.fingerprint, rowwise=rowwise): rowwise
        for rowwise in (False, True)
    }
    found = []
    for place, key in zip(lines.places, lines.columns["key"], strict=True):
        match = _KEY.fullmatch(str(key).strip())
        if match is not None and match[1] not in kinds:
            raise TableError(
                f"{place}: the plan was made for another table. X must be what it was: "
                "the same rows in the same order, the same columns, and the same cells "
                "missing, without the answers put in."
            )
        # A key that is none is refused with its line.
        found.append(match is not None and kinds[match[1]])
    if not cells.labelled and any(
        not is_blank(label) for label in lines.columns.get("class", [])
    ):
        raise TableError("The plan is by class: give y, the labels of the rows of X.")
    return found


class Answers:
    """The state of reading: what was asked and answered so far, and what is wrong."""

    def __init__(
        self,
        lines: Lines,
        cells: MissingCells,
        whole: list[bool],
        planned: BoolArray | None,
        file_lines: Any = None,
        levels: Levels | None = None,
    ) -> None:
        self.lines, self.cells, self.whole = lines, cells, whole
        self._levels = levels or {}
        self.rowwise = np.zeros(len(cells.classes), dtype=bool)
        self._rows_by_line: dict[int, int] | None = None
        if file_lines is not None:
            numbers = np.asarray(file_lines).tolist()
            self._rows_by_line = {line: row for row, line in enumerate(numbers)}
            self._file_lines = numbers
        self.planned = planned
        self.table: FloatArray = np.full(cells.missing.shape, np.nan)
        self.order: IntArray = np.zeros(cells.missing.shape, dtype=np.intp)
        self.not_found = np.zeros(cells.missing.shape, dtype=bool)
        self._columns = {
            canonical(name): j for j, name in enumerate(cells.feature_names)
        }
        self._labels = [canonical(label) for label in cells.classes]
        self._marks = decimal_marks(lines.columns["value"]) or lines.marks
        self._answered_at: dict[tuple[int, int], str] = {}
        self._kinds: list[set[bool]] = [set() for _ in cells.classes]

    @property
    def asked(self) -> BoolArray:
        """Which cells have a line."""
        return np.asarray(self.order > 0)

    def read(self) -> None:
        """Read all lines, or say what is wrong with them."""
        problems = []
        for line, place in enumerate(self.lines.places):
            try:
                self._read_line(line, place)
            except ValueError as problem:
                problems.append(f"{place}: {problem}")
        if not problems:
            self._settle_kinds()
            problems = self._partial_rows()
        if problems:
            more = len(problems) - _SHOWN
            rest = [f"and {more} more."] if more > 0 else []
            raise TableError("\n".join([*problems[:_SHOWN], *rest]))

    def _settle_kinds(self) -> None:
        """Say of which classes rows were drawn; of each it is rows or single cells."""
        for code, kinds in enumerate(self._kinds):
            if len(kinds) > 1:
                label = self.cells.classes[code]
                of = "" if label is None else f" of class {label!r}"
                raise TableError(
                    f"Some lines{of} are of a plan for whole rows and some of one for "
                    "single cells: read them one by one."
                )
            self.rowwise[code] = kinds == {True}

    def _read_line(self, line: int, place: str) -> None:
        row, column = self._row(line), self._column(line)
        where = f"{self._named(row)}, feature {self.cells.feature_names[column]!r}"
        self._check_class(line, row)
        self._check_cell(line, row, column, where)
        self.order[row, column] = self._position(line, "draw", "a draw")
        self._kinds[self.cells.codes[row]].add(self.whole[line])
        cell = self.lines.columns["value"][line]
        if is_blank(cell):
            return
        if isinstance(cell, str) and cell.strip().lower() in NOT_FOUND:
            self.not_found[row, column] = True
            return
        value = self._value(cell, column, where)
        before = self._answered_at.setdefault((row, column), place)
        if before != place and self.table[row, column] != value:
            raise ValueError(
                f"{where} was answered before, by "
                f"{self._shown(self.table[row, column], column)} in {before}, and now "
                f"by {self._shown(value, column)}. Keep one of them."
            )
        self.table[row, column] = value

    def _value(self, cell: Any, column: int, where: str) -> float:
        levels = self._levels.get(self.cells.feature_names[column])
        if levels is not None:
            known = [canonical(level) for level in levels]
            if canonical(cell) in known:
                return float(known.index(canonical(cell)))
            raise ValueError(
                f"the value at {where} must be one of its categories, "
                f"{listed(levels)}: got {cell!r}.{did_you_mean(str(cell), levels)} "
                "Write one of them, or 'not found'."
            )
        try:
            return parse_number(cell, self._marks)
        except ValueError as problem:
            raise ValueError(
                f"the value at {where} must be a number: {problem}"
            ) from None

    def _shown(self, value: float, column: int) -> str:
        levels = self._levels.get(self.cells.feature_names[column])
        return f"{value:g}" if levels is None else repr(levels[int(value)])

    def _position(self, line: int, name: str, what: str) -> int:
        cell = self.lines.columns[name][line]
        try:
            return parse_position(cell)
        except ValueError:
            raise ValueError(
                f"{name} must be the number of {what}, a whole number: got {cell!r}."
            ) from None

    def _named(self, row: int) -> str:
        """A row as the plan calls it."""
        if self._rows_by_line is None:
            return f"row {row}"
        return f"line {self._file_lines[row]}"

    def _row(self, line: int) -> int:
        if self._rows_by_line is not None:
            number = self._position(line, "line", "a line of the table's file")
            if number not in self._rows_by_line:
                raise ValueError(f"the table has no row in line {number} of its file.")
            return self._rows_by_line[number]
        row = self._position(line, "row", "a row of X")
        n_rows = len(self.cells.missing)
        if not 0 <= row < n_rows:
            raise ValueError(f"X has rows 0 to {n_rows - 1}: got row {row}.")
        return row

    def _column(self, line: int) -> int:
        cell = self.lines.columns["feature"][line]
        column = self._columns.get(canonical(cell))
        if column is None:
            names = self.cells.feature_names
            hint = did_you_mean(str(cell), names)
            raise ValueError(f"X has no feature {cell!r}.{hint}")
        return column

    def _check_class(self, line: int, row: int) -> None:
        if not self.cells.labelled or "class" not in self.lines.columns:
            return
        cell, code = self.lines.columns["class"][line], self.cells.codes[row]
        if not is_blank(cell) and canonical(cell) != self._labels[code]:
            raise ValueError(
                f"{self._named(row)} is of class {self.cells.classes[code]!r} in y, "
                f"and of class {cell!r} in the plan."
            )

    def _check_cell(self, line: int, row: int, column: int, where: str) -> None:
        if not self.cells.missing[row, column]:
            raise ValueError(
                f"{where} isn't missing: X has a value there. Take the line out."
            )
        key = str(self.lines.columns["key"][line]).strip()
        draw = self._position(line, "draw", "a draw")
        word = cell_word(self.cells.fingerprint, row, column, draw)
        known = self.planned is None or self.planned[row, column]
        if not known or key.rpartition("-")[2] != word:
            raise ValueError(
                f"{where} isn't in the plan as draw {draw}. Only cells drawn at random "
                "may be answered, and keep the draw that they had: put it back, or "
                "plan more cells with the same random_state instead."
            )

    def _partial_rows(self) -> list[str]:
        found = ~np.isnan(self.table)
        blank = self.cells.missing & ~found
        partial = found.any(axis=1) & blank.any(axis=1) & ~self.not_found.any(axis=1)
        partial &= self.rowwise[self.cells.codes]
        names = np.array(self.cells.feature_names, dtype=object)
        return [
            f"{self._named(row)} is to be filled in as a whole: "
            f"{listed(names[blank[row]])} are blank. Fill them in, write "
            "'not found', or clear the row."
            for row in np.flatnonzero(partial).tolist()
        ]


REQUIRED = ("draw", "feature", "value", "key")
BACKENDS = ("pandas", "polars", "pyarrow")


@dataclass(frozen=True, eq=False)
class Revealed:
    """The values found for missing cells, in the shape of the table they belong to.

    ``revealed[label]`` are the rows of a class, aligned with ``X[y == label]``: the
    second argument of `learn_missingness`.

    Parameters
    ----------
    table : ndarray of shape (n_rows, n_features)
        Aligned with X, and NaN where nothing was revealed.
    codes : ndarray of int of shape (n_rows,)
        Each row's place among the classes.
    classes : list
        Labels, sorted; ``[None]`` for a table without labels.
    feature_names : tuple of str
    missing, asked, answered : ndarray of int of shape (n_classes, n_features)
        How many cells are missing, how many of these were to be looked up, and how many
        were found.
    rowwise : ndarray of bool of shape (n_classes,)
        Of which classes rows were drawn, with all their missing values, and not single
        cells.
    fingerprint : str
        That of the table.
    order : ndarray of int of shape (n_rows, n_features)
        The number of each cell's draw, from 1; 0 for one that was not asked.
    not_found : ndarray of bool of shape (n_rows, n_features)
        Which cells were marked as not found.

    Notes
    -----
    Answers stand for all missing values of their class and feature. They do so if
    whether a value could be found doesn't depend on what it is. If the extreme ones are
    the harder to find, what is learned from the rest is biased, and no later step can
    notice: compare `asked` with `answered`.
    """

    table: FloatArray
    codes: IntArray
    classes: list[Any]
    feature_names: tuple[str, ...]
    missing: IntArray
    asked: IntArray
    answered: IntArray
    rowwise: BoolArray
    fingerprint: str
    order: IntArray
    not_found: BoolArray

    def fill(self, X: Any) -> tuple[Any, FloatArray]:
        """The table with the answers in it, and how likely each was to be there.

        An observed value is there for certain, one that was looked up with the share
        m/M of the M missing ones that m of them were drawn from by lot: within each
        class and feature, or within each class where rows were drawn. Weights that are
        one over these probabilities make means over what is there unbiased, whatever
        made values go missing.

        Answers are a draw as far as they go: up to the last one, in the order of
        `draw`. A line left blank before it counts as "not found", and those after it as
        not drawn. That holds if how far they go has nothing to do with the values.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_features)
            The table that the plan was made for, as it was.

        Returns
        -------
        X_filled : ndarray or dataframe of shape (n_rows, n_features)
            NaN where a value is missing still.
        inclusion : ndarray of shape (n_rows, n_features)
            1 where observed, m/M where looked up, 0 where missing still. What was drawn
            and not found has the probability of those found, and NaN in `X_filled`: a
            ratio leaves it out, a certificate counts it as an error.
        """
        cells = MissingCells.of(X)
        if cells.fingerprint != self.fingerprint:
            raise ValueError(
                "The answers are those of another table. X must be what it was when "
                "the plan was made: the same rows and columns, and the same cells "
                "missing."
            )
        answered = np.zeros(cells.missing.shape, dtype=bool)
        inclusion = np.where(cells.missing, 0.0, 1.0)
        for code in range(len(self.classes)):
            rows = np.flatnonzero(self.codes == code)
            of_class = _by_row if self.rowwise[code] else _by_entry
            answered[rows], inclusion[rows] = of_class(self, cells.missing, code, rows)
        values = np.array(as_numeric_array(X), dtype=np.float64)
        values[answered] = self.table[answered]
        return with_values(X, values), inclusion

    def __getitem__(self, label: Any) -> FloatArray:
        """The revealed values of one class, (n_class_rows, n_features)."""
        if label not in self.classes:
            raise KeyError(
                f"{label!r} is not among the classes {listed(self.classes)}."
            )
        of_class: BoolArray = self.codes == self.classes.index(label)
        return np.asarray(self.table[of_class])

    def summary(self, backend: str = "pandas") -> Any:
        """A dataframe of how much is missing, asked and answered.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}, default="pandas"

        Returns
        -------
        dataframe
            A line for each class and feature with a missing value.
        """
        code, column = np.nonzero(self.missing)
        columns: Columns = {}
        if self.classes != [None]:
            columns["class"] = [self.classes[place] for place in code]
        columns["feature"] = [self.feature_names[place] for place in column]
        for name in ("missing", "asked", "answered"):
            columns[name] = getattr(self, name)[code, column].tolist()
        return as_native(columns, backend)

    def __repr__(self) -> str:
        n_rows, n_features = self.table.shape
        return (
            f"<Revealed: {self.answered.sum()} of {self.asked.sum()} cells answered, "
            f"{n_rows} rows, {n_features} features>"
        )


def _by_row(
    revealed: Revealed, missing: BoolArray, code: int, rows: IntArray
) -> tuple[BoolArray, FloatArray]:
    """Which entries of a class's rows were found with all of their row, and how likely.

    Returns entries found and inclusion probabilities, of shape (n_rows, n_columns).
    """
    lost = missing[rows]
    incomplete = any_by_row(lost)
    answered = incomplete & ~any_by_row(lost & np.isnan(revealed.table[rows]))
    ended = answered | any_by_row(revealed.not_found[rows])
    order = np.where(incomplete, revealed.order[rows].max(axis=1), 0)
    drawn = _drawn(order, ended, _class_name(revealed, code))
    n_found, n_pool = int((answered & drawn).sum()), int(incomplete.sum())
    share = n_found / max(n_pool, 1)
    inclusion = np.where(lost, np.where(drawn, share, 0.0)[:, None], 1.0)
    return lost & (answered & drawn)[:, None], inclusion


def _by_entry(
    revealed: Revealed, missing: BoolArray, code: int, rows: IntArray
) -> tuple[BoolArray, FloatArray]:
    """The same where single entries were drawn, of every feature by itself."""
    lost = missing[rows]
    answered = ~np.isnan(revealed.table[rows])
    ended = answered | revealed.not_found[rows]
    order = revealed.order[rows]
    inclusion = np.where(lost, 0.0, 1.0)
    for column, feature in enumerate(revealed.feature_names):
        pool = np.flatnonzero(lost[:, column])
        name = ", ".join(
            filter(None, [_class_name(revealed, code), f"feature {feature!r}"])
        )
        drawn = _drawn(order[pool, column], ended[pool, column], name)
        found = np.count_nonzero(answered[pool, column][drawn])
        inclusion[pool[drawn], column] = found / max(len(pool), 1)
    return answered & (inclusion > 0.0), inclusion


def _class_name(revealed: Revealed, code: int) -> str:
    label = revealed.classes[code]
    return "" if label is None else f"class {label!r}"


def _drawn(order: IntArray, ended: BoolArray, name: str) -> BoolArray:
    """Which of a pool were drawn: all up to the last answer, in drawing order.

    Raises
    ------
    ValueError
        If a line before the last answer was taken out: its row is not known then.
    """
    last = int(order[ended].max(initial=0))
    drawn = (order > 0) & (order <= last)
    absent = sorted(set(range(1, last + 1)) - set(order[drawn].tolist()))
    if absent:
        shown = listed(absent[:_SHOWN])
        of = f" of {name}" if name else ""
        raise ValueError(
            f"Lines were taken out of the plan{of} before its last answer: draw "
            f"{shown}. Put them back, blank or with 'not found' if nothing was found."
        )
    return drawn


def as_native(columns: Columns, backend: str) -> Any:
    """Columns as a dataframe of the library that is asked for."""
    if backend not in BACKENDS:
        raise ValueError(
            f"backend must be one of {listed(BACKENDS)}: got {backend!r}."
            f"{did_you_mean(str(backend), BACKENDS)}"
        )
    try:
        frame = nw.from_dict(columns, backend=backend)  # type: ignore[arg-type]
    except ModuleNotFoundError as error:
        raise ImportError(
            f"backend={backend!r} needs {backend}: install it."
        ) from error
    if all(cell is None for cell in columns.get("value", [""])):
        # A column of nothing has no type of its own.
        frame = frame.with_columns(nw.col("value").cast(nw.Float64))
    return frame.to_native()


def read_answers(
    source: Any,
    X: Any,
    y: Any = None,
    planned: BoolArray | None = None,
    *,
    lines: Any = None,
    levels: Levels | None = None,
) -> Revealed:
    """Read the answers in a file or a dataframe, and check each against X and y.

    `planned` marks the cells of one plan, where others of the same table are not to be
    taken as well. `lines` says where rows are in the user's own file, for a plan that
    goes by them, and `levels` what the numbers of features that are categories stand
    for.
    """
    cells = MissingCells.of(X, y)
    found = read_table(source, REQUIRED)
    by_line = "row" not in found.columns
    if by_line and "line" not in found.columns:
        raise TableError(
            "A plan says by 'row' or by 'line' where a value is missing: neither is "
            "among its columns. Keep the header as it was written."
        )
    if by_line and lines is None:
        raise TableError(
            "The plan gives lines of a file, and not rows of X: say by lines=... which "
            "line each row of X is."
        )
    file_lines = lines if by_line else None
    answers = Answers(
        found, cells, check_table(found, cells), planned, file_lines, levels
    )
    answers.read()
    asked, table = answers.asked if planned is None else planned, answers.table
    table.flags.writeable = False
    return Revealed(
        table=table,
        codes=cells.codes,
        classes=cells.classes,
        feature_names=cells.feature_names,
        missing=cells.counts(cells.missing),
        asked=cells.counts(asked),
        answered=cells.counts(~np.isnan(table)),
        rowwise=answers.rowwise,
        fingerprint=cells.fingerprint,
        order=answers.order,
        not_found=answers.not_found,
    )
