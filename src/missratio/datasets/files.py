"""Where the data sets' files are, who publishes them, and whether they are sound."""

from __future__ import annotations

import gzip
import logging
import os
import zlib
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Literal

from missratio._base.hints import did_you_mean, listed

# This environment variable names the data folder.
ENVIRONMENT = "MISSRATIO_DATA"

DigestStatus = Literal["matches", "differs", "unknown", "absent"]
DataHome = str | os.PathLike[str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """A data set's file, who publishes it, and what is at hand of it.

    Parameters
    ----------
    name : str
        The data set.
    files : tuple of str
        Names that its file may have, the first preferred.
    publisher, page : str
        Who publishes it, and where.
    url : str or None
        Where it can be fetched from; None where the publisher wants an account.
    sha256 : str or None
        Of the content, uncompressed; None where it isn't known.
    path : Path or None
        Where the file was found; None where it is absent.
    digest : {"matches", "differs", "unknown", "absent"}
        The file's SHA-256 against the pinned one; "unknown" where none is pinned.
    """

    name: str
    files: tuple[str, ...]
    publisher: str
    page: str
    url: str | None = None
    sha256: str | None = None
    path: Path | None = None
    digest: DigestStatus = "absent"

    @property
    def account_needed(self) -> bool:
        """Whether the publisher wants an account, so that it can't be fetched."""
        return self.url is None


SOURCES = {
    source.name: source
    for source in (
        DataFile(
            name="ctg",
            files=("CTG.xls",),
            publisher="UCI Machine Learning Repository",
            page="https://archive.ics.uci.edu/dataset/193/cardiotocography",
            url="https://archive.ics.uci.edu/ml/machine-learning-databases/00193/"
            "CTG.xls",
            sha256="d6aa62e82625e59f9d5b05bc8fc52af9ea67bdf2a23f1faca8511d5618fcb421",
        ),
        DataFile(
            name="fire",
            files=("smoke_detection_iot.csv", "smoke_detection_iot.csv.gz"),
            publisher="Kaggle",
            page="https://www.kaggle.com/datasets/deepcontractor/"
            "smoke-detection-dataset",
        ),
        DataFile(
            name="weather",
            files=("weatherAUS.csv.gz", "weatherAUS.csv"),
            publisher="Kaggle, from the Australian Bureau of Meteorology",
            page="https://www.kaggle.com/datasets/jsphyg/weather-dataset-rattle-package",
            sha256="a4f2b071196fef2a06849899187ff91dbcb097baf573e49391f0b75692fecb2b",
        ),
    )
}


def data_folder(data_home: DataHome = None) -> Path:
    """The folder of the data sets' files.

    Parameters
    ----------
    data_home : path, optional
        Default is the folder that the environment variable MISSRATIO_DATA names, else
        ``missratio`` in the platform's folder for caches.

    Returns
    -------
    Path
        It need not exist.

    Examples
    --------
    >>> from missratio.datasets import data_folder
    >>> data_folder("data").name
    'data'
    """
    named = data_home or os.environ.get(ENVIRONMENT)
    if named:
        return Path(named).expanduser()
    import pooch

    return Path(pooch.os_cache("missratio"))


def available(data_home: DataHome = None) -> list[DataFile]:
    """Every data set: its file, where it was found, and whether it is the known one.

    Parameters
    ----------
    data_home : path, optional
        As of `fetch`.

    Returns
    -------
    list of DataFile
        One for each data set.

    Examples
    --------
    >>> from missratio.datasets import available
    >>> [(entry.name, entry.account_needed) for entry in available()]
    [('ctg', False), ('fire', True), ('weather', True)]
    """
    entries = []
    for source in SOURCES.values():
        path = _find(source, data_folder(data_home))
        digest: DigestStatus = "absent" if path is None else "unknown"
        if path is not None and source.sha256 is not None:
            digest = "differs"
            with suppress(ValueError):
                if sha256(_content(path)).hexdigest() == source.sha256:
                    digest = "matches"
        entries.append(replace(source, path=path, digest=digest))
    return entries


def fetch(name: str, *, data_home: DataHome = None, verify: bool = True) -> Path:
    """The path of a data set's file, downloaded from its publisher where it is absent.

    Parameters
    ----------
    name : {"ctg", "fire", "weather"}
    data_home : path, optional
        The folder to look in and to download to. Default is the folder that the
        environment variable MISSRATIO_DATA names, else ``missratio`` in the platform's
        folder for caches.
    verify : bool, default=True
        Whether a file whose SHA-256 is not the pinned one is refused. That holds for a
        file that the user put there too: a damaged table gives wrong numbers, not
        errors. False reads another edition as it is; a download is always checked.

    Returns
    -------
    Path
        Of the file, as it lies in the folder.

    Raises
    ------
    FileNotFoundError
        Where the file is absent and its publisher can't be reached, or wants an
        account.
    ValueError
        Where the name is not a data set's, or the file is not the known one.

    Examples
    --------
    >>> from missratio.datasets import fetch
    >>> path = fetch("ctg")  # doctest: +SKIP
    """
    return read_file(name, data_home, verify)[0]


def read_file(name: str, data_home: DataHome, verify: bool) -> tuple[Path, bytes]:
    """The path of a data set's file and its content, uncompressed and checked."""
    if name not in SOURCES:
        raise ValueError(
            f"The data sets are {listed(SOURCES)}: got {name!r}."
            f"{did_you_mean(str(name), SOURCES)}"
        )
    source, folder = SOURCES[name], data_folder(data_home)
    path = _find(source, folder) or _download(source, folder)
    content = _content(path)
    digest = sha256(content).hexdigest()
    if verify and source.sha256 not in (None, digest):
        raise ValueError(
            f"{path} is not the file that {source.name!r} is pinned to: its SHA-256 is "
            f"{digest}, not {source.sha256}. It is damaged or another edition: replace "
            f"it by the one from {source.page}, or pass verify=False to read it as it "
            "is."
        )
    return path, content


def _find(source: DataFile, folder: Path) -> Path | None:
    paths = (folder / file for file in source.files)
    return next((path for path in paths if path.is_file()), None)


def _content(path: Path) -> bytes:
    content = path.read_bytes()
    if not path.name.endswith(".gz"):
        return content
    try:
        return gzip.decompress(content)
    except (EOFError, OSError, zlib.error) as error:
        raise ValueError(
            f"{path} is damaged: {error}. Replace it by a sound copy."
        ) from error


def _download(source: DataFile, folder: Path) -> Path:
    """Download a file into the folder; pooch checks it before it is put there."""
    import pooch

    file, logger = source.files[0], pooch.get_logger()
    reason = (
        f"{source.publisher.partition(',')[0]} lets only account holders download it"
    )
    if source.url is not None:
        level, http = logger.level, pooch.HTTPDownloader(timeout=30)
        # Otherwise pooch announces the download.
        logger.setLevel(logging.WARNING)
        try:
            known = source.url, source.sha256, file, folder
            return Path(pooch.retrieve(*known, downloader=http))
        except (OSError, ValueError) as error:
            reason = f"it could not be downloaded ({error})"
        finally:
            logger.setLevel(level)
    raise FileNotFoundError(
        f"{file} is not in {folder}, and {reason}. Get it from {source.page} and put "
        f"it into {folder}, or set {ENVIRONMENT} (or data_home) to the folder that "
        "holds it."
    )
