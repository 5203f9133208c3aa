"""Files: which kind they are, that they are there, and that they are written whole."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from uuid import uuid4

from missratio._hints import listed

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


class TableError(ValueError):
    """A table that can't be used, with what is wrong where and what to do about it."""


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
        f"The kind of a table is told by its suffix: got {path.name!r}. Choose one of "
        f"{listed([*CSV, '.csv.gz', *PARQUET, *EXCEL])}."
    )


def check_readable(path: Path) -> None:
    """Refuse what is not a file with something in it."""
    if path.is_dir():
        raise TableError(f"{path} is a folder: name a file in it.")
    if not path.exists():
        raise FileNotFoundError(f"There is no file {path}.{_near(path)}")
    if not path.is_file():
        raise TableError(f"{path} is not a regular file: copy it into one first.")
    if path.stat().st_size == 0:
        raise TableError(
            f"{path} is empty, 0 bytes: a table has a header and rows. Was it saved?"
        )


def check_not_other_kind(path: Path, start: bytes) -> None:
    """Refuse a file whose first bytes say that it isn't text."""
    for magic, what in _MAGIC:
        if start.startswith(magic):
            raise TableError(f"{path} is no text but {what}.")
    if b"\0" in start:
        raise TableError(
            f"{path} has bytes that no text has. Save it as CSV in UTF-8, or say which "
            "encoding it has (--encoding)."
        )


def check_writable(path: Path, *, force: bool, inputs: Sequence[Path] = ()) -> None:
    """Refuse a destination that is taken, or has no folder.

    Parameters
    ----------
    path : Path
    force : bool
        Whether a file that is there may be overwritten.
    inputs : sequence of Path
        Files that never are.
    """
    if path.exists() and any(path.samefile(file) for file in inputs if file.exists()):
        raise FileExistsError(
            f"{path} is what is read, and is never overwritten. Choose another name."
        )
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: name a file in it.")
    if path.exists() and not force:
        raise FileExistsError(
            f"{path} exists. Choose another name, or --force to overwrite it."
        )
    if not path.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {path.parent} to write into.")


@contextmanager
def written_whole(path: Path, *, force: bool) -> Iterator[Path]:
    """Give a draft to write to, which becomes the file if nothing goes wrong.

    Parameters
    ----------
    path : Path
    force : bool
        Whether a file of that name is overwritten, instead of an error.
    """
    check_writable(path, force=force)
    # Beside its destination, so that the last step is a rename within one file system.
    draft = path.with_name(f".{path.stem}-{uuid4().hex}{path.suffix}")
    try:
        yield draft
        check_writable(path, force=force)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def sha256(path: Path) -> str:
    """The digest of a file's content, as `sha256sum` gives it."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _near(path: Path) -> str:
    if not path.parent.is_dir():
        return f" There is no folder {path.parent} either."
    names = [file.name for file in path.parent.iterdir() if file.is_file()]
    near = get_close_matches(path.name, names, n=1)
    return f" Did you mean {str(path.with_name(near[0]))!r}?" if near else ""
