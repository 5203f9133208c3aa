"""One file from the web, out of a zip archive where it comes in one."""

from __future__ import annotations

import logging
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_TIMEOUT = 30
_LARGEST = 2**28


def download(url: str, file: str) -> bytes:
    """The content of a file at an address, or of the file in a zip archive there.

    Parameters
    ----------
    url : str
    file : str
        The file's name within an archive.

    Raises
    ------
    OSError
        Where the address can't be reached or doesn't answer with a file.
    ValueError
        Where the archive is damaged, or doesn't hold the file.
    """
    import pooch

    with tempfile.TemporaryDirectory() as folder, _quiet(pooch.get_logger()):
        # The digest is checked by the caller: that of the file, not of an archive.
        path = pooch.retrieve(
            url,
            known_hash=None,
            fname="download",
            path=folder,
            downloader=pooch.HTTPDownloader(timeout=_TIMEOUT),
        )
        if zipfile.is_zipfile(path) and not file.endswith(".zip"):
            return _member(path, file, url)
        return Path(path).read_bytes()


@contextmanager
def _quiet(logger: logging.Logger) -> Iterator[None]:
    """Silence log messages that aren't warnings."""
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)


def _member(path: str, file: str, url: str) -> bytes:
    try:
        with zipfile.ZipFile(path) as archive:
            held = [info for info in archive.infolist() if info.filename == file]
            if not held:
                raise ValueError(f"there is no {file} in the archive at {url}")
            if held[0].file_size > _LARGEST:
                raise ValueError(
                    f"{file} in the archive at {url} claims {held[0].file_size} bytes, "
                    f"more than {_LARGEST}"
                )
            return archive.read(held[0])
    except zipfile.BadZipFile as error:
        raise ValueError(f"the archive at {url} is damaged: {error}") from error
