"""Workbooks: sheets of .xlsx, .xls, .xlsb and .ods files; read without a crash."""

from __future__ import annotations

import io
import json
import math
import re
import subprocess
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile

from missratio._base.hints import listed
from missratio._files.files import RegularFile
from missratio._files.tables import TableFile
from missratio.exceptions import TableError

EXCEL_LINES = 1_048_576
MOST_UNPACKED = 2**28
MOST_CELLS = 20_000_000
_SECONDS = 120
# The process that reads may have these bytes, and some more for each byte unpacked.
_MEMORY, _MEMORY_EACH = 2**29, 16
# A member packed more tightly than this is a bomb; sheets are packed to a thirtieth.
_MOST_PACKED, _SMALL = 100, 2**20
# Excel allows no longer texts.
_MOST_CHARACTERS = 32_767
# This much is read at a time; no text of a sheet is as long.
_CHUNK = 2**20
_SHOWN = 5
# The spreadsheet that wrote such a formula kept no result of it, or an error.
_NO_RESULT = re.compile(
    rb"(?:</f>|<f\b[^<>]*/>)\s*(?:<v\s*/>|<v>\s*</v>)?\s*</c>|<c\b[^<>]*\st=.e\W"
)
# A process of its own reads a sheet: the library aborts where it can't have the memory
# for a cell that is far away from the others. Dates and times become texts.
_READER = f"""
import datetime, json, sys
try:
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]),) * 2)
except (ImportError, ValueError, OSError):
    pass
from python_calamine import CalamineWorkbook
def plain(cell):
    if isinstance(cell, str) and len(cell) > {_MOST_CHARACTERS}:
        sys.exit("a cell has %d characters" % len(cell))
    if isinstance(cell, (str, int, float)):
        return cell
    return cell.isoformat() if hasattr(cell, "isoformat") else str(cell)
path, name, preferred = sys.argv[2:]
with CalamineWorkbook.from_path(path) as book:
    names, start, lines = book.sheet_names, 0, []
    shown = [s.name for s in book.sheets_metadata if str(s.visible).endswith("Visible")]
    name = name or (preferred if preferred in names else (shown or names)[0])
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
        The sheet to take if it is there and none was told; else the first visible.
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
        size, no_result = _inspect(file)
        memory = str(_MEMORY + _MEMORY_EACH * size)
        words = [memory, str(file.path.absolute()), sheet or "", preferred or ""]
        try:
            # By -P no module of the folder where the command runs is imported.
            done = subprocess.run(
                [sys.executable, "-P", "-c", _READER, *words],
                capture_output=True,
                timeout=_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise _unreadable(file, f"it takes more than {_SECONDS} s") from None
        # It must still be the file that was looked at.
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
        self.sheets, self.sheet = sheets, name
        if len(sheets) > 1 and name not in (sheet, preferred):
            others = listed([other for other in sheets if other != name], _SHOWN)
            self.sheet_note = (
                f"{file.path} has {len(sheets)} sheets, and {name!r} is read, the "
                f"first that is visible; --sheet reads another: {others}."
            )
            self.notes.append(self.sheet_note)
        if header_row is not None and (not lines or lines[0][0] != header_row):
            raise self.no_header(header_row)
        if not lines:
            empty = f"{file.path}: sheet {name!r} is empty."
            raise TableError(" ".join([empty, *self.notes]))
        (_, header), *self._lines = lines
        self.names = [str(cell).strip() for cell in header]
        self.n_rows = len(self._lines)
        if no_result:
            self.notes.append(
                f"{no_result} formula(s) in {self.path} have no result in the file, or "
                "an error such as #N/A, and count as missing. If that isn't meant, "
                "open it in a spreadsheet, let it calculate, and save it."
            )

    def line_numbers(self) -> Sequence[int]:
        """The line of each row, as `read` has them."""
        return [number for number, _ in self._lines]

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


def _inspect(file: RegularFile) -> tuple[int, int]:
    """Bytes of a workbook unpacked, and how many of its formulas have no result.

    Refuses what is larger than workbooks that can be read, before any of it is in
    memory.
    """
    count = 0
    with file.open() as stream:
        if stream.read(4) != b"PK\x03\x04":
            return file.path.stat().st_size, 0
        try:
            archive = ZipFile(stream)
            size = sum(info.file_size for info in archive.infolist())
            if size > MOST_UNPACKED:
                raise _unreadable(
                    file, f"it would unpack to {size} bytes, of {MOST_UNPACKED} at most"
                )
            for info in archive.infolist():
                name = info.filename
                if info.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
                    raise _unreadable(file, f"{name} is packed as in no workbook")
                if info.file_size > max(_SMALL, _MOST_PACKED * info.compress_size):
                    reason = f"{name} unpacks to {info.file_size} bytes from few"
                    raise _unreadable(file, reason)
            for name in archive.namelist():
                if not name.endswith(".xml"):
                    continue
                with archive.open(name) as member:
                    for chunk in iter(partial(member.read, _CHUNK), b""):
                        if len(chunk) == _CHUNK and b"<" not in chunk:
                            raise _unreadable(file, "it has an endless text")
                        if re.fullmatch(r"xl/worksheets/[^/]*\.xml", name):
                            count += len(_NO_RESULT.findall(chunk))
        except TableError:
            raise
        except (
            BadZipFile, zlib.error, EOFError, ValueError, RuntimeError, OSError
        ) as error:  # fmt: skip
            raise _unreadable(file, str(error)) from error
    return size, count


def _unreadable(file: RegularFile, reason: str) -> TableError:
    return TableError(
        f"{file.path} can't be read as a workbook: {reason.rstrip('.')}. Open and save "
        "it again, without a password and without cells far away from the table, or "
        "save the sheet as CSV."
    )


class SheetWriter:
    """Rows to the one sheet of a new workbook, below a header.

    Parameters
    ----------
    path : Path
    sheet : str
    names : iterable of str
    fits : bool, default=False
        Whether columns are made wide enough for what they hold. Otherwise only the
        current row is in memory.
    """

    def __init__(
        self, path: Path, sheet: str, names: Iterable[str], *, fits: bool = False
    ) -> None:
        try:
            workbook = import_module("xlsxwriter").Workbook
        except ImportError as error:
            raise ImportError(
                "This kind of file needs xlsxwriter: pip install 'missratio[tables]'. "
                "CSV and Parquet need nothing."
            ) from error
        # The archive is made in memory: on a full disk one that is open fails twice.
        self._path, self._archive = path, io.BytesIO()
        self._book = workbook(self._archive, {"constant_memory": not fits})
        # The same content gives the same bytes.
        self._book.set_properties({"created": datetime(1980, 1, 1)})
        self._sheet, self._line = self._book.add_worksheet(sheet), 1
        self._fits = fits
        bold = self._book.add_format({"bold": True})
        for place, name in enumerate(names):
            # A name is a text, even where it looks like a formula or an address.
            self._sheet.write_string(0, place, name, bold)
        self._sheet.freeze_panes(1, 0)

    def write(self, columns: Iterable[Sequence[Any]]) -> None:
        """Add some rows; a cell that isn't a number that Excel keeps is a text.

        So no name is taken for a formula, and no long number is rounded.
        """
        for line in zip(*columns, strict=True):
            if self._line == EXCEL_LINES:
                raise TableError(
                    f"An Excel sheet has {EXCEL_LINES:,} lines, and there are more: "
                    "write them as .csv or .parquet."
                )
            for place, cell in enumerate(line):
                number = isinstance(cell, int | float) and not isinstance(cell, bool)
                # Excel keeps 15 digits.
                if number and math.isfinite(cell) and abs(cell) < 10**15:
                    self._sheet.write_number(self._line, place, cell)
                elif cell is not None:
                    self._sheet.write_string(self._line, place, str(cell))
            self._line += 1

    def close(self) -> None:
        """Write the file; errors are the system's own: no space left, say."""
        if self._fits:
            self._sheet.autofit()
        failed: tuple[Any, ...] | None = None
        try:
            self._book.close()
        except import_module("xlsxwriter.exceptions").FileCreateError as error:
            # The folder for temporary files may be full, too.
            failed = getattr(error.__context__, "args", error.args)
        if failed:
            # Raised here, it keeps no archive open that complains at Python's end.
            raise OSError(*failed)
        self._path.write_bytes(self._archive.getbuffer())
