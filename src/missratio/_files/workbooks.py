"""Workbooks: sheets of .xlsx, .xls, .xlsb and .ods files, read without a crash."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
import zlib
from collections.abc import Iterator, Sequence
from typing import Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile

from missratio._base.hints import listed
from missratio._files.files import RegularFile
from missratio._files.tables import TableFile
from missratio.exceptions import TableError

EXCEL_LINES = 1_048_576
# Excel keeps 15 digits.
_EXCEL_INTEGERS = 10**15
MOST_UNPACKED = 2**28
MOST_CELLS = 20_000_000
_SECONDS = 120
_MEMORY = 2**31
_CHUNK, _OVERLAP = 2**20, 2**12
# A formula of which the spreadsheet that wrote it kept no result.
_NO_RESULT = re.compile(
    rb"(?:</f>|<f\b[^<>]*/>)\s*(?:<v\s*/>|<v>\s*</v>)?\s*</c>"
)  # fmt: skip
# Reads a sheet in a process of its own: the library aborts where it can't have the
# memory for a cell that is far away from the others. Dates and times become texts.
_READER = f"""
import datetime, json, sys
try:
    import resource
    resource.setrlimit(resource.RLIMIT_AS, ({_MEMORY}, {_MEMORY}))
except (ImportError, ValueError, OSError):
    pass
from python_calamine import CalamineWorkbook
def plain(cell):
    if isinstance(cell, (str, int, float)):
        return cell
    return cell.isoformat() if hasattr(cell, "isoformat") else str(cell)
path, name, preferred = sys.argv[1:]
with CalamineWorkbook.from_path(path) as book:
    names, start, lines = book.sheet_names, 0, []
    name = name or (preferred if preferred in names else names[0])
    if name in names:
        sheet = book.get_sheet_by_name(name)
        if sheet.height * sheet.width > {MOST_CELLS}:
            sys.exit("it has %d x %d cells" % (sheet.height, sheet.width))
        start = (sheet.start or (0, 0))[0]
        lines = [[plain(cell) for cell in line] for line in sheet.to_python()]
    json.dump([names, name, start, lines], sys.stdout)
"""


class ExcelSheet(TableFile):
    """A sheet of a workbook; its first line that isn't blank is the header.

    Parameters
    ----------
    file : RegularFile
    sheet : str or None
        As told.
    preferred : str or None
        The sheet to take if it is there and none was told; else the first.
    header_row : int or None
        The line of the header, from 1; None for the first that isn't blank.
    """

    def __init__(
        self,
        file: RegularFile,
        sheet: str | None,
        preferred: str | None,
        header_row: int | None,
    ) -> None:
        super().__init__(file)
        _check_sizes(file)
        words = [str(file.path.absolute()), sheet or "", preferred or ""]
        try:
            done = subprocess.run(
                [sys.executable, "-c", _READER, *words],
                capture_output=True,
                timeout=_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise _unreadable(file, f"it takes more than {_SECONDS} s") from None
        # Whether it is still the file that was looked at.
        file.open().close()
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip().splitlines()
            reason = said[-1] if done.returncode == 1 and said else "it takes too much"
            raise _unreadable(file, reason)
        sheets, name, start, cells = json.loads(done.stdout)
        if name not in sheets:
            raise TableError(
                f"{file.path} has no sheet {name!r}. Choose one of {listed(sheets)}."
            )
        lines = [
            (number, line)
            for number, line in enumerate(cells, start + 1)
            if any(cell != "" for cell in line) and number >= (header_row or 0)
        ]
        if header_row is not None and (not lines or lines[0][0] != header_row):
            raise self.no_header(header_row)
        if not lines:
            raise TableError(f"{file.path}: sheet {name!r} is empty.")
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

        arrays = []
        for place in map(self.names.index, columns):
            cells = [line[place] for _, line in self._lines]
            if all(type(cell) in (int, float) for cell in cells if cell != ""):
                numbers = [None if cell == "" else float(cell) for cell in cells]
                arrays.append(pyarrow.array(numbers, pyarrow.float64()))
                continue
            whole = (
                int(cell) if isinstance(cell, float) and cell.is_integer() else cell
                for cell in cells
            )
            arrays.append(pyarrow.array(map(str, whole), pyarrow.string()))
        yield pyarrow.RecordBatch.from_arrays(arrays, names=list(columns))


def formulas_without_result(file: RegularFile) -> int:
    """How many formulas of a workbook have no result in it, where that can be told."""
    try:
        with file.open() as stream, ZipFile(stream) as archive:
            return sum(
                len(_NO_RESULT.findall(chunk))
                for name in archive.namelist()
                if re.fullmatch(r"xl/worksheets/[^/]*\.xml", name)
                for chunk in _cells(archive, name)
            )
    except (BadZipFile, zlib.error, OSError, ValueError, RuntimeError):
        return 0


def _cells(archive: ZipFile, name: str) -> Iterator[bytes]:
    """A sheet's text in pieces that end where a cell does."""
    rest = b""
    with archive.open(name) as stream:
        while chunk := stream.read(_CHUNK):
            done, mark, rest = (rest + chunk).rpartition(b"</c>")
            yield done + mark
            rest = rest[-_OVERLAP:]


def _check_sizes(file: RegularFile) -> None:
    """Refuse an archive that would unpack to more than workbooks that can be read."""
    with file.open() as stream:
        if stream.read(4) != b"PK\x03\x04":
            return
        try:
            with ZipFile(stream) as archive:
                infos = archive.infolist()
        except (BadZipFile, ValueError, NotImplementedError) as error:
            raise _unreadable(file, str(error)) from error
    size = sum(info.file_size for info in infos)
    if size > MOST_UNPACKED:
        raise TableError(
            f"{file.path} would unpack to {size} bytes, and a workbook may have "
            f"{MOST_UNPACKED}. Save the sheet as CSV or Parquet."
        )
    if any(info.compress_type not in (ZIP_STORED, ZIP_DEFLATED) for info in infos):
        raise _unreadable(file, "it is packed in a way that workbooks aren't")


def _unreadable(file: RegularFile, reason: str) -> TableError:
    return TableError(
        f"{file.path} can't be read as a workbook: {reason.rstrip('.')}. Open and save "
        "it again, without a password and without cells far away from the table, or "
        "save the sheet as CSV."
    )


def write_cell(sheet: Any, line: int, place: int, cell: Any, style: Any = None) -> None:
    """Write a cell of xlsxwriter's; what isn't a number that Excel keeps is a text.

    So no name is taken for a formula, and no long number is rounded.
    """
    is_number = isinstance(cell, int | float) and not isinstance(cell, bool)
    if cell is None:
        sheet.write_blank(line, place, None, style)
    elif is_number and math.isfinite(cell) and abs(cell) < _EXCEL_INTEGERS:
        sheet.write_number(line, place, cell, style)
    else:
        sheet.write_string(line, place, str(cell), style)


def close_workbook(book: Any) -> None:
    """Write a workbook of xlsxwriter, which gives errors of the system another name.

    Raises
    ------
    OSError
        As the system has it: no space left, say.
    """
    try:
        book.close()
    except Exception as error:
        if isinstance(error.__context__, OSError):
            raise error.__context__ from None
        raise
