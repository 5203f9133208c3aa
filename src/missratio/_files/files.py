"""Files: their kind, that they stay what they were, and that they are written whole."""

from __future__ import annotations

import atexit
import errno
import gzip
import hashlib
import os
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from glob import escape
from pathlib import Path
from typing import Any
from uuid import uuid4

from missratio._base.hints import did_you_mean, listed
from missratio.exceptions import DestinationError, Message, Remedy, TableError

CSV = (".csv", ".tsv", ".txt")
PARQUET = (".parquet", ".pq")
EXCEL = (".xlsx", ".xls", ".xlsb", ".ods")
GZIP = ".gz"
_MARK = "-missratio-draft"


def kind_of(path: Path) -> str:
    """The kind of a table, told by its name's suffix: "csv", "parquet" or "excel".

    Examples
    --------
    >>> kind_of(Path("patients.csv.gz")), kind_of(Path("patients.XLSX"))
    ('csv', 'excel')
    """
    suffix, compressed = path.suffix.lower(), path.suffix.lower() == GZIP
    if compressed:
        suffix = Path(path.stem).suffix.lower()
    for kind, suffixes in (("csv", CSV), ("parquet", PARQUET), ("excel", EXCEL)):
        if suffix in suffixes and (kind == "csv" or not compressed):
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
            raise TableError(
                f"{path} is a folder: name a file in it. In Python, scan_parquet reads "
                "a folder of Parquet files."
            )
        if not path.exists():
            near = f" There is no folder {path.parent} either."
            if path.parent.is_dir():
                names = [file.name for file in path.parent.iterdir() if file.is_file()]
                near = did_you_mean(path.name, names)
            raise FileNotFoundError(f"There is no file {path}.{near}")
        if not path.is_file():
            raise TableError(f"{path} is not a regular file: copy it into one first.")
        if path.stat().st_size == 0:
            raise TableError(f"{path} is empty, 0 bytes. Was it saved?")
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

    def read(self, most: int) -> bytes:
        """Its content, refused where that is larger than its kind of file can be."""
        with self.open() as stream:
            content: bytes = stream.read(most + 1)
        if len(content) > most:
            raise TableError(
                f"{self.path} is too large: it has more than {most:,} bytes."
            )
        return content

    def sha256(self) -> str:
        """The digest of its content, as `sha256sum` gives it."""
        with self.open() as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()


def _identity(state: os.stat_result) -> tuple[int, ...]:
    return state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns


def check_writable(
    path: Path, *, force: bool, others: Sequence[Path | None] = ()
) -> None:
    """Refuse a destination that is taken, or can't be written.

    Parameters
    ----------
    path : Path
    force : bool
        Whether a file that is there may be overwritten.
    others : sequence of Path or None
        Files that never are: what else the command reads and writes.
    """
    for other in filter(None, others):
        both = path.exists() and other.exists()
        # Unlike `resolve`, it bears links that lead to themselves.
        same = os.path.realpath(path) == os.path.realpath(other)
        if path.samefile(other) if both else same:
            use = "{file} has another use in this command, and is never overwritten."
            raise _taken(path, use, "choose another name")
    _check_free(path, force=force)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {path.parent} to write into.")
    # Permissions, quotas and read-only disks show when something is written.
    draft = _draft_of(path)
    try:
        _create(draft, 0o600)
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def written_whole(path: Path, *, force: bool) -> Iterator[Path]:
    """Give a draft to write to, which becomes the file if nothing goes wrong.

    A file that is replaced keeps its permissions and, where that is allowed, its owner.

    Parameters
    ----------
    path : Path
    force : bool
        Whether a file of that name is overwritten, instead of an error.
    """
    check_writable(path, force=force)
    # Drafts of this destination that killed runs have left are removed.
    drafts = f".{escape(path.stem)}{_MARK}-*{escape(path.suffix)}"
    for old in path.parent.glob(drafts):
        with suppress(OSError):
            age = time.time() - old.stat().st_mtime
            # A draft that nothing was written to for an hour is that of a run which was
            # killed.
            if age > 3600.0 and old.is_file() and not old.is_symlink():
                old.unlink()
    before = path.stat() if path.exists() else None
    mode = 0o666 if before is None else stat.S_IMODE(before.st_mode)
    draft = _draft_of(path)
    try:
        _create(draft, mode)
        if before is not None:
            draft.chmod(mode)
            # Windows has no such owners.
            with suppress(PermissionError, AttributeError):
                os.chown(draft, before.st_uid, before.st_gid)
        yield draft
        with draft.open("r+b") as stream:
            os.fsync(stream.fileno())
        _check_free(path, force=force)
        _move(draft, path, force=force)
    except OSError as error:
        # Reading what is to be written may fail as well, but not for want of room.
        if error.errno in (errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", 0)):
            error.filename = error.filename or str(path)
        raise
    finally:
        draft.unlink(missing_ok=True)


def write_whole(path: Path, content: bytes | str, *, force: bool = True) -> None:
    """Write a file whole or not at all; texts in UTF-8."""
    with written_whole(path, force=force) as draft:
        draft.write_bytes(content.encode() if isinstance(content, str) else content)


def _taken(path: Path, text: str, *remedies: str | Remedy) -> DestinationError:
    return DestinationError(Message(text, facts={"file": path}, remedies=remedies))


def _check_free(path: Path, *, force: bool) -> None:
    if path.is_symlink():
        raise _taken(path, "{file} is a link: name the file itself.")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: name a file in it.")
    if path.exists() and not path.is_file():
        kind = "{file} is a device or a pipe, and only regular files are written."
        raise _taken(path, kind, "choose another name")
    if path.exists() and not force:
        raise _taken(path, "{file} exists.", "choose another name", Remedy.OVERWRITE)


def _draft_of(path: Path) -> Path:
    """A name beside the destination: the last step is a rename within one disk."""
    draft = path.with_name(f".{path.stem}{_MARK}-{uuid4().hex}{path.suffix}")
    # A second interrupt may keep it from being removed where it was written.
    atexit.register(draft.unlink, missing_ok=True)
    return draft


def _create(draft: Path, mode: int) -> None:
    try:
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
    except OSError as error:
        raise type(error)(
            f"Nothing can be written into {draft.parent}: {error.strerror}. Choose "
            "another folder."
        ) from error


def _move(draft: Path, path: Path, *, force: bool) -> None:
    if force:
        draft.replace(path)
    else:
        try:
            # Unlike a rename, a link never replaces a file that appeared meanwhile.
            path.hardlink_to(draft)
        except FileExistsError:
            _check_free(path, force=False)
            raise
        except (OSError, NotImplementedError):
            draft.replace(path)
    with suppress(OSError):
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
