"""Which columns of a table are numbers, and which categories."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from missratio._base.hints import did_you_mean, listed
from missratio._base.typing import FloatArray
from missratio._files import Cells, NotNumbersError, is_number, is_text
from missratio.app.tables._encoder import BLANK, TableColumn, flat
from missratio.exceptions import TableError

MOST_LEVELS = 100
# Of a column of which so many are numbers, the rest are taken for slips.
_MOSTLY = 0.5
_SHOWN = 12
_PANDAS_NAME = re.compile(r"__index_level_\d+__|Unnamed: \d+")


class Header(Protocol):
    """Where a table is, and what its columns are called."""

    path: Path

    @property
    def names(self) -> Sequence[str]:
        """The columns, in their order."""


def check_names(source: Header, option: str, names: Sequence[str]) -> None:
    """Refuse columns that a table doesn't have, all of them at once."""
    absent = [name for name in names if name not in source.names]
    if not absent:
        return
    has = f" It has {listed(source.names, _SHOWN)}"
    if len(absent) == 1:
        hint = did_you_mean(absent[0], source.names)
        titled = ""
        if len(source.names) == 1 and source.path.suffix != ".parquet":
            titled = (
                " If lines come before the column names, say in which line these are: "
                "--header-row 4"
            )
        raise TableError(
            f"{option} {absent[0]!r} is not a column of {source.path}.{hint}{has}."
            + f"{titled}." * bool(titled)
        )
    hints = "".join(
        f" {name!r}:{hint}"
        for name in absent
        if (hint := did_you_mean(name, source.names))
    )
    raise TableError(
        f"{option} {listed(absent)} are not columns of {source.path}.{hints}{has}."
    )


def named_columns(source: Header, given: Iterable[str]) -> list[str]:
    """Names as they were given to an option, several of them with commas between.

    Parameters
    ----------
    source : Header
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


def drop_option(name: str) -> str:
    """The option that leaves a column out, to be pasted into a shell."""
    return f"--drop {shlex.quote(name)}"


@dataclass(frozen=True)
class Misfit:
    """Cells of a column that aren't numbers.

    Parameters
    ----------
    doubt : str or None
        Why one of them could be two numbers.
    row : int
        Where the first is.
    text : str
        What it says.
    n_wrong : int
        How many there are.
    """

    doubt: str | None
    row: int
    text: str
    n_wrong: int


@dataclass
class ColumnReader:
    """Finds out what columns hold; what is wrong with them is said at once.

    Parameters
    ----------
    path : Path
        Of the table.
    place : callable
        Where a row is, from its number.
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

    path: Path
    place: Callable[[int], str]
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
        return self.judged(names, lambda name: self._column(table.column(name), name))

    def judged(
        self, names: Sequence[str], judge: Callable[[str], TableColumn]
    ) -> list[TableColumn]:
        """Columns by a judgement of each; what is wrong with any, in one message.

        Parameters
        ----------
        names : sequence of str
        judge : callable
            From a name to a column, or an error.
        """
        found, problems = [], {}
        for name in names:
            try:
                _check_name(name)
                found.append(judge(name))
            except TableError as error:
                problems[name] = str(error)
        if len(problems) == 1:
            raise TableError(f"{self.path}, {next(iter(problems.values()))}")
        if problems:
            raise refused(f"{self.path}: ", problems)
        return sorted(found, key=lambda column: column.levels is not None)

    def _column(self, column: Any, name: str) -> TableColumn:
        """Whether a column holds numbers or categories, and which."""
        forced = name in self.categorical
        self.check_kind(column.type, name)
        if is_number(column.type) and not forced:
            if _is_blank(column):
                raise self.without_values(name)
            return TableColumn(name)
        column = flat(column)
        if not forced and self._is_numeric(column, name):
            return TableColumn(name)
        texts = self.cells.texts(column)
        if texts.null_count == len(texts):
            raise self.without_values(name)
        counts = Counter(
            {item["values"]: item["counts"]
             for item in texts.value_counts().to_pylist()}
        )  # fmt: skip
        n_missing = counts.pop(None, 0)
        return TableColumn(name, self.levels(counts, n_missing, name))

    def _is_numeric(self, column: Any, name: str) -> bool:
        try:
            numbers = self.cells.numbers(column)
        except NotNumbersError as error:
            misfit = Misfit(error.doubt, error.row, error.text, error.n_wrong)
            self.check_misfit(name, misfit, error.n_known)
            return False
        if np.isnan(numbers).all():
            raise self.without_values(name)
        self.known[name] = numbers
        return True

    def check_kind(self, kind: Any, name: str) -> None:
        """Refuse a column that holds neither numbers nor texts."""
        if is_number(kind) or is_text(kind):
            return
        if str(kind) == "null":
            raise self.without_values(name)
        raise TableError(
            f"column {name!r} is of type {kind}: numbers and texts can be used. Leave "
            f"it out ({drop_option(name)}), or make numbers of it."
        )

    def check_misfit(self, name: str, found: Misfit, n_known: int) -> None:
        """Refuse a column of numbers with a few slips; note one that is half of each.

        Parameters
        ----------
        name : str
        found : Misfit
        n_known : int
            How many cells aren't missing.
        """
        if found.doubt is not None:
            raise TableError(f"column {name!r} has numbers in doubt: {found.doubt}")
        if found.n_wrong < _MOSTLY * n_known:
            raise TableError(
                f"column {name!r} has {n_known - found.n_wrong} numbers and "
                f"{found.n_wrong} cell(s) that are not: {found.text!r} in "
                f"{self.place(found.row)} is the first. Correct them; or "
                f"--missing-value {found.text!r} if that means missing; or "
                f"--categorical {shlex.quote(name)} if the numbers are names."
            )
        if found.n_wrong < n_known:
            self.notes.append(
                f"Column {name!r} is taken for one of categories: {found.n_wrong} of "
                f"its {n_known} values, such as {found.text!r}, aren't numbers."
            )

    def levels(
        self, counts: Counter[str], n_missing: int, name: str
    ) -> tuple[str, ...]:
        """The categories of a column, the most frequent first.

        Parameters
        ----------
        counts : Counter
            How often each text was found.
        n_missing : int
            Cells that have none.
        name : str
        """
        levels = sorted(counts, key=lambda level: (-counts[level], level))
        if len(levels) > MOST_LEVELS:
            raise TableError(
                f"column {name!r} has {len(levels)} different texts, such as "
                f"{listed(levels[:3])}, and a column of categories may have "
                f"{MOST_LEVELS}. Is it a name or a date? Leave it out "
                f"({drop_option(name)})."
            )
        if n_missing and self.blank_level:
            levels.append(BLANK)
        if len(levels) < 2:
            raise self.constant(name, repr(levels[0]))
        return tuple(levels)

    def constant(self, name: str, value: str) -> TableError:
        """The complaint about a column with only one value."""
        return TableError(
            f"column {name!r} is {value} in every row: nothing can be learned from it. "
            f"Leave it out ({drop_option(name)})."
        )

    def without_values(self, name: str) -> TableError:
        """The complaint about a column without any value."""
        return TableError(
            f"column {name!r} has no value in any row. Leave it out "
            f"({drop_option(name)})."
        )


def _check_name(name: str) -> None:
    """Refuse a column to which pandas gave its name for want of one."""
    if _PANDAS_NAME.fullmatch(name):
        raise TableError(
            f"column {name!r} had no name when pandas wrote the table: that is how it "
            "writes its row numbers. They say nothing about new rows. Leave it out "
            f"({drop_option(name)}), or give it a name."
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
    drop = " ".join(map(drop_option, problems))
    return TableError(
        f"{where}{len(problems)} columns can't be used as they are:\n"
        + "\n".join(f"- {problem}" for problem in problems.values())
        + f"\nTo leave all of them out: {drop}"
    )


def _is_blank(column: Any) -> bool:
    """Whether a column of numbers has none, but nulls and NaN."""
    from pyarrow import compute

    return bool(compute.all(compute.is_null(column, nan_is_null=True)).as_py())
