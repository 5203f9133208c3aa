"""From rows to the covariance of a class's means, its weights' estimation included."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from missratio._typing import BoolArray, FloatArray, IntArray
from missratio.learning import Influence, LearnedMissingness, influence_of
from missratio.rows import ClassRows, RowBlock, weights_of_features
from missratio.uncertainty._expansion import Means

# A row that has all of the weight can't be left out: no row counts for more than this.
LARGEST_LEVERAGE = 0.99


def weights_of(means: Means, block: RowBlock, weights: FloatArray | None) -> FloatArray:
    """Of shape (n_rows, 1), or (n_rows, n_means) where each mean has its own."""
    if weights is None:
        weights = np.ones((len(block.rows), 1))
    elif weights.ndim == 1:
        weights = weights[:, None]
    elif means.by_feature:
        # Where there is an intercept, its mean of ones has no weights.
        needed = means.mask[means.mask.any(axis=1)]
        weights = weights_of_features(weights, needed)
        lacking = len(means.mask) - len(needed)
        weights = np.pad(weights, ((0, 0), (0, lacking)), constant_values=1.0)
    else:
        weights = weights[:, means.mask[0]].prod(axis=1, keepdims=True)
    return weights if block.weights is None else weights * block.weights[:, None]


@dataclass(frozen=True, slots=True)
class ClassMeans:
    """All means of one class, of one factor of the ratio after the other.

    Parameters
    ----------
    rows : ClassRows
    factors : sequence of (ndarray of int, Means)
        Which features each factor has, and its means.
    """

    rows: ClassRows
    factors: Sequence[tuple[IntArray, Means]]

    def covariance(self, model: LearnedMissingness | None, shared: bool) -> FloatArray:
        """The means' covariance.

        Parameters
        ----------
        model : LearnedMissingness, or None
            Where the class's φ was learned.
        shared : bool
            Whether it was learned from these rows (or from more than these): the
            errors of φ̂ and of the means then go together.
        """
        totals = self._totals()
        size = sum(len(means.mean) for _, means in self.factors)
        learning = None if model is None else _Learning.of(model, size)

        def work(block: RowBlock) -> FloatArray:
            weights = self.rows.weigh(block)
            plain, left_out, moved = self._influences(block, weights, totals)
            found = [(moved.T @ moved).ravel()]
            if learning is not None:
                assert weights is not None
                found += learning.sums(block.rows, weights, plain, left_out)
            return np.concatenate(found)

        found = self.rows.source.fold(work, lambda parts: np.sum(parts, axis=0))
        meat: FloatArray = found[: size * size].reshape(size, size)
        if learning is None or model is None:
            return meat
        learning.add(found[size * size :])
        mask = np.concatenate([means.mask for _, means in self.factors])
        return meat + learning.covariance(mask, None if shared else model.covariance)

    def _totals(self) -> list[FloatArray]:
        """What each factor's weighted sums are divided by."""

        def work(block: RowBlock) -> list[FloatArray]:
            weights = self.rows.weigh(block)
            return [
                weights_of(means, block, weights).sum(axis=0)
                for _, means in self.factors
            ]

        def merge(parts: Sequence[list[FloatArray]]) -> list[FloatArray]:
            return [np.sum(each, axis=0) for each in zip(*parts, strict=True)]

        masses = self.rows.source.fold(work, merge)
        return [self.rows.divisor(mass) for mass in masses]

    def _influences(
        self, block: RowBlock, weights: FloatArray | None, totals: Sequence[FloatArray]
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """What each row does to the means.

        Returns
        -------
        plain : ndarray of shape (n_rows, n_means)
            w ∂(mean)/∂w, for a change of the row's weight.
        left_out : ndarray of shape (n_rows, n_means)
            The same divided by 1 − leverage.
        moved : ndarray of shape (n_rows, n_means)
            The row's influence, which is what the sampling of rows moves.
        """
        hajek = self.rows.self_normalised
        everything = self.rows.own_total
        features = block.features.astype(np.float64, copy=False)
        plain, left_out, moved = [], [], []
        for (place, means), total in zip(self.factors, totals, strict=True):
            share = weights_of(means, block, weights) / total
            u, leverage = means.rows(features[:, place])
            change = share * (u - means.mean if hajek else u)
            lever = share if leverage is None else share * leverage[:, None]
            factor = 1.0 / (1.0 - np.clip(lever, 0.0, LARGEST_LEVERAGE))
            plain.append(change)
            left_out.append(factor * change)
            if hajek:
                moved.append(left_out[-1])
                continue
            each = block.weights
            each = np.ones(len(u)) if each is None else each
            moved.append(left_out[-1] - (each / everything)[:, None] * means.mean)
        return _beside(plain), _beside(left_out), _beside(moved)


def _beside(parts: list[FloatArray]) -> FloatArray:
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)


@dataclass(frozen=True, slots=True)
class _Learning:
    """How means depend on a learned φ, and go together with its error.

    Parameters
    ----------
    rowwise : bool
    influence : Influence
    slope : ndarray of shape (width, n_means, n_groups)
        The means' derivatives in the parameters of φ: Σ w ∂mean/∂w φ x, x = (1, z).
    overlap : ndarray of shape (width, n_means, n_groups)
        Σ w ∂mean/∂w p x over observed rows.
    """

    rowwise: bool
    influence: Influence
    slope: FloatArray
    overlap: FloatArray

    @classmethod
    def of(cls, model: LearnedMissingness, n_means: int) -> _Learning:
        influence = influence_of(model)
        n_groups, width, _ = influence.variance.shape
        slope, overlap = np.zeros((2, width, n_means, n_groups))
        return cls(model.rowwise, influence, slope, overlap)

    def sums(
        self,
        table: FloatArray,
        weights: FloatArray,
        plain: FloatArray,
        left_out: FloatArray,
    ) -> list[FloatArray]:
        """What some rows add to slope and overlap."""
        if self.rowwise:
            weights = weights[:, None]
        odds = np.maximum(weights - 1.0, 0.0)
        known_odds = self.influence.revealed_share * odds
        values = np.where(np.isnan(table), 0.0, table)
        design = values.T[:, :, None] if self.rowwise else values[None]
        found = []
        for moved, odd in ((plain, odds), (left_out, known_odds)):
            probability = odd / (1.0 + odd)
            found += [moved.T @ probability, moved.T @ (probability * design)]
        return [each.ravel() for each in found]

    def add(self, sums: FloatArray) -> None:
        """Set slope and overlap to what all rows add up to."""
        for total, part in zip(
            (self.slope, self.overlap), np.split(sums, 2), strict=True
        ):
            total[...] = part.reshape(total.shape)

    def covariance(self, mask: BoolArray, independent: FloatArray | None) -> FloatArray:
        """What the estimation of φ adds to the means' covariance (or takes from it).

        Parameters
        ----------
        mask : ndarray of bool of shape (n_means, n_columns)
            A mean depends only on the φ of these.
        independent : ndarray, or None
            The covariance of φ's parameters where they were learned from other rows.
        """
        width, n_means, n_groups = self.slope.shape
        used = np.ones((n_means, 1)) if self.rowwise else mask
        # (n_groups, n_means, width)
        slope = (self.slope * used).transpose(2, 1, 0)
        overlap = (self.overlap * used).transpose(2, 1, 0)
        if independent is not None:
            variance = independent.reshape(n_groups, width, width)
            return np.asarray((slope @ variance @ slope.swapaxes(1, 2)).sum(axis=0))
        inverse = self.influence.information_inverse
        cross = (slope @ inverse @ overlap.swapaxes(1, 2)).sum(axis=0)
        own = (slope @ self.influence.variance @ slope.swapaxes(1, 2)).sum(axis=0)
        return np.asarray(own - cross - cross.T)
