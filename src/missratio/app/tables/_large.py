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
from missratio._files import RowGroup, find_files, in_order
from missratio.app.tables._encoder import Encoder, flat
from missratio.exceptions import TableError, UnreadableFileError
from missratio.rows import LabelledBlock, LabelledSource

_Result = TypeVar("_Result")
# A batch has this many cells at most.
BATCH_CELLS = 2_097_152


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
        for row, batch in batches(group, [*self.encoder.names, self.target]):
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


def batches(group: RowGroup, columns: Sequence[str]) -> Iterator[tuple[int, Any]]:
    """Record batches of a row group, each with its first row in the group."""
    try:
        yield from group.batches(columns, max(1, BATCH_CELLS // len(columns)))
    except UnreadableFileError as error:
        raise TableError(str(error)) from error


def row_groups(path: Path) -> tuple[tuple[RowGroup, ...], Any]:
    """The row groups of a Parquet file or of a folder of them, and their schema."""
    try:
        found = find_files(path)
    except (OSError, ValueError) as error:
        raise TableError(str(error)) from error
    schema = _common_schema([(file.path, schema) for file, schema in found])
    groups = in_order(other for other, _ in found)
    if not groups:
        raise TableError(f"{path} has no rows: there is nothing to work on.")
    return groups, schema


def _common_schema(schemas: Sequence[tuple[str, Any]]) -> Any:
    """The columns of all files; refuse one with other columns or types.

    A column in which one file has no value at all may have any type in the others.
    """
    import pyarrow as pa

    first_file, first = schemas[0]
    known = {field.name: (field.type, first_file) for field in first}
    for file, schema in schemas[1:]:
        for name in [*known, *schema.names]:
            own = schema.field(name).type if name in schema.names else "absent"
            expected, where = known.get(name, ("absent", first_file))
            if expected == pa.null() and own != "absent":
                known[name] = own, file
            elif own not in (expected, pa.null()) or expected == "absent":
                raise TableError(
                    f"{file}: column {name!r} is {own}, and {expected} in {where}. "
                    "Files of one table must have the same columns, of the same types."
                )
    return pa.schema([(name, own) for name, (own, _) in known.items()])
