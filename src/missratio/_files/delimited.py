"""CSV files as people have them: separators, encodings and decimal commas."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import zlib
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain, dropwhile, islice
from typing import Any, TextIO

from missratio._base.hints import shown
from missratio._files.cells import decimal_marks
from missratio._files.files import RegularFile
from missratio._files.tables import TableFile
from missratio.exceptions import TableError

_SEPARATORS = ",;\t|"
_START = 2**16
# A line must fit into a block.
_BLOCK = 2**24
# Decimal marks are looked for in this many lines and cells.
_LINES, _CELLS = 1000, 200_000


class CsvFile(TableFile):
    """A CSV file: every cell is text.

    Parameters
    ----------
    file : RegularFile
    encoding : str or None
        None for UTF-8, or UTF-16 where its mark is there.
    fallback : str or None
        For a file that is neither, where no encoding was told.
    header_row : int or None
        The line of the header, from 1; None for the first that isn't blank.
    """

    def __init__(
        self,
        file: RegularFile,
        encoding: str | None,
        fallback: str | None,
        header_row: int | None,
    ) -> None:
        super().__init__(file)
        self._skipped = 0 if header_row is None else header_row - 1
        self.encoding = "utf-8"
        if encoding is not None:
            try:
                # Python has codecs that aren't of texts, too, such as hex.
                "".encode(encoding)
                self.encoding = codecs.lookup(encoding).name
            except (LookupError, ValueError) as error:
                raise TableError(
                    f"There is no encoding {shown(encoding)}. Common ones are 'utf-8', "
                    "'cp1252' (Windows), 'latin-1' and 'utf-16'."
                ) from error
        else:
            with self._readable(), file.open(decompress=True) as stream:
                start = stream.read(_START)
            if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                self.encoding = "utf-16"
            elif b"\0" in start:
                raise TableError(
                    f"{self.path} has bytes that are not text. Let the name of a "
                    "Parquet, Excel or compressed file end in .parquet, .xlsx or "
                    ".csv.gz, or say which encoding a text has (--encoding)."
                )
            elif fallback is not None and self._misfit() is not None:
                self.encoding = fallback
        with self._text() as text:
            lines = self._lines_of(text)
            if header_row is None:
                lines = dropwhile(str.isspace, lines)
            first = next(lines, "")
            if header_row is None and re.fullmatch(r"sep=.\s*", first, re.IGNORECASE):
                # Excel writes such a line before the header.
                self._skipped, first = 1, next(lines, "")
            if header_row is not None and not first.strip():
                raise self.no_header(header_row)
            if not first.strip():
                raise TableError(f"{self.path} is empty: it has blank lines only.")
            self._separator = max(_SEPARATORS, key=first.count)
            reader = csv.reader(chain([first], lines), delimiter=self._separator)
            self.names = [name.strip() for name in next(reader)]
            cells = (cell for row in islice(reader, _LINES) for cell in row)
            marks = decimal_marks(islice(cells, _CELLS))
        # Spreadsheets separate by semicolons where the comma is the decimal mark.
        if not marks and self._separator == ";":
            marks = frozenset({","})
        self.marks = tuple(sorted(marks))

    @contextmanager
    def _text(self, errors: str = "strict") -> Iterator[TextIO]:
        """The file as text, without the lines to skip and a byte-order mark."""
        codec = "utf-8-sig" if self.encoding == "utf-8" else self.encoding
        with self._readable(), self.file.open(decompress=True) as stream:
            text = io.TextIOWrapper(stream, codec, errors=errors, newline="")
            deque(islice(self._lines_of(text), self._skipped), maxlen=0)
            yield text

    def _lines_of(self, text: TextIO) -> Iterator[str]:
        """Lines, none of which takes more memory than a block."""
        for line in iter(partial(text.readline, _BLOCK), ""):
            if len(line) == _BLOCK:
                raise TableError(
                    f"{self.path} has a line of more than {_BLOCK:,} characters. Let "
                    "lines end where rows do."
                )
            yield line

    def line_numbers(self) -> Sequence[int]:
        """The line of each row, as `read` has them."""
        return [number for number, _ in self._numbered()]

    def _numbered(self) -> Iterator[tuple[int, Sequence[str]]]:
        """The lines below the header that aren't empty, each with its number."""
        with self._text(errors="replace") as text:
            lines = self._lines_of(text)
            reader = csv.reader(lines, delimiter=self._separator, strict=True)
            number, is_header = self._skipped, True
            try:
                for cells in reader:
                    number = self._skipped + reader.line_num
                    # A line of separators alone is a row, as when rows are read.
                    if len(cells) > 1 or any(cell.strip() for cell in cells):
                        if not is_header:
                            yield number, cells
                        is_header = False
            except csv.Error as error:
                if "field larger" in str(error):
                    raise
                raise TableError(
                    f"{self.path}, line {number + 1}: a quotation mark is left open, "
                    "and all that follows would be one cell. Close it, or remove it."
                ) from error

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Record batches of some columns, every cell as the text that it is."""
        import pyarrow
        from pyarrow import csv as arrow_csv

        # The header is read as a row, since blank lines may come before it.
        header = 1
        with self._readable(), self.file.open(decompress=True) as stream:
            for batch in arrow_csv.open_csv(
                stream,
                arrow_csv.ReadOptions(
                    block_size=_BLOCK, encoding=self.encoding, skip_rows=self._skipped,
                    column_names=self.names,
                ),
                arrow_csv.ParseOptions(
                    delimiter=self._separator, newlines_in_values=True
                ),
                arrow_csv.ConvertOptions(
                    include_columns=list(columns), strings_can_be_null=False,
                    column_types=dict.fromkeys(columns, pyarrow.string()),
                ),
            ):  # fmt: skip
                yield batch.slice(header)
                header = 0
        # Arrow takes a mark that is left open for closed at the end of the file.
        with self._readable(), self.file.open(decompress=True) as stream:
            blocks = iter(partial(stream.read, _BLOCK), b"")
            marks = sum(block.count(b'"') for block in blocks)
        if marks % 2 or self.encoding.startswith("utf-16"):
            deque(self._numbered(), maxlen=0)

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """Say of which file, in which line and why it can't be read as CSV."""
        try:
            yield
        except TableError:
            raise
        except (ValueError, EOFError, OSError, zlib.error, csv.Error) as error:
            reason = str(error).strip().rstrip(".")
            if isinstance(error, EOFError | gzip.BadGzipFile | zlib.error):
                reason = f"{self.path} is damaged: {reason}. Get a sound copy."
            elif isinstance(error, UnicodeDecodeError) or "UTF8" in reason:
                where = " has bytes"
                if (misfit := self._misfit()) is not None:
                    where = f", line {misfit[0]}, has a byte 0x{misfit[1]}"
                reason = (
                    f"{self.path}{where} that {self.encoding} doesn't have. Save the "
                    "file in UTF-8, or say which encoding it has: --encoding cp1252 "
                    "for most from Windows."
                )
            elif re.search(r"Expected \d+ columns, got \d+", reason):
                counts = ((number, len(line)) for number, line in self._numbered())
                odd = (pair for pair in counts if pair[1] != len(self.names))
                place, count = next(odd, (0, 0))
                reason = (
                    f"{self.path}, line {place}: {count} cells for {len(self.names)} "
                    "columns. Was a decimal comma taken for a separator? Put quotes "
                    "round cells that hold one, or complete the line."
                )
            elif "field larger" in reason:
                reason = (
                    f"{self.path} has a cell of more than {csv.field_size_limit():,} "
                    "characters. Was a quotation mark left open?"
                )
            else:
                reason = f"{self.path} can't be read as a CSV table: {reason}."
            raise TableError(reason) from error

    def _misfit(self) -> tuple[int, str] | None:
        """The first line with a byte that the encoding doesn't have, and that byte."""
        with self.file.open(decompress=True) as stream:
            lines = iter(partial(stream.readline, _BLOCK), b"")
            for number, line in enumerate(lines, start=1):
                try:
                    line.decode(self.encoding)
                except UnicodeDecodeError as error:
                    return number, line[error.start : error.start + 1].hex()
        return None
