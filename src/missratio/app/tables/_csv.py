"""CSV files as people have them: separators, encodings and decimal commas."""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from missratio.app.tables._files import GZIP, TableError, check_not_other_kind

_SEPARATORS = ",;\t|"
_START = 2**16
# A line must fit into a block.
_BLOCK = 2**24
_DECIMAL_COMMA = re.compile(r"(?:^|;|\t|\|)\s*[+-]?\d+,\d+\s*(?:;|\t|\||$)", re.M)


@dataclass(frozen=True)
class Dialect:
    """How a text file is written.

    Parameters
    ----------
    encoding : str
    separator : str
    decimal_comma : bool
    header : list of str
    """

    encoding: str
    separator: str
    decimal_comma: bool
    header: list[str]


def open_bytes(path: Path) -> Any:
    """The bytes of a file, decompressed where its name says so."""
    return gzip.open(path) if path.suffix.lower() == GZIP else path.open("rb")


def find_dialect(path: Path, encoding: str | None) -> Dialect:
    """Find encoding, separator and header from the first lines.

    Parameters
    ----------
    path : Path
    encoding : str or None
        As told; None for UTF-8, or UTF-16 where its mark is there.
    """
    try:
        with open_bytes(path) as stream:
            start = stream.read(_START)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise _damaged(path, error) from error
    if encoding is None:
        encoding = "utf-8"
        if start.startswith((b"\xff\xfe", b"\xfe\xff")):
            encoding = "utf-16"
        else:
            check_not_other_kind(path, start)
    text = _decode(start, encoding, path)
    lines = text.lstrip("\ufeff").lstrip("\r\n")
    if not lines.strip():
        raise TableError(f"{path} has blank lines only: a table has a header and rows.")
    first = lines.splitlines()[0]
    separator = max(_SEPARATORS, key=first.count)
    comma = separator != "," and bool(_DECIMAL_COMMA.search(lines))
    header = next(csv.reader(io.StringIO(lines, newline=""), delimiter=separator))
    return Dialect(encoding, separator, comma, [name.strip() for name in header])


def csv_batches(path: Path, dialect: Dialect, columns: Sequence[str]) -> Iterator[Any]:
    """Record batches of some columns, every cell as the text that it is.

    Parameters
    ----------
    path : Path
    dialect : Dialect
    columns : sequence of str
    """
    import pyarrow
    from pyarrow import csv as arrow_csv

    text = pyarrow.string()
    read = arrow_csv.ReadOptions(
        block_size=_BLOCK, encoding=dialect.encoding, column_names=dialect.header
    )
    parse = arrow_csv.ParseOptions(delimiter=dialect.separator, newlines_in_values=True)
    convert = arrow_csv.ConvertOptions(
        include_columns=list(columns),
        column_types=dict.fromkeys(columns, text),
        strings_can_be_null=False,
    )
    first = True
    try:
        with open_bytes(path) as stream:
            reader = arrow_csv.open_csv(
                stream,
                read_options=read,
                parse_options=parse,
                convert_options=convert,
            )
            for batch in reader:
                # The header is read as a row, since blank lines may come before it.
                yield batch.slice(1) if first else batch
                first = False
    except (ValueError, EOFError, OSError, zlib.error) as error:
        raise _unreadable(path, dialect, error) from error


def _decode(start: bytes, encoding: str, path: Path) -> str:
    try:
        return start.decode(encoding, errors="ignore" if len(start) == _START else
                            "strict")  # fmt: skip
    except LookupError as error:
        raise TableError(
            f"There is no encoding {encoding!r}. Common ones are 'utf-8', 'cp1252' "
            "(Windows), 'latin-1' and 'utf-16'."
        ) from error
    except UnicodeDecodeError as error:
        raise _undecodable(path, encoding) from error


def _unreadable(path: Path, dialect: Dialect, error: Exception) -> TableError:
    reason = str(error).strip().rstrip(".")
    if isinstance(error, UnicodeDecodeError) or "UTF8" in reason:
        return _undecodable(path, dialect.encoding)
    if re.search(r"Expected \d+ columns, got \d+", reason):
        line, count = _ragged(path, dialect)
        return TableError(
            f"{path}, line {line}: {count} cell(s) for {len(dialect.header)} columns, "
            f"separated by {dialect.separator!r}. Put quotes round cells that hold the "
            "separator, or complete the line."
        )
    if isinstance(error, EOFError | gzip.BadGzipFile | zlib.error):
        return _damaged(path, error)
    return TableError(f"{path} can't be read as a CSV table: {reason}.")


def _damaged(path: Path, error: Exception) -> TableError:
    return TableError(f"{path} is damaged: {error}. Get a sound copy.")


def _ragged(path: Path, dialect: Dialect) -> tuple[int, int]:
    """The first line that has not as many cells as the header, and how many."""
    with open_bytes(path) as stream:
        text = io.TextIOWrapper(stream, dialect.encoding, errors="replace", newline="")
        reader = csv.reader(text, delimiter=dialect.separator)
        for cells in reader:
            if cells and len(cells) != len(dialect.header):
                return reader.line_num, len(cells)
    return reader.line_num, 0


def _undecodable(path: Path, encoding: str) -> TableError:
    """Say where the first bytes are that the encoding doesn't have."""
    where = ""
    with open_bytes(path) as stream:
        for number, line in enumerate(stream, start=1):
            try:
                line.decode(encoding)
            except UnicodeDecodeError as error:
                bad = line[error.start : error.start + 1].hex()
                where = f", line {number}, has a byte 0x{bad} that"
                break
    return TableError(
        f"{path}{where or ' has bytes that'} {encoding} doesn't have. Save the file in "
        "UTF-8, or say which encoding it has: --encoding cp1252 for most from Windows."
    )
