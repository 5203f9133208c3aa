"""Samples of a batch of problems, and the sums over their rows.

A sample is held as arrays where it is small or drawn, and else read block by block
from the rows of its class, or lies on a device. How rows are cut does not depend on the
number of threads, and neither does the result.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from missratio._base.typing import FloatArray, IntArray
from missratio.moments import Link, Parameters, Sums, accumulate
from missratio.rows import ClassRows, MemorySource, RowBlock
from missratio.rows.source import Merge, Result, fold_blocks

# A block has this many numbers at first order, and a quarter as many at second order,
# which needs two more arrays of the block's size.
BLOCK_ELEMENTS = 524_288

Work = Callable[[FloatArray, FloatArray | None], Result]


class AnySample(ABC):
    """One class's observed rows and their weights, for a batch of problems.

    Attributes
    ----------
    total : ndarray of shape (n_problems,)
        What weighted sums are divided by.
    centred : bool
        Whether the features have a centre subtracted already.
    n_rows : int
        How many rows there are for each problem.
    size : int
        How many numbers the features of all rows and problems are.
    precision : float
        The relative rounding error of the features.
    """

    features: Any
    total: FloatArray
    centred: Any
    n_rows: Any
    size: Any
    precision: Any
    # Rows in files or on a cluster are read anew at each pass.
    rereads: Any = False
    # A pass over this many rows costs no more than one over a few.
    cheap_rows: Any = 0

    @abstractmethod
    def fold(
        self, work: Work[Result], merge: Merge[Result], elements: int = BLOCK_ELEMENTS
    ) -> Result:
        """Map work over blocks of features and weights, and merge."""

    def sums(
        self,
        term_of: Link,
        at: Parameters,
        *,
        second_order: bool,
    ) -> Sums:
        """Sum a term over all rows, as `accumulate` does over those of a block.

        Parameters
        ----------
        term_of, at, second_order
            As for `accumulate`.
        """
        elements = BLOCK_ELEMENTS
        if second_order:
            # A block has more rows than a Hessian, or merging would cost more.
            elements = max(elements // 4, 2 * at.coef.shape[1] ** 2)

        work = partial(accumulate, term_of, at=at, second_order=second_order)
        return self.fold(work, Sums.merged, elements)

    def log_masses(self, coef: FloatArray) -> FloatArray:
        """log(w·exp(θᵀf)) of each row, for one problem."""
        return self.fold(
            lambda features, weights: (
                features[0] @ coef[0] + (0.0 if weights is None else np.log(weights[0]))
            ),
            np.concatenate,
        )

    @abstractmethod
    def held(self, stride: int, centre: FloatArray) -> AnySample:
        """Every stride-th row standing for all, centred, as arrays."""

    @abstractmethod
    def peek(self) -> FloatArray:
        """Features of a few hundred rows from all over the sample."""

    @abstractmethod
    def problems(self, which: slice, width: int | None = None) -> AnySample:
        """The sample of some problems of the batch, with their first features."""


@dataclass(eq=False)
class Sample(AnySample):
    """A sample that is held as arrays.

    Parameters
    ----------
    features : ndarray of shape (n_problems, n_rows, n_features)
        Basis features.
    total : ndarray of shape (n_problems,)
    weights : ndarray of shape (n_problems, n_rows) or (1, n_rows), or None
        Inverse-probability weights; None stands for ones.
    centred : bool
    """

    features: FloatArray
    total: FloatArray
    weights: FloatArray | None = None
    centred: bool = False

    def __post_init__(self) -> None:
        """Note how large it is."""
        self.n_rows, self.size = self.features.shape[1], self.features.size
        self.precision = float(np.finfo(self.features.dtype).eps)

    def fold(
        self, work: Work[Result], merge: Merge[Result], elements: int = BLOCK_ELEMENTS
    ) -> Result:
        """Map work over blocks of rows, among threads."""
        features, weights = self.features, self.weights
        return fold_blocks(
            lambda start, stop: work(
                features[:, start:stop],
                None if weights is None else weights[:, start:stop],
            ),
            merge,
            self.n_rows,
            self.size,
            elements,
        )

    def held(self, stride: int, centre: FloatArray) -> Sample:
        """Every stride-th row standing for all, centred."""
        features = np.ascontiguousarray(self.features[:, ::stride])
        if not self.centred:
            features = features - centre[:, None, :]
        weights = None if self.weights is None else self.weights[:, ::stride]
        total = self.total * (features.shape[1] / self.n_rows)
        return Sample(features, total, weights, centred=True)

    def peek(self) -> FloatArray:
        """Features of a few hundred rows from all over the sample."""
        return self.features[:, :: 1 + self.n_rows // 256]

    def problems(self, which: slice, width: int | None = None) -> Sample:
        """The sample of some problems of the batch, with their first features."""
        weights = self.weights
        if weights is not None and len(weights) > 1:
            weights = weights[which]
        features, total = self.features[which][..., :width], self.total[which]
        return replace(self, features=features, total=total, weights=weights)


@dataclass(eq=False)
class RowSample(AnySample):
    """A sample that is read block by block from a class's rows.

    Parameters
    ----------
    rows : ClassRows
        For one problem, complete rows; else what is missing has weight 0.
    total : ndarray of shape (n_problems,)
    features : ndarray of int of shape (n_problems, n_features), or None
        Which basis features each problem has; None for one problem with all of them.
    columns : ndarray of int of shape (n_problems,), or None
        The column whose entries' weights each problem has.
    stand_in : ndarray of shape (n_problems, n_features), or None
        Features of some row that is observed, which missing rows take: they then can't
        disturb the extremes of the scores.
    """

    rows: ClassRows
    total: FloatArray
    features: IntArray | None = None
    columns: IntArray | None = None
    stand_in: FloatArray | None = None
    centred: Any = False

    def __post_init__(self) -> None:
        """Note how large it is."""
        source, self.rereads = self.rows.source, self.rows.only_complete
        self.n_rows = self.rows.source.n_rows
        self.size = (
            source.size if self.features is None else self.n_rows * self.features.size
        )
        self.precision = float(np.finfo(source.features.dtype).eps)

    def _problem(self, block: RowBlock) -> tuple[FloatArray, FloatArray | None]:
        """Features and weights of some rows, as views where that is possible."""
        features, weights = block.features, block.ipw
        if self.features is None:
            if weights is not None:
                weights = weights[None].astype(features.dtype, copy=False)
            return features[None], weights
        n_problems, width = self.features.shape
        if not np.array_equal(self.features.ravel(), np.arange(features.shape[1])):
            features = features[:, self.features.ravel()]
        features = features.reshape(len(features), n_problems, width).swapaxes(0, 1)
        if width == 1:
            # A column lies together: sums along it are twice as fast.
            features = np.ascontiguousarray(features)
        if weights is None:
            weights = block.sample_weight
            return features, None if weights is None else weights[None]
        if weights.ndim == 2:
            assert self.columns is not None
            if not np.array_equal(self.columns, np.arange(weights.shape[1])):
                weights = weights[:, self.columns]
            weights = np.ascontiguousarray(weights.T)
        else:
            weights = weights[None]
        if block.sample_weight is not None:
            weights = weights * block.sample_weight
        seen = weights > 0.0
        if not seen.all():
            assert self.stand_in is not None
            # Arithmetic takes a third of the time of choosing by a mask.
            known = np.fmax(features, np.finfo(features.dtype).min) * seen[..., None]
            features = known + ~seen[..., None] * self.stand_in[:, None, :]
        return features, weights.astype(features.dtype, copy=False)

    def fold(
        self, work: Work[Result], merge: Merge[Result], elements: int = BLOCK_ELEMENTS
    ) -> Result:
        """Map work over blocks of rows where they lie."""
        if self.features is not None:
            # Elementwise work has several temporaries. On 16 cores a quarter of this
            # size took twice as long.
            elements //= 4
        elif not self.rows.plain:
            elements //= 2

        return self.rows.fold(
            lambda block: work(*self._problem(block)), merge, elements
        )

    def held(self, stride: int, centre: FloatArray) -> Sample:
        """Every stride-th row standing for all, centred, as arrays."""
        rows = self.rows.every(stride) if stride > 1 else self.rows
        shift, dtype = centre[:, None, :], rows.source.features.dtype
        whole: FloatArray | None = None
        if isinstance(rows.source, MemorySource) and not rows.only_complete:
            # Threads write where their rows belong: a copy less is 8 % of a fit.
            shape = (len(centre), rows.source.n_rows, centre.shape[1])
            whole = np.empty(shape, dtype=dtype)

        def copied(block: RowBlock) -> list[tuple[FloatArray, FloatArray | None]]:
            features, weights = self._problem(block)
            if whole is None:
                out = np.empty(features.shape, dtype=dtype)
            else:
                out = whole[:, block.place]
            np.subtract(features, shift, out=out, casting="same_kind")
            if weights is not None:
                weights = weights.astype(dtype, copy=False)
            return [(out, weights)]

        # For columns apart there are several temporaries, which stay in the cache.
        elements = BLOCK_ELEMENTS if self.features is None else BLOCK_ELEMENTS // 4
        blocks = rows.fold(copied, lambda parts: list(chain(*parts)), elements)
        made = [weights for _, weights in blocks if weights is not None]
        if whole is None:
            whole = np.concatenate([features for features, _ in blocks], axis=1)
        weights = np.concatenate(made, axis=1) if made else None
        total = self.total * (rows.source.n_rows / self.n_rows)
        return Sample(whole, total, weights, centred=True)

    def peek(self) -> FloatArray:
        """Features of a few hundred rows from all over the sample."""
        # Incomplete rows are left out only now, so all that were drawn are asked for.
        few = self.rows.every(1 if self.rereads else 1 + self.n_rows // 256)
        features = few.fold(
            lambda block: self._problem(block)[0],
            lambda parts: np.concatenate(parts, axis=1),
        )
        return features[:, :: 1 + features.shape[1] // 257]

    def problems(self, which: slice, width: int | None = None) -> RowSample:
        """The sample of some problems of the batch, with their first features."""
        if self.features is None:
            return self
        assert self.columns is not None
        assert self.stand_in is not None
        return replace(
            self,
            features=self.features[which][:, :width],
            columns=self.columns[which],
            total=self.total[which],
            stand_in=self.stand_in[which][:, :width],
        )
