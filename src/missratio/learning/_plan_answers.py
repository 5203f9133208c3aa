"""What was found out of a plan's cells, checked line by line."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from missratio._base.hints import did_you_mean, listed
from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio._files.numbers import (
    canonical,
    decimal_marks,
    is_blank,
    parse_number,
    parse_position,
)
from missratio.exceptions import TableError
from missratio.learning._plan_cells import MissingCells, cell_word, table_word
from missratio.learning._plan_fill import fill_table
from missratio.learning._plan_table import Columns, Lines, read_table

REQUIRED = ("draw", "feature", "value", "key")
NOT_FOUND = frozenset({"not found", "not-found", "notfound"})
"""What marks a value that was looked for and can't be had, in lower case."""
BACKENDS = ("pandas", "polars", "pyarrow")
_KEY = re.compile(r"([a-z]+)-([a-z]+)")
_SHOWN = 5


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
        return fill_table(self, X)

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
    if "value" in columns:
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
) -> Revealed:
    """Read the answers in a file or a dataframe, and check each against X and y.

    `planned` marks the cells of one plan, where others of the same table are not to be
    taken as well. `lines` says where rows are in the user's own file, for a plan that
    goes by them.
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
    whole = _check_table(found, cells)
    answers = _Answers(found, cells, whole, planned, lines if by_line else None)
    answers.read()
    asked = answers.asked if planned is None else planned
    table = answers.table
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


def _check_table(lines: Lines, cells: MissingCells) -> list[bool]:
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


class _Answers:
    """The state of reading: what was asked and answered so far, and what is wrong."""

    def __init__(
        self,
        lines: Lines,
        cells: MissingCells,
        whole: list[bool],
        planned: BoolArray | None,
        file_lines: Any = None,
    ) -> None:
        self.lines, self.cells, self.whole = lines, cells, whole
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
        try:
            value = parse_number(cell, self._marks)
        except ValueError as problem:
            raise ValueError(
                f"the value at {where} must be a number: {problem}"
            ) from None
        before = self._answered_at.setdefault((row, column), place)
        if before != place and self.table[row, column] != value:
            raise ValueError(
                f"{where} was answered before, by {self.table[row, column]:g} in "
                f"{before}, and now by {value:g}. Keep one of them."
            )
        self.table[row, column] = value

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
        word = cell_word(self.cells.fingerprint, row, column)
        known = self.planned is None or self.planned[row, column]
        if not known or key.rpartition("-")[2] != word:
            raise ValueError(
                f"{where} isn't in the plan. Only cells drawn at random may be "
                "answered: plan more of them with the same random_state instead."
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
