"""Batches of logistic regressions, plain or with Firth's penalty."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from missratio._base.typing import BoolArray, FloatArray
from missratio.solver import Evaluation, Solution, newton

TOLERANCE = 1e-7
MAX_ITERATIONS = 100
LARGEST_SCORE = 700.0


@dataclass(frozen=True)
class LogisticBatch:
    """−Σ mass·(yη − log(1 + e^η)) − ½ log det I(θ), η = θᵀx, for a batch of problems.

    The second term, which is left out for maximum likelihood, is Firth's penalty:
    Jeffreys's prior takes the first-order bias away and keeps the optimum finite where
    outcomes are separated. I(θ) = Σ w xxᵀ, w = mass·p(1 − p), is Fisher's information.

    Parameters
    ----------
    design : ndarray of shape (n_problems, n_parameters, n_rows)
        The columns x; the first is constant.
    outcome : ndarray of shape (n_problems, n_rows)
        One for an event, else zero.
    mass : ndarray of shape (n_problems, n_rows)
        How often a row counts; zero for one that only fills up the batch.
    penalised : bool
    """

    design: FloatArray
    outcome: FloatArray
    mass: FloatArray
    penalised: bool

    def solve(self, start: FloatArray | None = None) -> Solution:
        """Fit every problem, from zero or from a start."""
        if start is None:
            events = (self.mass * self.outcome).sum(axis=1)
            start = np.zeros(self.design.shape[:2])
            start[:, 0] = np.log(events / (self.mass.sum(axis=1) - events))
        return newton(self, start, tol=TOLERANCE, max_iter=MAX_ITERATIONS)

    def solve_intercept(self, theta: FloatArray) -> FloatArray:
        """Theta with the first entry set anew, by maximum likelihood given the rest.

        The fitted probabilities then sum to the number of events, which they don't
        under Firth's penalty (Puhr and others 2017).
        """
        offset = _dot(self.design[:, 1:], theta[:, 1:])
        alone = replace(self, design=self.design[:, :1], penalised=False)
        problem = _WithOffset(alone, offset)
        solution = newton(problem, theta[:, :1], tol=TOLERANCE, max_iter=MAX_ITERATIONS)
        return np.concatenate([solution.theta, theta[:, 1:]], axis=1)

    def problems(self, which: BoolArray) -> LogisticBatch:
        """Some problems of the batch."""
        parts = (self.design[which], self.outcome[which], self.mass[which])
        return LogisticBatch(*parts, self.penalised)

    @cached_property
    def _sign(self) -> FloatArray:
        """−1 for an event, 1 for none."""
        return np.where(self.outcome > 0.0, -1.0, 1.0)

    def __call__(self, theta: FloatArray, *, second_order: bool) -> Evaluation:
        """Evaluate at theta (n_problems, n_parameters).

        A step may be tried to where the information is singular but for rounding. What
        is not finite there the solver refuses.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            return self.at_score(_dot(self.design, theta), second_order=second_order)

    def at_score(self, score: FloatArray, *, second_order: bool) -> Evaluation:
        """Evaluate where η is `score`, of shape (n_problems, n_rows)."""
        # The odds against what came out, from which nothing cancels.
        odds = np.exp(np.minimum(self._sign * score, LARGEST_SCORE))
        value = (self.mass * np.log1p(odds)).sum(axis=1)
        surprise = odds / (1.0 + odds)
        residual = self.mass * surprise * self._sign
        spread = surprise * (1.0 - surprise)
        weight = self.mass * spread
        if not self.penalised:
            separated = ((odds < 1.0) | (self.mass == 0.0)).all(axis=1)
            hessian = self._square(weight) if second_order else None
            return Evaluation(value, self._sum(residual), hessian, separated)
        # ∂/∂θ ½ log det I = ½ tr(I⁻¹∂I) = ½ Σ ∂w xᵀI⁻¹x, with ∂w = w(1 − 2p) x.
        information = self._square(weight)
        inverse, log_det = _inverse(information)
        leverage = np.einsum("gpk,gpk->gk", inverse @ self.design, self.design)
        bend = spread * (self.mass - 2.0 * np.abs(residual))
        bend *= self._sign
        gradient = self._sum(residual - 0.5 * bend * leverage)
        hessian = None
        if second_order:
            curved = self._square(weight * (1.0 - 6.0 * spread) * leverage)
            hessian = information - 0.5 * (curved - self._traces(bend, inverse))
        never = np.zeros(len(value), dtype=bool)
        return Evaluation(value - 0.5 * log_det, gradient, hessian, never)

    def _traces(self, bend: FloatArray, inverse: FloatArray) -> FloatArray:
        """tr(I⁻¹∂ᵣI I⁻¹∂ₛI), for every pair (r, s) of parameters."""
        slopes = [
            inverse @ self._square(bend * self.design[:, r])
            for r in range(self.design.shape[1])
        ]
        stacked = np.stack(slopes, axis=1)
        return np.asarray(np.einsum("grij,gsji->grs", stacked, stacked))

    def _sum(self, weights: FloatArray) -> FloatArray:
        return _dot(self.design.swapaxes(1, 2), weights)

    def _square(self, weights: FloatArray) -> FloatArray:
        weighted = self.design * weights[:, None, :]
        return np.asarray(weighted @ self.design.swapaxes(1, 2))


@dataclass(frozen=True)
class _WithOffset:
    """A batch of problems whose scores have a part that is given."""

    batch: LogisticBatch
    offset: FloatArray

    def __call__(self, theta: FloatArray, *, second_order: bool) -> Evaluation:
        score = _dot(self.batch.design, theta) + self.offset
        return self.batch.at_score(score, second_order=second_order)

    def problems(self, which: BoolArray) -> _WithOffset:
        """Some problems of the batch."""
        return _WithOffset(self.batch.problems(which), self.offset[which])


def _dot(columns: FloatArray, vectors: FloatArray) -> FloatArray:
    """Σ_p vectors[g, p] columns[g, p, k]."""
    return np.asarray((vectors[:, None, :] @ columns)[:, 0])


def _inverse(matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Inverse and log determinant; −∞ where an iterate went where it is singular."""
    sign, log_det = np.linalg.slogdet(matrix)
    regular = (sign > 0.0) & np.isfinite(log_det)
    usable = np.where(regular[:, None, None], matrix, np.eye(matrix.shape[1]))
    return np.asarray(np.linalg.inv(usable)), np.where(regular, log_det, -np.inf)
