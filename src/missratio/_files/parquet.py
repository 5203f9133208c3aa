"""Parquet files: one door for whole tables, and for row groups read at every pass.

PyArrow refuses what a damaged or forged file claims of its pages, except for a single
column with fewer values than its footer says; so rows are counted.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from missratio._base.hints import listed
from missratio._files.cells import HELD, held_by
from missratio._files.files import RegularFile
from missratio._files.tables import TableFile, check_doubled
from missratio.exceptions import TableError, UnreadableFileError

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

_BATCH_ROWS = 2**16


@contextmanager
def sound(
    error: type[Exception], claim: str, remedy: str = "Get a sound copy."
) -> Iterator[None]:
    """Give what PyArrow says of a damaged file one name, after a claim."""
    import pyarrow as pa

    try:
        yield
    except error:
        raise
    except (
        pa.ArrowException, OSError, ValueError, KeyError, NotImplementedError
    ) as reason:  # fmt: skip
        why = str(reason).strip().rstrip(".")
        raise error(f"{claim}: {why}. {remedy}") from reason


def open_parquet(path: Any) -> pq.ParquetFile:
    """Open a file whose pages are read as they are needed, within `sound`.

    A column of a row group is read as it lies, as long as the footer says: through a
    buffer PyArrow takes the memory that a page's header claims, gigabytes of a forged
    one.
    """
    import pyarrow.parquet as pq

    return pq.ParquetFile(path, pre_buffer=False, page_checksum_verification=True)


def _checked(batches: Iterator[Any], expected: int) -> Iterator[tuple[int, Any]]:
    """Batches, each with its first row; refuses fewer rows than the footer says."""
    row = 0
    for batch in batches:
        # Texts must be UTF-8.
        batch.validate(full=True)
        yield row, batch
        row += len(batch)
    if row != expected:
        raise ValueError(f"it has {row} rows, and its footer says {expected}")


class ParquetTable(TableFile):
    """A Parquet file, of which only a row group is in memory at a time."""

    n_rows: int
    unit = "row"

    def __init__(self, file: RegularFile) -> None:
        super().__init__(file)
        with self._sound():
            self._file = open_parquet(self.path)
        self.names = list(self._file.schema_arrow.names)
        self.n_rows = self._file.metadata.num_rows

    def _sound(self) -> AbstractContextManager[None]:
        # PyArrow opens the file itself, and keeps it open.
        self.file.open().close()
        return sound(TableError, f"{self.path} can't be read as a Parquet file")

    def line_numbers(self) -> Sequence[int]:
        """The number of each row, from 1."""
        return range(1, self.n_rows + 1)

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Record batches of some columns, of the types that the file has."""
        schema = self._file.schema_arrow
        kinds = {name: schema.field(name).type for name in columns}
        if odd := [name for name, kind in kinds.items() if held_by(kind) not in HELD]:
            raise TableError(
                f"{self.path}, column(s) {listed(odd)} of type {kinds[odd[0]]}: only "
                "numbers, texts and dates can be read. Leave them out (--drop "
                f"{','.join(odd)})."
            )
        with self._sound():
            batches = self._file.iter_batches(_BATCH_ROWS, columns=list(columns))
            for _, batch in _checked(batches, self.n_rows):
                yield batch


@dataclass(frozen=True)
class RowGroup:
    """A row group of a Parquet file.

    Parameters
    ----------
    path : str
        The file.
    number : int
        In the file.
    rows : int
        How many rows it has.
    start : int
        The number of its first row among all files' rows.
    stamp : tuple of int
        The file's size and when it was written, so that a change is noticed.
    """

    path: str
    number: int
    rows: int
    start: int
    stamp: tuple[int, int]

    @property
    def where(self) -> str:
        """Its place, for messages."""
        return f"{self.path}, row group {self.number}"

    def batches(
        self, columns: Sequence[str], size: int
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Record batches of some columns, each with its first row in the group.

        Parameters
        ----------
        columns : sequence of str
        size : int
            How many rows a batch has at most.
        """
        remedy = "Get a sound copy, or leave the file out."
        with sound(UnreadableFileError, f"{self.where} can't be read", remedy):
            self._check_unchanged()
            with open_parquet(self.path) as file:
                wanted = list(columns)
                batches = file.iter_batches(size, [self.number], wanted, False)
                for row, batch in _checked(batches, self.rows):
                    yield row, batch.select(wanted)
            self._check_unchanged()

    def _check_unchanged(self) -> None:
        """Refuse a file that was written again: passes would see different rows."""
        if _stamp(self.path) != self.stamp:
            raise UnreadableFileError(
                f"{self.path} was written again after its footer was read, and every "
                "pass needs the same rows. Start again when nothing writes to it; a "
                "worker's copy of a file must keep its time."
            )


def find_row_groups(
    paths: Any,
) -> tuple[list[tuple[str, pa.Schema]], tuple[RowGroup, ...]]:
    """Files that have rows with the types of their columns, and all row groups.

    Parameters
    ----------
    paths : path or iterable of paths
        Files, and folders of them.
    """
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    if not given:
        raise ValueError("There is no path. Name Parquet files, or folders of them.")
    # 1. Find the files; hidden ones in folders are left out.
    files: list[str] = []
    for root in map(Path, given):
        if not (root.is_file() or root.is_dir()):
            raise FileNotFoundError(
                f"There is no file or folder {root}. Name Parquet files, or folders "
                "that hold some."
            )
        for file in [root] if root.is_file() else sorted(root.rglob("*.parquet")):
            parts = file.relative_to(root).parts
            if file.is_file() and not any(p.startswith((".", "_")) for p in parts):
                files.append(str(file))
    if not files:
        raise ValueError(
            f"There is no file that ends in .parquet in {listed(map(str, given))}."
        )
    counts = Counter(map(os.path.realpath, files))
    if twice := [path for path in files if counts[os.path.realpath(path)] > 1]:
        raise ValueError(
            f"{twice[-1]} is named twice, and its rows would count twice. Name each "
            "file once, by itself or by its folder."
        )
    # 2. Read the footers.
    schemas, groups, start = [], [], 0
    for path in files:
        claim = f"{path} can't be read as a Parquet file"
        remedy = "Get a sound copy, or leave it out."
        with sound(UnreadableFileError, claim, remedy), open_parquet(path) as opened:
            stamp, schema, data = _stamp(path), opened.schema_arrow, opened.metadata
            sizes = [data.row_group(g).num_rows for g in range(data.num_row_groups)]
        check_doubled(path, schema.names)
        # A file without rows may have any types: writers can't tell them.
        schemas += [(path, schema)] if any(sizes) else []
        for number, rows in enumerate(sizes):
            if rows:
                groups.append(RowGroup(path, number, rows, start, stamp))
            start += rows
    return schemas, tuple(groups)


def _stamp(path: str) -> tuple[int, int]:
    state = Path(path).stat()
    return state.st_size, state.st_mtime_ns
