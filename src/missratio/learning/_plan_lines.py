"""The lines of a plan that was filled in, checked one by one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

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
from missratio.learning._plan_table import Lines

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
