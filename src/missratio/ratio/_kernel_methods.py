"""What each kernel method minimises, for one width of the bumps.

Every model is r(z) = θ₀ + Σ_k θ_k exp(−‖z − c_k‖²/(2σ²)), and every expectation a
weighted mean over complete rows. A method is given the bumps of both samples at one
width, and returns a candidate for each strength of its penalty, with a loss estimated
on rows that were left out.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.solver import Status, mixture_proportions, quadratic_program

# Fits along the way are compared, not kept.
PATH_TOL = 1e-4
FIT_TOL = 1e-8
PILOT_TOL = 1e-3
PILOT_ROWS = 800
LEAST_LEFT = 0.5


@dataclass(frozen=True, slots=True)
class BumpRows:
    """One sample's bumps at one width, and the rows' weights.

    Parameters
    ----------
    bumps : ndarray of shape (n_rows, n_centers)
    weights : ndarray of shape (n_rows,)
        With sum one.
    folds : ndarray of int of shape (n_rows,)
    """

    bumps: FloatArray
    weights: FloatArray
    folds: IntArray

    @property
    def mean(self) -> FloatArray:
        """Their weighted mean."""
        return self.weights @ self.bumps

    def gram(self, weights: FloatArray | None = None) -> FloatArray:
        """Σ w k kᵀ."""
        scaled = (
            self.bumps * np.sqrt(self.weights if weights is None else weights)[:, None]
        )
        return scaled.T @ scaled

    def split(self, fold: int) -> tuple[BumpRows, BumpRows]:
        """The rows of all folds but one, and those of that one."""
        held = self.folds == fold
        return self._take(~held), self._take(held)

    def _take(self, chosen: FloatArray) -> BumpRows:
        weights = self.weights[chosen]
        total = weights.sum()
        return BumpRows(
            self.bumps[chosen],
            weights / total if total > 0.0 else weights,
            self.folds[chosen],
        )


@dataclass(frozen=True, slots=True)
class Coefficients:
    """θ₀ and θ, and whether they were found."""

    intercept: float
    theta: FloatArray
    status: Status = Status.CONVERGED
    n_iter: int = 1

    def ratio(self, bumps: FloatArray) -> FloatArray:
        """The ratio at rows, never below zero."""
        return np.maximum(self.intercept + bumps @ self.theta, 0.0)


@dataclass(frozen=True, slots=True)
class Strengths:
    """Penalties' strengths and the losses found for them.

    Parameters
    ----------
    l2 : ndarray of shape (n_strengths,)
        From strong to weak.
    losses : ndarray of shape (n_strengths,)
    """

    l2: FloatArray
    losses: FloatArray


class KernelMethod(ABC):
    """A loss, how it is minimised, and how it is estimated on rows left out."""

    @abstractmethod
    def losses(self, own: BumpRows, other: BumpRows, l2: FloatArray) -> Strengths:
        """Losses on rows left out, of the numerator's and the denominator's bumps."""

    @abstractmethod
    def fit(self, own: BumpRows, other: BumpRows, l2: float) -> Coefficients:
        """Minimise over all rows."""

    @abstractmethod
    def loss(
        self, ratio1: FloatArray, w1: FloatArray, ratio0: FloatArray, w0: FloatArray
    ) -> float:
        """The loss of a ratio at weighted rows; 0 for a ratio of one."""

    def unit(self, own: BumpRows, other: BumpRows) -> float:
        """What strengths of the penalty are multiples of."""
        return 1.0


@dataclass(frozen=True)
class LeastSquares(KernelMethod):
    """Minimise ½Ê_α[r²] − Ê₁[r] + ½ − ½ l2 Σ θ²: uLSIF, and RuLSIF for alpha > 0.

    Ê_α is alpha Ê₁ + (1 − alpha) Ê₀, and the minimum lies at the relative ratio
    p1/(alpha p1 + (1 − alpha) p0). This is a weighted regression of the target
    1/alpha on the numerator's rows and 0 on the denominator's, so that leaving out one
    row is a division by one minus its leverage.
    """

    alpha: float = 0.0

    def losses(self, own: BumpRows, other: BumpRows, l2: FloatArray) -> Strengths:
        """Exact leave-one-out losses: a row left out takes its weight with it."""
        moments = _Centred.of(own, other, self.alpha)
        values, vectors = np.linalg.eigh(moments.covariance)
        inverse = 1.0 / (np.maximum(values, 0.0)[:, None] + l2)
        scores = (vectors.T @ moments.difference)[:, None] * inverse
        left_out = []
        for rows, mass in ((own, self.alpha), (other, 1.0 - self.alpha)):
            rotated = (rows.bumps - moments.mean) @ vectors
            ratio = 1.0 + rotated @ scores
            np.square(rotated, out=rotated)
            leverage = 1.0 + rotated @ inverse
            if rows is own:
                ratio -= rows.weights[:, None] * leverage
            share = np.minimum(mass * rows.weights[:, None] * leverage, 1.0 - 1e-9)
            left_out.append(np.maximum(ratio / (1.0 - share), 0.0))
        found = [
            self.loss(left_out[0][:, i], own.weights, left_out[1][:, i], other.weights)
            for i in range(len(l2))
        ]
        return Strengths(l2, np.array(found))

    def fit(self, own: BumpRows, other: BumpRows, l2: float) -> Coefficients:
        """In closed form."""
        moments = _Centred.of(own, other, self.alpha)
        if np.isinf(l2):
            return Coefficients(1.0, np.zeros(len(moments.mean)))
        curved = moments.covariance + l2 * np.eye(len(moments.mean))
        theta = np.asarray(np.linalg.solve(curved, moments.difference), np.float64)
        return Coefficients(1.0 - float(moments.mean @ theta), theta)

    def loss(
        self, ratio1: FloatArray, w1: FloatArray, ratio0: FloatArray, w0: FloatArray
    ) -> float:
        """½Ê_α[r²] − Ê₁[r] + ½."""
        squares = self.alpha * (w1 @ ratio1**2) + (1.0 - self.alpha) * (w0 @ ratio0**2)
        return float(0.5 * squares - w1 @ ratio1 + 0.5)

    def unit(self, own: BumpRows, other: BumpRows) -> float:
        """How much the rows themselves curve the loss, for the median bump."""
        moments = _Centred.of(own, other, self.alpha)
        return float(np.median(np.diagonal(moments.covariance))) or 1.0


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
    def of(cls, own: BumpRows, other: BumpRows, alpha: float) -> _Centred:
        first = own.mean
        mean = alpha * first + (1.0 - alpha) * other.mean
        total = (1.0 - alpha) * other.gram()
        if alpha:
            total += alpha * own.gram()
        return cls(mean, total - np.outer(mean, mean), first - mean)


class _Folded(KernelMethod):
    """A method whose losses come from folds held out."""

    def losses(self, own: BumpRows, other: BumpRows, l2: FloatArray) -> Strengths:
        """Losses on each fold of fits to the others, averaged."""
        n_folds = 1 + int(own.folds.max())
        total = np.zeros(len(l2))
        for fold in range(n_folds):
            (own_fit, own_held), (other_fit, other_held) = (
                own.split(fold),
                other.split(fold),
            )
            path = self.path(own_fit, other_fit, l2)
            for i, found in enumerate(path):
                ratios = found.ratio(own_held.bumps), found.ratio(other_held.bumps)
                total[i] += self.loss(
                    ratios[0], own_held.weights, ratios[1], other_held.weights
                )
        return Strengths(l2, total / n_folds)

    @abstractmethod
    def path(
        self, own: BumpRows, other: BumpRows, l2: FloatArray
    ) -> Iterator[Coefficients]:
        """Fits for all strengths."""


@dataclass(frozen=True)
class LogLikelihood(KernelMethod):
    """Maximise Ê₁[log r] subject to Ê₀[r] = 1 and θ ≥ 0: KLIEP as it was published.

    With π_k = θ_k Ê₀[k_k] these are the proportions of a mixture, and its likelihood is
    concave. There is no penalty: l2 is zero, or infinite for the ratio of one.
    """

    def losses(self, own: BumpRows, other: BumpRows, l2: FloatArray) -> Strengths:
        """Leave-one-out losses, one Newton step away from the fit to all rows.

        The bumps that have a height keep having one. A numerator row takes its weight
        with it; a denominator row moves Ê₀[k], and with it all heights.
        """
        found = self._solve(own, other, PATH_TOL)
        loss = np.inf
        if found.status == Status.CONVERGED:
            loss = self._left_out_loss(own, other, found)
        return Strengths(l2, np.where(np.isinf(l2), 0.0, loss))

    def _left_out_loss(
        self, own: BumpRows, other: BumpRows, found: Coefficients
    ) -> float:
        heights = np.append(found.theta, found.intercept)
        tall = heights > 0.0
        ratio1 = np.maximum(found.ratio(own.bumps), np.finfo(np.float64).tiny)
        # 1. The curvature of −Ê₁[log r] in the heights, and its inverse.
        bumps = _with_constant(own.bumps, tall) / ratio1[:, None]
        scaled = bumps * np.sqrt(own.weights)[:, None]
        curved = scaled.T @ scaled
        curved.flat[:: len(curved) + 1] += 1e-10 * curved.trace() / len(curved)
        inverse = np.linalg.inv(curved)
        # 2. A numerator row: log r falls by w(q − 1)/(1 − wq), and by no more than if
        #    half of its bump were its own.
        weights, leverage = own.weights, ((bumps @ inverse) * bumps).sum(axis=1)
        left = np.maximum(1.0 - weights * leverage, LEAST_LEFT)
        factor = np.exp(-weights * np.maximum(leverage - 1.0, 0.0) / left)
        # 3. A denominator row: Ê₀[k] moves by w(Ê₀[k] − k)/(1 − w).
        near = _with_constant(other.bumps, tall)
        own_part = ((near @ inverse) * near).sum(axis=1)
        ratio0, share = found.ratio(other.bumps), other.weights / (1.0 - other.weights)
        ratio0 = np.maximum(ratio0 + share * (own_part - ratio0), 0.0)
        return self.loss(ratio1 * factor, own.weights, ratio0, other.weights)

    def fit(self, own: BumpRows, other: BumpRows, l2: float) -> Coefficients:
        """By Newton's steps on the simplex."""
        if np.isinf(l2):
            return Coefficients(1.0, np.zeros(own.bumps.shape[1]))
        return self._solve(own, other, FIT_TOL)

    def _solve(self, own: BumpRows, other: BumpRows, tol: float) -> Coefficients:
        mean = np.append(other.mean, 1.0)
        # A centre that no denominator row is near has no finite height.
        near = mean > np.finfo(np.float64).tiny
        likelihood = _with_constant(own.bumps, near) / mean[near]
        # Some rows say where to begin, at a fraction of the cost.
        few = slice(None, None, 1 + len(likelihood) // PILOT_ROWS)
        weights = own.weights[few] / own.weights[few].sum()
        pilot = mixture_proportions(likelihood[few], weights, tol=PILOT_TOL)
        start = 0.99 * pilot.proportions
        start[-1] += 0.01
        found = mixture_proportions(likelihood, own.weights, start=start, tol=tol)
        theta = np.zeros(len(mean))
        theta[near] = found.proportions / mean[near]
        return Coefficients(float(theta[-1]), theta[:-1], found.status, found.n_iter)

    def loss(
        self, ratio1: FloatArray, w1: FloatArray, ratio0: FloatArray, w0: FloatArray
    ) -> float:
        """Ê₀[r] − Ê₁[log r] − 1."""
        with np.errstate(divide="ignore"):
            return float(w0 @ ratio0 - w1 @ np.log(ratio1) - 1.0)


def _with_constant(bumps: FloatArray, chosen: BoolArray) -> FloatArray:
    """Some bumps, and the constant one after them if it is chosen."""
    some: FloatArray = bumps[:, chosen[:-1]]
    if chosen[-1]:
        some = np.column_stack([some, np.ones(len(some))])
    return some


@dataclass(frozen=True)
class MeanMatching(_Folded):
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

    def path(
        self, own: BumpRows, other: BumpRows, l2: FloatArray
    ) -> Iterator[Coefficients]:
        """One quadratic programme for each strength."""
        problem = self._problem(own, other)
        for strength in l2:
            yield self._solve(*problem, strength)

    def fit(self, own: BumpRows, other: BumpRows, l2: float) -> Coefficients:
        """By a quadratic programme."""
        return self._solve(*self._problem(own, other), l2)

    def _problem(
        self, own: BumpRows, other: BumpRows
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The quadratic form, the linear one, and Ê₀[k], the constant bump last."""
        mean = other.mean
        target, product = own.mean, np.column_stack([other.gram(), mean])
        # On the span of the centres the squared norm of a function is vᵀK⁻¹v.
        ridge = 1e-8 * np.trace(self.kernel) / len(self.kernel)
        kernel = self.kernel + ridge * np.eye(len(self.kernel))
        whitened = np.linalg.solve(np.linalg.cholesky(kernel), np.eye(len(kernel)))
        left, right = whitened @ product, whitened @ target
        return left.T @ left, left.T @ right, np.append(mean, 1.0)

    def _solve(
        self, form: FloatArray, linear: FloatArray, mean: FloatArray, l2: float
    ) -> Coefficients:
        if np.isinf(l2):
            return Coefficients(1.0, np.zeros(len(mean) - 1))
        ridge = np.full(len(mean), l2)
        ridge[-1] = 0.0
        bounded = None
        if np.isfinite(self.max_ratio):
            heights = np.column_stack([self.kernel, np.ones(len(self.kernel))])
            bounded = heights, np.full(len(heights), self.max_ratio)
        form = form + np.diag(ridge)
        found = quadratic_program(form, linear, equal=(mean, 1.0))
        if bounded is not None and (bounded[0] @ found.x > bounded[1]).any():
            found = quadratic_program(form, linear, (mean, 1.0), at_most=bounded)
        theta = np.maximum(found.x, 0.0)
        theta /= mean @ theta
        return Coefficients(float(theta[-1]), theta[:-1], found.status, found.n_iter)

    def loss(
        self, ratio1: FloatArray, w1: FloatArray, ratio0: FloatArray, w0: FloatArray
    ) -> float:
        """½Ê₀[r²] − Ê₁[r] + ½."""
        return LeastSquares().loss(ratio1, w1, ratio0, w0)

    def unit(self, own: BumpRows, other: BumpRows) -> float:
        """How much the rows themselves curve the distance, for the median bump."""
        form = self._problem(own, other)[0]
        return float(np.median(np.diagonal(form)[:-1])) or 1.0
