"""The in-memory engine: a map over blocks of rows that fit the cache, and a merge.

Blocks of large samples are shared among threads, each with a BLAS of one thread:
NumPy lets go of the interpreter lock within a block, and BLAS's own threads gain
nothing on blocks this small. How rows are cut does not depend on the number of
threads, and neither does the result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from missratio._threads import one_blas_thread, share
from missratio._typing import FloatArray, IntArray
from missratio.moments import Sums

BLOCK_ELEMENTS = 524_288
CHUNKS = 16
# Features up to this size, and down to its inverse, have squares in single precision.
MODERATE = 1e12

Block = tuple[FloatArray, FloatArray | None]


@dataclass(frozen=True, slots=True)
class Sample:
    """One class's observed rows and their weights, for a batch of problems.

    Parameters
    ----------
    features : ndarray of shape (n_problems, n_all_rows, n_features)
        Basis features.
    total : ndarray of shape (n_problems,)
        What weighted sums are divided by: the sum of the weights (Hájek), or the
        number of rows, the missing ones included (Horvitz-Thompson).
    weights : ndarray of shape (n_problems, n_rows), optional
        Inverse-probability weights; None stands for ones.
    rows : ndarray of int of shape (n_rows,), optional
        Which rows of `features` are meant; None stands for all.
    centred : bool
        Whether the features have a centre subtracted already.
    """

    features: FloatArray
    total: FloatArray
    weights: FloatArray | None = None
    rows: IntArray | None = None
    centred: bool = False

    @property
    def n_rows(self) -> int:
        """How many rows there are for each problem."""
        return int(self.features.shape[1]) if self.rows is None else len(self.rows)

    @property
    def size(self) -> int:
        """How many numbers the features of these rows hold."""
        return len(self.features) * self.n_rows * int(self.features.shape[2])

    def block(self, start: int, stop: int) -> Block:
        """Features and weights of some rows, as views where that is possible."""
        if self.rows is None:
            features = self.features[:, start:stop]
        else:
            features = np.take(
                self.features, self.rows[start:stop], axis=1, mode="clip"
            )
        weights = None if self.weights is None else self.weights[:, start:stop]
        return features, weights

    def thin(self, stride: int, centre: FloatArray) -> Sample:
        """Every stride-th row standing for all, centred, and in single precision.

        In the features' own precision where their squares might leave the range of
        single precision.
        """
        n_problems, _, n_features = self.features.shape
        n_rows = -(-self.n_rows // stride)
        shift = np.zeros_like(centre) if self.centred else centre
        size = np.abs(self.peek() - shift[:, None, :]).max(axis=1)
        moderate = size.min() > 1.0 / MODERATE and size.max() < MODERATE
        dtype = np.float32 if moderate else self.features.dtype
        features = np.empty((n_problems, n_rows, n_features), dtype=dtype)
        length = -(-n_rows // CHUNKS)

        def copy(start: int) -> None:
            chosen = slice(start * stride, (start + length) * stride, stride)
            if self.rows is None:
                block = self.features[:, chosen]
            else:
                block = np.take(self.features, self.rows[chosen], axis=1, mode="clip")
            out = features[:, start : start + length]
            np.subtract(block, shift[:, None, :], out=out, casting="same_kind")

        with one_blas_thread(features.size) as threads:
            share(copy, range(0, n_rows, length), threads)
        weights = None
        if self.weights is not None:
            weights = self.weights[:, ::stride].astype(features.dtype)
        total = self.total * (n_rows / self.n_rows)
        return Sample(features, total, weights, centred=True)

    def draw(self, masses: Sequence[FloatArray], n_rows: int) -> Sample:
        """Rows drawn in proportion to their mass, one at every n-th part of the total.

        They stand for all: what a row weighs, times its mass, is the same for all
        drawn, and weighted sums keep their expectations. For one problem; all of its
        rows are kept where they have no mass, or none that is a number.

        Parameters
        ----------
        masses : sequence of ndarray of shape (n_block_rows,)
            Of consecutive blocks of rows.
        n_rows : int
            How many to draw.
        """
        ends = np.cumsum([mass.sum(dtype=np.float64) for mass in masses])
        step = ends[-1] / n_rows
        if not 0.0 < step < math.inf:
            return self
        ticks = step * (np.arange(n_rows) + 0.5)
        edges = [0, *np.searchsorted(ticks, ends)]
        starts = np.cumsum([0, *(len(mass) for mass in masses)])

        def pick(i: int) -> tuple[IntArray, FloatArray]:
            cumulative = np.cumsum(masses[i], dtype=np.float64)
            own = ticks[edges[i] : edges[i + 1]] - (ends[i - 1] if i else 0.0)
            # Sums differ by rounding: beyond the last mass is at the last mass.
            rows = np.searchsorted(cumulative, np.minimum(own, cumulative[-1]))
            return starts[i] + rows, step / masses[i][rows]

        with one_blas_thread(self.size) as threads:
            picked = share(pick, range(len(masses)), threads)
        drawn, weights = (np.concatenate(part) for part in zip(*picked, strict=True))
        if self.weights is not None:
            weights *= self.weights[0, drawn]
        weights = weights[None].astype(self.features.dtype, copy=False)
        rows = drawn if self.rows is None else self.rows[drawn]
        return replace(self, weights=weights, rows=rows)

    def peek(self) -> FloatArray:
        """Features of a few hundred rows from all over the sample."""
        stride = 1 + self.n_rows // 256
        if self.rows is None:
            return self.features[:, ::stride]
        return self.features[:, self.rows[::stride]]

    def problems(self, which: slice) -> Sample:
        """The sample of some problems of the batch."""
        weights = None if self.weights is None else self.weights[which]
        return replace(
            self,
            features=self.features[which],
            total=self.total[which],
            weights=weights,
        )


def merge_all(parts: Sequence[list[Sums]]) -> list[Sums]:
    """Merge lists of sums term by term."""
    return [first.merge(*others) for first, *others in zip(*parts, strict=True)]


def fold(
    sample: Sample,
    work: Callable[[FloatArray, FloatArray | None], list[Sums]],
    elements: int = BLOCK_ELEMENTS,
) -> list[Sums]:
    """Accumulate a whole sample: map over its blocks of rows, then merge.

    Parameters
    ----------
    sample : Sample
    work : callable
        From features and weights of a block to its sums.
    elements : int
        How many numbers the features of a block hold at most.
    """
    n_rows = sample.n_rows
    n_blocks = -(-sample.size // elements)
    if n_blocks <= 1:
        return work(*sample.block(0, n_rows))
    length = -(-n_rows // n_blocks)
    starts = range(0, n_rows, length)

    def fold_chunk(chunk: Sequence[int]) -> list[Sums]:
        blocks = (sample.block(i, min(i + length, n_rows)) for i in chunk)
        return merge_all([work(*block) for block in blocks])

    per_chunk = math.ceil(len(starts) / CHUNKS)
    chunks = [starts[i : i + per_chunk] for i in range(0, len(starts), per_chunk)]
    with one_blas_thread(sample.size) as threads:
        return merge_all(share(fold_chunk, chunks, threads))
