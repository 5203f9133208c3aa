"""The kernel ratios of the field: KLIEP, uLSIF, RuLSIF and kernel mean matching.

Every model is r(z) = θ₀ + Σ_k θ_k exp(−‖z − c_k‖²/(2σ²)), and every expectation a
weighted mean over complete rows. A method is given the bumps of both samples at one
width, and returns a candidate for each strength of its penalty, with a loss estimated
on rows that were left out.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import Any, Literal, get_args

import numpy as np
from scipy.linalg import solve_triangular
from scipy.spatial.distance import cdist
from sklearn.utils import check_array, check_scalar

from missratio._base.callbacks import CallbackSupportMixin, told
from missratio._base.hints import check_real
from missratio._base.seeds import generator
from missratio._base.storable import storable
from missratio._base.typing import BoolArray, FloatArray
from missratio.exceptions import FlatRatioWarning, Message
from missratio.ratio.base import MissingnessParameter, check_choice, report_status
from missratio.ratio.complete import CompleteRowsRatio, TwoTables, WeightedTable
from missratio.solver import (
    MixtureSolution,
    Status,
    least_on_simplex,
    mixture_proportions,
    quadratic_program,
)

# Enough rows for quantiles that are steady to a few per cent.
DISTANCE_ROWS = 1000
# Distances between which widths are tried, as quantiles.
QUANTILES = (0.05, 0.9)


@dataclass(frozen=True, slots=True)
class Bumps:
    """Squared distances to centres, from which bumps of any width follow.

    Parameters
    ----------
    origin, unit : ndarray of shape (n_columns,)
        What columns are shifted and divided by.
    centers : ndarray of shape (n_centers, n_columns)
        In those units.
    """

    origin: FloatArray
    unit: FloatArray
    centers: FloatArray

    @classmethod
    def around(
        cls, tables: TwoTables, centers: Any, scale: bool, rng: np.random.Generator
    ) -> Bumps:
        """Draw centres, half of them from each sample, rows by their weights."""
        origin, unit = _standard(tables, scale)
        if not isinstance(centers, Integral):
            given: FloatArray = check_array(
                centers, dtype=np.float64, input_name="centers"
            )
            if given.shape[1] != len(unit):
                raise ValueError(
                    f"centers must have one column for each of the {len(unit)} columns "
                    f"of X; got {given.shape[1]}."
                )
            return cls(origin, unit, (given - origin) / unit)
        count = int(check_scalar(centers, "centers", Integral, min_val=2))
        halves = (count - count // 2, count // 2)
        drawn = [
            _draw(table, half, rng)
            for table, half in zip(
                (tables.numerator, tables.denominator), halves, strict=True
            )
        ]
        distinct = np.unique(np.concatenate(drawn), axis=0)
        return cls(origin, unit, (distinct - origin) / unit)

    def squares(self, rows: FloatArray) -> FloatArray:
        """Squared distances, of shape (n_rows, n_centers), column by column."""
        scaled = (rows - self.origin) / self.unit
        found: FloatArray = cdist(self.centers, scaled, "sqeuclidean")
        return found.T

    def widths(
        self, tables: TwoTables, grid: Any, wider: float, rng: np.random.Generator
    ) -> FloatArray:
        """The widths to try: as given, or over the quantiles of the distances.

        Up to `wider` times the largest of them.
        """
        if not isinstance(grid, Integral):
            given = np.atleast_1d(np.asarray(grid, dtype=np.float64))
            if given.ndim != 1 or not len(given) or not _positive(given):
                raise ValueError(
                    "sigma_grid must be a number of widths to try, or positive, finite "
                    f"widths; got {grid!r}."
                )
            return np.unique(given)
        count = int(check_scalar(grid, "sigma_grid", Integral, min_val=1))
        rows = np.concatenate(
            [_some(table, rng) for table in (tables.numerator, tables.denominator)]
        )
        distances = np.sqrt(self.squares(rows))
        distances = distances[distances > 0.0]
        if not distances.size or not np.isfinite(distances).all():
            raise ValueError(
                "The distances between rows give no bandwidth: the complete rows are "
                "all the same, or their squares overflow or underflow. Scale the "
                "columns, or give a KernelRatio its sigma_grid as numbers."
            )
        if count == 1:
            return np.median(distances, keepdims=True)
        low, high = np.quantile(distances, QUANTILES)
        return np.geomspace(low, wider * high, count)


def gaussian(squares: FloatArray, sigma: float) -> FloatArray:
    """exp(−‖z − c‖²/(2σ²))."""
    with np.errstate(under="ignore"):
        bumps = np.multiply(squares, -0.5 / sigma**2)
        np.exp(bumps, out=bumps)
    return bumps


def squaring_grid(widths: FloatArray) -> FloatArray:
    """Widths √2 apart, if they are about as far apart already."""
    if len(widths) < 2 or round((widths[1] / widths[0]) ** 2) != 2:
        return widths
    steps = np.arange(len(widths)) - (len(widths) - 1) / 2.0
    grid: FloatArray = np.sqrt(widths[0] * widths[-1]) * 2.0 ** (steps / 2.0)
    return grid


def _positive(values: FloatArray) -> bool:
    return bool((np.isfinite(values) & (values > 0.0)).all())


def _standard(tables: TwoTables, scale: bool) -> tuple[FloatArray, FloatArray]:
    """The columns' weighted means, and their deviations within both samples."""
    moments = []
    for table in (tables.numerator, tables.denominator):
        mean = table.weights @ table.rows
        with np.errstate(over="ignore"):
            moments.append((mean, table.weights @ (table.rows - mean) ** 2))
    origin = (moments[0][0] + moments[1][0]) / 2.0
    if not scale:
        return origin, np.ones_like(origin)
    spread = np.sqrt((moments[0][1] + moments[1][1]) / 2.0)
    if not np.isfinite(spread).all():
        raise ValueError(
            "The columns have values so large that their squares overflow. Scale the "
            "columns, to a standard deviation of about one."
        )
    return origin, np.where(spread > 0.0, spread, 1.0)


def _draw(table: WeightedTable, count: int, rng: np.random.Generator) -> FloatArray:
    """Rows without replacement, each as often as the rows that it stands for."""
    possible = int(np.count_nonzero(table.weights))
    chosen = rng.choice(
        len(table), size=min(count, possible), replace=False, p=table.weights
    )
    return table.rows[chosen]


def _some(table: WeightedTable, rng: np.random.Generator) -> FloatArray:
    size = min(len(table), DISTANCE_ROWS)
    return table.rows[rng.choice(len(table), size=size, replace=False)]


@dataclass(frozen=True, slots=True)
class BumpRows:
    """One sample's bumps at one width, and the rows' weights.

    Parameters
    ----------
    bumps : ndarray of shape (n_rows, n_centers)
        Column by column in memory.
    weights : ndarray of shape (n_rows,)
        With sum one.
    folds : tuple of int
        Where the folds begin in the rows' order, and where the last one ends.
    """

    bumps: FloatArray
    weights: FloatArray
    folds: tuple[int, ...] = ()

    @property
    def mean(self) -> FloatArray:
        """Their weighted mean."""
        return self.weights @ self.bumps

    @property
    def variance(self) -> FloatArray:
        """Their weighted variance, a number for each bump."""
        return self.weights @ self.bumps**2 - self.mean**2

    def gram(self) -> FloatArray:
        """Σ w k kᵀ."""
        scaled = self.bumps * np.sqrt(self.weights)[:, None]
        return scaled.T @ scaled

    def parts(self) -> list[BumpRows]:
        """The folds, their weights as they are."""
        return [
            BumpRows(self.bumps[start:stop], self.weights[start:stop])
            for start, stop in zip(self.folds[:-1], self.folds[1:], strict=True)
        ]

    def means_by_fold(self) -> list[FloatArray]:
        """Σ w k in each fold, with Σ w last."""
        return [np.append(part.mean, part.weights.sum()) for part in self.parts()]


@dataclass(frozen=True, slots=True)
class Coefficients:
    """θ₀ and θ, and whether they were found."""

    intercept: float
    theta: FloatArray
    status: Status = Status.CONVERGED
    n_iter: int = 1

    @classmethod
    def flat(cls, n_centers: int) -> Coefficients:
        """The coefficients of the ratio of one."""
        return cls(1.0, np.zeros(n_centers))

    def ratio(self, bumps: FloatArray) -> FloatArray:
        """The ratio at rows, never below zero."""
        return np.maximum(self.intercept + bumps @ self.theta, 0.0)


@dataclass(frozen=True, slots=True)
class Strengths:
    """Penalties' strengths, and the losses on rows left out found for them.

    Parameters
    ----------
    l2 : ndarray of shape (n_strengths,)
        From strong to weak; the first is infinite, for the ratio of one.
    losses : ndarray of shape (n_strengths,)
        Less that of the ratio of one.
    errors : ndarray of shape (n_strengths,)
        The losses' standard errors.
    near : ndarray, or None
        Where a fit of this width may begin; None if it needs no beginning.
    """

    l2: FloatArray
    losses: FloatArray
    errors: FloatArray
    near: FloatArray | None = None


class KernelMethod(ABC):
    """A loss, how it is minimised, and how it is estimated on rows left out."""

    @abstractmethod
    def losses(
        self, numerator: BumpRows, denominator: BumpRows, l2: FloatArray
    ) -> Strengths:
        """Losses on rows left out, of the numerator's and the denominator's bumps."""

    @abstractmethod
    def fit(
        self,
        numerator: BumpRows,
        denominator: BumpRows,
        l2: float,
        near: FloatArray | None = None,
    ) -> Coefficients:
        """Minimise over all rows, beginning where `Strengths` say."""

    @abstractmethod
    def terms(
        self, ratio1: FloatArray, ratio0: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """The loss's terms at the numerator's and the denominator's rows.

        They are 0 for a ratio of one, and the loss is the sum of their weighted means.
        """

    def loss(
        self, ratio1: FloatArray, w1: FloatArray, ratio0: FloatArray, w0: FloatArray
    ) -> float:
        """The loss of a ratio at weighted rows; 0 for a ratio of one."""
        terms = self.terms(ratio1, ratio0)
        return float(w1 @ terms[0] + w0 @ terms[1])

    def unit(self, numerator: BumpRows, denominator: BumpRows) -> float:
        """What strengths of the penalty are multiples of."""
        return 1.0

    def _compared(
        self,
        l2: FloatArray,
        ratio1: FloatArray,
        w1: FloatArray,
        ratio0: FloatArray,
        w0: FloatArray,
    ) -> Strengths:
        """Losses of ratios in columns at rows left out, with the ratio of one first."""
        losses, squares = np.zeros(len(l2)), np.zeros(len(l2))
        pairs = zip(self.terms(ratio1, ratio0), (w1, w0), strict=True)
        for terms, weights in pairs:
            above = terms - terms[:, :1]
            mean = weights @ above
            losses += mean
            squares += weights**2 @ (above - mean) ** 2
        return Strengths(l2, losses, np.sqrt(squares))


@dataclass(frozen=True)
class LeastSquares(KernelMethod):
    """Minimise ½Ê_α[r²] − Ê₁[r] + ½ + ½ l2 Σ θ²: uLSIF, and RuLSIF for alpha > 0.

    Ê_α is alpha Ê₁ + (1 − alpha) Ê₀, and the minimum lies at the relative ratio
    p1/(alpha p1 + (1 − alpha) p0). This is a weighted regression of the target
    1/alpha on the numerator's rows and 0 on the denominator's, so that leaving out one
    row is a division by one minus its leverage.
    """

    alpha: float = 0.0

    def losses(
        self, numerator: BumpRows, denominator: BumpRows, l2: FloatArray
    ) -> Strengths:
        """Exact leave-one-out losses: a row left out takes its weight with it."""
        moments = _Centred.of(numerator, denominator, self.alpha)
        values, vectors = np.linalg.eigh(moments.covariance)
        inverse = 1.0 / (np.maximum(values, 0.0)[:, None] + l2)
        scores = (vectors.T @ moments.difference)[:, None] * inverse
        middle = moments.mean @ vectors
        left_out = []
        for rows, mass in ((numerator, self.alpha), (denominator, 1.0 - self.alpha)):
            rotated = rows.bumps @ vectors
            rotated -= middle
            ratio = 1.0 + rotated @ scores
            np.square(rotated, out=rotated)
            leverage = 1.0 + rotated @ inverse
            leverage *= rows.weights[:, None]
            if rows is numerator:
                ratio -= leverage
            ratio /= 1.0 - np.minimum(mass * leverage, 1.0 - 1e-9)
            left_out.append(np.maximum(ratio, 0.0, out=ratio))
        return self._compared(
            l2, left_out[0], numerator.weights, left_out[1], denominator.weights
        )

    def fit(
        self,
        numerator: BumpRows,
        denominator: BumpRows,
        l2: float,
        near: FloatArray | None = None,
    ) -> Coefficients:
        """In closed form."""
        del near
        if np.isinf(l2):
            return Coefficients.flat(numerator.bumps.shape[1])
        moments = _Centred.of(numerator, denominator, self.alpha)
        curved = moments.covariance + l2 * np.eye(len(moments.mean))
        theta = np.asarray(np.linalg.solve(curved, moments.difference), np.float64)
        return Coefficients(1.0 - float(moments.mean @ theta), theta)

    def terms(
        self, ratio1: FloatArray, ratio0: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """The terms of ½Ê_α[r²] − Ê₁[r] + ½."""
        above = 0.5 * (1.0 - self.alpha) * (ratio0**2 - 1.0)
        if not self.alpha:
            return 1.0 - ratio1, above
        return 0.5 * self.alpha * (ratio1**2 - 1.0) + 1.0 - ratio1, above

    def unit(self, numerator: BumpRows, denominator: BumpRows) -> float:
        """How much the rows themselves curve the loss, for the median bump."""
        variance = (1.0 - self.alpha) * denominator.variance
        if self.alpha:
            share = self.alpha * (1.0 - self.alpha)
            variance += (
                self.alpha * numerator.variance
                + share * (numerator.mean - denominator.mean) ** 2
            )
        return max(float(np.median(variance)), 0.0) or 1.0


@dataclass(frozen=True, slots=True)
class _Centred:
    """The regression's sums, the intercept solved for.

    Parameters
    ----------
    mean : ndarray of shape (n_centers,)
        Ê_α[k].
    covariance : ndarray of shape (n_centers, n_centers)
        Of k, under Ê_α.
    difference : ndarray of shape (n_centers,)
        Ê₁[k] − Ê_α[k].
    """

    mean: FloatArray
    covariance: FloatArray
    difference: FloatArray

    @classmethod
    def of(cls, numerator: BumpRows, denominator: BumpRows, alpha: float) -> _Centred:
        first = numerator.mean
        mean = alpha * first + (1.0 - alpha) * denominator.mean
        total = (1.0 - alpha) * denominator.gram()
        if alpha:
            total += alpha * numerator.gram()
        return cls(mean, total - np.outer(mean, mean), first - mean)


# Fits along the way are compared, not kept.
PATH_TOL = 1e-4
FIT_TOL = 1e-8
PILOT_TOL = 1e-2
PILOT_ROWS = 800
LEAST_LEFT = 0.5
# A bump counts as being around so many denominator rows at least: one or two say too
# little of how high it may be, and far from all of them it would have no finite height.
LEAST_NEAR = 5.0
TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class LogLikelihood(KernelMethod):
    """Maximise Ê₁[log r] subject to Ê₀[r] = 1 and θ ≥ 0: KLIEP as it was published.

    With π_k = θ_k Ê₀[k_k] these are the proportions of a mixture, and its likelihood is
    concave. There is no penalty: l2 is zero, or infinite for the ratio of one. Where a
    bump has fewer than five denominator rows around it, Ê₀[k_k] is taken as if it had
    five: a numerator row far from the others can't make the ratio as large as it likes.
    """

    def losses(
        self, numerator: BumpRows, denominator: BumpRows, l2: FloatArray
    ) -> Strengths:
        """Leave-one-out losses, one Newton step away from the fit to all rows.

        The bumps that have a height keep having one. A numerator row takes its weight
        with it; a denominator row moves Ê₀[k], and with it all heights.
        """
        mixture = _Mixture.of(numerator, denominator)
        found = mixture.solve(numerator.weights, PATH_TOL)
        if found.status != Status.CONVERGED:
            lost = np.where(np.isinf(l2), 0.0, np.inf)
            return Strengths(l2, lost, np.zeros(len(l2)))
        ratio1, ratio0 = mixture.left_out(numerator, denominator, found.proportions)
        flat = np.isinf(l2)
        compared = self._compared(
            l2,
            np.where(flat, 1.0, ratio1[:, None]),
            numerator.weights,
            np.where(flat, 1.0, ratio0[:, None]),
            denominator.weights,
        )
        return replace(compared, near=found.proportions)

    def fit(
        self,
        numerator: BumpRows,
        denominator: BumpRows,
        l2: float,
        near: FloatArray | None = None,
    ) -> Coefficients:
        """Fit by Newton's steps on the simplex."""
        if np.isinf(l2):
            return Coefficients.flat(numerator.bumps.shape[1])
        mixture = _Mixture.of(numerator, denominator)
        found = mixture.solve(numerator.weights, FIT_TOL, near)
        theta = found.proportions / mixture.mean
        return Coefficients(float(theta[-1]), theta[:-1], found.status, found.n_iter)

    def terms(
        self, ratio1: FloatArray, ratio0: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """The terms of Ê₀[r] − Ê₁[log r] − 1."""
        with np.errstate(divide="ignore"):
            return -np.log(ratio1), ratio0 - 1.0


@dataclass(frozen=True, slots=True)
class _Mixture:
    """Bumps and the constant one, each divided by its mean over the denominator.

    Parameters
    ----------
    components : ndarray of shape (n_rows, n_centers + 1)
        At the numerator's rows, column by column in memory.
    mean : ndarray of shape (n_centers + 1,)
        What they were divided by.
    """

    components: FloatArray
    mean: FloatArray

    @classmethod
    def of(cls, numerator: BumpRows, denominator: BumpRows) -> _Mixture:
        least = min(LEAST_NEAR * float(denominator.weights @ denominator.weights), 1.0)
        mean = np.append(np.maximum(denominator.mean, least), 1.0)
        components = np.empty((len(numerator.bumps), len(mean)), order="F")
        np.divide(numerator.bumps, mean[:-1], out=components[:, :-1])
        components[:, -1] = 1.0
        return cls(components, mean)

    def solve(
        self, weights: FloatArray, tol: float, near: FloatArray | None = None
    ) -> MixtureSolution:
        """The proportions, begun where some rows say, at a fraction of the cost."""
        if near is None:
            few = slice(None, None, 1 + len(self.components) // PILOT_ROWS)
            some = np.asfortranarray(self.components[few])
            share = weights[few] / weights[few].sum()
            near = mixture_proportions(some, share, tol=PILOT_TOL).proportions
        # Every row is to have some likelihood.
        start = 0.99 * near
        start[-1] += 0.01
        return mixture_proportions(self.components, weights, start=start, tol=tol)

    def left_out(
        self, numerator: BumpRows, denominator: BumpRows, proportions: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """The ratio at each row, from the fit without it."""
        tall = proportions > 0.0
        heights = proportions[tall]
        # 1. The curvature of −Ê₁[log r] in the heights, and a root of its inverse.
        bumps = self.components.T[tall].T
        ratio1 = np.maximum(bumps @ heights, TINY)
        bumps /= ratio1[:, None]
        scaled = bumps * np.sqrt(numerator.weights)[:, None]
        curved = scaled.T @ scaled
        curved.flat[:: len(curved) + 1] += 1e-10 * curved.trace() / len(curved)
        root = np.linalg.inv(np.linalg.cholesky(curved)).T
        # 2. A numerator row: log r falls by w(q − 1)/(1 − wq), and by no more than if
        #    half of its bump were its own; but at least as the bumps that only this row
        #    holds up do, each by the row's part in it.
        weights, leverage = numerator.weights, _squared_length(bumps @ root)
        left = np.maximum(1.0 - weights * leverage, LEAST_LEFT)
        fall = np.exp(-weights * np.maximum(leverage - 1.0, 0.0) / left)
        np.square(bumps, out=bumps)
        held = (1.0 - weights * (bumps @ heights)) / (1.0 - weights)
        ratio1 *= np.minimum(fall, np.maximum(held, TINY))
        # 3. A denominator row: Ê₀[k] moves by w(Ê₀[k] − k)/(1 − w).
        near = self._at(denominator, tall)
        ratio0, own_part = near @ heights, _squared_length(near @ root)
        share = denominator.weights / (1.0 - denominator.weights)
        return ratio1, np.maximum(ratio0 + share * (own_part - ratio0), 0.0)

    def _at(self, rows: BumpRows, tall: BoolArray) -> FloatArray:
        """Some components at other rows."""
        bumps = rows.bumps.T[tall[:-1]] / self.mean[:-1][tall[:-1], None]
        if tall[-1]:
            bumps = np.concatenate([bumps, np.ones((1, len(rows.bumps)))])
        return bumps.T


def _squared_length(rows: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("ij,ij->i", rows, rows))


@dataclass(frozen=True)
class MeanMatching(KernelMethod):
    """Minimise ½‖Ê₀[r k] − Ê₁[k]‖² + ½ l2 Σ θ²: kernel mean matching.

    The norm is that of the kernel's own space, on the span of the centres. The ratio
    is held to Ê₀[r] = 1, θ ≥ 0 and r ≤ max_ratio at the centres, which makes it a
    quadratic programme. Width and strength are those with the least squared error
    ½Ê₀[r²] − Ê₁[r] on folds held out: distances under different kernels don't compare.

    Parameters
    ----------
    kernel : ndarray of shape (n_centers, n_centers)
        The bumps at the centres, at the same width.
    max_ratio : float
    """

    kernel: FloatArray
    max_ratio: float = np.inf

    def losses(
        self, numerator: BumpRows, denominator: BumpRows, l2: FloatArray
    ) -> Strengths:
        """Losses on each fold, of fits to the others."""
        sides = (numerator, denominator)
        sums = numerator.means_by_fold(), denominator.means_by_fold()
        grams = [part.gram() for part in denominator.parts()]
        ratios = [np.empty((len(rows.weights), len(l2))) for rows in sides]
        for k in range(len(grams)):
            problem = self._problem(
                _others(sums[0], k), _others(sums[1], k), _others(grams, k)
            )
            for i, strength in enumerate(l2):
                found = self._solve(*problem, strength)
                for ratio, rows in zip(ratios, sides, strict=True):
                    held = slice(rows.folds[k], rows.folds[k + 1])
                    ratio[held, i] = found.ratio(rows.bumps[held])
        return self._compared(
            l2, ratios[0], numerator.weights, ratios[1], denominator.weights
        )

    def fit(
        self,
        numerator: BumpRows,
        denominator: BumpRows,
        l2: float,
        near: FloatArray | None = None,
    ) -> Coefficients:
        """Fit by a quadratic programme."""
        del near
        sums = [
            np.append(rows.mean, rows.weights.sum())
            for rows in (numerator, denominator)
        ]
        return self._solve(*self._problem(sums[0], sums[1], denominator.gram()), l2)

    def terms(
        self, ratio1: FloatArray, ratio0: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """The terms of ½Ê₀[r²] − Ê₁[r] + ½."""
        return LeastSquares().terms(ratio1, ratio0)

    def unit(self, numerator: BumpRows, denominator: BumpRows) -> float:
        """How much the rows themselves curve the distance, for the median bump."""
        curved = (self._whiten(denominator.gram()) ** 2).sum(axis=0)
        return float(np.median(curved)) or 1.0

    @cached_property
    def _factor(self) -> FloatArray:
        """A lower triangular root of the kernel's matrix."""
        ridge = 1e-8 * np.trace(self.kernel) / len(self.kernel)
        return np.linalg.cholesky(self.kernel + ridge * np.eye(len(self.kernel)))

    def _whiten(self, vectors: FloatArray) -> FloatArray:
        """On the span of the centres the squared norm of a function is vᵀK⁻¹v."""
        return np.asarray(solve_triangular(self._factor, vectors, lower=True))

    def _problem(
        self, numerator: FloatArray, denominator: FloatArray, gram: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """A quadratic form, and Ê₀[k], the constant bump last.

        From Σ w k with Σ w last, of both samples, and the denominator's Σ w k kᵀ. Since
        Ê₀[r] is one, Ê₁[k] is Ê₀[r] Ê₁[k], and what is minimised has no linear part.
        """
        mean = denominator / max(denominator[-1], TINY)
        target = numerator[:-1] / max(numerator[-1], TINY)
        product = np.column_stack([gram / max(denominator[-1], TINY), mean[:-1]])
        apart = self._whiten(product - np.outer(target, mean))
        return apart.T @ apart, mean

    def _solve(self, form: FloatArray, mean: FloatArray, l2: float) -> Coefficients:
        if np.isinf(l2):
            return Coefficients.flat(len(mean) - 1)
        form = form.copy()
        form.flat[: -1 : len(mean) + 1] += l2
        found = least_on_simplex(form, mean)
        heights = np.column_stack([self.kernel, np.ones(len(self.kernel))])
        limits = np.full(len(heights), self.max_ratio)
        if found.status != Status.CONVERGED or (heights @ found.x > limits).any():
            none = np.zeros(len(mean))
            bounded = (heights, limits) if np.isfinite(self.max_ratio) else None
            found = quadratic_program(form, none, (mean, 1.0), at_most=bounded)
        theta = np.maximum(found.x, 0.0)
        theta /= mean @ theta
        return Coefficients(float(theta[-1]), theta[:-1], found.status, found.n_iter)


def _others(sums: list[FloatArray], k: int) -> FloatArray:
    """The sum over all folds but one."""
    return np.asarray(np.sum(sums[:k] + sums[k + 1 :], axis=0))


KernelName = Literal["ulsif", "rulsif", "kliep", "kmm"]
# Ridge strengths tried, beside the one that curves the loss as much as the rows do.
L2_SPAN = (10.0, 1e-6)
L2_COUNT = {"ulsif": 9, "rulsif": 9, "kmm": 2}
# Bumps whose heights may be negative can be wide: the wider, the closer to a plane,
# which is what many columns need. Bumps that only add up can't.
WIDER = {"ulsif": 4.0, "rulsif": 4.0, "kliep": 1.0, "kmm": 1.0}
WIDTHS = {"ulsif": 10, "rulsif": 10, "kliep": 6, "kmm": 6}
# Rows that are scored at once.
BLOCK_ROWS = 4096


@storable(
    finite=(
        "heights_",
        "intercept_",
        "centers_",
        "sigma_",
        "largest_",
        "_origin",
        "_unit",
    )
)
class KernelRatio(CallbackSupportMixin, CompleteRowsRatio):
    """Density ratio r̂ = θ₀ + Σ_k θ_k exp(−‖z − c_k‖²/(2σ²)), by one of four methods.

    Every Ê is a mean over complete rows weighted by 1/P(complete). What is minimised:

    - "ulsif": ½Ê₀[r²] − Ê₁[r] + ½ l2 Σθ² (least squares; Kanamori et al. 2009);
    - "rulsif": the same with Ê₀ replaced by alpha Ê₁ + (1 − alpha) Ê₀, which gives the
      relative ratio p1/(alpha p1 + (1 − alpha) p0), bounded by 1/alpha (Yamada et al.
      2013);
    - "kliep": −Ê₁[log r], with Ê₀[r] = 1 and θ ≥ 0 (Sugiyama et al. 2008);
    - "kmm": ½‖Ê₀[r k] − Ê₁[k]‖² + ½ l2 Σθ² in the kernel's space, with Ê₀[r] = 1,
      θ ≥ 0 and r ≤ max_ratio (kernel mean matching; Huang et al. 2006).

    The width σ and the strength l2 are those with the smallest loss on rows left out:
    exactly one by one for least squares, one by one up to a Newton step for KLIEP, in
    folds for mean matching, which is judged by the squared error. Only candidates count
    that beat a ratio of one by more than chance, and where there are none the ratio is
    one, so that equal samples give a flat ratio. A sum of bumps may fall below zero, or
    grow beyond the rows seen: it is cut off at zero, and at the largest ratio at a row
    that it was fitted to.

    Parameters
    ----------
    method : {"ulsif", "rulsif", "kliep", "kmm"}, default="ulsif"
        "kmm" needs Clarabel, a solver of quadratic programmes (``missratio[kmm]``),
        where the ratio reaches max_ratio.
    missingness : mapping from class to Missingness, "ignore" or None, default=None
        Why values are missing; a class left out is complete. NaN in a class without a
        model is an error. "ignore" drops rows with missing values.
    centers : int or array-like of shape (n_centers, n_columns), default=100
        How many distinct complete rows to draw as centres, half of them from each
        sample and by their weights, or the centres themselves.
    sigma_grid : int, array-like or None, default=None
        Widths to try, in units of the scaled columns, or how many: over the quantiles
        of the distances between rows and centres. None tries 10 for least squares, and
        6 for the others, whose widths span less.
    l2_grid : int, array-like or None, default=None
        Ridge strengths to try, or how many: from 10 to 10⁻⁶ times the one at which the
        penalty curves the loss as much as the rows do. None tries 9 for least squares
        and 2 for mean matching, which θ ≥ 0 holds back already. KLIEP has no penalty.
    alpha : float, default=0.1
        RuLSIF's mixing weight, in [0, 1); 0 is uLSIF.
    max_ratio : float, default=1000.0
        For mean matching: the largest ratio at a centre, more than 1.
    scale : bool, default=True
        Whether to divide columns by their standard deviation within the samples.
    cv : int, default=5
        The number of folds, for mean matching.
    flat_within : float, default=2.0
        Only candidates are taken whose loss lies this many of its standard errors below
        that of one; if there are none, the ratio is one, with a `FlatRatioWarning`. 0
        takes the smallest loss as it is, as a classifier should: a flat ratio tells no
        row from another.
    random_state : int, RandomState, Generator or None, default=None
        For centres and folds. None draws anew at each ``fit``.

    Attributes
    ----------
    sigma_, l2_ : float
        The width and the strength chosen; ``l2_`` is inf for the ratio of one.
    centers_ : ndarray of shape (n_centers, n_columns)
    heights_ : ndarray of shape (n_centers,)
        θ̂.
    intercept_ : float
        θ̂₀.
    largest_ : float
        The largest ratio at a row that it was fitted to.
    cv_results_ : dict of ndarray
        ``param_sigma``, ``param_l2``, ``mean_test_score``, which is by how much the
        loss on rows left out lies below that of a ratio of one, and its
        ``standard_error``, for all candidates.
    classes_ : ndarray of shape (2,)
        The denominator's and the numerator's label.
    converged_ : bool
    n_iter_ : int
    effective_sample_size_ : dict from class to SampleSize
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_columns,)

    Examples
    --------
    A ratio that no plane can be: class 1 sits in the middle of class 0. Rows of class
    0 go missing on the right.

    >>> import numpy as np
    >>> import missratio as mr
    >>> rng = np.random.default_rng(0)
    >>> Z1, Z0 = rng.normal(0, 0.5, (1000, 1)), rng.normal(0, 1, (1000, 1))
    >>> phi = mr.StepMissingness(direction=[1.0], threshold=0.5, probability=0.8)
    >>> X = np.concatenate([Z1, mr.corrupt(Z0, phi, random_state=0)])
    >>> y = np.repeat([1, 0], 1000)
    >>> ratio = mr.KernelRatio(missingness={0: phi}, random_state=0).fit(X, y)
    >>> bool(abs(ratio.predict_ratio([[0.0]])[0] - 2) < 0.3)
    True
    """

    sigma_: float
    l2_: float
    centers_: FloatArray
    heights_: FloatArray
    intercept_: float
    largest_: float
    cv_results_: dict[str, FloatArray]
    converged_: bool
    n_iter_: int

    def __init__(
        self,
        method: KernelName = "ulsif",
        missingness: MissingnessParameter = None,
        centers: Any = 100,
        sigma_grid: Any = None,
        l2_grid: Any = None,
        alpha: float = 0.1,
        max_ratio: float = 1000.0,
        scale: bool = True,
        cv: int = 5,
        flat_within: float = 2.0,
        random_state: Any = None,
    ) -> None:
        self.method = method
        self.missingness = missingness
        self.centers = centers
        self.sigma_grid = sigma_grid
        self.l2_grid = l2_grid
        self.alpha = alpha
        self.max_ratio = max_ratio
        self.scale = scale
        self.cv = cv
        self.flat_within = flat_within
        self.random_state = random_state

    def _fit_tables(self, tables: TwoTables) -> None:
        self._check_parameters()
        rng = generator(self.random_state)
        bumps = Bumps.around(tables, self.centers, self.scale, rng)
        widths = self._widths(tables, bumps, rng)
        # Only mean matching leaves out folds; others leave out single rows.
        n_folds = int(self.cv) if self.method == "kmm" else 1
        trial = _Trial.of(tables, bumps, n_folds, rng)
        found_at = told(
            self,
            "width",
            widths[::-1],
            lambda sigma: self._candidates(trial, float(sigma)),
            len(widths),
        )
        candidates = [each for found in found_at for each in found]
        best = _chosen(candidates, float(self.flat_within))
        numerator, denominator = trial.at(best.sigma)
        found = self._method(trial, best.sigma).fit(
            numerator, denominator, best.l2, best.near
        )
        report_status(
            found.status, np.nan, found.n_iter, type(self).__name__, stacklevel=3
        )
        self.sigma_, self.l2_ = best.sigma, best.l2
        self._store(bumps, found)
        self.largest_ = max(
            float(found.ratio(each.bumps).max()) for each in (numerator, denominator)
        )
        self.cv_results_ = {
            "param_sigma": np.array([each.sigma for each in candidates]),
            "param_l2": np.array([each.l2 for each in candidates]),
            "mean_test_score": -np.array([each.loss for each in candidates]),
            "standard_error": np.array([each.error for each in candidates]),
        }

    def _widths(
        self, tables: TwoTables, bumps: Bumps, rng: np.random.Generator
    ) -> FloatArray:
        grid = WIDTHS[self.method] if self.sigma_grid is None else self.sigma_grid
        widths = bumps.widths(tables, grid, WIDER[self.method], rng)
        return squaring_grid(widths) if isinstance(grid, Integral) else widths

    def _store(self, bumps: Bumps, found: Coefficients) -> None:
        self._origin, self._unit = bumps.origin, bumps.unit
        self.centers_ = bumps.centers * bumps.unit + bumps.origin
        self.heights_, self.intercept_ = found.theta, found.intercept
        self.converged_, self.n_iter_ = True, found.n_iter

    def _check_parameters(self) -> None:
        check_choice("method", self.method, get_args(KernelName))
        check_real(
            self.alpha, "alpha", min_val=0.0, max_val=1.0, include_boundaries="left"
        )
        check_real(
            self.max_ratio, "max_ratio", min_val=1.0, include_boundaries="neither"
        )
        check_scalar(self.cv, "cv", Integral, min_val=2)
        check_real(self.flat_within, "flat_within", min_val=0.0)

    def _method(self, trial: _Trial, sigma: float) -> KernelMethod:
        """What is minimised at one width."""
        if self.method == "kliep":
            return LogLikelihood()
        if self.method == "kmm":
            return MeanMatching(gaussian(trial.between, sigma), float(self.max_ratio))
        return LeastSquares(float(self.alpha) if self.method == "rulsif" else 0.0)

    def _candidates(self, trial: _Trial, sigma: float) -> Iterator[_Candidate]:
        """All strengths at one width, with the ratio of one first."""
        method = self._method(trial, sigma)
        numerator, denominator = trial.at(sigma)
        strengths = np.append(np.inf, self._strengths(method, numerator, denominator))
        found = method.losses(numerator, denominator, strengths)
        values = zip(found.l2, found.losses, found.errors, strict=True)
        for strength, loss, error in values:
            numbers = float(strength), float(loss), float(error)
            yield _Candidate(sigma, *numbers, found.near)

    def _strengths(
        self, method: KernelMethod, numerator: BumpRows, denominator: BumpRows
    ) -> FloatArray:
        if self.method == "kliep":
            return np.zeros(1)
        grid = L2_COUNT[self.method] if self.l2_grid is None else self.l2_grid
        if isinstance(grid, Integral):
            count = check_scalar(grid, "l2_grid", Integral, min_val=1)
            weak_first = np.geomspace(*L2_SPAN[::-1], count)
            return method.unit(numerator, denominator) * weak_first[::-1]
        given = np.atleast_1d(np.asarray(grid, dtype=np.float64))
        if given.ndim != 1 or not len(given) or not (given > 0.0).all():
            raise ValueError(
                "l2_grid must be a number of strengths to try, or positive strengths; "
                f"got {self.l2_grid!r}."
            )
        return np.unique(given)[::-1]

    def _ratio(self, rows: FloatArray) -> FloatArray:
        bumps = Bumps(
            self._origin, self._unit, (self.centers_ - self._origin) / self._unit
        )
        found = Coefficients(self.intercept_, self.heights_)
        ratio = np.empty(len(rows))
        for start in range(0, len(rows), BLOCK_ROWS):
            block = slice(start, start + BLOCK_ROWS)
            ratio[block] = found.ratio(
                gaussian(bumps.squares(rows[block]), self.sigma_)
            )
        return np.minimum(ratio, self.largest_)

    def _complete_log_ratio(self, rows: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore"):
            return np.log(self._ratio(rows))

    def _score_tables(self, tables: TwoTables) -> float:
        alpha = float(self.alpha) if self.method == "rulsif" else 0.0
        method = LogLikelihood() if self.method == "kliep" else LeastSquares(alpha)
        numerator, denominator = tables.numerator, tables.denominator
        ratios = self._ratio(numerator.rows), self._ratio(denominator.rows)
        return -method.loss(
            ratios[0], numerator.weights, ratios[1], denominator.weights
        )


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A width and a strength, with the loss on rows left out and its error.

    And what is near the solution, where it was found on the way.
    """

    sigma: float
    l2: float
    loss: float
    error: float
    near: FloatArray | None


def _chosen(candidates: list[_Candidate], flat_within: float) -> _Candidate:
    """The smallest loss among candidates that beat a ratio of one beyond chance.

    The smallest of all may say nothing: between distant samples a narrow, hardly
    penalised ratio is huge at one row left out, and so is its loss's standard error,
    while others beat one by ten of their errors. Between equal laws none is two errors
    below one in 95% of samples or more, of all methods.
    """
    beyond = [
        each for each in candidates if each.loss < min(-flat_within * each.error, 0.0)
    ]
    if beyond:
        return min(beyond, key=lambda each: each.loss)
    below = [-each.loss / each.error for each in candidates if each.loss < 0.0]
    if below:
        message = Message(
            "The ratio is one everywhere: losses lie at most {errors:.2g} of their "
            "standard errors below that of one, and flat_within asks for {asked:g}. "
            "The samples may come from one law, or be too small to tell.",
            remedies=(
                "set flat_within=0 to take the smallest loss",
                "bring more rows",
            ),
            facts={"errors": max(below), "asked": flat_within},
        )
        warnings.warn(FlatRatioWarning(message), stacklevel=4)
    return next(each for each in candidates if np.isinf(each.l2))


@dataclass(frozen=True, slots=True)
class _Trial:
    """Both samples' bumps, and what their rows weigh; rows of a fold are together."""

    squares: tuple[FloatArray, FloatArray]
    between: FloatArray
    weights: tuple[FloatArray, FloatArray]
    folds: tuple[tuple[int, ...], tuple[int, ...]]

    @classmethod
    def of(
        cls,
        tables: TwoTables,
        bumps: Bumps,
        n_folds: int,
        rng: np.random.Generator,
    ) -> _Trial:
        squares, weights, folds = [], [], []
        for table in (tables.numerator, tables.denominator):
            dealt = table.take(rng.permutation(len(table))) if n_folds > 1 else table
            squares.append(bumps.squares(dealt.rows))
            weights.append(dealt.weights)
            starts = np.linspace(0, len(dealt), n_folds + 1).astype(int)
            folds.append(tuple(starts.tolist()))
        between = bumps.squares(bumps.centers * bumps.unit + bumps.origin)
        return cls(
            (squares[0], squares[1]),
            between,
            (weights[0], weights[1]),
            (folds[0], folds[1]),
        )

    def at(self, sigma: float) -> tuple[BumpRows, BumpRows]:
        """The bumps of one width, of the numerator and the denominator."""
        numerator, denominator = (
            BumpRows(gaussian(squares, sigma), weights, folds)
            for squares, weights, folds in zip(
                self.squares, self.weights, self.folds, strict=True
            )
        )
        return numerator, denominator
