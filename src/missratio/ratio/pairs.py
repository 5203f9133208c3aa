"""The class under the exponent by pairs of columns, where few of its rows are complete.

A mean of f_j f_k needs rows in which two columns are observed, and no more. The first
two moments of a class follow from such pairs, each weighted by its own probability, and
log E exp(θᵀf) is taken to be that of a normal law with these moments, θᵀm + ½ θᵀΣθ.
KLIEP's optimum is then θ = Σ⁻¹(μ₁ − m): Fisher's discriminant.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from missratio._base.typing import BoolArray, FloatArray
from missratio.moments import Link, Parameters, Sums
from missratio.rows import ClassRows, RowBlock, weights_of_features

# Fewer effective complete rows for each column than this, and fewer than this part of
# all rows, leave a joint fit more noise than pairs do.
ROWS_A_COLUMN = 10.0
FEW = 0.5


@dataclass(frozen=True)
class NormalMoments:
    """A sample of one problem that is known by its mean and its covariance alone.

    Parameters
    ----------
    mean : ndarray of shape (n_features,)
        Of the centred features.
    covariance : ndarray of shape (n_features, n_features)
        Positive semidefinite.
    """

    mean: FloatArray
    covariance: FloatArray

    centred: ClassVar[bool] = True
    rereads: ClassVar[bool] = False
    cheap_rows: ClassVar[int] = 0
    precision: ClassVar[float] = float(np.finfo(np.float64).eps)
    total: ClassVar[FloatArray] = np.ones(1)

    @property
    def features(self) -> FloatArray:
        """Rows of which the mean and the covariance are these, (1, n_rows, n_features).

        Each lies on an axis of the covariance.
        """
        values, vectors = np.linalg.eigh(self.covariance)
        axes = (vectors * np.sqrt(len(values) * np.maximum(values, 0.0))).T
        return np.asarray(self.mean + np.concatenate([axes, -axes])[None])

    @property
    def n_rows(self) -> int:
        """How many rows have the moments."""
        return 2 * len(self.mean)

    @property
    def size(self) -> int:
        """How many numbers these rows are."""
        return self.n_rows * len(self.mean)

    def peek(self) -> FloatArray:
        """Features of some rows."""
        return self.features

    def fold(self, work: Any, merge: Any = None, **_: Any) -> Any:
        """Work on the rows that have the moments."""
        return work(self.features, None)

    def held(self, stride: int, centre: FloatArray) -> NormalMoments:
        """Moments are no fewer for some of the rows."""
        return self

    def problems(self, which: Any) -> NormalMoments:
        """There is one problem."""
        return self

    def sums(
        self, term_of: Link, at: Parameters, *, second_order: bool, **_: Any
    ) -> list[Sums]:
        """E exp s under a normal law, and its derivatives; other terms have none."""
        coef = at.coef[0]
        pull = self.covariance @ coef
        slope = self.mean + pull
        log_mean = coef @ self.mean + 0.5 * coef @ pull
        size = len(slope)
        if at.intercept is not None:
            log_mean, slope = log_mean + at.intercept[0], np.append(slope, 1.0)
        curvature = np.outer(slope, slope)
        curvature[:size, :size] += self.covariance
        far = np.full(1, np.inf)
        bend = curvature[None] if second_order else None
        return [Sums(np.array([log_mean]), np.ones(1), slope[None], bend, -far, far)]


def pair_covariance(
    rows: ClassRows, mean: FloatArray, required: BoolArray
) -> FloatArray:
    """A class's covariance of features, each of one column, entry by entry.

    Σ w_jk (f_j − m_j)(f_k − m_k) / Σ w_jk, with w_jk the weight of a row in which both
    columns are observed: the product of theirs, or that of one where they are lost
    together.
    """
    columns = required.argmax(axis=1)
    owner = columns if rows.groups is None else rows.groups[columns]
    together = owner[:, None] == owner

    def work(block: RowBlock) -> FloatArray:
        weights, by_entry = np.ones((len(block.rows), 1)), False
        if block.ipw is not None:
            by_entry = block.ipw.ndim == 2
            weights = block.ipw if by_entry else block.ipw[:, None]
        if by_entry:
            weights = weights_of_features(weights, columns, rows.groups)
        weights = np.broadcast_to(weights, block.features.shape)
        own = 1.0 if block.sample_weight is None else block.sample_weight[:, None]
        seen = weights > 0.0
        change = np.where(seen, block.features - mean, 0.0)
        once, other = together | (not by_entry), own * weights
        return np.array(
            [
                np.where(once, x.T @ (seen * y), x.T @ (weights * y))
                for x, y in ((other * change, change), (other, seen))
            ]
        )

    products, mass = rows.fold(work, lambda parts: np.sum(parts, axis=0))
    covariance = products / np.where(mass > 0.0, mass, 1.0)
    return np.asarray((covariance + covariance.T) / 2.0)


def floored(covariance: FloatArray, floor: float) -> FloatArray:
    """The same where correlations have no eigenvalue below a floor.

    Entries that come from different rows may make up no covariance at all.
    """
    spread = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
    unit = np.where(spread > 0.0, spread, 1.0)
    values, vectors = np.linalg.eigh(covariance / np.outer(unit, unit))
    lifted = (vectors * np.maximum(values, floor)) @ vectors.T
    return np.asarray(lifted * np.outer(spread, spread))
