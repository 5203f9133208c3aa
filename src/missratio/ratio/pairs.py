"""The class under the exponent by pairs of columns, where few of its rows are complete.

A mean of f_j f_k needs rows in which two columns are observed, and no more. The first
two moments of a class follow from such pairs, each weighted by its own probability, and
log E exp(θᵀf) is taken to be that of a normal law with these moments, θᵀm + ½ θᵀΣθ.
KLIEP's optimum is then θ = Σ⁻¹(μ₁ − m): Fisher's discriminant.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.engine import Sample
from missratio.moments import Link, Parameters, Sums
from missratio.rows import ClassRows, RowBlock, weights_of_features

# Fewer effective complete rows for each column than this, and fewer than this part of
# all rows, leave a joint fit more noise than pairs do.
ROWS_A_COLUMN = 10.0
FEW = 0.5


class NormalMoments(Sample):
    """Rows of one problem that stand for a normal law, by their mean and covariance."""

    @classmethod
    def of(cls, mean: FloatArray, covariance: FloatArray) -> NormalMoments:
        """Rows with these moments: two on each axis of the covariance."""
        values, vectors = np.linalg.eigh(covariance)
        axes = (vectors * np.sqrt(len(values) * np.maximum(values, 0.0))).T
        rows = mean + np.concatenate([axes, -axes])
        return cls(rows[None], np.ones(1), centred=True)

    def sums(self, term_of: Link, at: Parameters, **options: Any) -> list[Sums]:
        """E exp s under the normal law, and its derivatives."""
        mean, coef = self.features[0].mean(axis=0), at.coef[0]
        change = self.features[0] - mean
        covariance = change.T @ change / len(change)
        log_mean = coef @ mean + 0.5 * coef @ covariance @ coef
        slope, size = mean + covariance @ coef, len(mean)
        if at.intercept is not None:
            log_mean, slope = log_mean + at.intercept[0], np.append(slope, 1.0)
        curvature = np.outer(slope, slope)
        curvature[:size, :size] += covariance
        bend = curvature[None] if options["second_order"] else None
        far = np.full(1, np.inf)
        return [Sums(np.array([log_mean]), np.ones(1), slope[None], bend, -far, far)]


def feature_weights(
    rows: ClassRows, block: RowBlock, columns: BoolArray | IntArray
) -> FloatArray:
    """What a block's rows weigh for each feature, or, in one column, for all."""
    if block.ipw is None:
        return np.ones((len(block.rows), 1))
    if block.ipw.ndim == 1:
        return block.ipw[:, None]
    return weights_of_features(block.ipw, columns, rows.groups)


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
        weights = feature_weights(rows, block, columns)
        by_entry = weights.shape[1] > 1
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
