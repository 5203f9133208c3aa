"""Data sets, and what is checked on them by other means than the package's own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[Any]
BLOCK_ROWS = 20_000


@dataclass(frozen=True)
class TwoClasses:
    """Rows of classes 0 and 1, and the true coefficients of log p1/p0."""

    X: FloatArray
    y: NDArray[np.int64]
    coef: FloatArray

    def rows(self, label: int) -> FloatArray:
        """One class's rows, as a view where they lie together."""
        chosen = np.flatnonzero(self.y == label)
        together = chosen[-1] - chosen[0] == len(chosen) - 1
        rows: FloatArray = (
            self.X[chosen[0] : chosen[-1] + 1] if together else self.X[chosen]
        )
        return rows

    def shuffled(self) -> TwoClasses:
        """The same rows in another order."""
        order = np.random.default_rng(1).permutation(len(self.X))
        return TwoClasses(self.X[order], self.y[order], self.coef)


def gaussian_classes(
    n_rows: int,
    n_columns: int,
    *,
    shift: float,
    correlation: float = 0.0,
    dtype: Any = np.float64,
    seed: int = 0,
) -> TwoClasses:
    """N(0, Σ) and then N(δ, Σ), n_rows each, without a second copy of the table.

    δ is shift · N(0, I), Σ has ones on its diagonal and the correlation elsewhere, and
    log p1/p0 is linear with coefficients Σ⁻¹δ.
    """
    rng = np.random.default_rng(seed)
    delta = shift * rng.standard_normal(n_columns)
    X = np.empty((2 * n_rows, n_columns), dtype=dtype)
    rng.standard_normal(out=X, dtype=dtype)
    if correlation:
        for start in range(0, len(X), BLOCK_ROWS):
            block = X[start : start + BLOCK_ROWS]
            common = rng.standard_normal((len(block), 1), dtype=dtype)
            block *= np.sqrt(1.0 - correlation)
            block += np.sqrt(correlation) * common
    X[n_rows:] += delta.astype(dtype)
    covariance = np.full((n_columns, n_columns), correlation)
    np.fill_diagonal(covariance, 1.0)
    y = np.repeat([0, 1], n_rows)
    return TwoClasses(X, y, np.linalg.solve(covariance, delta))


def tilt(data: TwoClasses, coef: FloatArray) -> FloatArray:
    """Weights exp(θᵀx) of class 0's rows, which sum to one."""
    scores = np.concatenate([block @ coef for block in blocks(data.rows(0))])
    weights = np.exp(scores - scores.max())
    return np.asarray(weights / weights.sum())


def effective_rows(data: TwoClasses, coef: FloatArray) -> float:
    """How many rows of class 0 the tilted mean is worth (Kish)."""
    return float(1.0 / (tilt(data, coef) ** 2).sum())


def moment_mismatch(data: TwoClasses, coef: FloatArray, l2: float = 0.0) -> float:
    """The norm of KLIEP's gradient, ‖tilted class-0 mean − class-1 mean + l2·coef‖.

    In float64 whatever the table's type, in two passes, and with nothing of the
    package's.
    """
    weights, upper = tilt(data, coef), data.rows(1)
    tilted = sum(
        weights[i * BLOCK_ROWS : (i + 1) * BLOCK_ROWS] @ block
        for i, block in enumerate(blocks(data.rows(0)))
    )
    mean = sum(block.sum(axis=0) for block in blocks(upper)) / len(upper)
    return float(np.linalg.norm(tilted - mean + l2 * coef))


def blocks(X: FloatArray) -> Iterator[FloatArray]:
    """A table piece by piece, each as float64."""
    for start in range(0, len(X), BLOCK_ROWS):
        yield X[start : start + BLOCK_ROWS].astype(np.float64, copy=False)


def statistical_distance(n_rows: int, n_columns: int) -> float:
    """How far two consistent estimates of n_rows each may well lie apart."""
    return 10.0 * float(np.sqrt(n_columns / n_rows))
