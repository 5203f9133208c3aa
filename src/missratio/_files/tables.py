"""What every kind of file with a table answers: its columns, rows and places."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from missratio._base.hints import listed
from missratio._files.cells import Mark
from missratio._files.files import RegularFile
from missratio.exceptions import TableError

MOST_COLUMNS, LONGEST_NAME = 10_000, 1000
"""What a table may have: some steps take memory for every pair of columns."""
_SHOWN = 5


def check_doubled(path: object, names: Iterable[str]) -> None:
    """Refuse several columns of one name."""
    counts = Counter(filter(None, names))
    if doubled := sorted(name for name, count in counts.items() if count > 1):
        raise TableError(
            f"{path} has several columns named {listed(doubled[:_SHOWN])}. Rename or "
            "remove all but one of each."
        )


class TableFile(ABC):
    """A table in a file; nothing but its header is read before it is asked for."""

    names: list[str]
    """The columns, in their order."""
    n_rows: int | None = None
    """How many rows there are, if that is known before they are read."""
    unit = "line"
    """What rows are counted in."""
    marks: tuple[Mark, ...] = ()
    """The decimal marks of numbers that are text, as far as they can be told."""
    sheet = sheet_note = ""
    """The sheet of a workbook that is read, and a note that there are others."""

    def __init__(self, file: RegularFile) -> None:
        self.file, self.path = file, file.path
        self.notes: list[str] = []
        """What is odd about the file, though it can be read."""

    @abstractmethod
    def line_numbers(self) -> Sequence[int]:
        """The line of each row, as `read` has them."""

    def place(self, row: int) -> str:
        """Where a row is in the file, as someone who opens it would find it.

        Parameters
        ----------
        row : int
            From 0, as `read` has it.
        """
        return f"{self.unit} {self.line_numbers()[row]}"

    @abstractmethod
    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Record batches of some columns, in the file's order of rows."""

    def read(self, columns: Sequence[str]) -> Any:
        """All rows of some columns, as a PyArrow table."""
        import pyarrow

        batches = list(self.batches(columns))
        if not sum(len(batch) for batch in batches):
            raise TableError(
                " ".join([f"{self.path} has a header and no rows.", *self.notes])
            )
        return pyarrow.Table.from_batches(batches).select(list(columns))

    def check_limits(self) -> None:
        """Refuse more columns than can be worked with, and endless names."""
        if len(self.names) > MOST_COLUMNS:
            raise TableError(
                f"{self.path} has {len(self.names):,} columns, and a table may have "
                f"{MOST_COLUMNS:,}. Keep those that say something about the classes."
            )
        longest = max(map(len, self.names), default=0)
        if longest > LONGEST_NAME:
            raise TableError(
                f"{self.path} has a column whose name has {longest:,} characters, and "
                f"it may have {LONGEST_NAME:,}. Is the header in another line?"
            )

    def check_header(self) -> None:
        """Refuse columns without a name, and several of one name."""
        check_doubled(self.path, self.names)
        blank = [str(place) for place, name in enumerate(self.names, 1) if not name]
        if blank:
            raise TableError(
                f"{self.path}: column(s) number {', '.join(blank[:_SHOWN])} of "
                f"{len(self.names)} have no name. Give every column one in the header."
            )

    def no_header(self, header_row: int) -> TableError:
        """The error for a line that was said to be the header, and isn't."""
        return TableError(
            f"{self.path} has no header in line {header_row}: that line is blank, or "
            "beyond the end. Give another --header-row."
        )
