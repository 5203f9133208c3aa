"""From rows to the covariance of a class's means, its weights' estimation included."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from functools import cached_property

import numpy as np

from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.learning import Influence, LearnedMissingness, influence_of
from missratio.missingness import Block, joint_weight
from missratio.rows import ClassRows, RowBlock, weights_of_features
from missratio.uncertainty.expansion import Means
from missratio.uncertainty.reliability import rates, weight_sums

# A row that has all of the weight can't be left out: no row counts for more than this.
LARGEST_LEVERAGE = 0.99


def weights_of(
    means: Means,
    block: RowBlock,
    weights: FloatArray | None,
    groups: IntArray | None = None,
) -> FloatArray:
    """Weights, (n_rows, 1), or (n_rows, n_means) where each mean has its own."""
    if weights is None:
        weights = np.ones((len(block.rows), 1))
    elif weights.ndim == 1:
        weights = weights[:, None]
    elif means.by_feature:
        # Where there is an intercept, its mean of ones has no weights.
        needed = means.mask[means.mask.any(axis=1)]
        weights = weights_of_features(weights, needed, groups)
        lacking = len(means.mask) - len(needed)
        weights = np.pad(weights, ((0, 0), (0, lacking)), constant_values=1.0)
    else:
        used = means.mask[0]
        own = None if groups is None else groups[used]
        weights = joint_weight(weights[:, used], own)[:, None]
    more = block.sample_weight
    return weights if more is None else weights * more[:, None]


@dataclass(frozen=True, slots=True)
class Spread:
    """How far results move with the rows of a class, or of both."""

    # Of the results, with the error of a learned φ.
    covariance: FloatArray
    # What the sampling of rows does, φ taken as given.
    variance: FloatArray
    # Sums of the fourth powers of what each row does.
    fourth: FloatArray
    # The variance through each mean, summed; and times the rate of its weights.
    parts: FloatArray
    heavy: FloatArray

    def __add__(self, other: Spread) -> Spread:
        both = zip(astuple(self), astuple(other), strict=True)
        return Spread(*(own + more for own, more in both))

    @property
    def by_rows(self) -> FloatArray:
        """Degrees of freedom 2V²/ΣI⁴ of each result, by the rows' influences I.

        Satterthwaite's: a sum of squares V = ΣI² with relative variance ΣI⁴/V² is
        spread as χ² with as many degrees of freedom. About 2n/3 for normal influences,
        and few where a handful of rows decides. Infinite where no row moves the result.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            degrees = 2.0 * self.variance**2 / self.fourth
        return np.where(self.fourth > 0.0, degrees, np.inf)

    @property
    def by_weights(self) -> FloatArray:
        """Degrees of freedom of each result that weights like these have on average.

        The rows alone can't tell: where the heaviest happen not to be observed, all
        seems well. Two or more, since even a single row gives so many.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            degrees = self.parts / self.heavy
        return np.maximum(np.where(self.heavy > 0.0, degrees, np.inf), 2.0)


@dataclass(frozen=True, slots=True)
class ClassMeans:
    """All means of one class, of one factor of the ratio after the other."""

    rows: ClassRows
    # Which features each factor has, and its means.
    factors: Sequence[tuple[IntArray, Means]]
    # What weights are at most, (1,) or (1, n_columns); None if they are by no model.
    largest: FloatArray | None = None

    def spread(self, parts: Sequence[LearnedPart], to_result: FloatArray) -> Spread:
        """How far the results move with the rows of the class.

        `parts` are what was learned of the class's φ; `to_result` says what a change of
        the means does to the results, of shape (n_results, n_means).
        """
        totals = self._totals()
        size = sum(len(means.mean) for _, means in self.factors)

        def work(block: RowBlock) -> FloatArray:
            weights = block.ipw
            plain, left_out, moved = self._influences(block, weights, totals)
            found = [
                (moved.T @ moved).ravel(),
                ((moved @ to_result.T) ** 4).sum(axis=0),
                weight_sums(self._mean_weights(block, weights)).ravel(),
            ]
            for part in parts:
                assert weights is not None
                found += part.sums(block.rows, weights, plain, left_out)
            return np.concatenate(found)

        found = self.rows.fold(work, lambda parts: np.sum(parts, axis=0))
        ends = np.cumsum([size * size, len(to_result), 5 * size])
        own, fourth, sums, rest = np.split(found, ends)
        meat = own.reshape(size, size)
        covariance = to_result @ meat @ to_result.T
        variance = np.diagonal(covariance).copy()
        through = to_result**2 * np.diagonal(meat)
        mask = np.concatenate([means.mask for _, means in self.factors])
        for part in parts:
            n_groups, width, _ = part.influence.variance.shape
            sums_of_part, rest = np.split(rest, [2 * width * size * n_groups])
            slope, overlap = sums_of_part.reshape(2, width, size, n_groups)
            by_phi = part.covariance(slope, overlap, mask)
            covariance = covariance + to_result @ by_phi @ to_result.T
        rate = rates(sums.reshape(5, size), self.rows.n_rows, self._largest(size))
        return Spread(covariance, variance, fourth, through.sum(axis=1), through @ rate)

    def _largest(self, size: int) -> FloatArray:
        """What the weights of each mean are at most."""
        if self.largest is None:
            return np.full(size, np.inf)
        own = self.rows.source.sample_weight
        own = None if own is None else own.max(keepdims=True)
        block = RowBlock(np.ones((1, 1)), np.ones((1, 1)), own, 0)
        return np.asarray(self._mean_weights(block, self.largest)[0])

    def _mean_weights(self, block: RowBlock, weights: FloatArray | None) -> FloatArray:
        """The weights that each mean has, of shape (n_rows, n_means)."""
        found = []
        for _, means in self.factors:
            own = weights_of(means, block, weights, self.rows.groups)
            found.append(np.broadcast_to(own, (len(own), len(means.mean))))
        return _beside(found)

    def _totals(self) -> list[FloatArray]:
        """What each factor's weighted sums are divided by."""

        def work(block: RowBlock) -> list[FloatArray]:
            return [
                weights_of(means, block, block.ipw, self.rows.groups).sum(axis=0)
                for _, means in self.factors
            ]

        def merge(parts: Sequence[list[FloatArray]]) -> list[FloatArray]:
            return [np.sum(each, axis=0) for each in zip(*parts, strict=True)]

        masses = self.rows.fold(work, merge)
        return [self.rows.divisor(mass) for mass in masses]

    def _influences(
        self, block: RowBlock, weights: FloatArray | None, totals: Sequence[FloatArray]
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """What each row does to the means, three times (n_rows, n_means).

        `plain` is w ∂(mean)/∂w, for a change of the row's weight; `left_out` is that
        divided by 1 − leverage; `moved` is the row's influence, which is what the
        sampling of rows moves.
        """
        hajek, adjusted = self.rows.self_normalised, self.rows.adjusted
        features = block.features.astype(np.float64, copy=False)
        each = np.ones(len(features))
        if block.sample_weight is not None:
            each = block.sample_weight
        each = (each / self.rows.sample_weight_total)[:, None]
        plain, left_out, moved = [], [], []
        for (place, means), total in zip(self.factors, totals, strict=True):
            if adjusted is not None and means.by_feature:
                # Slopes come from other folds: to first order only the terms move.
                terms = adjusted[block.place][:, place]
                u = np.pad(terms, ((0, 0), (0, len(means.mean) - terms.shape[1])))
                share, lever = each, each
            else:
                share = weights_of(means, block, weights, self.rows.groups) / total
                u, leverage = means.rows(features[:, place])
                lever = share if leverage is None else share * leverage[:, None]
            change = share * (u - means.mean if hajek else u)
            factor = 1.0 / (1.0 - np.clip(lever, 0.0, LARGEST_LEVERAGE))
            plain.append(change)
            left_out.append(factor * change)
            moved.append(left_out[-1] if hajek else left_out[-1] - each * means.mean)
        return _beside(plain), _beside(left_out), _beside(moved)


def _beside(parts: list[FloatArray]) -> FloatArray:
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)


@dataclass(frozen=True)
class LearnedPart:
    """A learned φ of the columns of a table, or of those that go missing together."""

    model: LearnedMissingness
    # Whether it was learned from these rows (or from more than these): the errors of
    # φ̂ and of the means then go together.
    shared: bool
    # Whose φ it is, where that is a category's; None for all columns.
    block: Block | None = None

    @cached_property
    def influence(self) -> Influence:
        """How the rows that it was learned from move its parameters."""
        return influence_of(self.model)

    def sums(
        self,
        table: FloatArray,
        weights: FloatArray,
        plain: FloatArray,
        left_out: FloatArray,
    ) -> list[FloatArray]:
        """What some rows add to how means depend on φ, and go together with its error.

        First the means' derivatives in the parameters of φ, Σ w ∂mean/∂w φ x with
        x = (1, z); then Σ w ∂mean/∂w p x over observed rows.
        """
        if self.block is not None:
            weights = weights[:, [self.block.columns[0]]]
            table = table[:, list(self.block.inputs)]
        elif self.model.rowwise:
            weights = weights[:, None]
        odds = np.maximum(weights - 1.0, 0.0)
        known_odds = self.influence.revealed_share * odds
        values = np.where(np.isnan(table), 0.0, table)
        design = values.T[:, :, None] if self.model.rowwise else values[None]
        added = []
        for moved, odd in ((plain, odds), (left_out, known_odds)):
            probability = odd / (1.0 + odd)
            added += [moved.T @ probability, moved.T @ (probability * design)]
        return [each.ravel() for each in added]

    def covariance(
        self, slope: FloatArray, overlap: FloatArray, mask: BoolArray
    ) -> FloatArray:
        """What the estimation of φ adds to the means' covariance (or takes from it).

        `slope` and `overlap` are the sums over all rows, (width, n_means, n_groups). A
        mean depends only on the φ of the columns in its row of the mask.
        """
        if self.block is not None:
            mask = np.asarray(mask[:, self.block.columns].any(axis=1, keepdims=True))
        elif self.model.rowwise:
            mask = np.ones((len(mask), 1), dtype=bool)
        # (n_groups, n_means, width)
        slope, overlap = ((each * mask).transpose(2, 1, 0) for each in (slope, overlap))
        variance = self.influence.variance
        if not self.shared:
            variance = self.model.covariance.reshape(variance.shape)
        by_phi = (slope @ variance @ slope.swapaxes(1, 2)).sum(axis=0)
        if not self.shared:
            return np.asarray(by_phi)
        inverse = self.influence.information_inverse
        cross = (slope @ inverse @ overlap.swapaxes(1, 2)).sum(axis=0)
        return np.asarray(by_phi - cross - cross.T)
