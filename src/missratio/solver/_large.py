"""Newton's method for one problem whose Hessian costs much more than its gradient."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from missratio._typing import FloatArray
from missratio.solver._newton import (
    RELATIVE_FLOOR,
    ROUNDING,
    SUFFICIENT_DECREASE,
    falls,
    newton,
    newton_direction,
)
from missratio.solver._result import Evaluate, Evaluation, Solution, Status

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
    a step with a true Hessian is in vain, damped steps follow (`newton`).

    Parameters
    ----------
    evaluate : callable
    start : ndarray of shape (1, n_parameters)
    tol, max_iter, precision
        As for `newton`.
    first : Evaluation, optional
        The evaluation at start, its Hessian an approximation.

    Returns
    -------
    Solution
    """
    theta, exact = np.array(start), first is None
    most_steps = FROZEN_STEPS + theta.shape[1] / PARAMETERS_A_STEP
    slow, vain, most_vain = 0, 0, theta.shape[1] // PARAMETERS_A_VAIN_STEP
    here = evaluate(theta, second_order=True) if first is None else first
    n_iter, status, refresh = 0, Status.RUNNING, False
    hessian = here.hessian
    assert hessian is not None
    floor = _floor(hessian)
    step, decrement = newton_direction(hessian, here.gradient, floor)
    noise, earlier = np.zeros(1), np.full(1, math.inf)
    while status == Status.RUNNING:
        # 1. Are we there? A decrement that has sunk into the rounding error of the
        #    value and falls no more is as good as zero.
        sunk = decrement[0] ** 2 <= noise[0] and decrement[0] > 0.5 * earlier[0]
        status = _status(here, decrement[0] <= tol or sunk, n_iter >= max_iter)
        if status != Status.RUNNING:
            break

        # 2. Try a step. If it is in vain, that may be the approximate Hessian's fault.
        there = evaluate(theta + step, second_order=refresh)
        noise = ROUNDING * precision * np.maximum(1.0, np.abs(here.value))
        least = SUFFICIENT_DECREASE if exact else LEAST_SERVED
        served = falls(there, here.value, decrement, noise, least)[0]
        if not served and not exact and vain < most_vain and _is_finite(there):
            # Where a Hessian is dear, what the step has shown of it will do at first.
            vain += 1
            hessian = _secant_update(here, there, step)
            here = replace(here, hessian=hessian)
        elif not served:
            here = evaluate(theta, second_order=True)
            if exact:
                rest = newton(
                    evaluate, theta, tol=tol, max_iter=max_iter - n_iter, first=here,
                    precision=precision,
                )  # fmt: skip
                return replace(rest, n_iter=rest.n_iter + n_iter)
            assert here.hessian is not None
            hessian, exact, refresh = here.hessian, True, False
            floor = _floor(hessian)
        else:
            n_iter, vain = n_iter + 1, 0
            exact = there.hessian is not None
            hessian = there.hessian
            if hessian is None:
                hessian = _secant_update(here, there, step)
            theta, here = theta + step, replace(there, hessian=hessian)

        # 3. Aim anew, and see whether the Hessian serves.
        earlier = decrement
        step, decrement = newton_direction(hessian, here.gradient, floor)
        pace = math.log(max(earlier[0] / max(decrement[0], tol), 1.0))
        left = math.log(max(decrement[0] / tol, 1.0))
        slow = slow + 1 if left > most_steps * pace else 0
        refresh = not exact and slow > most_vain

    ended = np.array([n_iter]), np.array([int(status)])
    return Solution(theta, here.value, here.gradient, hessian, step, decrement, *ended)


def _status(here: Evaluation, solved: bool, spent: bool) -> Status:
    if here.no_optimum[0]:
        return Status.NO_OPTIMUM
    if solved:
        return Status.CONVERGED
    return Status.OUT_OF_ITERATIONS if spent else Status.RUNNING


def _is_finite(there: Evaluation) -> bool:
    return bool(np.isfinite(there.value).all() and np.isfinite(there.gradient).all())


def _floor(hessian: FloatArray) -> FloatArray:
    return RELATIVE_FLOOR * np.abs(np.diagonal(hessian, axis1=1, axis2=2))


def _secant_update(here: Evaluation, there: Evaluation, step: FloatArray) -> FloatArray:
    """Bring a frozen Hessian up to date by BFGS: H₊ maps the last step to its bend."""
    hessian, bend = here.hessian, there.gradient - here.gradient
    assert hessian is not None
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
