"""A damped Newton method for batches of small convex problems and single large ones."""

from __future__ import annotations

import math

import numpy as np

from missratio._typing import FloatArray
from missratio.solver._result import Evaluate, Solution, Status

SUFFICIENT_DECREASE = 1e-4
SHORTEST_STEP = 1e-10
# A frozen Hessian is kept while each step shrinks the decrement by this factor.
FROZEN_CONTRACTION = 0.1


def newton(
    evaluate: Evaluate,
    start: FloatArray,
    *,
    tol: float = 1e-8,
    max_iter: int = 100,
    hessian: FloatArray | None = None,
    freeze: bool = False,
) -> Solution:
    """Minimise a batch of smooth functions by Newton's method with a line search.

    Parameters
    ----------
    evaluate : callable
        Value, gradient and (on demand) Hessian of every problem in the batch.
    start : ndarray of shape (n_problems, n_parameters)
    tol : float
        A problem has converged when its Newton decrement √(gᵀH⁻¹g) is at most this.
    max_iter : int
        Steps tried, shortened ones included.
    hessian : ndarray of shape (n_problems, n_parameters, n_parameters), optional
        A Hessian to begin with, such as one from a part of the rows.
    freeze : bool
        Keep a Hessian while steps with it shrink the decrement fast enough. Pays off
        where a Hessian costs much more than a gradient.

    Returns
    -------
    Solution
    """
    theta = np.array(start)
    n_problems = len(theta)
    here = evaluate(theta, second_order=hessian is None)
    value, gradient = here.value, here.gradient
    curvature = here.hessian if hessian is None else hessian
    assert curvature is not None
    step = np.ones(n_problems)
    status = np.full(n_problems, Status.RUNNING)
    n_iter = np.zeros(n_problems, dtype=np.int64)
    direction, decrement = newton_direction(curvature, gradient)
    refresh = not freeze and decrement.max() > math.sqrt(tol)
    status[decrement <= tol] = Status.CONVERGED
    status[here.no_optimum] = Status.NO_OPTIMUM

    for _ in range(max_iter):
        running = status == Status.RUNNING
        if not running.any():
            break
        # 1. Try a step for every problem that still runs.
        stride = np.where(running, step, 0.0)
        trial = theta + stride[:, None] * direction
        there = evaluate(trial, second_order=refresh)
        n_iter += running

        # 2. Take it where the objective falls enough, up to its rounding error.
        noise = 64.0 * np.finfo(np.float64).eps * np.maximum(1.0, np.abs(value))
        enough = value - SUFFICIENT_DECREASE * stride * decrement**2 + noise
        with np.errstate(invalid="ignore"):
            taken = running & (there.value <= enough)
            taken &= np.isfinite(there.gradient).all(axis=1)
        before, theta_before = gradient, theta.copy()
        theta[taken] = trial[taken]
        value = np.where(taken, there.value, value)
        gradient = np.where(taken[:, None], there.gradient, gradient)
        if there.hessian is not None:
            curvature = np.where(taken[:, None, None], there.hessian, curvature)
        elif freeze:
            bend = there.gradient - before
            curvature = _secant_update(curvature, trial - theta_before, bend, taken)
        step = np.where(taken, 1.0, 0.5 * step)

        # 3. Aim anew, and see where that leaves each problem.
        earlier = decrement
        direction, decrement = newton_direction(curvature, gradient)
        status[running & (decrement <= tol)] = Status.CONVERGED
        status[running & (step < SHORTEST_STEP)] = Status.STALLED
        status[taken & there.no_optimum] = Status.NO_OPTIMUM

        # 4. A Hessian is left out where the next step should be the last, and, if it
        #    may be frozen, as long as it serves.
        slow = running & (~taken | (decrement > FROZEN_CONTRACTION * earlier))
        refresh = bool(slow.any()) or (
            not freeze and decrement[running].max() > math.sqrt(tol)
        )

    status[status == Status.RUNNING] = Status.OUT_OF_ITERATIONS
    return Solution(theta, value, gradient, curvature, decrement, n_iter, status)


def _secant_update(hessian, step, bend, where):
    sy = (step*bend).sum(axis=1); Hs=(hessian@step[...,None])[...,0]; sHs=(step*Hs).sum(axis=1)
    ok = where & (sy>1e-300)
    out = hessian + bend[:,:,None]*bend[:,None,:]/sy[:,None,None] - Hs[:,:,None]*Hs[:,None,:]/sHs[:,None,None]
    return np.where(ok[:,None,None],out,hessian)


def newton_direction(
    hessian: FloatArray, gradient: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """−H⁻¹g and the decrement √(gᵀH⁻¹g), for positive definite H or not.

    Where H is singular (collinear features) or indefinite (a non-convex objective),
    its eigenvalues, after scaling to a unit diagonal, are replaced by their absolute
    values, and those that are zero to rounding by a floor.
    """
    scale = np.sqrt(np.abs(np.einsum("bii->bi", hessian)))
    scale = 1.0 / np.where(scale > 0.0, scale, 1.0)
    scaled = hessian * scale[:, :, None] * scale[:, None, :]
    target = -(gradient * scale)[..., None]
    try:
        np.linalg.cholesky(scaled)
        direction = np.linalg.solve(scaled, target)[..., 0]
    except np.linalg.LinAlgError:
        direction = _solve_indefinite(scaled, target)
    direction *= scale
    decrement = np.sqrt(np.maximum(-(direction * gradient).sum(axis=1), 0.0))
    return direction, decrement


def _solve_indefinite(matrix: FloatArray, target: FloatArray) -> FloatArray:
    values, vectors = np.linalg.eigh(np.nan_to_num(matrix))
    magnitude = np.abs(values)
    floor = 1e-10 * np.maximum(magnitude.max(axis=1, keepdims=True), 1e-300)
    along = (vectors.swapaxes(1, 2) @ target)[..., 0] / np.maximum(magnitude, floor)
    solution: FloatArray = (vectors @ along[..., None])[..., 0]
    return solution
