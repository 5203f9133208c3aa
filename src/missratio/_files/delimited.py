"""CSV files as people have them: separators, encodings and decimal commas."""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

from missratio._files.files import RegularFile
from missratio._files.numbers import Mark, decimal_marks
from missratio.exceptions import TableError

_SEPARATORS = ",;\t|"
_START = 2**16
# A line must fit into a block.
_BLOCK = 2**24
# Lines in which decimal marks are looked for.
_LOOKED_AT = 1000
_MAGIC = (
    (b"PAR1", "a Parquet file: let its name end in .parquet"),
    (b"PK\x03\x04", "a zip archive or an Excel file: let its name end in .xlsx"),
    (b"\xd0\xcf\x11\xe0", "an old Excel file: let its name end in .xls"),
    (b"\x1f\x8b", "compressed: let its name end in .csv.gz"),
)
# A last line that no text has: a quotation mark that is left open swallows it.
_END = "\0"


@dataclass(frozen=True)
class Dialect:
    """How a text file is written.

    Parameters
    ----------
    encoding : str
    separator : str
    marks : tuple of {",", "."}
        Decimal marks, as far as they can be told.
    header : list of str
    skipped : int
        Lines before the header, such as a title.
    """

    encoding: str
    separator: str
    marks: tuple[Mark, ...]
    header: list[str]
    skipped: int = 0


def find_dialect(
    file: RegularFile,
    encoding: str | None,
    fallback: str | None,
    header_row: int | None = None,
) -> Dialect:
    """Find encoding, separator, header and decimal marks from the first lines.

    Parameters
    ----------
    file : RegularFile
    encoding : str or None
        As told; None for UTF-8, or UTF-16 where its mark is there.
    fallback : str or None
        For a file that is neither, where no encoding was told.
    header_row : int or None
        The line of the header, from 1; None for the first that isn't blank.
    """
    encoding = encoding or _find_encoding(file, fallback)
    try:
        with file.open(decompress=True) as stream:
            text = io.TextIOWrapper(stream, encoding, newline="")
            skipped = 0 if header_row is None else header_row - 1
            for _ in islice(text, skipped):
                pass
            first = _first_line(text, any_line=header_row is None)
            if header_row is not None and not first:
                raise no_header(file, header_row)
            if not first:
                raise TableError(
                    f"{file.path} is empty, it has blank lines only: a table has a "
                    "header and rows."
                )
            if header_row is None and re.fullmatch(r"sep=.\s*", first, re.IGNORECASE):
                # Excel's own first line, which the header comes after.
                return find_dialect(file, encoding, fallback, header_row=2)
            separator = max(_SEPARATORS, key=first.count)
            lines = chain([first], text)
            header, *rows = islice(csv.reader(lines, delimiter=separator), _LOOKED_AT)
    except LookupError as error:
        raise TableError(
            f"There is no encoding {encoding!r}. Common ones are 'utf-8', 'cp1252' "
            "(Windows), 'latin-1' and 'utf-16'."
        ) from error
    except (ValueError, EOFError, OSError, zlib.error, csv.Error) as error:
        raise _unreadable(file, encoding, error) from error
    names = [name.strip() for name in header]
    marks = decimal_marks(cell for row in rows for cell in row)
    # Spreadsheets separate by semicolons where the comma is the decimal mark.
    if not marks and separator == ";":
        marks = frozenset({","})
    return Dialect(encoding, separator, tuple(sorted(marks)), names, skipped)


def _first_line(text: Any, *, any_line: bool) -> str:
    """The first line that isn't blank, or the next, without a byte-order mark."""
    while line := text.readline(_BLOCK):
        line = line.lstrip("\ufeff")
        if line.strip():
            return str(line)
        if not any_line:
            break
    return ""


def _find_encoding(file: RegularFile, fallback: str | None) -> str:
    try:
        with file.open(decompress=True) as stream:
            start = stream.read(_START)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise _unreadable(file, "utf-8", error) from error
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    for magic, what in _MAGIC:
        if start.startswith(magic):
            raise TableError(f"{file.path} is no text but {what}.")
    if b"\0" in start:
        raise TableError(
            f"{file.path} has bytes that are not text. Save it as CSV in UTF-8, or say "
            "which encoding it has (--encoding)."
        )
    if fallback is not None and _misfit(file, "utf-8") is not None:
        return fallback
    return "utf-8"


def csv_lines(file: RegularFile, dialect: Dialect) -> Iterator[tuple[int, list[str]]]:
    """The lines below the header that aren't empty, each with its number."""
    try:
        with file.open(decompress=True) as stream:
            # A name misread for lack of the right encoding is not among the columns.
            text = io.TextIOWrapper(
                stream, dialect.encoding, errors="replace", newline=""
            )
            for _ in islice(text, dialect.skipped):
                pass
            lines = _whole_lines(file, chain(text, [_END]), dialect)
            next(lines, None)
            yield from lines
    except (ValueError, EOFError, OSError, zlib.error, csv.Error) as error:
        raise _unreadable(file, dialect.encoding, error) from error


def _whole_lines(
    file: RegularFile, text: Iterable[str], dialect: Dialect
) -> Iterator[tuple[int, list[str]]]:
    """The same with the header, of a text after which `_END` comes."""
    reader, before = csv.reader(text, delimiter=dialect.separator), 0
    for cells in reader:
        if cells == [_END]:
            return
        if cells and cells[-1].endswith(_END):
            raise TableError(
                f"{file.path}, line {dialect.skipped + before + 1}: a quotation mark "
                "is left open, and all that follows would be one cell. Close it, or "
                "remove it."
            )
        # One of separators alone is a row, as it is when rows are read.
        if len(cells) > 1 or any(cell.strip() for cell in cells):
            yield dialect.skipped + reader.line_num, cells
        before = reader.line_num


class _QuoteCounter(io.RawIOBase):
    """A stream that counts the quotation marks which are read from it."""

    def __init__(self, stream: Any) -> None:
        self._stream, self.count = stream, 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        block: bytes = self._stream.read(size)
        self.count += block.count(b'"')
        return block


def csv_batches(
    file: RegularFile, dialect: Dialect, columns: Sequence[str]
) -> Iterator[Any]:
    """Record batches of some columns, every cell as the text that it is."""
    import pyarrow
    from pyarrow import csv as arrow_csv

    options = {
        "read_options": arrow_csv.ReadOptions(
            block_size=_BLOCK,
            encoding=dialect.encoding,
            column_names=dialect.header,
            skip_rows=dialect.skipped,
        ),
        "parse_options": arrow_csv.ParseOptions(
            delimiter=dialect.separator, newlines_in_values=True
        ),
        "convert_options": arrow_csv.ConvertOptions(
            include_columns=list(columns),
            column_types=dict.fromkeys(columns, pyarrow.string()),
            strings_can_be_null=False,
        ),
    }
    first = True
    try:
        with file.open(decompress=True) as stream:
            counter = _QuoteCounter(stream)
            for batch in arrow_csv.open_csv(counter, **options):
                # The header is read as a row, since blank lines may come before it.
                yield batch.slice(1) if first else batch
                first = False
            # Arrow takes a mark that is left open for closed at the end of the file.
            if counter.count % 2 or dialect.encoding.lower().startswith("utf-16"):
                deque(csv_lines(file, dialect), maxlen=0)
    except TableError:
        raise
    except (ValueError, EOFError, OSError, zlib.error) as error:
        if re.search(r"Expected \d+ columns, got \d+", str(error)):
            width = len(dialect.header)
            counts = ((n, len(line)) for n, line in csv_lines(file, dialect))
            first_odd = next((pair for pair in counts if pair[1] != width), (0, 0))
            raise ragged(file, *first_odd, width) from error
        raise _unreadable(file, dialect.encoding, error) from error


def no_header(file: RegularFile, header_row: int) -> TableError:
    """The error for a line that was said to be the header, and isn't."""
    return TableError(
        f"{file.path} has no header in line {header_row}: that line is blank, or "
        "beyond the end. Give another --header-row."
    )


def _unreadable(file: RegularFile, encoding: str, error: Exception) -> Exception:
    if isinstance(error, TableError):
        return error
    reason = str(error).strip().rstrip(".")
    if isinstance(error, UnicodeDecodeError) or "UTF8" in reason:
        misfit = _misfit(file, encoding)
        what = " has bytes that"
        if misfit is not None:
            what = f", line {misfit[0]}, has a byte 0x{misfit[1]} that"
        return TableError(
            f"{file.path}{what} {encoding} doesn't have. Save the file in UTF-8, or "
            "say which encoding it has: --encoding cp1252 for most from Windows."
        )
    if isinstance(error, EOFError | gzip.BadGzipFile | zlib.error):
        return TableError(f"{file.path} is damaged: {error}. Get a sound copy.")
    if isinstance(error, csv.Error):
        reason += ". Is a quotation mark left open?"
    return TableError(f"{file.path} can't be read as a CSV table: {reason}.")


def ragged(file: RegularFile, line: int, count: int, width: int) -> TableError:
    """The error for a line with fewer or more cells than the header."""
    return TableError(
        f"{file.path}, line {line}: {count} cells for {width} columns. Was a decimal "
        "comma taken for a separator? Put quotes round cells that hold one, or "
        "complete the line."
    )


def _misfit(file: RegularFile, encoding: str) -> tuple[int, str] | None:
    """The first line with a byte that an encoding doesn't have, and that byte."""
    with file.open(decompress=True) as stream:
        for number, line in enumerate(stream, start=1):
            try:
                line.decode(encoding)
            except UnicodeDecodeError as error:
                return number, line[error.start : error.start + 1].hex()
    return None
