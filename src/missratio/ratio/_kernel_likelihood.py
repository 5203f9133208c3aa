"""KLIEP as it was published: a sum of bumps with heights that are not negative."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from missratio._base.typing import BoolArray, FloatArray
from missratio.ratio._kernel_methods import (
    BumpRows,
    Coefficients,
    KernelMethod,
    Strengths,
)
from missratio.solver import MixtureSolution, Status, mixture_proportions

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

    def losses(self, own: BumpRows, other: BumpRows, l2: FloatArray) -> Strengths:
        """Leave-one-out losses, one Newton step away from the fit to all rows.

        The bumps that have a height keep having one. A numerator row takes its weight
        with it; a denominator row moves Ê₀[k], and with it all heights.
        """
        mixture = _Mixture.of(own, other)
        found = mixture.solve(own.weights, PATH_TOL)
        if found.status != Status.CONVERGED:
            lost = np.where(np.isinf(l2), 0.0, np.inf)
            return Strengths(l2, lost, np.zeros(len(l2)))
        ratio1, ratio0 = mixture.left_out(own, other, found.proportions)
        flat = np.isinf(l2)
        compared = self._compared(
            l2,
            np.where(flat, 1.0, ratio1[:, None]),
            own.weights,
            np.where(flat, 1.0, ratio0[:, None]),
            other.weights,
        )
        return replace(compared, near=found.proportions)

    def fit(
        self, own: BumpRows, other: BumpRows, l2: float, near: FloatArray | None = None
    ) -> Coefficients:
        """Fit by Newton's steps on the simplex."""
        if np.isinf(l2):
            return Coefficients.flat(own.bumps.shape[1])
        mixture = _Mixture.of(own, other)
        found = mixture.solve(own.weights, FIT_TOL, near)
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
    def of(cls, own: BumpRows, other: BumpRows) -> _Mixture:
        least = min(LEAST_NEAR * float(other.weights @ other.weights), 1.0)
        mean = np.append(np.maximum(other.mean, least), 1.0)
        components = np.empty((len(own.bumps), len(mean)), order="F")
        np.divide(own.bumps, mean[:-1], out=components[:, :-1])
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
        self, own: BumpRows, other: BumpRows, proportions: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """The ratio at each row, from the fit without it."""
        tall = proportions > 0.0
        heights = proportions[tall]
        # 1. The curvature of −Ê₁[log r] in the heights, and a root of its inverse.
        bumps = self.components.T[tall].T
        ratio1 = np.maximum(bumps @ heights, TINY)
        bumps /= ratio1[:, None]
        scaled = bumps * np.sqrt(own.weights)[:, None]
        curved = scaled.T @ scaled
        curved.flat[:: len(curved) + 1] += 1e-10 * curved.trace() / len(curved)
        root = np.linalg.inv(np.linalg.cholesky(curved)).T
        # 2. A numerator row: log r falls by w(q − 1)/(1 − wq), and by no more than if
        #    half of its bump were its own; but at least as the bumps that only this row
        #    holds up do, each by the row's part in it.
        weights, leverage = own.weights, _squared_length(bumps @ root)
        left = np.maximum(1.0 - weights * leverage, LEAST_LEFT)
        fall = np.exp(-weights * np.maximum(leverage - 1.0, 0.0) / left)
        np.square(bumps, out=bumps)
        held = (1.0 - weights * (bumps @ heights)) / (1.0 - weights)
        ratio1 *= np.minimum(fall, np.maximum(held, TINY))
        # 3. A denominator row: Ê₀[k] moves by w(Ê₀[k] − k)/(1 − w).
        near = self._at(other, tall)
        ratio0, own_part = near @ heights, _squared_length(near @ root)
        share = other.weights / (1.0 - other.weights)
        return ratio1, np.maximum(ratio0 + share * (own_part - ratio0), 0.0)

    def _at(self, rows: BumpRows, tall: BoolArray) -> FloatArray:
        """Some components at other rows."""
        bumps = rows.bumps.T[tall[:-1]] / self.mean[:-1][tall[:-1], None]
        if tall[-1]:
            bumps = np.concatenate([bumps, np.ones((1, len(rows.bumps)))])
        return bumps.T


def _squared_length(rows: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("ij,ij->i", rows, rows))
