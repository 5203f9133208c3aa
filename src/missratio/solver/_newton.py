"""A damped Newton method for batches of small convex problems and single large ones."""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg.lapack import dposv as posv

from missratio._typing import FloatArray
from missratio.solver._result import Evaluate, Solution, Status

SUFFICIENT_DECREASE = 1e-4
SHORTEST_STEP = 1e-10
RUNNING, NO_OPTIMUM = int(Status.RUNNING), int(Status.NO_OPTIMUM)
CONVERGED, STALLED = int(Status.CONVERGED), int(Status.STALLED)
ROUNDING = 64.0 * np.finfo(np.float64).eps
# A frozen Hessian is evaluated anew if at its pace more steps than these would follow:
# as many as a Hessian costs, and the two or three that come after it.
FROZEN_STEPS = 6.0


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
    here = evaluate(theta, second_order=hessian is None)
    value, gradient = here.value, here.gradient
    curvature = here.hessian if hessian is None else hessian
    assert curvature is not None
    exact = hessian is None
    step = np.ones(len(theta))
    status = np.full(len(theta), RUNNING)
    n_iter = np.zeros(len(theta), dtype=np.int64)
    direction, decrement = newton_direction(curvature, gradient)
    status[decrement <= tol] = CONVERGED
    status[here.no_optimum] = NO_OPTIMUM
    refresh = not freeze and decrement.max() > math.sqrt(tol)

    for _ in range(max_iter):
        running = status == RUNNING
        if not running.any():
            break
        # 1. Try a step for every problem that still runs.
        n_iter += running
        stride = step * running
        trial = theta + stride[:, None] * direction
        there = evaluate(trial, second_order=refresh)

        # 2. Take it where the objective falls enough, up to its rounding error.
        fall = SUFFICIENT_DECREASE * stride * decrement**2
        noise = ROUNDING * np.maximum(1.0, np.abs(value))
        taken = running & (there.value <= value - fall + noise)
        taken &= np.isfinite(there.gradient).all(axis=1)
        updated = there.hessian
        if freeze and updated is None:
            bend = there.gradient - gradient
            updated = _secant_update(curvature, trial - theta, bend)
        exact = there.hessian is not None and bool(taken.all())
        if taken.all():
            theta, value, gradient = trial, there.value, there.gradient
            curvature = curvature if updated is None else updated
        else:
            theta[taken], value[taken] = trial[taken], there.value[taken]
            gradient[taken] = there.gradient[taken]
            if updated is not None:
                curvature[taken] = updated[taken]
        step = np.where(taken, 1.0, 0.5 * step)

        # 3. Aim anew, and see where that leaves each problem.
        earlier = decrement
        direction, decrement = newton_direction(curvature, gradient)
        status[running & (decrement <= tol)] = CONVERGED
        status[running & (step < SHORTEST_STEP)] = STALLED
        status[taken & there.no_optimum] = NO_OPTIMUM

        # 4. A Hessian is left out where the next step should be the last, and, if it
        #    may be frozen, as long as it serves.
        if freeze:
            pace = np.log(np.maximum(earlier / np.maximum(decrement, tol), 1.0))
            slow = np.log(np.maximum(decrement / tol, 1.0)) > FROZEN_STEPS * pace
            refresh = bool((running & (slow | ~taken)).any())
        else:
            refresh = bool((running & (decrement > math.sqrt(tol))).any())

    status[status == RUNNING] = Status.OUT_OF_ITERATIONS
    return Solution(
        theta, value, gradient, curvature, direction, decrement, n_iter, status, exact
    )


def _secant_update(
    hessian: FloatArray, step: FloatArray, bend: FloatArray
) -> FloatArray:
    """Bring a frozen Hessian up to date by BFGS: H₊ maps the last step to its bend."""
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


def newton_direction(
    hessian: FloatArray, gradient: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """−H⁻¹g and the decrement √(gᵀH⁻¹g), for positive definite H or not.

    Where H is singular (collinear features) or indefinite (a non-convex objective),
    its eigenvalues, after scaling to a unit diagonal, are replaced by their absolute
    values, and those that are zero to rounding by a floor.
    """
    direction = _solve_definite(hessian, -gradient)
    if direction is None:
        direction = _solve_indefinite(hessian, -gradient)
    decrement = np.sqrt(np.maximum(-(direction * gradient).sum(axis=1), 0.0))
    return direction, decrement


def _solve_definite(matrix: FloatArray, target: FloatArray) -> FloatArray | None:
    """Solve by Cholesky; None where a matrix is not positive definite."""
    if len(matrix) == 1:
        _, solution, info = posv(matrix[0], target[0])
        return solution[None] if info == 0 else None
    try:
        np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return None
    return np.asarray(np.linalg.solve(matrix, target[..., None])[..., 0], np.float64)


def _solve_indefinite(matrix: FloatArray, target: FloatArray) -> FloatArray:
    scale = np.sqrt(np.abs(np.diagonal(matrix, axis1=1, axis2=2)))
    scale = 1.0 / np.where(scale > 0.0, scale, 1.0)
    scaled = matrix * scale[:, :, None] * scale[:, None, :]
    values, vectors = np.linalg.eigh(np.nan_to_num(scaled))
    magnitude = np.abs(values)
    floor = 1e-10 * np.maximum(magnitude.max(axis=1, keepdims=True), 1e-300)
    along = vectors.swapaxes(1, 2) @ (target * scale)[..., None]
    along /= np.maximum(magnitude, floor)[..., None]
    return np.asarray((vectors @ along)[..., 0] * scale, dtype=np.float64)
