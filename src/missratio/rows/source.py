"""Where rows come from: the protocol of all sources, tables in memory, and sums."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar

import numpy as np

from missratio._base.blocks import take_rows
from missratio._base.threads import one_blas_thread, share
from missratio._base.typing import BoolArray, FloatArray, IntArray

# A block has this many numbers: its temporaries stay in a core's cache.
BLOCK_ELEMENTS = 131_072
# Blocks of large tables are up to this many times larger: between blocks threads wait
# for the interpreter.
LARGER_BLOCKS = 8
BLOCKS = 32
# Samples of up to this many numbers are copied: a class then lies together in memory
# (6 to 13 % of a small fit).
HELD_ELEMENTS = 8_000_000

LOWEST = np.finfo(np.float64).min

Result = TypeVar("Result")
Merge = Callable[[Sequence[Result]], Result]


def fold_blocks(
    work: Callable[[int, int], Result],
    merge: Merge[Result],
    n_rows: int,
    size: int,
    elements: int,
) -> Result:
    """Work on consecutive rows among threads, and merge the results in order.

    How rows are cut doesn't depend on the number of threads.

    Parameters
    ----------
    work : callable
        From the first row of a block, and the one after its last, to something small.
    merge : callable
        From several results to one; called on results of results too.
    n_rows : int
    size : int
        How many numbers all rows hold.
    elements : int
        How many a block of a small table holds.
    """
    larger = min(max(elements, size // BLOCKS), LARGER_BLOCKS * elements)
    n_blocks = -(-size // larger)
    if n_blocks <= 1:
        return work(0, n_rows)
    if n_blocks > 8:
        # A power of two shares out evenly among threads, which mostly are one as well.
        n_blocks = 2 ** round(math.log2(n_blocks))
    length = -(-n_rows // n_blocks)
    starts = range(0, n_rows, length)
    # Blocks are merged in 256 groups for any number of threads, so that digits don't
    # depend on it.
    per_chunk = math.ceil(len(starts) / 256)

    def fold_chunk(first: int) -> Result:
        chunk = starts[first : first + per_chunk]
        parts = [work(start, min(start + length, n_rows)) for start in chunk]
        # Threads wait for each other in merging: what is one part needs none.
        return parts[0] if len(parts) == 1 else merge(parts)

    with one_blas_thread(size) as threads:
        return merge(share(fold_chunk, range(0, len(starts), per_chunk), threads))


@dataclass(frozen=True, slots=True)
class RowBlock:
    """Some consecutive rows of a class.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_columns)
        NaN where missing. Not to be written to.
    features : ndarray of shape (n_rows, n_features)
        Their basis features; `rows` itself where those are the columns.
    sample_weight : ndarray of shape (n_rows,), or None
        What the user lets rows count; None stands for ones.
    start : int
        How many rows of the source come before.
    ipw : ndarray of shape (n_rows,) or (n_rows, n_columns), or None
        The weights 1{observed}/P(observed) of rows or entries, which `ClassRows` adds;
        None stands for ones.
    """

    rows: FloatArray
    features: FloatArray
    sample_weight: FloatArray | None = None
    start: int = 0
    ipw: FloatArray | None = None

    @property
    def place(self) -> slice:
        """Which of the source's rows they are."""
        return slice(self.start, self.start + len(self.rows))


# Work turns a block into something small.
BlockWork = Callable[[RowBlock], Result]


class Source(ABC):
    """Rows of one class, wherever they lie, which may be read again and again."""

    n_rows: Any
    # All rows are in memory, or some that were drawn, with their basis features.
    table: FloatArray
    features: FloatArray
    sample_weight: FloatArray | None = None
    # A source on a device makes a sample of complete rows, given the total, and sums
    # up the features.
    sample: Any = None
    feature_sums: Any = None
    # A first pass may have made sums over features, and over complete rows.
    first_pass: tuple[WeightSums, ...] | None = None

    @property
    def size(self) -> int:
        """How many numbers the features of all rows are."""
        return int(self.n_rows) * int(self.features.shape[1])

    @abstractmethod
    def fold(
        self, work: BlockWork[Result], merge: Merge[Result], elements: int = 0
    ) -> Result:
        """Work on blocks of rows where they lie, and merge the results in order.

        Parameters
        ----------
        work : callable
            From a `RowBlock` to something small.
        merge : callable
            From several results to one; called on results of results too.
        elements : int
            How many numbers a block holds, about; 0 for what suits the source.
        """

    def every(self, stride: int) -> MemorySource:
        """Some rows in memory: every stride-th, or all that were drawn if fewer."""
        times = stride * len(self.table) // max(self.n_rows, 1)
        return MemorySource.of(self.table, self.features).every(max(1, times))

    def row_number(self, row: int) -> int:
        """Where a row is in the user's table, for messages."""
        return row


@dataclass(frozen=True)
class MemorySource(Source):
    """Chosen rows of a table in memory, used where they lie.

    Parameters
    ----------
    table : ndarray of shape (n_all_rows, n_columns)
    features : ndarray of shape (n_all_rows, n_features)
        Basis features of all rows; `table` itself where those are the columns.
    index : ndarray of int, or range
        The rows chosen; a range where they are evenly spaced.
    sample_weight : ndarray of shape (n_rows,), or None
        Of the chosen rows.
    """

    table: FloatArray
    features: FloatArray
    index: IntArray | range
    sample_weight: FloatArray | None = None

    @classmethod
    def of(
        cls,
        table: FloatArray,
        features: FloatArray | None = None,
        chosen: BoolArray | None = None,
        sample_weight: FloatArray | None = None,
    ) -> Self:
        """The rows of a mask (or all), with the weights of all rows."""
        features = table if features is None else features
        if chosen is None:
            return cls(table, features, range(len(table)), sample_weight)
        start = int(chosen.argmax())
        stop = start + int(np.count_nonzero(chosen))
        together = bool(chosen[start:stop].all())
        index = range(start, stop) if together else np.flatnonzero(chosen)
        weights = None if sample_weight is None else sample_weight[chosen]
        return cls(table, features, index, weights)

    @property
    def n_rows(self) -> int:
        """The number of rows chosen."""
        return len(self.index)

    def fold(
        self, work: BlockWork[Result], merge: Merge[Result], elements: int = 0
    ) -> Result:
        """Work on blocks of rows, among threads."""
        size = self.n_rows * max(self.table.shape[1], self.features.shape[1])
        # What is gathered is a copy.
        copies = 1 if isinstance(self.index, range) else 2
        elements = (elements or BLOCK_ELEMENTS) // copies
        return fold_blocks(
            lambda *rows: work(self.block(*rows)), merge, self.n_rows, size, elements
        )

    def block(self, start: int = 0, stop: int | None = None) -> RowBlock:
        """Some consecutive rows, as views where the chosen ones are evenly spaced."""
        index, tables = self.index[start:stop], [self.table]
        if self.features is not self.table:
            tables.append(self.features)
        if isinstance(index, range):
            place = slice(index.start, index.stop, index.step)
            chosen = [table[place] for table in tables]
        else:
            chosen = [take_rows(table, index) for table in tables]
        weights = None
        if self.sample_weight is not None:
            weights = self.sample_weight[start:stop]
        return RowBlock(chosen[0], chosen[-1], weights, start)

    def row_number(self, row: int) -> int:
        """Where a chosen row is in the table, for messages."""
        return int(self.index[row])

    def every(self, stride: int) -> MemorySource:
        """Every stride-th row chosen."""
        return self.take(slice(None, None, stride))

    def take(self, chosen: BoolArray | slice) -> MemorySource:
        """The chosen rows of a mask, or of a slice."""
        index: Any = self.index
        if isinstance(index, range) and not isinstance(chosen, slice):
            index = np.arange(index.start, index.stop, index.step)
        weights = None if self.sample_weight is None else self.sample_weight[chosen]
        return replace(self, index=index[chosen], sample_weight=weights)


@dataclass(frozen=True, slots=True)
class WeightSums:
    """What one pass over a class's rows tells, for each feature or for whole rows.

    Sums merge by addition. Weights are 1{observed}/P(observed); `mass` and `sums` have
    the sample weights multiplied in.

    Parameters
    ----------
    n_rows : int
        Missing ones included.
    count : ndarray of shape (..., n_weights)
        How many are observed.
    total, squares : ndarray of shape (..., n_weights)
        Σw and Σw².
    largest : ndarray of shape (..., n_weights)
        The largest w.
    mass : ndarray of shape (..., n_weights)
        Σ v, where v is w times the row's sample weight.
    sums : ndarray of shape (..., n_features)
        Σ v f.
    """

    n_rows: int
    count: FloatArray
    total: FloatArray
    squares: FloatArray
    largest: FloatArray
    mass: FloatArray
    sums: FloatArray

    @classmethod
    def merged(cls, parts: Sequence[WeightSums]) -> WeightSums:
        """The sums over all sets of rows."""
        names = ("count", "total", "squares", "mass", "sums")
        sums = {k: np.sum([getattr(part, k) for part in parts], axis=0) for k in names}
        largest = np.max([part.largest for part in parts], axis=0)
        return cls(n_rows=sum(part.n_rows for part in parts), largest=largest, **sums)

    @property
    def kish(self) -> FloatArray:
        """Kish's effective sample size (Σw)²/Σw²."""
        # The sum is divided first, so that its square can't overflow.
        quotient = self.total / np.maximum(self.squares, 1e-300)
        # Rounding must not break the inequality.
        return np.minimum(self.total * quotient, self.count)


def weighted_sums(
    features: FloatArray,
    weights: FloatArray | None,
    sample_weight: FloatArray | None = None,
) -> WeightSums:
    """Sum up the rows of a block, in double precision.

    Parameters
    ----------
    features : ndarray of shape (..., n_rows, n_features)
        What is missing may be NaN.
    weights : ndarray of shape (..., n_rows) or (..., n_rows, n_features), or None
        0 where missing; None stands for ones.
    sample_weight : ndarray of shape (n_rows,), or None
    """
    n_rows, values = features.shape[-2], features
    ones = np.ones(n_rows)
    if weights is None:
        count = np.full((*features.shape[:-2], 1), float(n_rows))
        factors = ones if sample_weight is None else sample_weight
        mass = np.full_like(count, factors.sum())
        # BLAS adds rows up twice as fast as a sum along the first axis. NumPy's dot
        # lets go of the interpreter lock, its matmul doesn't.
        add = np.dot if values.ndim == 2 else np.matmul
        sums = add(factors, values)
        return WeightSums(n_rows, count, count, count, np.ones_like(count), mass, sums)
    if weights.ndim == 1:
        # Rows that are missing as a whole are left out.
        seen = weights > 0.0
        count = np.full(1, float(np.count_nonzero(seen)))
        combined = weights if sample_weight is None else weights * sample_weight
        if not seen.all():
            values = np.compress(seen, values, axis=0)
        sums = np.dot(combined[seen], values.astype(np.float64, copy=False))
        total, squares = weights.sum(keepdims=True), np.dot(weights, weights)
        mass = total if sample_weight is None else combined.sum(keepdims=True)
        largest = weights.max(initial=0.0, keepdims=True)
        return WeightSums(n_rows, count, total, squares[None], largest, mass, sums)
    weights = weights[..., None] if weights.ndim < features.ndim else weights
    combined = weights if sample_weight is None else weights * sample_weight[:, None]
    # Any number will do for what is missing and weighs nothing. To choose by a mask
    # takes five times as long, and sums by einsum or along the first axis twice. All is
    # done in one array: threads wait for each other where new ones are made.
    made = np.fmax(values.astype(np.float64, copy=False), LOWEST)
    add = np.dot if weights.ndim == 2 else np.matmul
    total, sums = add(ones, weights), add(ones, np.multiply(made, combined, out=made))
    made = made[..., : weights.shape[-1]]
    squares = add(ones, np.multiply(weights, weights, out=made))
    return WeightSums(
        n_rows,
        add(ones, np.sign(weights, out=made)),
        total,
        squares,
        weights.max(axis=-2, initial=0.0),
        total if sample_weight is None else add(ones, combined),
        # Minus infinity has become a number that no table has.
        np.where(sums < 1e-50 * LOWEST, -np.inf, sums),
    )
