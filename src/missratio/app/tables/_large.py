"""Parquet files that are read again at every pass, as rows of numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from missratio._base.threads import one_blas_thread, share
from missratio._base.typing import BoolArray, FloatArray
from missratio.app.tables._encoder import Encoder, flat
from missratio.exceptions import TableError
from missratio.rows import LabelledBlock, LabelledSource

_Result = TypeVar("_Result")
# A batch has this many cells at most.
BATCH_CELLS = 2_097_152


@dataclass(frozen=True)
class RowGroup:
    """A row group of a Parquet file.

    Parameters
    ----------
    path : Path
    number : int
        In the file.
    start : int
        The number of its first row among all files' rows.
    rows : int
    """

    path: Path
    number: int
    start: int
    rows: int

    @property
    def where(self) -> str:
        """Its place, for messages."""
        return f"{self.path}, row group {self.number}"

    def place(self, row: int) -> str:
        """The place of one of its rows, counted from 0 in the group."""
        return f"row {row + 1} of {self.where}"

    def batches(self, columns: Sequence[str]) -> Iterator[tuple[int, Any]]:
        """Record batches of some columns, each with its first row in the group."""
        from pyarrow import ArrowException, parquet

        size, row = max(1, BATCH_CELLS // len(columns)), 0
        try:
            with parquet.ParquetFile(
                self.path, pre_buffer=False, page_checksum_verification=True
            ) as file:
                for batch in file.iter_batches(
                    batch_size=size, row_groups=[self.number], columns=list(columns),
                    use_threads=False,
                ):  # fmt: skip
                    yield row, batch
                    row += len(batch)
        except (ArrowException, OSError, NotImplementedError) as error:
            raise TableError(
                f"{self.where} can't be read: {str(error).strip()} Get a sound copy."
            ) from error


@dataclass(frozen=True)
class Spared:
    """Rows that take no part in a fit, drawn by a coin each, to measure it on."""

    seed: int
    shares: Mapping[Any, float]

    def of(self, labels: NDArray[Any], start: int) -> BoolArray:
        """Which rows of a batch are spared; the same at every pass."""
        rng = np.random.default_rng([self.seed, start, 2])
        coin = rng.random(len(labels))
        spared = np.zeros(len(labels), dtype=bool)
        for label, share_of_it in self.shares.items():
            spared |= (labels == label) & (coin < share_of_it)
        return spared


@dataclass(frozen=True)
class EncodedSource(LabelledSource):
    """Rows of Parquet files as numbers: categories are indicators, as in memory.

    Parameters
    ----------
    groups : tuple of RowGroup
    encoder : Encoder
    target : str
        The column of labels.
    labels : mapping from str to label
        What labels stand for; rows with others are left out.
    n_rows : int
        All rows of the files.
    spared : Spared, optional
        Rows to leave out, too.
    on_pass, on_group : callable, optional
        Told how many row groups a pass has, and that one is done.
    """

    groups: tuple[RowGroup, ...]
    encoder: Encoder
    target: str
    labels: Mapping[str, Any]
    n_rows: int
    spared: Spared | None = None
    on_pass: Callable[[int], None] | None = field(default=None, compare=False)
    on_group: Callable[[], None] | None = field(default=None, compare=False)

    @cached_property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]
        """The columns of numbers."""
        return tuple(self.encoder.encoded_names)

    def split(self) -> Sequence[EncodedSource]:
        """A source for each row group, for workers that read them themselves."""
        bare = replace(self, on_pass=None, on_group=None)
        return [replace(bare, groups=(group,), n_rows=group.rows)
                for group in self.groups]  # fmt: skip

    def fold(
        self,
        work: Callable[[LabelledBlock], _Result],
        merge: Callable[[Sequence[_Result]], _Result],
    ) -> _Result:
        """Map work over blocks, threads sharing row groups, and merge in their order.

        Parameters
        ----------
        work, merge : callable
            As for `LabelledSource`.
        """
        if self.on_pass is not None:
            self.on_pass(len(self.groups))

        def fold_group(group: RowGroup) -> _Result:
            found = merge([work(block) for block in self.blocks(group)])
            if self.on_group is not None:
                self.on_group()
            return found

        with one_blas_thread(self.n_rows * len(self.names)) as threads:
            return merge(share(fold_group, self.groups, threads))

    def blocks(
        self, group: RowGroup, *, spared: bool = False
    ) -> Iterator[LabelledBlock]:
        """The blocks of a row group: rows to fit on, or those spared."""
        for row, batch in group.batches([*self.encoder.names, self.target]):
            texts = self.encoder.cells.texts(flat(batch.column(self.target)))
            labels, known = self._labels(texts)
            start = group.start + row
            if self.spared is not None:
                known &= self.spared.of(labels, start) == spared
            X = self.encoder.encode(batch, row, place=group.place)
            yield LabelledBlock(X[known], labels[known], start, group.where)

    def _labels(self, texts: Any) -> tuple[NDArray[Any], BoolArray]:
        """Labels of a batch, and which rows have one of those wanted."""
        coded = texts.dictionary_encode()
        spellings = coded.dictionary.to_pylist()
        meant = [self.labels.get(text) for text in spellings]
        some = next(iter(self.labels.values()))
        values = np.array([some if each is None else each for each in meant] + [some])
        is_known = np.array([each is not None for each in meant] + [False])
        codes = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        return values[codes], is_known[codes]

    def drawn(self) -> tuple[FloatArray, NDArray[Any]]:
        """The rows that are spared, and their labels, in one pass."""
        blocks = [
            block for group in self.groups for block in self.blocks(group, spared=True)
        ]
        return (
            np.concatenate([block.rows for block in blocks]),
            np.concatenate([block.labels for block in blocks]),
        )


def row_groups(path: Path) -> tuple[tuple[RowGroup, ...], Any]:
    """The row groups of a Parquet file or of a folder of them, and their schema."""
    import pyarrow
    from pyarrow import parquet

    files = sorted(path.rglob("*.parquet")) if path.is_dir() else [path]
    if not files:
        raise TableError(f"{path} is a folder without a .parquet file.")
    groups: list[RowGroup] = []
    first, start = None, 0
    for file in files:
        try:
            with parquet.ParquetFile(file) as opened:
                schema, meta = opened.schema_arrow, opened.metadata
        except (pyarrow.ArrowException, OSError, ValueError) as error:
            raise TableError(
                f"{file} can't be read as a Parquet file: {str(error).strip()} Get a "
                "sound copy."
            ) from error
        first = schema if first is None else first
        _check_schema(file, schema, files[0], first)
        for number in range(meta.num_row_groups):
            rows = meta.row_group(number).num_rows
            if rows:
                groups.append(RowGroup(file, number, start, rows))
            start += rows
    if not groups:
        raise TableError(f"{path} has no rows: there is nothing to work on.")
    return tuple(groups), first


def _check_schema(file: Path, schema: Any, first_file: Path, first: Any) -> None:
    """Refuse a file with other columns or types than the first one has."""
    own = {name: str(schema.field(name).type) for name in schema.names}
    expected = {name: str(first.field(name).type) for name in first.names}
    for name in [*expected, *own]:
        if own.get(name) != expected.get(name):
            raise TableError(
                f"{file}: column {name!r} is {own.get(name, 'absent')}, and "
                f"{expected.get(name, 'absent')} in {first_file}. Files of one table "
                "must have the same columns, of the same types."
            )
