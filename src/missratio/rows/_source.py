"""Where rows come from: blocks of them again and again, some of them, their number.

That is all that the rest of the library asks of a table, so that rows may lie in
memory, in files, on a cluster or on a device.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self, TypeVar

import numpy as np

from missratio._base.blocks import gathered
from missratio._base.threads import one_blas_thread, share
from missratio._base.typing import BoolArray, FloatArray, IntArray

# Numbers of a block: its temporaries stay in a core's cache.
BLOCK_ELEMENTS = 131_072
# Large tables have larger blocks, up to so many times: between them threads wait for
# the interpreter, which a pass should spend little time in.
LARGER_BLOCKS = 8
BLOCKS = 32
# Blocks are merged in so many groups, whatever the number of threads, so that digits
# don't depend on it.
CHUNKS = 64

Result = TypeVar("Result")


def block_count(size: int, elements: int) -> int:
    """Into how many blocks a table is cut; how many threads there are doesn't matter.

    Parameters
    ----------
    size : int
        How many numbers the table holds.
    elements : int
        How many a block of a small table holds.
    """
    larger = min(max(elements, size // BLOCKS), LARGER_BLOCKS * elements)
    n_blocks = max(1, -(-size // larger))
    # A power of two shares out evenly among threads, which mostly are one as well.
    return n_blocks if n_blocks <= 8 else 2 ** round(math.log2(n_blocks))


@dataclass(frozen=True, slots=True)
class RowBlock:
    """Some consecutive rows.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_columns)
        NaN where missing. Not to be written to.
    features : ndarray of shape (n_rows, n_features)
        Their basis features; `rows` itself where those are the columns.
    weights : ndarray of shape (n_rows,), or None
        The rows' own weights (`sample_weight`); None stands for ones.
    start : int
        How many rows of the source come before.
    """

    rows: FloatArray
    features: FloatArray
    weights: FloatArray | None
    start: int

    @property
    def place(self) -> slice:
        """Which of the source's rows they are."""
        return slice(self.start, self.start + len(self.rows))


class Source(Protocol):
    """What a fit asks of rows, wherever they lie."""

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        ...

    def fold(
        self,
        work: Callable[[RowBlock], Result],
        merge: Callable[[Sequence[Result]], Result],
        elements: int = BLOCK_ELEMENTS,
    ) -> Result:
        """Work on blocks of rows where they lie, and merge the results in order.

        Parameters
        ----------
        work : callable
            From a `RowBlock` to something small.
        merge : callable
            From several results to one; called on results of results too.
        elements : int
            How many numbers a block holds, about.
        """
        ...

    def every(self, stride: int) -> Source:
        """Every stride-th row: a sample of the rows, drawn into memory."""
        ...


@dataclass(frozen=True, slots=True)
class MemorySource:
    """Chosen rows of a table in memory, used where they lie.

    Parameters
    ----------
    table : ndarray of shape (n_all_rows, n_columns)
    features : ndarray of shape (n_all_rows, n_features)
        Basis features of all rows; `table` itself where those are the columns.
    index : ndarray of int, or slice
        The rows chosen; a slice where they are evenly spaced.
    weights : ndarray of shape (n_rows,), or None
        The chosen rows' own weights.
    """

    table: FloatArray
    features: FloatArray
    index: IntArray | slice
    weights: FloatArray | None = None

    @classmethod
    def of(
        cls,
        table: FloatArray,
        features: FloatArray,
        chosen: BoolArray | None = None,
        weights: FloatArray | None = None,
    ) -> Self:
        """The rows of a mask (or all), with the weights of all rows."""
        if chosen is None:
            return cls(table, features, slice(0, len(table), 1), weights)
        start, n_rows = int(chosen.argmax()), np.count_nonzero(chosen)
        index: IntArray | slice = slice(start, start + n_rows, 1)
        if not chosen[index].all():
            index = np.flatnonzero(chosen)
        return cls(table, features, index, None if weights is None else weights[index])

    @property
    def n_rows(self) -> int:
        """The number of rows chosen."""
        if isinstance(self.index, slice):
            return len(range(self.index.start, self.index.stop, self.index.step))
        return len(self.index)

    @property
    def size(self) -> int:
        """How many numbers the features of all rows are."""
        return self.n_rows * int(self.features.shape[1])

    def fold(
        self,
        work: Callable[[RowBlock], Result],
        merge: Callable[[Sequence[Result]], Result],
        elements: int = BLOCK_ELEMENTS,
    ) -> Result:
        """Work on blocks of rows, among threads; as of `Source`."""
        n_rows, width = self.n_rows, max(self.table.shape[1], self.features.shape[1])
        if not isinstance(self.index, slice):
            # What is gathered is a copy.
            elements //= 2
        n_blocks = block_count(n_rows * width, elements)
        if n_blocks == 1:
            return work(self.block(0, n_rows))
        length = -(-n_rows // n_blocks)
        starts = range(0, n_rows, length)
        per_chunk = math.ceil(len(starts) / CHUNKS)
        chunks = [starts[i : i + per_chunk] for i in range(0, len(starts), per_chunk)]

        def fold_chunk(chunk: Sequence[int]) -> Result:
            parts = [work(self.block(i, min(i + length, n_rows))) for i in chunk]
            # Threads wait for each other in merging: what is one part needs none.
            return parts[0] if len(parts) == 1 else merge(parts)

        with one_blas_thread(n_rows * width) as threads:
            return merge(share(fold_chunk, chunks, threads))

    def block(self, start: int, stop: int) -> RowBlock:
        """Some consecutive rows, as views where the chosen ones are evenly spaced."""
        rows = self._at(self.table, start, stop)
        linear = self.features is self.table
        features = rows if linear else self._at(self.features, start, stop)
        weights = None if self.weights is None else self.weights[start:stop]
        return RowBlock(rows, features, weights, start)

    def _at(self, table: FloatArray, start: int, stop: int) -> FloatArray:
        index = self.index
        if isinstance(index, slice):
            first, step = index.start, index.step
            return table[first + step * start : first + step * stop : step]
        return gathered(table, index[start:stop])

    def row_number(self, row: int) -> int:
        """Where a chosen row is in the table, for messages."""
        if isinstance(self.index, slice):
            return int(self.index.start) + int(self.index.step) * row
        return int(self.index[row])

    def every(self, stride: int) -> MemorySource:
        """Every stride-th row chosen; as of `Source`."""
        weights = None if self.weights is None else self.weights[::stride]
        if not isinstance(self.index, slice):
            return replace(self, index=self.index[::stride], weights=weights)
        start, stop, step = self.index.start, self.index.stop, self.index.step
        return replace(self, index=slice(start, stop, step * stride), weights=weights)

    def take(self, chosen: BoolArray) -> MemorySource:
        """The chosen rows of a mask."""
        index = self.index
        if isinstance(index, slice):
            index = np.arange(index.start, index.stop, index.step)
        weights = None if self.weights is None else self.weights[chosen]
        return replace(self, index=index[chosen], weights=weights)


def concatenated(parts: Sequence[Any]) -> Any:
    """Merge arrays (or tuples of arrays) of consecutive rows; None stays None."""
    if isinstance(parts[0], tuple):
        return tuple(concatenated(each) for each in zip(*parts, strict=True))
    return None if parts[0] is None else np.concatenate(parts, axis=-1)
