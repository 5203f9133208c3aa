"""What each kernel method minimises, for one width of the bumps.

Every model is r(z) = θ₀ + Σ_k θ_k exp(−‖z − c_k‖²/(2σ²)), and every expectation a
weighted mean over complete rows. A method is given the bumps of both samples at one
width, and returns a candidate for each strength of its penalty, with a loss estimated
on rows that were left out.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from missratio._base.typing import FloatArray
from missratio.solver import Status


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
    def losses(self, own: BumpRows, other: BumpRows, l2: FloatArray) -> Strengths:
        """Losses on rows left out, of the numerator's and the denominator's bumps."""

    @abstractmethod
    def fit(
        self, own: BumpRows, other: BumpRows, l2: float, near: FloatArray | None = None
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

    def unit(self, own: BumpRows, other: BumpRows) -> float:
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

    def losses(self, own: BumpRows, other: BumpRows, l2: FloatArray) -> Strengths:
        """Exact leave-one-out losses: a row left out takes its weight with it."""
        moments = _Centred.of(own, other, self.alpha)
        values, vectors = np.linalg.eigh(moments.covariance)
        inverse = 1.0 / (np.maximum(values, 0.0)[:, None] + l2)
        scores = (vectors.T @ moments.difference)[:, None] * inverse
        middle = moments.mean @ vectors
        left_out = []
        for rows, mass in ((own, self.alpha), (other, 1.0 - self.alpha)):
            rotated = rows.bumps @ vectors
            rotated -= middle
            ratio = 1.0 + rotated @ scores
            np.square(rotated, out=rotated)
            leverage = 1.0 + rotated @ inverse
            leverage *= rows.weights[:, None]
            if rows is own:
                ratio -= leverage
            ratio /= 1.0 - np.minimum(mass * leverage, 1.0 - 1e-9)
            left_out.append(np.maximum(ratio, 0.0, out=ratio))
        return self._compared(l2, left_out[0], own.weights, left_out[1], other.weights)

    def fit(
        self, own: BumpRows, other: BumpRows, l2: float, near: FloatArray | None = None
    ) -> Coefficients:
        """In closed form."""
        del near
        if np.isinf(l2):
            return Coefficients.flat(own.bumps.shape[1])
        moments = _Centred.of(own, other, self.alpha)
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

    def unit(self, own: BumpRows, other: BumpRows) -> float:
        """How much the rows themselves curve the loss, for the median bump."""
        variance = (1.0 - self.alpha) * other.variance
        if self.alpha:
            share = self.alpha * (1.0 - self.alpha)
            variance += self.alpha * own.variance + share * (own.mean - other.mean) ** 2
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
    def of(cls, own: BumpRows, other: BumpRows, alpha: float) -> _Centred:
        first = own.mean
        mean = alpha * first + (1.0 - alpha) * other.mean
        total = (1.0 - alpha) * other.gram()
        if alpha:
            total += alpha * own.gram()
        return cls(mean, total - np.outer(mean, mean), first - mean)
