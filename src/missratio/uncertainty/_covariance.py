"""From rows to the covariance of a class's means, its weights' estimation included."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from missratio._typing import BoolArray, FloatArray, IntArray
from missratio.learning import Influence, LearnedMissingness, influence_of
from missratio.missingness.arrays import row_blocks
from missratio.ratio import ClassRows, Optimum, feature_weights
from missratio.uncertainty._expansion import Means

# A row that has all of the weight can't be left out: no row counts for more than this.
LARGEST_LEVERAGE = 0.99


@dataclass(frozen=True, slots=True)
class Block:
    """Some rows of a class.

    Parameters
    ----------
    table : ndarray of shape (n_rows, n_columns)
    features : ndarray of shape (n_rows, n_features)
    weights : ndarray of shape (n_rows,) or (n_rows, n_columns), or None
    sample_weight : ndarray of shape (n_rows,), or None
    adjusted : ndarray of shape (n_rows, n_features), or None
        Terms adjusted by regression, whose plain means are the features' means.
    """

    table: FloatArray
    features: FloatArray
    weights: FloatArray | None
    sample_weight: FloatArray | None
    adjusted: FloatArray | None

    def weights_of(self, means: Means) -> FloatArray:
        """Of shape (n_rows, 1), or (n_rows, n_means) where each mean has its own."""
        weights = self.weights
        if weights is None:
            weights = np.ones((len(self.table), 1))
        elif weights.ndim == 1:
            weights = weights[:, None]
        elif means.by_feature:
            # Where there is an intercept, its mean of ones has no weights.
            needed = means.mask[means.mask.any(axis=1)]
            weights = feature_weights(weights, needed)
            lacking = len(means.mask) - len(needed)
            weights = np.pad(weights, ((0, 0), (0, lacking)), constant_values=1.0)
        else:
            weights = weights[:, means.mask[0]].prod(axis=1, keepdims=True)
        if self.sample_weight is not None:
            weights = weights * self.sample_weight[:, None]
        return weights


def class_blocks(optimum: Optimum, rows: ClassRows) -> Iterator[Block]:
    """One class's rows, in blocks that fit the cache."""
    index = rows.index
    width = 1 + max(optimum.table.shape[1], optimum.features.shape[1])
    for part in row_blocks((rows.n_rows, width)):
        where: slice | IntArray
        if isinstance(index, slice):
            where = slice(index.start + part.start, index.start + part.stop)
        else:
            where = index[part]
        table = optimum.table[where]
        linear = optimum.features is optimum.table
        features = table if linear else optimum.features[where]
        yield Block(
            table,
            features.astype(np.float64, copy=False),
            None if rows.weights is None else rows.weights[part],
            None if rows.sample_weight is None else rows.sample_weight[part],
            None if rows.adjusted is None else rows.adjusted[part],
        )


@dataclass(frozen=True, slots=True)
class Spread:
    """How far results move with the rows of a class, or of both.

    Parameters
    ----------
    covariance : ndarray of shape (n_results, n_results)
        With the error of a learned φ.
    variance : ndarray of shape (n_results,)
        What the sampling of rows does, φ taken as given.
    fourth : ndarray of shape (n_results,)
        Sums of the fourth powers of what each row does.
    parts, heavy : ndarray of shape (n_results,)
        The variance through each mean, summed; and times the rate of its weights.
    """

    covariance: FloatArray
    variance: FloatArray
    fourth: FloatArray
    parts: FloatArray
    heavy: FloatArray

    def __add__(self, other: Spread) -> Spread:
        return Spread(
            self.covariance + other.covariance,
            self.variance + other.variance,
            self.fourth + other.fourth,
            self.parts + other.parts,
            self.heavy + other.heavy,
        )

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


@dataclass(slots=True)
class _LogWeights:
    """Moments of Y = log W over complete data: sums of w, w Y and w Y².

    Were Y normal there, n E W² = n E e^Y and n E W⁴ = n E e^{3Y} over the observed rows
    would make 2n/exp(μ + 7σ²/2) degrees of freedom. Moments of the logarithm are known
    well even where those of the weights are not.
    """

    n_rows: int
    sums: FloatArray

    def add(self, weights: FloatArray) -> None:
        """Add rows' weights of shape (n, n_means)."""
        logs = np.log(np.where(weights > 0.0, weights, 1.0))
        self.sums += [(weights * logs**k).sum(axis=0) for k in range(3)]

    @property
    def rate(self) -> FloatArray:
        """One over the degrees of freedom, for each mean."""
        total = np.where(self.sums[0] > 0.0, self.sums[0], 1.0)
        mean, square = self.sums[1:] / total
        spread = np.maximum(square - mean**2, 0.0)
        level = mean - np.log(total / self.n_rows)
        return np.asarray(np.exp(np.minimum(level + 3.5 * spread, 700.0))) / (
            2.0 * self.n_rows
        )


@dataclass(frozen=True, slots=True)
class ClassMeans:
    """All means of one class, of one factor of the ratio after the other.

    Parameters
    ----------
    rows : ClassRows
    factors : sequence of (slice, Means)
        The columns of each factor's features, and its means.
    """

    rows: ClassRows
    factors: Sequence[tuple[slice, Means]]

    def spread(
        self,
        optimum: Optimum,
        model: LearnedMissingness | None,
        shared: bool,
        to_result: FloatArray,
    ) -> Spread:
        """How far the results move with the rows of the class.

        Parameters
        ----------
        optimum : Optimum
        model : LearnedMissingness, or None
            Where the class's φ was learned.
        shared : bool
            Whether it was learned from these rows (or from more than these): the
            errors of φ̂ and of the means then go together.
        to_result : ndarray of shape (n_results, n_means)
            What a change of the means does to the results.
        """
        totals = self._totals(optimum)
        size = sum(len(means.mean) for _, means in self.factors)
        meat, fourth = np.zeros((size, size)), np.zeros(len(to_result))
        logs = _LogWeights(self.rows.n_rows, np.zeros((3, size)))
        learning = None if model is None else _Learning.of(model, size)
        for block in class_blocks(optimum, self.rows):
            plain, left_out, moved = self._influences(block, totals)
            meat += moved.T @ moved
            fourth += ((moved @ to_result.T) ** 4).sum(axis=0)
            logs.add(self._mean_weights(block))
            if learning is not None:
                learning.add(block, plain, left_out)
        covariance = to_result @ meat @ to_result.T
        variance = np.diagonal(covariance).copy()
        parts = to_result**2 * np.diagonal(meat)
        if learning is not None and model is not None:
            mask = np.concatenate([means.mask for _, means in self.factors])
            by_phi = learning.covariance(mask, None if shared else model.covariance)
            covariance = covariance + to_result @ by_phi @ to_result.T
        return Spread(
            covariance, variance, fourth, parts.sum(axis=1), parts @ logs.rate
        )

    def _mean_weights(self, block: Block) -> FloatArray:
        """The weights that each mean has, of shape (n_rows, n_means)."""
        found = [
            np.broadcast_to(
                block.weights_of(means), (len(block.table), len(means.mean))
            )
            for _, means in self.factors
        ]
        return _beside(found)

    def _totals(self, optimum: Optimum) -> list[FloatArray]:
        """What each factor's weighted sums are divided by."""
        if self.rows.normalize == "horvitz-thompson":
            return [self.rows.total(None)] * len(self.factors)
        weights = self.rows.weights
        if weights is None or weights.ndim == 1:
            total = self.rows.total(self.rows.combined(weights))
            return [total] * len(self.factors)
        totals: list[FloatArray] = [np.zeros(1)] * len(self.factors)
        for block in class_blocks(optimum, self.rows):
            for i, (_, means) in enumerate(self.factors):
                totals[i] = totals[i] + block.weights_of(means).sum(axis=0)
        return totals

    def _influences(
        self, block: Block, totals: Sequence[FloatArray]
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
        whole = self.rows.normalize == "horvitz-thompson"
        each = np.ones(len(block.table))
        if block.sample_weight is not None:
            each = block.sample_weight
        each = (each / self.rows.total(None))[:, None]
        plain, left_out, moved = [], [], []
        for (place, means), total in zip(self.factors, totals, strict=True):
            if block.adjusted is not None and means.by_feature:
                # Slopes come from other folds: to first order only the terms move.
                lacking = len(means.mean) - block.adjusted[:, place].shape[1]
                u = np.pad(block.adjusted[:, place], ((0, 0), (0, lacking)))
                share, lever = each, each
            else:
                share = block.weights_of(means) / total
                u, leverage = means.rows(block.features[:, place])
                lever = share if leverage is None else share * leverage[:, None]
            change = share * (u if whole else u - means.mean)
            factor = 1.0 / (1.0 - np.clip(lever, 0.0, LARGEST_LEVERAGE))
            plain.append(change)
            left_out.append(factor * change)
            moved.append(left_out[-1] - each * means.mean if whole else left_out[-1])
        return _beside(plain), _beside(left_out), _beside(moved)


def _beside(parts: list[FloatArray]) -> FloatArray:
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)


def undetermined_features(
    optimum: Optimum, sides: Sequence[ClassRows], by_column: bool
) -> dict[int, float]:
    """Features of one value only in some classes' rows, and that value.

    Parameters
    ----------
    optimum : Optimum
    sides : sequence of ClassRows
        The classes whose rows enter one by one, and not through a mean alone. They say
        nothing of these features' coefficients: a penalty makes them up.
    by_column : bool
        Whether a feature counts wherever it is observed, not in complete rows alone.
    """
    least = np.full(optimum.features.shape[1], np.inf)
    largest = -least
    for side in sides:
        for block in class_blocks(optimum, side):
            used = block.features
            if not by_column:
                used = used[~np.isnan(block.table).any(axis=1)]
            least = np.fmin(least, np.fmin.reduce(used, axis=0, initial=np.inf))
            largest = np.fmax(largest, np.fmax.reduce(used, axis=0, initial=-np.inf))
    constant = np.flatnonzero(least == largest).tolist()
    return {j: float(least[j]) for j in constant}


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

    def add(self, block: Block, plain: FloatArray, left_out: FloatArray) -> None:
        """Add some rows."""
        weights = block.weights
        assert weights is not None
        if self.rowwise:
            weights = weights[:, None]
        odds = np.maximum(weights - 1.0, 0.0)
        known_odds = self.influence.revealed_share * odds
        values = np.where(np.isnan(block.table), 0.0, block.table)
        design = values.T[:, :, None] if self.rowwise else values[None]
        for total, moved, odd in (
            (self.slope, plain, odds),
            (self.overlap, left_out, known_odds),
        ):
            probability = odd / (1.0 + odd)
            total[0] += moved.T @ probability
            total[1:] += moved.T @ (probability * design)

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
