"""Tables in files, as batches of rows of the columns asked for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import islice
from pathlib import Path
from typing import Any

from missratio._base.hints import listed
from missratio._files.delimited import csv_batches, csv_lines, find_dialect, no_header
from missratio._files.files import RegularFile, kind_of
from missratio._files.numbers import Mark
from missratio._files.parquet import (
    check_count,
    open_parquet,
    parquet_batches,
    sound,
)
from missratio._files.workbooks import formulas_without_result, read_sheet
from missratio.exceptions import TableError

BATCH_ROWS = 2**16
_SHOWN = 5
# Pages are read as they are needed, in pieces of this size.
_BUFFER = 2**20


class TableFile(ABC):
    """A table in a file; nothing but its header is read before it is asked for."""

    names: list[str]
    """The columns, in their order."""
    n_rows: int | None = None
    """How many rows there are, if that is known before they are read."""
    marks: tuple[Mark, ...] = ()
    """The decimal marks of numbers that are text, as far as they can be told."""

    def __init__(self, file: RegularFile) -> None:
        self.file, self.path = file, file.path

    @property
    def notes(self) -> list[str]:
        """What is odd about the file, though it can be read."""
        return []

    @abstractmethod
    def lines(self) -> Iterator[tuple[int, Sequence[Any]]]:
        """The lines below the header that aren't empty, each with its number."""

    def line_numbers(self) -> Sequence[int]:
        """The line of each row, as `read` has them."""
        return [number for number, _ in self.lines()]

    def place(self, row: int) -> str:
        """Where a row is in the file, as someone who opens it would find it.

        Parameters
        ----------
        row : int
            From 0, as `read` has it.
        """
        line = next(islice(self.lines(), row, None), None)
        return f"row {row + 1}" if line is None else f"line {line[0]}"

    @abstractmethod
    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Record batches of some columns, in the file's order of rows."""

    def read(self, columns: Sequence[str]) -> Any:
        """All rows of some columns, as a PyArrow table."""
        import pyarrow

        batches = list(self.batches(columns))
        if not sum(len(batch) for batch in batches):
            raise TableError(
                f"{self.path} has a header and no rows: there is nothing to work on."
            )
        return pyarrow.Table.from_batches(batches).select(list(columns))

    def check_header(self) -> None:
        """Refuse columns without a name, and several of one name."""
        self.check_doubled()
        names = self.names
        blank = [str(place) for place, name in enumerate(names, 1) if not name]
        if blank:
            raise TableError(
                f"{self.path}: column(s) number {', '.join(blank[:_SHOWN])} of "
                f"{len(names)} have no name. Give every column one in the header."
            )

    def check_doubled(self) -> None:
        """Refuse several columns of one name."""
        counts = Counter(name for name in self.names if name)
        doubled = sorted(name for name, count in counts.items() if count > 1)
        if doubled:
            raise TableError(
                f"{self.path} has several columns named {listed(doubled[:_SHOWN])}. "
                "Rename or remove all but one of each."
            )


class CsvFile(TableFile):
    """A CSV file: every cell is text."""

    def __init__(
        self,
        file: RegularFile,
        encoding: str | None,
        fallback: str | None,
        header_row: int | None = None,
    ) -> None:
        super().__init__(file)
        self._dialect = find_dialect(file, encoding, fallback, header_row)
        self.names, self.marks = self._dialect.header, self._dialect.marks

    def lines(self) -> Iterator[tuple[int, Sequence[Any]]]:
        """The lines below the header that aren't empty, each with its number."""
        return csv_lines(self.file, self._dialect)

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Record batches of some columns, as text."""
        return csv_batches(self.file, self._dialect, columns)


class ParquetTable(TableFile):
    """A Parquet file, of which only a few pages are in memory at a time."""

    def __init__(self, file: RegularFile) -> None:
        super().__init__(file)
        with self._sound():
            self._file = open_parquet(self.path, buffer_size=_BUFFER)
        self.names = list(self._file.schema_arrow.names)
        self.n_rows: int = self._file.metadata.num_rows

    def _sound(self) -> AbstractContextManager[None]:
        # PyArrow opens the file itself, and keeps it open.
        self.file.open().close()
        return sound(TableError, f"{self.path} can't be read as a Parquet file")

    def lines(self) -> Iterator[tuple[int, Sequence[Any]]]:
        """The rows, each with its number."""
        columns = (column.to_pylist() for column in self.read(self.names).columns)
        return enumerate(zip(*columns, strict=True), start=1)

    def line_numbers(self) -> Sequence[int]:
        """The number of each row, from 1."""
        return range(1, self.n_rows + 1)

    def place(self, row: int) -> str:
        """The number of a row: a Parquet file has no lines."""
        return f"row {row + 1}"

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Record batches of some columns, of the types that the file has."""
        with self._sound():
            yield from parquet_batches(self._file, columns, BATCH_ROWS)

    def read(self, columns: Sequence[str]) -> Any:
        """All rows of some columns, decoded by all cores."""
        if self.n_rows == 0:
            return super().read(columns)
        with self._sound():
            table = self._file.read(columns=list(columns)).select(list(columns))
            check_count(table.num_rows, self.n_rows)
            return table


class ExcelSheet(TableFile):
    """A sheet of a workbook; its first line that isn't blank is the header."""

    def __init__(
        self,
        file: RegularFile,
        sheet: str | None,
        preferred: str | None,
        header_row: int | None = None,
    ) -> None:
        super().__init__(file)
        lines = read_sheet(file, sheet, preferred)
        if header_row is not None:
            lines = [line for line in lines if line[0] >= header_row]
            if not lines or lines[0][0] != header_row:
                raise no_header(file, header_row)
        (_, header), *self._lines = lines
        self.names = [str(cell).strip() for cell in header]
        self.n_rows = len(self._lines)

    @property
    def notes(self) -> list[str]:
        """What is odd about the workbook."""
        count = formulas_without_result(self.file)
        if not count:
            return []
        return [
            f"{count} formula(s) in {self.path} have no result in the file and count "
            "as missing. Open it in a spreadsheet, let it calculate, and save it."
        ]

    def lines(self) -> Iterator[tuple[int, Sequence[Any]]]:
        """The lines below the header that aren't empty, each with its number."""
        return iter(self._lines)

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """One record batch: numbers where a column has no text, else text."""
        import pyarrow

        places = {name: place for place, name in enumerate(self.names)}
        arrays = [
            _excel_column([line[places[name]] for _, line in self._lines])
            for name in columns
        ]
        yield pyarrow.RecordBatch.from_arrays(arrays, names=list(columns))


def _excel_column(cells: list[Any]) -> Any:
    import pyarrow

    if all(type(cell) in (int, float) for cell in cells if cell != ""):
        return pyarrow.array(
            [None if cell == "" else float(cell) for cell in cells], pyarrow.float64()
        )
    whole = [isinstance(cell, float) and cell.is_integer() for cell in cells]
    texts = [
        str(int(c) if is_whole else c) for c, is_whole in zip(cells, whole, strict=True)
    ]
    return pyarrow.array(texts, pyarrow.string())


def open_table(
    path: Path,
    *,
    encoding: str | None = None,
    sheet: str | None = None,
    fallback: str | None = None,
    preferred: str | None = None,
    header_row: int | None = None,
) -> TableFile:
    """Open a CSV, Parquet or Excel file, by its suffix.

    Parameters
    ----------
    path : Path
    encoding : str, optional
        Of a CSV file; by default UTF-8.
    sheet : str, optional
        Of a workbook; by default the first.
    fallback : str, optional
        Encoding of a CSV file that is not UTF-8, where none was told.
    preferred : str, optional
        Sheet to take if it is there, where none was told.
    header_row : int, optional
        The line of the header, from 1, where others come before it; by default the
        first that isn't blank.
    """
    file = RegularFile.at(path)
    kind = kind_of(path)
    if kind == "csv":
        return CsvFile(file, encoding, fallback, header_row)
    if kind == "parquet":
        if header_row is not None:
            raise TableError(
                f"{path} is a Parquet file, whose columns have names: leave out "
                "--header-row."
            )
        return ParquetTable(file)
    return ExcelSheet(file, sheet, preferred, header_row)
