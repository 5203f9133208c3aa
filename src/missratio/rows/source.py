"""Rows in memory, block by block, and the weighted sums over them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NoReturn, Protocol, Self, TypeVar

import numpy as np

from missratio._base.blocks import gathered
from missratio._base.storable import storable
from missratio._base.threads import one_blas_thread, share
from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.exceptions import Message, Remedy, UnexplainedMissingError

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


@dataclass(frozen=True, slots=True)
class WeightSums:
    """What one pass over a class's rows tells, for each feature or for whole rows.

    Sums merge by addition. Weights are 1{observed}/P(observed), and `mass` and `sums`
    have the rows' own weights multiplied in.

    Parameters
    ----------
    n_rows : int
        Missing ones included.
    own : float
        Σ of the rows' own weights.
    count : ndarray of shape (..., n_weights)
        How many are observed.
    total, squares : ndarray of shape (..., n_weights)
        Σw and Σw².
    largest : ndarray of shape (..., n_weights)
        The largest w.
    mass : ndarray of shape (..., n_weights)
        Σ v, where v is w times the row's own weight.
    sums : ndarray of shape (..., n_features)
        Σ v (f − origin).
    origin : ndarray of shape (n_features,), or None
        What was subtracted before summing, where sums would lose digits.
    """

    n_rows: int
    own: float
    count: FloatArray
    total: FloatArray
    squares: FloatArray
    largest: FloatArray
    mass: FloatArray
    sums: FloatArray
    origin: FloatArray | None = None

    @classmethod
    def merged(cls, parts: Sequence[WeightSums]) -> WeightSums:
        """The sums over all sets of rows."""

        def added(name: str) -> FloatArray:
            return np.asarray(np.sum([getattr(part, name) for part in parts], axis=0))

        return cls(
            sum(part.n_rows for part in parts),
            sum(part.own for part in parts),
            added("count"),
            added("total"),
            added("squares"),
            np.max([part.largest for part in parts], axis=0),
            added("mass"),
            added("sums"),
            parts[0].origin,
        )

    def spread(self, n_weights: int) -> WeightSums:
        """The same with one weight for each feature, where there is one for all."""
        shape = (*self.count.shape[:-1], n_weights)

        def each(values: FloatArray) -> FloatArray:
            return np.broadcast_to(values, shape)

        return replace(
            self,
            count=each(self.count),
            total=each(self.total),
            squares=each(self.squares),
            largest=each(self.largest),
            mass=each(self.mass),
        )

    @property
    def kish(self) -> FloatArray:
        """Kish's effective sample size (Σw)²/Σw²."""
        # Divided first, so that the square of a sum can't overflow.
        quotient = self.total / np.maximum(self.squares, 1e-300)
        # Rounding must not break the inequality.
        return np.minimum(self.total * quotient, self.count)

    def check(self) -> WeightCheck:
        """The mean of the weights beside the one that a right φ gives it."""
        mean = self.total / self.n_rows
        variance = np.maximum(self.squares / self.n_rows - mean**2, 0.0)
        return WeightCheck(
            mean, np.sqrt(variance / self.n_rows), 1.0 - self.count / self.n_rows
        )


@storable()
@dataclass(frozen=True)
class WeightCheck:
    """Whether weights average to one, as they do, but for noise, if φ is right.

    Parameters
    ----------
    mean : ndarray of shape (n_weights,)
        The mean of the weights over all rows, missing ones included: of each feature,
        or of whole rows.
    standard_error : ndarray of shape (n_weights,)
    missing_share : ndarray of shape (n_weights,)
        The share that is missing.
    """

    mean: FloatArray
    standard_error: FloatArray
    missing_share: FloatArray

    @property
    def deviation(self) -> FloatArray:
        """How many standard errors each mean is away from one."""
        error = np.where(self.standard_error > 0.0, self.standard_error, 1.0)
        return np.asarray((self.mean - 1.0) / error)


def weighted_sums(
    features: FloatArray,
    weights: FloatArray | None,
    own: FloatArray | None,
    origin: FloatArray | None = None,
) -> WeightSums:
    """Sum up the rows of a block, in double precision.

    Parameters
    ----------
    features : ndarray of shape (..., n_rows, n_features)
        What is missing may be NaN.
    weights : ndarray of shape (..., n_rows) or (..., n_rows, n_features), or None
        0 where missing; None stands for ones.
    own : ndarray of shape (n_rows,), or None
        The rows' own weights.
    origin : ndarray of shape (n_features,), optional
        Subtracted from the features first.
    """
    n_rows = features.shape[-2]
    total_own = float(n_rows) if own is None else float(own.sum())
    if weights is None:
        flat = np.full((*features.shape[:-2], 1), 1.0)
        values = _shifted(features, origin)
        sums = _plain_sums(values, own)
        return WeightSums(
            n_rows, total_own, n_rows * flat, n_rows * flat, n_rows * flat, flat,
            total_own * flat, sums, origin,
        )  # fmt: skip
    by_row = weights.ndim < features.ndim
    weights = weights[..., None] if by_row else weights
    combined = weights if own is None else weights * own[:, None]
    # Any number will do for what is missing and weighs nothing.
    values = _shifted(features, origin).astype(np.float64, copy=False)
    values = np.fmax(values, np.finfo(np.float64).min)
    if by_row:
        sums = (combined.swapaxes(-1, -2) @ values)[..., 0, :]
    else:
        sums = np.einsum("...ij,...ij->...j", combined, values)
    ones = np.ones(n_rows)
    total = ones @ weights
    return WeightSums(
        n_rows,
        total_own,
        ones @ (weights > 0.0),
        total,
        np.einsum("...ij,...ij->...j", weights, weights),
        weights.max(axis=-2, initial=0.0),
        total if own is None else ones @ combined,
        sums,
        origin,
    )


def _plain_sums(values: FloatArray, own: FloatArray | None) -> FloatArray:
    if not values.shape[-1]:
        return np.zeros((*values.shape[:-2], 0))
    if own is not None:
        product: FloatArray = own @ values
        return product
    if values.dtype == np.float32:
        return np.asarray(values.sum(axis=-2, dtype=np.float64))
    # BLAS adds rows up twice as fast as a sum along the first axis.
    # NumPy's dot lets go of the interpreter lock, its matmul doesn't.
    ones = _ones(values.shape[-2])
    total: FloatArray = np.dot(ones, values) if values.ndim == 2 else ones @ values
    return total


@lru_cache(maxsize=2)
def _ones(n: int) -> FloatArray:
    # Blocks are all of one length, but for the last.
    return np.ones(n)


def _shifted(features: FloatArray, origin: FloatArray | None) -> FloatArray:
    return features if origin is None else features - origin


def weights_or_ones(parts: Sequence[FloatArray | int]) -> FloatArray | int:
    """Merge weights of blocks; a number stands for so many ones."""
    if all(isinstance(part, int) for part in parts):
        return sum(part for part in parts if isinstance(part, int))
    shape = next(part.shape[:-1] for part in parts if not isinstance(part, int))
    arrays = [
        np.ones((*shape, part)) if isinstance(part, int) else part for part in parts
    ]
    merged: FloatArray = concatenated(arrays)
    return merged


def merge_sums(parts: Sequence[WeightSums]) -> WeightSums:
    """Merge blocks of which some may have one weight for all features."""
    widths = {part.count.shape[-1] for part in parts}
    if len(widths) > 1:
        parts = [part.spread(max(widths)) for part in parts]
    return WeightSums.merged(parts)


def first_found(
    parts: Sequence[tuple[BoolArray, FloatArray]],
) -> tuple[BoolArray, FloatArray]:
    """Where something was found, and the first of it."""
    found, values = parts[0]
    for also, others in parts[1:]:
        found, values = found | also, np.where(found, values, others)
    return found, values


def weighed_twice(label: Any) -> ValueError:
    """A class, or all rows for None, has a model of missingness and look-ups too."""
    whose = "X" if label is None else f"Class {label!r}"
    return ValueError(
        f"{whose} has a missingness model and inclusion probabilities: its rows can't "
        "be weighed twice. Leave out one of them."
    )


def refuse_nan(
    source: Source, label: Any, names: Sequence[str] | None, where: str | None
) -> NoReturn:
    """Refuse a class that has NaN and no model, by its columns."""

    def lacking(block: RowBlock) -> BoolArray:
        return np.asarray(np.isnan(block.rows).any(axis=0))

    found = source.fold(lacking, lambda parts: np.any(parts, axis=0))
    places = tuple(np.flatnonzero(found).tolist())
    raise UnexplainedMissingError(
        Message(
            "Class {label!r} has NaN in column(s) {columns}{where} and no "
            "missingness model.",
            label=label,
            columns=places,
            names=places if names is None else tuple(str(names[j]) for j in places),
            facts={"where": "" if where is None else f" in {where}"},
            remedies=(
                Remedy.MODEL,
                Remedy.COMPLETE_CASES,
                "give inclusion probabilities where values were looked up",
            ),
        )
    )
