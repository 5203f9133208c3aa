"""Files of tables: which kind they are, and that they stay what they were."""

from __future__ import annotations

import gzip
import hashlib
import os
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from missratio._base.hints import listed
from missratio.exceptions import TableError

CSV = (".csv", ".tsv", ".txt")
PARQUET = (".parquet", ".pq")
EXCEL = (".xlsx", ".xls", ".xlsb", ".ods")
GZIP = ".gz"
_MAGIC = (
    (b"PAR1", "a Parquet file: let its name end in .parquet"),
    (b"PK\x03\x04", "a zip archive or an Excel file: let its name end in .xlsx"),
    (b"\xd0\xcf\x11\xe0", "an old Excel file: let its name end in .xls"),
    (b"\x1f\x8b", "compressed: let its name end in .csv.gz"),
)


def kind_of(path: Path) -> str:
    """The kind of a table, told by its name's suffix: "csv", "parquet" or "excel".

    Examples
    --------
    >>> kind_of(Path("patients.csv.gz")), kind_of(Path("patients.XLSX"))
    ('csv', 'excel')
    """
    suffix = path.suffix.lower()
    if suffix == GZIP:
        suffix = Path(path.stem).suffix.lower()
        if suffix in CSV:
            return "csv"
    for kind, suffixes in (("csv", CSV), ("parquet", PARQUET), ("excel", EXCEL)):
        if suffix in suffixes and path.suffix.lower() != GZIP:
            return kind
    raise TableError(
        f"A table's suffix must say its kind: got {path.name!r}. Choose one of "
        f"{listed([*CSV, '.csv.gz', *PARQUET, *EXCEL])}."
    )


@dataclass(frozen=True)
class RegularFile:
    """A file as it was when it was first looked at; what came since is refused.

    Parameters
    ----------
    path : Path
    identity : tuple of int
        Device, number, size and time of the last change.
    """

    path: Path
    identity: tuple[int, ...]

    @classmethod
    def at(cls, path: Path) -> RegularFile:
        """Look at a file; refuse what is not one with something in it."""
        if path.is_dir():
            raise TableError(f"{path} is a folder: name a file in it.")
        if not path.exists():
            raise FileNotFoundError(f"There is no file {path}.{_near(path)}")
        if not path.is_file():
            raise TableError(f"{path} is not a regular file: copy it into one first.")
        if path.stat().st_size == 0:
            raise TableError(
                f"{path} is empty, 0 bytes: a table has a header and rows. Was it "
                "saved?"
            )
        return cls(path, _identity(path.stat()))

    def open(self, *, decompress: bool = False) -> Any:
        """Its bytes, decompressed where that is asked and its name says so."""
        compressed = decompress and self.path.suffix.lower() == GZIP
        stream: Any = (gzip.open if compressed else open)(self.path, "rb")
        if _identity(os.fstat(stream.fileno())) != self.identity:
            stream.close()
            raise TableError(
                f"{self.path} was changed or replaced while it was read. Run the "
                "command again when nothing writes to it."
            )
        return stream

    def sha256(self) -> str:
        """The digest of its content, as `sha256sum` gives it."""
        with self.open() as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()


def _identity(found: os.stat_result) -> tuple[int, ...]:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def check_not_other_kind(path: Path, start: bytes) -> None:
    """Refuse a file whose first bytes say that it isn't text."""
    for magic, what in _MAGIC:
        if start.startswith(magic):
            raise TableError(f"{path} is no text but {what}.")
    if b"\0" in start:
        raise TableError(
            f"{path} has bytes that are not text. Save it as CSV in UTF-8, or say "
            "which encoding it has (--encoding)."
        )


def _near(path: Path) -> str:
    if not path.parent.is_dir():
        return f" There is no folder {path.parent} either."
    names = [file.name for file in path.parent.iterdir() if file.is_file()]
    near = get_close_matches(path.name, names, n=1)
    return f" Did you mean {str(path.with_name(near[0]))!r}?" if near else ""
