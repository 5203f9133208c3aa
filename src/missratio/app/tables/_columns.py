"""Which columns of a table are numbers, and which categories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from missratio._files import Cells, NotNumbersError, TableFile, is_number, is_text
from missratio._hints import did_you_mean, listed
from missratio._typing import FloatArray
from missratio.app.tables._encoder import BLANK, TableColumn, flat
from missratio.exceptions import TableError

MOST_LEVELS = 100
# Of a column of which so many are numbers, the rest are taken for slips.
_MOSTLY = 0.5
_SHOWN = 12


def check_names(source: TableFile, option: str, names: Sequence[str]) -> None:
    """Refuse columns that a table doesn't have, all of them at once."""
    absent = [name for name in names if name not in source.names]
    if not absent:
        return
    has = f" It has {listed(source.names[:_SHOWN])}"
    has += f" and {len(source.names) - _SHOWN} more" * (len(source.names) > _SHOWN)
    if len(absent) == 1:
        hint = did_you_mean(absent[0], source.names)
        raise TableError(
            f"{option} {absent[0]!r} is not a column of {source.path}.{hint}{has}."
        )
    hints = "".join(
        f" {name!r}:{hint}"
        for name in absent
        if (hint := did_you_mean(name, source.names))
    )
    raise TableError(
        f"{option} {listed(absent)} are not columns of {source.path}.{hints}{has}."
    )


def named_columns(source: TableFile, given: Iterable[str]) -> list[str]:
    """Names as they were given to an option, several of them with commas between.

    Parameters
    ----------
    source : TableFile
        A column of it may have a comma in its name.
    given : iterable of str
    """
    found: list[str] = []
    for words in given:
        if words in source.names or "," not in words:
            found.append(words)
        else:
            found += [word.strip() for word in words.split(",") if word.strip()]
    return list(dict.fromkeys(found))


@dataclass
class ColumnReader:
    """Finds out what columns hold; what is wrong with them is said at once.

    Parameters
    ----------
    source : TableFile
    cells : Cells
    categorical : sequence of str
        Columns that are categories though they look like numbers.
    blank_level : bool
        Whether a missing category is a level of its own.
    known : dict from str to ndarray
        Numbers that had to be read to find out.
    notes : list of str
        What may not be as it was meant.
    """

    source: TableFile
    cells: Cells
    categorical: Sequence[str]
    blank_level: bool
    known: dict[str, FloatArray] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def read(self, table: Any, names: Sequence[str]) -> list[TableColumn]:
        """The columns of a table, numbers first.

        Parameters
        ----------
        table : PyArrow table
        names : sequence of str
        """
        found, problems = [], {}
        for name in names:
            try:
                found.append(self._column(table.column(name), name))
            except TableError as error:
                problems[name] = str(error)
        if problems:
            raise self._refused(problems)
        return sorted(found, key=lambda column: column.levels is not None)

    def _refused(self, problems: dict[str, str]) -> TableError:
        if len(problems) == 1:
            return TableError(f"{self.source.path}, {next(iter(problems.values()))}")
        return refused(f"{self.source.path}: ", problems)

    def _column(self, column: Any, name: str) -> TableColumn:
        """Whether a column holds numbers or categories, and which."""
        forced = name in self.categorical
        if is_number(column.type) and not forced:
            if column.null_count == len(column):
                raise _without_values(name)
            return TableColumn(name)
        if not (is_number(column.type) or is_text(column.type)):
            if str(column.type) == "null":
                raise _without_values(name)
            raise TableError(
                f"column {name!r} is of type {column.type}: numbers and texts can be "
                f"used. Leave it out (--drop {name}), or make numbers of it."
            )
        column = flat(column)
        if not forced and self._is_numeric(column, name):
            return TableColumn(name)
        texts = self.cells.texts(column)
        if texts.null_count == len(texts):
            raise _without_values(name)
        return TableColumn(name, self._levels(texts, name))

    def _is_numeric(self, column: Any, name: str) -> bool:
        try:
            numbers = self.cells.numbers(column)
        except NotNumbersError as error:
            if error.doubt is not None:
                raise TableError(
                    f"column {name!r} has numbers in doubt: {error.doubt}"
                ) from error
            if error.n_wrong < _MOSTLY * error.n_known:
                raise self._mixed(name, error) from error
            if error.n_wrong < error.n_known:
                self.notes.append(
                    f"Column {name!r} is taken for one of categories: "
                    f"{error.n_wrong} of its {error.n_known} values, such as "
                    f"{error.text!r}, are no numbers."
                )
            return False
        if np.isnan(numbers).all():
            raise _without_values(name)
        self.known[name] = numbers
        return True

    def _levels(self, texts: Any, name: str) -> tuple[str, ...]:
        """The categories of a column, the most frequent first."""
        counts = Counter(
            {item["values"]: item["counts"]
             for item in texts.value_counts().to_pylist()}
        )  # fmt: skip
        n_missing = counts.pop(None, 0)
        levels = sorted(counts, key=lambda level: (-counts[level], level))
        if len(levels) > MOST_LEVELS:
            raise TableError(
                f"column {name!r} has {len(levels)} different texts, such as "
                f"{listed(levels[:3])}, and a column of categories may have "
                f"{MOST_LEVELS}. Is it a name or a date? Leave it out (--drop {name})."
            )
        if n_missing and self.blank_level:
            levels.append(BLANK)
        if len(levels) < 2:
            raise TableError(
                f"column {name!r} is {levels[0]!r} in every row: nothing can be "
                f"learned from it. Leave it out (--drop {name})."
            )
        return tuple(levels)

    def _mixed(self, name: str, error: NotNumbersError) -> TableError:
        return TableError(
            f"column {name!r} has {error.n_known - error.n_wrong} numbers and "
            f"{error.n_wrong} cell(s) that are none: {error.text!r} in "
            f"{self.source.place(error.row)} is the first. Correct them; or "
            f"--missing-value {error.text!r} if that means missing; or --categorical "
            f"{name} if the numbers are names."
        )


def refused(where: str, problems: dict[str, str]) -> TableError:
    """Several columns that can't be used, each with what is wrong.

    Parameters
    ----------
    where : str
        What they are columns of, to begin with.
    problems : dict from str to str
        By the column's name.
    """
    drop = " ".join(f"--drop {name}" for name in problems)
    return TableError(
        f"{where}{len(problems)} columns can't be used as they are:\n"
        + "\n".join(f"- {problem}" for problem in problems.values())
        + f"\nTo leave all of them out: {drop}"
    )


def _without_values(name: str) -> TableError:
    return TableError(
        f"column {name!r} has no value in any row. Leave it out (--drop {name})."
    )
