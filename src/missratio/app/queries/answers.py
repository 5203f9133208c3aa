"""What was found out of a plan's cells, checked line by line."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from missratio._files import open_table, written_whole
from missratio._files.numbers import (
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
LETTERS = "bcdfghjkmnpqrstvwxz"
WORD_LENGTH = 8
SHEET = "queries"
HOW_TO_FILL_IN = (
    "From the top down, as far as you get, in the units of the table. Write 'not "
    "found' where a value can't be had."
)
REQUIRED = ("draw", "feature", "value", "key")
NOT_FOUND = frozenset({"not found", "not-found", "notfound"})
BACKENDS = ("pandas", "polars", "pyarrow")
SHOWN = 5

Columns = dict[str, list[Any]]
Levels = Mapping[str, Sequence[str]]
"""What the numbers 0, 1, … of a feature stand for, by its name."""


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
        names = names_or_numbers(X, array.shape[1])
        classes, codes = [None], np.zeros(len(missing), dtype=np.intp)
        if y is not None:
            labels, codes = np.unique(read_labels(y), return_inverse=True)
            classes = labels.tolist()
            check_consistent_length(missing, codes)
        for what, given in (("Features", names), ("Classes", classes)):
            # A spreadsheet can't tell 1 and 1.0 apart.
            spellings = [canonical(name) for name in given]
            if len(set(spellings)) < len(spellings):
                same = [n for n in given if spellings.count(canonical(n)) > 1]
                raise ValueError(
                    f"{what} must have different names: got {listed(same[:5])}."
                )
        return cls(missing, codes, classes, names)

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
        codes = range(len(self.classes))
        return np.stack([cells[self.codes == code].sum(axis=0) for code in codes])


def table_word(fingerprint: str, *, rowwise: bool) -> str:
    """The first half of a key: of which table, and whether rows or cells are asked."""
    return _word(f"{fingerprint} {'rows' if rowwise else 'cells'}")


def cell_word(fingerprint: str, row: int, column: int, draw: int) -> str:
    """The second half of a key: which cell, and as which it was drawn.

    It guards against slips, not forgery.
    """
    return _word(f"{fingerprint} {row} {column} {draw}")


def _word(text: str) -> str:
    number = int.from_bytes(blake2b(text.encode(), digest_size=8).digest())
    letters = []
    for _ in range(WORD_LENGTH):
        number, letter = divmod(number, len(LETTERS))
        letters.append(LETTERS[letter])
    return "".join(letters)


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


def write_table(
    columns: Columns, path: str | Path, *, force: bool, escape_formulas: bool
) -> None:
    """Write columns as a CSV, Parquet or Excel file, whole or not at all.

    A file that exists is left as it is unless `force` is true.
    """
    path = Path(path)
    write = _WRITERS.get(path.suffix.lower())
    if write is None:
        raise ValueError(
            f"The kind of a file is told by its suffix: got {path.name!r}. Choose one "
            f"of {listed(_WRITERS)}."
        )
    if escape_formulas and write is _write_csv:
        columns = {
            name: [without_formula(c) if isinstance(c, str) else c for c in cells]
            for name, cells in columns.items()
        }
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


def _optional_module(name: str) -> Any:
    """Import a module of the extra `tables`, or say how to get it."""
    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(
            f"This kind of file needs {name.partition('.')[0]}: install it, or "
            "missratio's extra with all of them, by pip install 'missratio[tables]'. "
            "CSV needs nothing."
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
        values = np.array(as_numeric_array(X), dtype=np.float64)
        inclusion = np.where(cells.missing, 0.0, 1.0)
        for rows, columns, name in self._pools():
            pool = np.ix_(rows, columns)
            lost, table = cells.missing[pool], self.table[pool]
            incomplete = any_by_row(lost)
            found = incomplete & ~any_by_row(lost & np.isnan(table))
            ended = found | any_by_row(self.not_found[pool])
            order = np.where(incomplete, self.order[pool].max(axis=1), 0)
            drawn = _drawn(order, ended, name)
            share = (found & drawn).sum() / max(incomplete.sum(), 1)
            inclusion[pool] = np.where(lost, share * drawn[:, None], 1.0)
            values[pool] = np.where(
                lost & (found & drawn)[:, None], table, values[pool]
            )
        return with_values(X, values), inclusion

    def _pools(self) -> Iterator[tuple[IntArray, IntArray, str]]:
        """What was drawn from: rows and columns that go together, and their name."""
        columns = np.arange(len(self.feature_names))
        for code, label in enumerate(self.classes):
            rows = np.flatnonzero(self.codes == code)
            name = "" if label is None else f"class {label!r}"
            if self.rowwise[code]:
                yield rows, columns, name
                continue
            for column, feature in enumerate(self.feature_names):
                parts = [name, f"feature {feature!r}"]
                yield rows, columns[[column]], ", ".join(filter(None, parts))

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


def _drawn(order: IntArray, ended: BoolArray, name: str) -> BoolArray:
    """Which of a pool were drawn: all up to the last answer, in drawing order."""
    last = int(order[ended].max(initial=0))
    drawn = (order > 0) & (order <= last)
    absent = sorted(set(range(1, last + 1)) - set(order[drawn].tolist()))
    if absent:
        of = f" of {name}" if name else ""
        raise ValueError(
            f"Lines were taken out of the plan{of} before its last answer: draw "
            f"{listed(absent[:SHOWN])}. Put them back, blank or with 'not found' if "
            "nothing was found."
        )
    return drawn


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
    answers = _Answers(source, cells, planned, lines, levels or {})
    # 1. Every line by itself; what is wrong is told of several at once.
    problems = []
    for line, place in enumerate(answers.places):
        try:
            answers.read(line)
        except ValueError as problem:
            problems.append(f"{place}: {problem}")
    # 2. Rows and single cells of one class are two plans; rows are filled in whole.
    problems = problems or answers.settle()
    if problems:
        more = len(problems) - SHOWN
        rest = [f"and {more} more."] if more > 0 else []
        raise TableError("\n".join([*problems[:SHOWN], *rest]))
    table = answers.table
    table.flags.writeable = False
    return Revealed(
        table=table,
        codes=cells.codes,
        classes=cells.classes,
        feature_names=cells.feature_names,
        missing=cells.counts(cells.missing),
        asked=cells.counts(answers.order > 0 if planned is None else planned),
        answered=cells.counts(~np.isnan(table)),
        rowwise=np.array([kinds == {True} for kinds in answers.kinds]),
        fingerprint=cells.fingerprint,
        order=answers.order,
        not_found=answers.not_found,
    )


class _Answers:
    """The lines of a plan that was filled in, and what they say so far."""

    def __init__(
        self,
        source: Any,
        cells: MissingCells,
        planned: BoolArray | None,
        file_lines: Any,
        levels: Levels,
    ) -> None:
        self.cells, self.planned, self.levels = cells, planned, levels
        self.columns, self.places, marks = _read_table(source)
        by_line = "row" not in self.columns
        if by_line and "line" not in self.columns:
            raise TableError(
                "A plan says by 'row' or by 'line' where a value is missing: neither "
                "is among its columns. Keep the header as it was written."
            )
        if by_line and file_lines is None:
            raise TableError(
                "The plan gives lines of a file, and not rows of X: say by lines=... "
                "which line each row of X is."
            )
        self.lines = np.asarray(file_lines).tolist() if by_line else None
        self.rows_by_line = {line: row for row, line in enumerate(self.lines or ())}
        self.features = {canonical(n): j for j, n in enumerate(cells.feature_names)}
        self.marks = decimal_marks(self.columns["value"]) or marks
        fingerprint = cells.fingerprint
        whole = (False, True)
        self.words = {table_word(fingerprint, rowwise=each): each for each in whole}
        for place, key in zip(self.places, self.columns["key"], strict=True):
            match = re.fullmatch("([a-z]+)-[a-z]+", str(key).strip())
            # A key that is none is refused with its line.
            if match is not None and match[1] not in self.words:
                raise TableError(
                    f"{place}: the plan was made for another table. X must be what it "
                    "was: the same rows in the same order, the same columns, and the "
                    "same cells missing, without the answers put in."
                )
        labels = self.columns.get("class", [])
        if not cells.labelled and not all(is_blank(label) for label in labels):
            raise TableError(
                "The plan is by class: give y, the labels of the rows of X."
            )
        shape = cells.missing.shape
        self.table: FloatArray = np.full(shape, np.nan)
        self.order: IntArray = np.zeros(shape, dtype=np.intp)
        self.not_found = np.zeros(shape, dtype=bool)
        self.kinds: list[set[bool]] = [set() for _ in cells.classes]
        self.answered: dict[tuple[int, int], str] = {}

    def read(self, line: int) -> None:
        """Take a line's answer; ValueError where it can't be one."""
        cells = self.cells
        names = cells.feature_names
        # 1. Where it belongs.
        row = self._row(line)
        feature = self.columns["feature"][line]
        column = self.features.get(canonical(feature))
        if column is None:
            hint = did_you_mean(str(feature), names)
            raise ValueError(f"X has no feature {feature!r}.{hint}")
        where = f"{self._called(row)}, feature {names[column]!r}"
        # 2. Whether the plan asks for it, with this draw and class.
        label = cells.classes[cells.codes[row]]
        given = self.columns["class"][line] if "class" in self.columns else None
        if (
            cells.labelled
            and not is_blank(given)
            and canonical(given) != canonical(label)
        ):
            raise ValueError(
                f"{self._called(row)} is of class {label!r} in y, and of class "
                f"{given!r} in the plan."
            )
        if not cells.missing[row, column]:
            raise ValueError(
                f"{where} isn't missing: X has a value there. Take the line out."
            )
        draw = self._position(line, "draw", "a draw")
        word, _, own = str(self.columns["key"][line]).strip().rpartition("-")
        known = self.planned is None or self.planned[row, column]
        if not known or own != cell_word(cells.fingerprint, row, column, draw):
            raise ValueError(
                f"{where} isn't in the plan as draw {draw}. Only cells drawn at random "
                "may be answered, and keep the draw that they had: put it back, or "
                "plan more cells with the same random_state instead."
            )
        self.order[row, column] = draw
        self.kinds[cells.codes[row]].add(self.words.get(word, False))
        # 3. What was found.
        cell = self.columns["value"][line]
        if is_blank(cell):
            return
        if isinstance(cell, str) and cell.strip().lower() in NOT_FOUND:
            self.not_found[row, column] = True
            return
        value, levels = self._value(cell, column, where), self.levels.get(names[column])
        before = self.answered.setdefault((row, column), self.places[line])
        last = self.table[row, column]
        if before != self.places[line] and last != value:
            last, now = (
                f"{each:g}" if levels is None else repr(levels[int(each)])
                for each in (last, value)
            )
            raise ValueError(
                f"{where} was answered before, by {last} in {before}, and now by "
                f"{now}. Keep one of them."
            )
        self.table[row, column] = value

    def settle(self) -> list[str]:
        """What is wrong with all lines together."""
        for label, kinds in zip(self.cells.classes, self.kinds, strict=True):
            if len(kinds) > 1:
                of = "" if label is None else f" of class {label!r}"
                raise TableError(
                    f"Some lines{of} are of a plan for whole rows and some of one for "
                    "single cells: read them one by one."
                )
        found = ~np.isnan(self.table)
        blank = self.cells.missing & ~found
        partial = found.any(axis=1) & blank.any(axis=1) & ~self.not_found.any(axis=1)
        whole = np.array([kinds == {True} for kinds in self.kinds])
        names = np.array(self.cells.feature_names, dtype=object)
        return [
            f"{self._called(row)} is to be filled in as a whole: "
            f"{listed(names[blank[row]])} are blank. Fill them in, write 'not found', "
            "or clear the row."
            for row in np.flatnonzero(partial & whole[self.cells.codes]).tolist()
        ]

    def _called(self, row: int) -> str:
        """A row as the plan calls it."""
        return f"row {row}" if self.lines is None else f"line {self.lines[row]}"

    def _row(self, line: int) -> int:
        if self.lines is not None:
            number = self._position(line, "line", "a line of the table's file")
            if number not in self.rows_by_line:
                raise ValueError(f"the table has no row in line {number} of its file.")
            return self.rows_by_line[number]
        row, n_rows = self._position(line, "row", "a row of X"), len(self.table)
        if not 0 <= row < n_rows:
            raise ValueError(f"X has rows 0 to {n_rows - 1}: got row {row}.")
        return row

    def _position(self, line: int, name: str, what: str) -> int:
        cell = self.columns[name][line]
        try:
            return parse_position(cell)
        except ValueError:
            raise ValueError(
                f"{name} must be the number of {what}, a whole number: got {cell!r}."
            ) from None

    def _value(self, cell: Any, column: int, where: str) -> float:
        levels = self.levels.get(self.cells.feature_names[column])
        if levels is None:
            try:
                return parse_number(cell, self.marks)
            except ValueError as problem:
                raise ValueError(
                    f"the value at {where} must be a number: {problem}"
                ) from None
        known = [canonical(level) for level in levels]
        if canonical(cell) not in known:
            raise ValueError(
                f"the value at {where} must be one of its categories, "
                f"{listed(levels)}: got {cell!r}.{did_you_mean(str(cell), levels)} "
                "Write one of them, or 'not found'."
            )
        return float(known.index(canonical(cell)))


def _read_table(source: Any) -> tuple[Columns, list[str], frozenset[Any]]:
    """A table's columns, where each line is, and its decimal marks; no blank lines.

    Columns other than the required ones may be there or not, in any order.
    """
    frame = as_frame(source)
    marks: frozenset[Any] = frozenset()
    if frame is not None:
        columns = {str(name): frame[name].to_list() for name in frame.columns}
        places = [f"line {line} of the dataframe" for line in range(len(frame))]
    elif isinstance(source, str | Path):
        # Spreadsheets on Windows save in an encoding of their own. A name misread is
        # noticed later: features must be those of X.
        table = open_table(Path(source), fallback="cp1252", preferred=SHEET)
        table.check_doubled()
        names, places, lines = table.names, [], []
        for number, line in table.lines():
            if not all(is_blank(cell) for cell in line[len(names) :]):
                raise table.ragged(number, len(line))
            places.append(f"{table.path.name}, line {number}")
            # Cells that are absent from the end of a line are blank.
            cells = [with_formula(c) if isinstance(c, str) else c for c in line]
            lines.append(cells + [None] * (len(names) - len(cells)))
        columns = {
            name: [line[place] for line in lines]
            for place, name in enumerate(names)
            if name
        }
        marks = frozenset(table.marks)
    else:
        raise TypeError(
            f"Answers are read from a path or a dataframe: got {type(source).__name__}."
        )
    absent = [name for name in REQUIRED if name not in columns]
    if absent:
        raise TableError(
            f"A plan has the columns {listed(REQUIRED)}: {listed(absent)} not found "
            f"among {listed(columns)}. Keep the header as it was written."
        )
    kept = [
        line
        for line in range(len(places))
        if not all(is_blank(columns[name][line]) for name in REQUIRED)
    ]
    columns = {name: [cells[line] for line in kept] for name, cells in columns.items()}
    return columns, [places[line] for line in kept], marks
