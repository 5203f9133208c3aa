"""A proximal Newton method: a smooth convex function plus Σ l1 |θ|."""

from __future__ import annotations

import math

import numpy as np

from missratio._base.typing import FloatArray
from missratio.solver.smooth import (
    RELATIVE_FLOOR,
    ROUNDING,
    SUFFICIENT_DECREASE,
    Evaluate,
    Solution,
    Status,
    newton_direction,
    single_status,
)


def proximal_newton(
    evaluate: Evaluate,
    start: FloatArray,
    l1: FloatArray,
    *,
    tol: float = 1e-8,
    max_iter: int = 100,
) -> Solution:
    """Minimise one smooth convex function plus Σ l1 |θ|.

    Parameters
    ----------
    evaluate : callable
        The smooth part alone.
    start : ndarray of shape (1, n_parameters)
    l1 : ndarray of shape (n_parameters,)
        Not negative; 0 where a parameter is free.
    tol : float
        Converged when the decrement √(vᵀH⁻¹v) is at most this, with v the shortest
        subgradient, both on parameters that are not zero or shouldn't be.
    max_iter : int

    Returns
    -------
    Solution
        `value` is that of the sum, `gradient` that of the smooth part: at an optimum
        its entries are within ±l1, and at their bound where θ is not zero.
    """
    theta = np.array(start[0])
    here = evaluate(theta[None], second_order=True)
    assert here.hessian is not None
    value = float(here.value[0] + l1 @ np.abs(theta))
    # A diagonal that makes a singular Hessian definite, tiny beside it.
    scale = np.abs(np.diagonal(here.hessian[0]))
    floor = np.diag(RELATIVE_FLOOR * np.where(scale > 0.0, scale, 1.0))
    n_iter, sunk = 0, False
    while True:
        # 1. Measure how far this point is from an optimum: Newton's step with the
        #    parameters held that are zero and should be. A fall that drowned in the
        #    rounding error of the value is as good as none.
        assert here.hessian is not None
        gradient, hessian = here.gradient[0], here.hessian[0] + floor
        slope = shortest_subgradient(theta, gradient, l1)
        free, step = (theta != 0.0) | (slope != 0.0), np.zeros_like(slope)
        if free.any():
            step[free] = _solve(hessian[np.ix_(free, free)], -slope[free])
        decrement = math.sqrt(max(-float(slope @ step), 0.0))
        solved = decrement <= tol or sunk
        status = single_status(solved, here.no_optimum[0], n_iter, max_iter)
        if status == Status.RUNNING and (np.diagonal(hessian)[free] <= 0.0).any():
            # Rounding left a Hessian that isn't convex.
            status = Status.STALLED
        if status != Status.RUNNING:
            break
        # 2. Aim at the optimum of the quadratic model plus the penalty, and miss it by
        #    little beside how far the point that it is built at is from an optimum.
        target = hessian @ theta - gradient
        aim = minimise_quadratic(hessian, target, l1, theta, 1e-3 * decrement)
        growth = float(l1 @ (np.abs(aim) - np.abs(theta)))
        fall = -float(gradient @ (aim - theta)) - growth
        noise = ROUNDING * math.ulp(1.0) * max(1.0, abs(value))
        # 3. Go there, or half of the way, and so on, until the sum falls enough.
        length, trial = 1.0, aim
        while length > 2.0**-40:
            there = evaluate(trial[None], second_order=length == 1.0)
            reached = float(there.value[0] + l1 @ np.abs(trial))
            if reached <= value + noise - SUFFICIENT_DECREASE * length * fall:
                break
            length *= 0.5
            trial = theta + length * (aim - theta)
        else:
            status = Status.STALLED
            break
        if there.hessian is None:
            there = evaluate(trial[None], second_order=True)
        sunk, n_iter = fall <= noise and decrement**2 <= noise, n_iter + 1
        theta, value, here = trial, reached, there

    return Solution.single(theta, value, gradient, step, decrement, n_iter, int(status))


def shortest_subgradient(
    theta: FloatArray, gradient: FloatArray, l1: FloatArray
) -> FloatArray:
    """The subgradient of smallest size of a smooth function plus Σ l1 |θ|.

    Zero exactly at an optimum.
    """
    at_zero = np.sign(gradient) * np.maximum(np.abs(gradient) - l1, 0.0)
    return np.where(theta != 0.0, gradient + l1 * np.sign(theta), at_zero)


def minimise_quadratic(
    hessian: FloatArray,
    target: FloatArray,
    l1: FloatArray,
    start: FloatArray,
    tol: float,
) -> FloatArray:
    """Minimise ½ βᵀHβ − targetᵀβ + Σ l1 |β|, for H positive definite.

    Sweeps over the coordinates find which are zero and the signs of the others; on
    that face the optimum is a linear system's solution. Both only go down, so that a
    face can't return and the search ends.

    Parameters
    ----------
    hessian : ndarray of shape (n_parameters, n_parameters)
    target, l1, start : ndarray of shape (n_parameters,)
    tol : float
        On the decrement, as for `proximal_newton`.
    """
    beta = start.copy()
    curvature, bounds = np.diagonal(hessian).tolist(), l1.tolist()
    for _ in range(1000):
        residual = target - hessian @ beta
        for j, old in enumerate(beta.tolist()):
            centre = float(residual[j]) + curvature[j] * old
            shrunk = max(abs(centre) - bounds[j], 0.0)
            new = math.copysign(shrunk, centre) / curvature[j]
            if new != old:
                beta[j] = new
                residual += hessian[j] * (old - new)
        # Go to the optimum among points of the same signs. Where the way there crosses
        # zero in some coordinate, that one is left at zero and the rest go on.
        while (beta != 0.0).any():
            free = np.flatnonzero(beta)
            here, sign = beta[free], np.sign(beta[free])
            pull = target[free] - l1[free] * sign
            there = _solve(hessian[np.ix_(free, free)], pull)
            crosses = (there * sign < 0.0) & (l1[free] > 0.0)
            if not crosses.any():
                beta[free] = there
                break
            share = np.full(len(free), np.inf)
            share[crosses] = here[crosses] / (here[crosses] - there[crosses])
            beta[free] = here + share.min() * (there - here)
            beta[free[share == share.min()]] = 0.0
        slope = shortest_subgradient(beta, hessian @ beta - target, l1)
        if math.sqrt(float((slope**2 / np.diagonal(hessian)).sum())) <= tol:
            break
    return beta


def _solve(matrix: FloatArray, target: FloatArray) -> FloatArray:
    """Solve a symmetric system, if it is singular as Newton's method does."""
    direction, _ = newton_direction(matrix[None], -target[None], np.zeros(len(target)))
    return np.asarray(direction[0])
