"""Samples of a batch of problems, and the map over their blocks of rows.

A sample is held as arrays where it is small or drawn, and else read block by block
from the rows of its class. How rows are cut does not depend on the number of threads,
and neither does the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from missratio._base.threads import one_blas_thread, share
from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.moments import merge_all
from missratio.rows import (
    ClassRows,
    MemorySource,
    RowBlock,
    Unweighted,
    block_count,
)

# Numbers of a block, at first order; at second order a quarter as many, as those need
# two more arrays of the block's size.
BLOCK_ELEMENTS = 524_288
# Samples of up to this many numbers are copied: a class then lies together in memory
# (6 to 13 % of a small fit).
HELD_ELEMENTS = 8_000_000
# Features up to this size, and down to its inverse, have squares in single precision.
MODERATE = 1e12

Result = TypeVar("Result")
Work = Callable[[FloatArray, FloatArray | None], Result]
Merge = Callable[[Sequence[Result]], Result]


@dataclass(frozen=True, slots=True)
class Sample:
    """One class's observed rows and their weights, for a batch of problems.

    Parameters
    ----------
    features : ndarray of shape (n_problems, n_rows, n_features)
        Basis features.
    total : ndarray of shape (n_problems,)
        What weighted sums are divided by.
    weights : ndarray of shape (n_problems, n_rows) or (1, n_rows), or None
        Inverse-probability weights; None stands for ones.
    centred : bool
        Whether the features have a centre subtracted already.
    """

    features: FloatArray
    total: FloatArray
    weights: FloatArray | None = None
    centred: bool = False

    @property
    def n_rows(self) -> int:
        """How many rows there are for each problem."""
        return int(self.features.shape[1])

    @property
    def size(self) -> int:
        """How many numbers the features hold."""
        return int(self.features.size)

    @property
    def precision(self) -> float:
        """The relative rounding error of the features."""
        return float(np.finfo(self.features.dtype).eps)

    def fold(
        self,
        work: Work[Result],
        elements: int = BLOCK_ELEMENTS,
        merge: Merge[Result] = merge_all,  # type: ignore[assignment]
    ) -> Result:
        """Map work over blocks of rows, and merge."""
        n_blocks = block_count(self.size, elements)
        if n_blocks <= 1:
            return work(self.features, self.weights)
        length = -(-self.n_rows // n_blocks)

        def one(start: int) -> Result:
            rows = slice(start, start + length)
            weights = None if self.weights is None else self.weights[:, rows]
            return work(self.features[:, rows], weights)

        with one_blas_thread(self.size) as threads:
            return merge(share(one, range(0, self.n_rows, length), threads))

    def held(self, stride: int, centre: FloatArray) -> Sample:
        """Every stride-th row standing for all, centred, in single precision.

        In the features' own precision where their squares might leave the range of
        single precision.
        """
        features = self.features[:, ::stride]
        if not self.centred:
            features = features - centre[:, None, :]
        weights = None if self.weights is None else self.weights[:, ::stride]
        total = self.total * (features.shape[1] / self.n_rows)
        dtype = _single_or(features.dtype, features[:, :: 1 + features.shape[1] // 256])
        if weights is not None:
            weights = weights.astype(dtype)
        return Sample(features.astype(dtype), total, weights, centred=True)

    def peek(self) -> FloatArray:
        """Features of a few hundred rows from all over the sample."""
        return self.features[:, :: 1 + self.n_rows // 256]

    def problems(self, which: slice | BoolArray) -> Sample:
        """The sample of some problems of the batch."""
        weights = self.weights
        if weights is not None and len(weights) > 1:
            weights = weights[which]
        features, total = self.features[which], self.total[which]
        return replace(self, features=features, total=total, weights=weights)


@dataclass(frozen=True, slots=True)
class RowSample:
    """The same as a `Sample`, read block by block from a class's rows.

    Parameters
    ----------
    rows : ClassRows
        For one problem, complete rows; else what is missing has weight 0.
    features : ndarray of int of shape (n_problems, n_features), or None
        Which basis features each problem has; None for one problem with all of them.
    columns : ndarray of int of shape (n_problems,), or None
        The column whose entries' weights each problem has.
    total : ndarray of shape (n_problems,)
    stand_in : ndarray of shape (n_problems, n_features), or None
        Features of some row that is observed, which missing rows take: they then can't
        disturb the extremes of the scores.
    in_passing : bool
        Whether the rows are all of the class's, so that complete ones are found, for
        one problem, in every block anew.
    """

    rows: ClassRows
    features: IntArray | None
    columns: IntArray | None
    total: FloatArray
    stand_in: FloatArray | None = None
    in_passing: bool = False
    centred: bool = False

    @property
    def n_rows(self) -> int:
        """How many rows there are for each problem."""
        return self.rows.n_rows

    @property
    def size(self) -> int:
        """How many numbers the features of all rows and problems are."""
        per_row = int(self.rows.source.features.shape[1])
        if self.features is not None:
            per_row = self.features.size
        return self.n_rows * per_row

    @property
    def precision(self) -> float:
        """The relative rounding error of the features."""
        return float(np.finfo(self.rows.source.features.dtype).eps)

    def _block(self, block: RowBlock) -> tuple[FloatArray, FloatArray | None]:
        """Features and weights of some rows, as views where that is possible."""
        if self.in_passing:
            features, weights = self.rows.complete_block(block)
        else:
            weights, features = self.rows.weigh(block), block.features
        if self.features is None:
            if weights is not None:
                weights = weights[None].astype(features.dtype, copy=False)
            return features[None], weights
        n_problems, width = self.features.shape
        if not _is_range(self.features, features.shape[1]):
            features = features[:, self.features.ravel()]
        features = features.reshape(len(features), n_problems, width).swapaxes(0, 1)
        if width == 1:
            # A column lies together: sums along it are twice as fast.
            features = np.ascontiguousarray(features)
        if weights is None:
            weights = block.weights
            return features, None if weights is None else weights[None]
        if weights.ndim == 2:
            assert self.columns is not None
            if not _is_range(self.columns, weights.shape[1]):
                weights = weights[:, self.columns]
            weights = weights.T
        else:
            weights = weights[None]
        if block.weights is not None:
            weights = weights * block.weights
        seen = weights > 0.0
        if not seen.all():
            assert self.stand_in is not None
            features = np.where(seen[..., None], features, self.stand_in[:, None, :])
        return features, weights.astype(features.dtype, copy=False)

    def fold(
        self,
        work: Work[Result],
        elements: int = BLOCK_ELEMENTS,
        merge: Merge[Result] = merge_all,  # type: ignore[assignment]
    ) -> Result:
        """Map work over blocks of rows, and merge."""
        if self.features is not None:
            # Elementwise work of several temporaries: smaller blocks stay in the cache.
            elements //= 16
        elif not isinstance(self.rows.weighing, Unweighted):
            elements //= 2

        def work_on(block: RowBlock) -> Any:
            features, weights = self._block(block)
            # A streamed source leaves out what is None.
            if self.in_passing and not features.shape[1]:
                return None
            # What isn't finite is found in the scores.
            with np.errstate(over="ignore", invalid="ignore"):
                return work(features, weights)

        source: Any = self.rows.source
        found: Result = source.fold(work_on, merge, elements)
        return found

    def held(self, stride: int, centre: FloatArray, *, single: bool = True) -> Sample:
        """Every stride-th row standing for all, centred, as arrays."""
        rows = self.rows.every(stride) if stride > 1 else self.rows
        part = replace(self, rows=rows)
        shift = centre[:, None, :]
        own = rows.source.features.dtype
        dtype = _single_or(own, self.peek() - shift) if single else own
        whole = None
        if not self.in_passing and isinstance(rows.source, MemorySource):
            # Threads write where their rows belong: nothing is copied after them. Where
            # rows are in a table of both classes doesn't say where they belong here.
            whole = np.empty((len(centre), rows.n_rows, centre.shape[1]), dtype=dtype)

        def copied(block: RowBlock) -> list[tuple[FloatArray, FloatArray | None]]:
            features, weights = part._block(block)
            if whole is None:
                out = np.empty(features.shape, dtype=dtype)
            else:
                out = whole[:, block.place]
            with np.errstate(over="ignore", invalid="ignore"):
                np.subtract(features, shift, out=out, casting="same_kind")
                self.check_finite(out.sum(axis=(1, 2)))
            if weights is not None:
                weights = weights.astype(dtype, copy=False)
            return [(out, weights)]

        blocks = rows.source.fold(
            copied,
            lambda parts: [block for each in parts for block in each],
            BLOCK_ELEMENTS,
        )
        features = whole
        if features is None:
            features = np.concatenate([each for each, _ in blocks], axis=1)
        weights = None
        made = [own for _, own in blocks if own is not None]
        if made:
            one = np.ones((1, 1), dtype=dtype)
            parts = [
                np.broadcast_to(one if own is None else own, (len(made[0]), n_rows))
                for own, n_rows in ((own, each.shape[1]) for each, own in blocks)
            ]
            weights = np.concatenate(parts, axis=1)
        total = self.total * (rows.n_rows / self.n_rows)
        return Sample(features, total, weights, centred=True)

    def check_finite(self, numbers: FloatArray) -> None:
        """Refuse rows with NaN or infinity if what was found of them isn't finite."""
        if not self.in_passing and not np.isfinite(numbers).all():
            self.rows.whole_row_weights()

    def peek(self) -> FloatArray:
        """Features of a few hundred rows from all over the sample."""
        if self.in_passing:
            rows = self.rows.every(1)
            whole = rows.source.block(0, rows.n_rows)
            few = rows.complete_block(whole)[0][None]
            return few[:, :: 1 + few.shape[1] // 256]
        rows = self.rows.every(1 + self.n_rows // 256)
        features, _ = replace(self, rows=rows)._block(rows.source.block(0, rows.n_rows))
        return features

    def problems(self, which: slice | BoolArray) -> RowSample:
        """The sample of some problems of the batch."""
        if self.features is None:
            return self
        return replace(
            self,
            features=self.features[which],
            columns=None if self.columns is None else self.columns[which],
            total=self.total[which],
            stand_in=None if self.stand_in is None else self.stand_in[which],
        )


AnySample = Sample | RowSample


def _is_range(index: IntArray, n: int) -> bool:
    return index.size == n and bool((index.ravel() == np.arange(n)).all())


def _single_or(dtype: Any, few: FloatArray) -> Any:
    """Single precision, where squares of some features are within its range."""
    size = np.abs(few).max(axis=1)
    moderate = size.min() > 1.0 / MODERATE and size.max() < MODERATE
    return np.dtype(np.float32) if moderate else dtype
