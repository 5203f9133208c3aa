"""Weighted sums over a class's rows: counts, weights and features in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from missratio._base.typing import FloatArray


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
