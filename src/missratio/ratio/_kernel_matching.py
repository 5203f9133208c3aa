"""Kernel mean matching: a quadratic programme, and its cross-validation by sums."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import solve_triangular

from missratio._base.typing import FloatArray
from missratio.ratio._kernel_methods import (
    BumpRows,
    Coefficients,
    KernelMethod,
    LeastSquares,
    Strengths,
)
from missratio.solver import Status, least_on_simplex, quadratic_program

TINY = float(np.finfo(np.float64).tiny)


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

    def losses(self, own: BumpRows, other: BumpRows, l2: FloatArray) -> Strengths:
        """Losses on each fold, of fits to the others."""
        sides = (own, other)
        sums = own.means_by_fold(), other.means_by_fold()
        grams = [part.gram() for part in other.parts()]
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
        return self._compared(l2, ratios[0], own.weights, ratios[1], other.weights)

    def fit(
        self, own: BumpRows, other: BumpRows, l2: float, near: FloatArray | None = None
    ) -> Coefficients:
        """Fit by a quadratic programme."""
        del near
        sums = [np.append(rows.mean, rows.weights.sum()) for rows in (own, other)]
        return self._solve(*self._problem(sums[0], sums[1], other.gram()), l2)

    def terms(
        self, ratio1: FloatArray, ratio0: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """The terms of ½Ê₀[r²] − Ê₁[r] + ½."""
        return LeastSquares().terms(ratio1, ratio0)

    def unit(self, own: BumpRows, other: BumpRows) -> float:
        """How much the rows themselves curve the distance, for the median bump."""
        curved = (self._whiten(other.gram()) ** 2).sum(axis=0)
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
        self, own: FloatArray, other: FloatArray, gram: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """A quadratic form, and Ê₀[k], the constant bump last.

        From Σ w k with Σ w last, of both samples, and the denominator's Σ w k kᵀ. Since
        Ê₀[r] is one, Ê₁[k] is Ê₀[r] Ê₁[k], and what is minimised has no linear part.
        """
        mean = other / max(other[-1], TINY)
        target = own[:-1] / max(own[-1], TINY)
        product = np.column_stack([gram / max(other[-1], TINY), mean[:-1]])
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
