"""Newton's method for one problem whose Hessian costs much more than its gradient."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from missratio._base.typing import FloatArray
from missratio.solver._newton import (
    RELATIVE_FLOOR,
    ROUNDING,
    SUFFICIENT_DECREASE,
    falls,
    newton,
    newton_direction,
)
from missratio.solver._result import Evaluate, Evaluation, Solution, Status, ending

# A frozen Hessian is evaluated anew if at its pace more steps than these would follow:
# as many as a Hessian costs, one for so many parameters, and the few that come after.
FROZEN_STEPS = 5.0
PARAMETERS_A_STEP = 30.0
PARAMETERS_A_VAIN_STEP = 60
# The part of the squared decrement that a step falls by at least if it serves.
LEAST_SERVED = 0.1


def frozen_newton(
    evaluate: Evaluate,
    start: FloatArray,
    *,
    tol: float = 1e-8,
    max_iter: int = 100,
    first: Evaluation | None = None,
    precision: float = float(np.finfo(np.float64).eps),
) -> Solution:
    """Minimise one smooth function with a Hessian that is kept over several steps.

    It is brought up to date by BFGS, and evaluated anew where it doesn't serve. Where
    a step with a true Hessian fails, damped steps follow (`newton`).

    Parameters
    ----------
    evaluate : callable
    start : ndarray of shape (1, n_parameters)
    tol, max_iter, precision
        As for `newton`.
    first : Evaluation, optional
        The evaluation at start, its Hessian an approximation.
    """
    damped = partial(newton, evaluate, tol=tol, precision=precision)
    state = _Frozen.at(np.array(start), evaluate, first)
    noise, earlier = np.zeros(1), np.full(1, math.inf)
    while True:
        # 1. Are we there? A decrement that has sunk into the rounding error of the
        #    value and falls no more is as good as zero.
        decrement = state.decrement
        sunk = decrement[0] ** 2 <= noise[0] and decrement[0] > 0.5 * earlier[0]
        solved, hopeless = decrement[0] <= tol or sunk, state.here.no_optimum[0]
        status = ending(hopeless, solved, state.n_iter >= max_iter)
        if status != Status.RUNNING:
            return state.solution(status)

        # 2. Try a step. If it fails, that may be the approximate Hessian's fault.
        there = evaluate(state.theta + state.step, second_order=state.refresh)
        noise = ROUNDING * precision * np.maximum(1.0, np.abs(state.here.value))
        least = SUFFICIENT_DECREASE if state.exact else LEAST_SERVED
        if falls(there, state.here.value, decrement, noise, least)[0]:
            state.take(there)
        elif not state.exact and state.vain < state.most_vain and _is_finite(there):
            state.learn(there)
        elif not state.exact:
            state.renew(evaluate(state.theta, second_order=True))
        else:
            first = evaluate(state.theta, second_order=True)
            left = max_iter - state.n_iter
            rest = damped(state.theta, max_iter=left, first=first)
            return replace(rest, n_iter=rest.n_iter + state.n_iter)

        # 3. Aim anew, and see whether the Hessian serves.
        earlier = decrement
        state.aim(tol)


@dataclass(slots=True)
class _Frozen:
    """A point with its Hessian, true or approximate, and the step from there."""

    theta: FloatArray
    here: Evaluation
    hessian: FloatArray
    floor: FloatArray
    step: FloatArray
    decrement: FloatArray
    exact: bool
    n_iter: int = 0
    # Vain steps since the last that was taken, and steps at too slow a pace.
    vain: int = 0
    slow: int = 0
    # Whether the next evaluation is to bring a Hessian.
    refresh: bool = False

    @classmethod
    def at(
        cls, theta: FloatArray, evaluate: Evaluate, first: Evaluation | None
    ) -> _Frozen:
        here = evaluate(theta, second_order=True) if first is None else first
        assert here.hessian is not None
        floor = _floor(here.hessian)
        aim = newton_direction(here.hessian, here.gradient, floor)
        return cls(theta, here, here.hessian, floor, *aim, exact=first is None)

    @property
    def most_vain(self) -> int:
        return int(self.theta.shape[1]) // PARAMETERS_A_VAIN_STEP

    def take(self, there: Evaluation) -> None:
        """Go on to where the step led."""
        self.n_iter, self.vain = self.n_iter + 1, 0
        self.exact = there.hessian is not None
        if there.hessian is not None:
            self.hessian = there.hessian
        else:
            self.hessian = self._updated(there)
        self.theta, self.here = self.theta + self.step, there

    def learn(self, there: Evaluation) -> None:
        """Stay: where a Hessian is dear, what a vain step shows of it does at first."""
        self.vain += 1
        self.hessian = self._updated(there)

    def renew(self, here: Evaluation) -> None:
        """Stay, with the true Hessian."""
        assert here.hessian is not None
        self.here, self.hessian, self.floor = here, here.hessian, _floor(here.hessian)
        self.exact, self.refresh = True, False

    def aim(self, tol: float) -> None:
        """Newton's step with this Hessian, and whether its pace asks for another."""
        earlier = self.decrement[0]
        gradient = self.here.gradient
        self.step, self.decrement = newton_direction(self.hessian, gradient, self.floor)
        pace = math.log(max(earlier / max(self.decrement[0], tol), 1.0))
        left = math.log(max(self.decrement[0] / tol, 1.0))
        most_steps = FROZEN_STEPS + self.theta.shape[1] / PARAMETERS_A_STEP
        self.slow = self.slow + 1 if left > most_steps * pace else 0
        self.refresh = not self.exact and self.slow > self.most_vain

    def solution(self, status: Status) -> Solution:
        return Solution(
            self.theta,
            self.here.value,
            self.here.gradient,
            self.hessian,
            self.step,
            self.decrement,
            np.array([self.n_iter]),
            np.array([int(status)]),
        )

    def _updated(self, there: Evaluation) -> FloatArray:
        """The Hessian by BFGS: H₊ maps the last step to its bend."""
        hessian, step = self.hessian, self.step
        bend = there.gradient - self.here.gradient
        along = (hessian @ step[..., None])[..., 0]
        old, new = (step * along).sum(axis=1), (step * bend).sum(axis=1)
        if not (old > 0.0).all() or not (new > 0.0).all():
            return hessian
        updated: FloatArray = (
            hessian
            + bend[:, :, None] * (bend / new[:, None])[:, None, :]
            - along[:, :, None] * (along / old[:, None])[:, None, :]
        )
        return updated


def _is_finite(there: Evaluation) -> bool:
    return bool(np.isfinite(there.value).all() and np.isfinite(there.gradient).all())


def _floor(hessian: FloatArray) -> FloatArray:
    return RELATIVE_FLOOR * np.abs(np.diagonal(hessian, axis1=1, axis2=2))
