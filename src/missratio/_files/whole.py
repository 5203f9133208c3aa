"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from missratio.exceptions import DestinationError, Message, Remedy

_MARK = "-missratio-draft"
# A draft that nothing was written to for so long is that of a run which was killed.
_OLD_SECONDS = 3600.0


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
    _check_other(path, [each for each in others if each is not None])
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
    _sweep(path)
    before = path.stat() if path.exists() else None
    mode = 0o666 if before is None else stat.S_IMODE(before.st_mode)
    draft = _draft_of(path)
    try:
        _create(draft, mode)
        if before is not None:
            _take_over(draft, before)
        yield draft
        _flush(draft)
        _check_free(path, force=force)
        _move(draft, path, force=force)
    finally:
        draft.unlink(missing_ok=True)


def write_whole(path: Path, content: bytes) -> Path:
    """Write a file whole or not at all, over what is there, in a folder made for it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(path, force=True) as draft:
        draft.write_bytes(content)
    return path


def _check_other(path: Path, others: Sequence[Path]) -> None:
    for other in others:
        if path.exists() and other.exists():
            same = path.samefile(other)
        else:
            same = path.resolve() == other.resolve()
        if same:
            raise DestinationError(
                Message(
                    "{file} has another use in this command, and is never overwritten. "
                    "Choose another name.",
                    facts={"file": path},
                )
            )


def _check_free(path: Path, *, force: bool) -> None:
    if path.is_symlink():
        raise DestinationError(
            Message("{file} is a link: name the file itself.", facts={"file": path})
        )
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: name a file in it.")
    if not path.exists():
        return
    if not path.is_file():
        raise DestinationError(
            Message(
                "{file} is a device or a pipe, and only regular files are written. "
                "Choose another name.",
                facts={"file": path},
            )
        )
    if not force:
        raise DestinationError(
            Message(
                "{file} exists.",
                facts={"file": path},
                remedies=("choose another name", Remedy.OVERWRITE),
            )
        )


def _draft_of(path: Path) -> Path:
    """A name beside the destination: the last step is a rename within one disk."""
    return path.with_name(f".{path.stem}{_MARK}-{uuid4().hex}{path.suffix}")


def _create(draft: Path, mode: int) -> None:
    try:
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
    except OSError as error:
        raise type(error)(
            f"Nothing can be written into {draft.parent}: {error.strerror}. Choose "
            "another folder."
        ) from error


def _take_over(draft: Path, before: os.stat_result) -> None:
    """Permissions and owner of the file that is replaced, as far as allowed."""
    draft.chmod(stat.S_IMODE(before.st_mode))
    if hasattr(os, "chown"):
        with suppress(PermissionError):
            os.chown(draft, before.st_uid, before.st_gid)


def _flush(draft: Path) -> None:
    with draft.open("r+b") as stream:
        os.fsync(stream.fileno())


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


def _sweep(path: Path) -> None:
    """Remove drafts of this destination that killed runs have left."""
    start, now = f".{path.stem}{_MARK}-", time.time()
    with suppress(OSError):
        for each in path.parent.iterdir():
            is_ours = each.name.startswith(start) and each.suffix == path.suffix
            if is_ours and each.is_file() and not each.is_symlink():
                with suppress(OSError):
                    if now - each.stat().st_mtime > _OLD_SECONDS:
                        each.unlink()
