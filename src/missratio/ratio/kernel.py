"""The kernel ratios of the field: KLIEP, uLSIF, RuLSIF and kernel mean matching.

Every model is r(z) = θ₀ + Σ_k θ_k exp(−‖z − c_k‖²/(2σ²)), and every expectation a
weighted mean over complete rows. A method is given the bumps of both samples at one
width, and estimates its loss on rows left out for each strength of its penalty.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Integral
from typing import Any, Literal, get_args

import numpy as np
from scipy.linalg import solve_triangular
from scipy.spatial.distance import cdist
from sklearn.utils import check_scalar

from missratio import solver
from missratio._base.callbacks import CallbackSupportMixin, run_tasks
from missratio._base.hints import check_choice, check_real, generator
from missratio._base.reading import row_blocks
from missratio._base.storable import storable
from missratio._base.typing import FloatArray, IntArray
from missratio.basis.gaussian import read_centers
from missratio.exceptions import FlatRatioWarning, Message, warn
from missratio.ratio import base
from missratio.ratio.base import MissingnessParameter, Two
from missratio.ratio.complete import CompleteRowsRatio, WeightedTable
from missratio.rows import ClassRows
from missratio.solver import Status


@dataclass(frozen=True, slots=True)
class Bumps:
    """Squared distances to centres, from which bumps of any width follow.

    Columns are shifted by `origin` and divided by `unit`, and `centers`, of shape
    (n_centers, n_columns), are in those units.
    """

    origin: FloatArray
    unit: FloatArray
    centers: FloatArray

    @classmethod
    def around(
        cls,
        tables: Two[WeightedTable],
        centers: Any,
        scale: bool,
        rng: np.random.Generator,
    ) -> Bumps:
        """Draw centres, half of them from each sample, rows by their weights."""
        # Columns about zero, and of a spread of one within the samples.
        means = tables.map(lambda table: table.weights @ table.rows)
        origin = (means.numerator + means.denominator) / 2.0
        unit = np.ones_like(origin)
        if scale:
            parts = zip(tables, means, strict=True)
            variance = sum(t.weights @ (t.rows - mean) ** 2 for t, mean in parts) / 2.0
            unit = np.where(variance > 0.0, np.sqrt(variance), 1.0)
        if not isinstance(centers, Integral):
            given = read_centers(centers, len(unit))
            return cls(origin, unit, (given - origin) / unit)
        count = int(check_scalar(centers, "centers", Integral, min_val=2))
        drawn = []
        for table, half in zip(tables, (count - count // 2, count // 2), strict=True):
            size = min(half, int(np.count_nonzero(table.weights)))
            drawn.append(
                rng.choice(table.rows, size=size, replace=False, p=table.weights)
            )
        distinct = np.unique(np.concatenate(drawn), axis=0)
        return cls(origin, unit, (distinct - origin) / unit)

    def squares(self, rows: FloatArray) -> FloatArray:
        """Squared distances, of shape (n_rows, n_centers), column by column."""
        scaled = (rows - self.origin) / self.unit
        return np.asarray(cdist(self.centers, scaled, "sqeuclidean").T)

    def widths(
        self,
        tables: Two[WeightedTable],
        count: int,
        wider: float,
        rng: np.random.Generator,
    ) -> FloatArray:
        """Widths over the quantiles of the distances, up to `wider` times the last."""
        # With 1,000 rows of a sample quantiles are steady to a few per cent.
        rows = [
            rng.choice(table.rows, size=min(len(table), 1000), replace=False)
            for table in tables
        ]
        distances = np.sqrt(self.squares(np.concatenate(rows)))
        distances = distances[distances > 0.0]
        if not distances.size or not np.isfinite(distances).all():
            raise ValueError(
                "The distances between rows give no bandwidth: the complete rows are "
                "all the same, or their squares overflow or underflow. Scale the "
                "columns, or give a KernelRatio its sigma_grid as numbers."
            )
        if count == 1:
            return np.median(distances, keepdims=True)
        low, high = np.quantile(distances, (0.05, 0.9))
        return np.geomspace(low, wider * high, count)


def gaussian(squares: FloatArray, sigma: float) -> FloatArray:
    """exp(−‖z − c‖²/(2σ²))."""
    with np.errstate(under="ignore"):
        bumps = np.multiply(squares, -0.5 / sigma**2)
        np.exp(bumps, out=bumps)
    return bumps


@dataclass(frozen=True, slots=True)
class BumpRows:
    """One sample's bumps at one width, (n_rows, n_centers), and the rows' weights.

    Weights have sum one; `folds` has a number for each row, where folds are left out.
    """

    bumps: FloatArray
    weights: FloatArray
    folds: IntArray | None = None

    @property
    def mean(self) -> FloatArray:
        """Their weighted mean."""
        return self.weights @ self.bumps

    @property
    def square(self) -> float:
        """Σ w²."""
        return float(self.weights @ self.weights)

    def gram(self) -> FloatArray:
        """Σ w k kᵀ."""
        scaled = self.bumps * np.sqrt(self.weights)[:, None]
        return scaled.T @ scaled

    def fold(self, number: int) -> BumpRows:
        """The rows of a fold, their weights as they are."""
        held = self.folds == number
        return BumpRows(self.bumps[held], self.weights[held])


@dataclass(frozen=True, slots=True)
class Coefficients:
    """θ₀ and θ, and how they were found."""

    intercept: float
    theta: FloatArray
    status: Status = Status.CONVERGED
    n_iter: int = 1

    def ratio(self, bumps: FloatArray) -> FloatArray:
        """The ratio at rows, never below zero."""
        return np.maximum(self.intercept + bumps @ self.theta, 0.0)


# Strengths of the penalty, losses on rows left out, less that of a ratio of one, and
# their standard errors.
Losses = tuple[FloatArray, FloatArray, FloatArray]
# How many strengths to try, or the strengths, rising.
Grid = int | FloatArray


def falling_strengths(grid: Grid, curvature: FloatArray) -> FloatArray:
    """Strengths that fall from ∞, for the ratio of one.

    As given, or multiples of how much the rows themselves curve the loss, for the
    median bump.
    """
    if isinstance(grid, int):
        unit = max(float(np.median(curvature)), 0.0) or 1.0
        grid = np.geomspace(1e-6, 10.0, grid) * unit
    return np.append(np.inf, grid[::-1])


class KernelMethod(ABC):
    """A loss, how it is minimised, and how it is estimated on rows left out."""

    @abstractmethod
    def losses(self, bumps: Two[BumpRows], grid: Grid) -> Losses:
        """Losses on rows left out, for strengths of the penalty that fall."""

    @abstractmethod
    def fit(self, bumps: Two[BumpRows], l2: float) -> Coefficients:
        """Minimise over all rows, under a finite strength."""

    @abstractmethod
    def terms(self, ratio: Two[FloatArray]) -> Two[FloatArray]:
        """The loss's terms at the numerator's and the denominator's rows.

        They are 0 for a ratio of one, and the loss is the sum of their weighted means.
        """

    def _compared(
        self, l2: FloatArray, ratio: Two[FloatArray], bumps: Two[BumpRows]
    ) -> Losses:
        """Losses of ratios in columns at rows left out, with the ratio of one first."""
        losses, squares = np.zeros((2, ratio.numerator.shape[1]))
        for terms, rows in zip(self.terms(ratio), bumps, strict=True):
            above = terms - terms[:, :1]
            mean = rows.weights @ above
            losses += mean
            squares += rows.weights**2 @ (above - mean) ** 2
        return l2, losses, np.sqrt(squares)


@dataclass
class LeastSquares(KernelMethod):
    """Minimise ½Ê_m[r²] − Ê₁[r] + ½ + ½ l2 Σ θ²: uLSIF, and RuLSIF for mixture > 0.

    Ê_m is m Ê₁ + (1 − m) Ê₀ with m the mixture, and the minimum lies at the relative
    ratio p1/(m p1 + (1 − m) p0). This is a weighted regression of the target 1/m on the
    numerator's rows and 0 on the denominator's, so that leaving out one row is a
    division by one minus its leverage. Where a bump has fewer than five denominator
    rows around it, Ê_m[k²] is taken as if it had five.
    """

    mixture: float = 0.0

    def losses(self, bumps: Two[BumpRows], grid: Grid) -> Losses:
        """Exact leave-one-out losses: a row left out takes its weight with it."""
        mean, covariance, difference = self._moments(bumps)
        l2 = falling_strengths(grid, np.diagonal(covariance))
        values, vectors = np.linalg.eigh(covariance)
        inverse = 1.0 / (np.maximum(values, 0.0)[:, None] + l2)
        scores = (vectors.T @ difference)[:, None] * inverse
        middle = mean @ vectors
        left_out = []
        for rows, mass in zip(bumps, (self.mixture, 1.0 - self.mixture), strict=True):
            rotated = rows.bumps @ vectors
            rotated -= middle
            ratio = 1.0 + rotated @ scores
            np.square(rotated, out=rotated)
            leverage = 1.0 + rotated @ inverse
            leverage *= rows.weights[:, None]
            if rows is bumps.numerator:
                ratio -= leverage
            ratio /= 1.0 - np.minimum(mass * leverage, 1.0 - 1e-9)
            left_out.append(np.maximum(ratio, 0.0, out=ratio))
        return self._compared(l2, Two(*left_out), bumps)

    def fit(self, bumps: Two[BumpRows], l2: float) -> Coefficients:
        """In closed form."""
        mean, covariance, difference = self._moments(bumps)
        curved = covariance + l2 * np.eye(len(mean))
        theta = np.asarray(np.linalg.solve(curved, difference), np.float64)
        return Coefficients(1.0 - float(mean @ theta), theta)

    def terms(self, ratio: Two[FloatArray]) -> Two[FloatArray]:
        """The terms of ½Ê_m[r²] − Ê₁[r] + ½."""
        numerator = 1.0 - ratio.numerator
        if self.mixture:
            numerator = numerator + 0.5 * self.mixture * (ratio.numerator**2 - 1.0)
        return Two(numerator, 0.5 * (1.0 - self.mixture) * (ratio.denominator**2 - 1.0))

    def _moments(
        self, bumps: Two[BumpRows]
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Ê_α[k], the covariance of k under Ê_α, and Ê₁[k] − Ê_α[k]."""
        numerator, denominator = bumps
        first = numerator.mean
        mean = self.mixture * first + (1.0 - self.mixture) * denominator.mean
        total = (1.0 - self.mixture) * denominator.gram()
        if self.mixture:
            total += self.mixture * numerator.gram()
        # A bump that no denominator row is near could have any height.
        least, place = least_mean(denominator.square), slice(None, None, len(total) + 1)
        total.flat[place] = np.maximum(total.flat[place], least)
        return mean, total - np.outer(mean, mean), first - mean


def least_mean(square: float) -> float:
    """What a bump's mean counts as at least, given Σ w² over the denominator's rows.

    As if it were around five rows: one or two say too little of how high it may be, and
    far from all of them it would have no finite height.
    """
    return min(5.0 * square, 1.0)


class LogLikelihood(KernelMethod):
    """Maximise Ê₁[log r] subject to Ê₀[r] = 1 and θ ≥ 0: KLIEP as it was published.

    With π_k = θ_k Ê₀[k_k] these are the proportions of a mixture, and its likelihood is
    concave. There is no penalty: l2 is zero, or infinite for the ratio of one. Where a
    bump has fewer than five denominator rows around it, Ê₀[k_k] is taken as if it had
    five: a numerator row far from the others can't make the ratio as large as it likes.
    """

    def losses(self, bumps: Two[BumpRows], grid: Grid) -> Losses:
        """Leave-one-out losses, one Newton step away from the fit to all rows.

        The bumps that have a height keep having one. A numerator row takes its weight
        with it; a denominator row moves Ê₀[k], and with it all heights.
        """
        l2, flat = np.array([np.inf, 0.0]), np.array([True, False])
        # Fits along the way are compared, not kept.
        solution, components, mean = self._solve(bumps, 1e-4)
        if solution.status != Status.CONVERGED:
            return l2, np.array([0.0, np.inf]), np.zeros(2)
        numerator, denominator = bumps
        tall = solution.point > 0.0
        heights = solution.point[tall]
        # 1. The curvature of −Ê₁[log r] in the heights, and a root of its inverse.
        parts = components.T[tall].T
        ratio1 = np.maximum(parts @ heights, base.TINY)
        parts /= ratio1[:, None]
        scaled = parts * np.sqrt(numerator.weights)[:, None]
        curved = scaled.T @ scaled
        curved.flat[:: len(curved) + 1] += 1e-10 * curved.trace() / len(curved)
        root = np.linalg.inv(np.linalg.cholesky(curved)).T
        # 2. A numerator row: log r falls by w(q − 1)/(1 − wq), and by no more than if
        #    half of its bump were its own; but at least as the bumps that only this row
        #    holds up do, each by the row's part in it.
        weights, leverage = numerator.weights, np.vecdot(along := parts @ root, along)
        left = np.maximum(1.0 - weights * leverage, 0.5)
        fall = np.exp(-weights * np.maximum(leverage - 1.0, 0.0) / left)
        np.square(parts, out=parts)
        held = (1.0 - weights * (parts @ heights)) / (1.0 - weights)
        ratio1 *= np.minimum(fall, np.maximum(held, base.TINY))
        # 3. A denominator row: Ê₀[k] moves by w(Ê₀[k] − k)/(1 − w).
        near = denominator.bumps.T[tall[:-1]] / mean[:-1][tall[:-1], None]
        if tall[-1]:
            near = np.concatenate([near, np.ones((1, near.shape[1]))])
        ratio0, moved = near.T @ heights, np.vecdot(along := near.T @ root, along)
        share = denominator.weights / (1.0 - denominator.weights)
        ratio0 = np.maximum(ratio0 + share * (moved - ratio0), 0.0)
        ratio = Two(ratio1, ratio0).map(lambda r: np.where(flat, 1.0, r[:, None]))
        return self._compared(l2, ratio, bumps)

    def fit(self, bumps: Two[BumpRows], l2: float) -> Coefficients:
        """Newton's steps on the simplex."""
        solution, _, mean = self._solve(bumps, 1e-8)
        theta, how = solution.point / mean, (solution.status, solution.n_iter)
        return Coefficients(float(theta[-1]), theta[:-1], *how)

    def _solve(
        self, bumps: Two[BumpRows], tol: float
    ) -> tuple[solver.SimplexSolution, FloatArray, FloatArray]:
        """The proportions, begun where some rows say.

        And bumps and the constant one, divided by their means over the denominator, at
        the numerator's rows, column by column in memory; and the means.
        """
        numerator, denominator = bumps
        least = least_mean(denominator.square)
        mean = np.append(np.maximum(denominator.mean, least), 1.0)
        components = np.ones((len(numerator.bumps), len(mean)), order="F")
        np.divide(numerator.bumps, mean[:-1], out=components[:, :-1])
        few = slice(None, None, 1 + len(components) // 800)
        share = numerator.weights[few] / numerator.weights[few].sum()
        some = np.asfortranarray(components[few])
        # Every row is to have some likelihood.
        start = 0.99 * solver.mixture_proportions(some, share, tol=1e-2).point
        start[-1] += 0.01
        weights = numerator.weights
        solution = solver.mixture_proportions(components, weights, start, tol)
        return solution, components, mean

    def terms(self, ratio: Two[FloatArray]) -> Two[FloatArray]:
        """The terms of Ê₀[r] − Ê₁[log r] − 1."""
        with np.errstate(divide="ignore"):
            return Two(-np.log(ratio.numerator), ratio.denominator - 1.0)


@dataclass
class MeanMatching(LeastSquares):
    """Minimise ½‖Ê₀[r k] − Ê₁[k]‖² + ½ l2 Σ θ²: kernel mean matching.

    The norm is that of the kernel's own space, on the span of the centres, and the
    ratio is held to Ê₀[r] = 1 and θ ≥ 0. Width and strength are those with the least
    squared error ½Ê₀[r²] − Ê₁[r] on folds held out, the ratio cut at max_ratio:
    distances under different kernels don't compare. `kernel` has the bumps at the
    centres, at the same width.
    """

    kernel: FloatArray = field(kw_only=True)
    max_ratio: float = np.inf

    def losses(self, bumps: Two[BumpRows], grid: Grid) -> Losses:
        """Losses on each fold, of fits to the others: sums less those of the fold."""
        means, gram = bumps.map(lambda rows: rows.mean), bumps.denominator.gram()
        l2 = falling_strengths(grid, (self._whiten(gram) ** 2).sum(axis=0))
        ratio = bumps.map(lambda rows: np.ones((len(rows.weights), len(l2))))
        folds, square = bumps.numerator.folds, bumps.denominator.square
        assert folds is not None
        for fold in range(1 + int(folds.max())):
            held = Two(*(rows.fold(fold) for rows in bumps))
            left1, left0 = (max(1.0 - h.weights.sum(), base.TINY) for h in held)
            problem = self._problem(
                (means.numerator - held.numerator.mean) / left1,
                (means.denominator - held.denominator.mean) / left0,
                (gram - held.denominator.gram()) / left0,
                (square - held.denominator.square) / left0**2,
            )
            for i, strength in enumerate(l2.tolist()[1:], 1):
                fitted = self._solve(*problem, strength)
                for values, rows, part in zip(ratio, bumps, held, strict=True):
                    value = np.minimum(fitted.ratio(part.bumps), self.max_ratio)
                    values[rows.folds == fold, i] = value
        return self._compared(l2, ratio, bumps)

    def fit(self, bumps: Two[BumpRows], l2: float) -> Coefficients:
        """By least squares without negative coefficients."""
        rows1, rows0 = bumps
        problem = self._problem(rows1.mean, rows0.mean, rows0.gram(), rows0.square)
        return self._solve(*problem, l2)

    def _problem(
        self, mean1: FloatArray, mean0: FloatArray, gram: FloatArray, square: float
    ) -> tuple[FloatArray, FloatArray]:
        """A quadratic form, and Ê₀[k] with the constant bump last.

        From Ê₁[k], Ê₀[k], Ê₀[k kᵀ] and Σ w² over the denominator. Since Ê₀[r] is one,
        Ê₁[k] is Ê₀[r] Ê₁[k], and what is minimised has no linear part. Without a least
        Ê₀[k] a bump that no denominator row is near could have any height.
        """
        mean = np.append(np.maximum(mean0, least_mean(square)), 1.0)
        product = np.column_stack([gram, mean0])
        apart = self._whiten(product - np.outer(mean1, mean))
        return apart.T @ apart, mean

    def _solve(self, form: FloatArray, mean: FloatArray, l2: float) -> Coefficients:
        form = form.copy()
        form.flat[: -1 : len(mean) + 1] += l2
        solution = solver.least_on_simplex(form, mean)
        theta, how = solution.point, (solution.status, solution.n_iter)
        return Coefficients(float(theta[-1]), theta[:-1], *how)

    @cached_property
    def _factor(self) -> FloatArray:
        """A lower triangular root of the kernel's matrix."""
        ridge = 1e-8 * np.trace(self.kernel) / len(self.kernel)
        return np.linalg.cholesky(self.kernel + ridge * np.eye(len(self.kernel)))

    def _whiten(self, vectors: FloatArray) -> FloatArray:
        """On the span of the centres the squared norm of a function is vᵀK⁻¹v."""
        return np.asarray(solve_triangular(self._factor, vectors, lower=True))


KernelName = Literal["ulsif", "rulsif", "kliep", "kmm"]
# How many strengths and widths are tried, and how far beyond the widest distance. Bumps
# whose heights may be negative can be wide: the wider, the closer to a plane, which is
# what many columns need. Bumps that only add up can't.
TRIED = {"ulsif": (9, 10, 4.0), "kliep": (1, 6, 1.0), "kmm": (2, 6, 1.0)}
TRIED["rulsif"] = TRIED["ulsif"]


FINITE = "heights_ intercept_ centers_ sigma_ largest_ _origin _unit"


@storable(finite=FINITE.split())
@dataclass(eq=False, repr=False)
class KernelRatio(CallbackSupportMixin, CompleteRowsRatio):
    """Density ratio r̂ = θ₀ + Σ_k θ_k exp(−‖z − c_k‖²/(2σ²)), by one of four methods.

    Every Ê is a mean over complete rows weighted by 1/P(complete). What is minimised:

    - "ulsif": ½Ê₀[r²] − Ê₁[r] + ½ l2 Σθ² (least squares; Kanamori et al. 2009);
    - "rulsif": the same with Ê₀ replaced by m Ê₁ + (1 − m) Ê₀, m being `mixture`, which
      gives the relative ratio p1/(m p1 + (1 − m) p0), bounded by 1/m (Yamada et al.
      2013);
    - "kliep": −Ê₁[log r], with Ê₀[r] = 1 and θ ≥ 0 (Sugiyama et al. 2008);
    - "kmm": ½‖Ê₀[r k] − Ê₁[k]‖² + ½ l2 Σθ² in the kernel's space, with Ê₀[r] = 1 and
      θ ≥ 0, cut at max_ratio (kernel mean matching; Huang et al. 2006).

    The width σ and the strength l2 are those with the smallest loss on rows left out,
    plus its standard error: exactly one by one for least squares, one by one up to a
    Newton step for KLIEP, in folds for mean matching, which is judged by the squared
    error. Only candidates count
    that beat a ratio of one by more than chance, and where there are none the ratio is
    one, so that equal samples give a flat ratio. A sum of bumps may fall below zero, or
    grow beyond the rows seen: it is cut off at zero, and at the largest ratio at a row
    that it was fitted to.

    Parameters
    ----------
    method : {"ulsif", "rulsif", "kliep", "kmm"}, default="ulsif"
        What is minimised.
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
    mixture : float, default=0.1
        RuLSIF's mixing weight, in [0, 1); 0 is uLSIF.
    max_ratio : float, default=1000.0
        For mean matching: what the ratio is cut at, more than 1.
    scale : bool, default=True
        Whether to divide columns by their standard deviation within the samples.
    cv : int, splitter or list of pairs, default=5
        The folds for mean matching, as for `KLIEPCV`; of complete rows, each of which
        is held out once. The other methods leave out single rows.
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

    method: KernelName = "ulsif"
    missingness: MissingnessParameter = None
    centers: Any = 100
    sigma_grid: Any = None
    l2_grid: Any = None
    mixture: float = 0.1
    max_ratio: float = 1000.0
    scale: bool = True
    cv: Any = 5
    flat_within: float = 2.0
    random_state: Any = None

    def _learn_tables(self, tables: Two[WeightedTable], rows: Two[ClassRows]) -> None:
        check_choice("method", self.method, get_args(KernelName))
        limits = {"min_val": 0.0, "max_val": 1.0, "include_boundaries": "left"}
        check_real(self.mixture, "mixture", **limits)
        limits = {"min_val": 1.0, "include_boundaries": "neither"}
        check_real(self.max_ratio, "max_ratio", **limits)
        check_real(self.flat_within, "flat_within", min_val=0.0)
        rng = generator(self.random_state)
        bumps = Bumps.around(tables, self.centers, self.scale, rng)
        n_strengths, n_widths, wider = TRIED[self.method]
        given = n_widths if self.sigma_grid is None else self.sigma_grid
        widths = base.read_grid("sigma_grid", given, positive=True)
        if isinstance(widths, int):
            widths = bumps.widths(tables, widths, wider, rng)
        given = n_strengths if self.l2_grid is None else self.l2_grid
        strengths = base.read_grid("l2_grid", given, positive=True)
        squares = tables.map(lambda table: bumps.squares(table.rows))
        between = bumps.squares(bumps.centers * bumps.unit + bumps.origin)
        folds = tables.map(lambda table: np.full(len(table), -1))
        if self.method == "kmm":
            # Others leave out single rows.
            for number, (_, held) in enumerate(base.deal_folds(rows, self.cv, rng)):
                for numbers, chosen in zip(folds, held, strict=True):
                    numbers[chosen] = number

        def prepared(sigma: float) -> tuple[KernelMethod, Two[BumpRows]]:
            """What is minimised at one width, and the bumps of both samples."""
            parts = zip(squares, tables, folds, strict=True)
            both = [BumpRows(gaussian(s, sigma), t.weights, f) for s, t, f in parts]
            return self._method(gaussian(between, sigma)), Two(*both)

        def candidates_at(sigma: float) -> FloatArray:
            method, both = prepared(sigma)
            l2, losses, errors = method.losses(both, strengths)
            return np.array([np.full(len(l2), sigma), l2, losses, errors])

        falling = widths[::-1].tolist()
        at_widths = run_tasks(self, "width", falling, candidates_at)
        sigmas, l2, losses, errors = np.concatenate(list(at_widths), axis=1)
        # The smallest loss among candidates that beat a ratio of one beyond chance. Its
        # standard error is added to each: of losses that are about the same, the one is
        # taken that rests on more rows. The smallest of all may say nothing: between
        # distant samples a narrow, hardly penalised ratio is huge at one row left out,
        # and so is its loss's standard error, while others beat one by ten of their
        # errors. Between equal laws none is two errors below one in 95% of samples or
        # more, of all methods. The first is the ratio of one.
        beyond = losses < np.minimum(-float(self.flat_within) * errors, 0.0)
        below, best = losses < 0.0, 0
        if beyond.any():
            best = int(np.where(beyond, losses + errors, np.inf).argmin())
        elif below.any():
            most = (-losses[below] / errors[below]).max()
            message = Message(
                "The ratio is one everywhere: losses lie at most {errors:.2g} of their "
                "standard errors below that of one, and flat_within asks for "
                "{asked:g}. The samples may come from one law, or be too small to "
                "tell.",
                remedies=(
                    "set flat_within=0 to take the smallest loss",
                    "bring more rows",
                ),
                facts={"errors": most, "asked": float(self.flat_within)},
            )
            warn(FlatRatioWarning(message))
        self.sigma_, self.l2_ = float(sigmas[best]), float(l2[best])
        method, both = prepared(self.sigma_)
        fitted = Coefficients(1.0, np.zeros(len(bumps.centers)))
        if np.isfinite(self.l2_):
            fitted = method.fit(both, self.l2_)
        status, n_iter = np.array([fitted.status]), np.array([fitted.n_iter])
        base.report_status(type(self).__name__, status, np.full(1, np.nan), n_iter)
        self._origin, self._unit = bumps.origin, bumps.unit
        self.centers_ = bumps.centers * bumps.unit + bumps.origin
        self.heights_, self.intercept_ = fitted.theta, fitted.intercept
        self.converged_ = fitted.status == Status.CONVERGED
        self.n_iter_ = fitted.n_iter
        self.largest_ = max(float(fitted.ratio(rows.bumps).max()) for rows in both)
        if self.method == "kmm":
            self.largest_ = min(self.largest_, float(self.max_ratio))
        self.cv_results_ = {
            "param_sigma": sigmas,
            "param_l2": l2,
            "mean_test_score": -losses,
            "standard_error": errors,
        }

    def _method(self, kernel: FloatArray) -> KernelMethod:
        if self.method == "kliep":
            return LogLikelihood()
        if self.method == "kmm":
            return MeanMatching(kernel=kernel, max_ratio=float(self.max_ratio))
        return LeastSquares(float(self.mixture) if self.method == "rulsif" else 0.0)

    def _ratio(self, rows: FloatArray) -> FloatArray:
        centers = (self.centers_ - self._origin) / self._unit
        bumps = Bumps(self._origin, self._unit, centers)
        fitted = Coefficients(self.intercept_, self.heights_)
        ratio = np.empty(len(rows))
        for block in row_blocks((len(rows), len(centers))):
            near = gaussian(bumps.squares(rows[block]), self.sigma_)
            ratio[block] = fitted.ratio(near)
        return np.minimum(ratio, self.largest_)

    def _complete_log_ratio(self, rows: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore"):
            return np.log(self._ratio(rows))

    def _score_rows(self, two: Two[ClassRows]) -> float:
        tables = two.map(lambda rows: WeightedTable.of(rows.complete()))
        ratio = tables.map(lambda table: self._ratio(table.rows))
        terms = zip(tables, self._method(np.empty(0)).terms(ratio), strict=True)
        return -float(sum(table.weights @ term for table, term in terms))
