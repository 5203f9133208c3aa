"""Smooth functions: what a solver is given and returns, Newton's method, and L-BFGS."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import IntEnum
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.linalg.lapack import dposv as posv
from scipy.optimize import minimize

from missratio._base.typing import BoolArray, FloatArray, IntArray


class Status(IntEnum):
    """How a solve ended, as measured."""

    RUNNING = 0
    CONVERGED = 1
    NO_OPTIMUM = 2
    STALLED = 3
    OUT_OF_ITERATIONS = 4


def single_status(solved: bool, no_optimum: bool, n_iter: int, max_iter: int) -> Status:
    """How the solve of one problem stands."""
    if no_optimum:
        return Status.NO_OPTIMUM
    if solved:
        return Status.CONVERGED
    return Status.OUT_OF_ITERATIONS if n_iter >= max_iter else Status.RUNNING


class Evaluation(NamedTuple):
    """An objective at a point, for a batch of problems.

    Parameters
    ----------
    value : ndarray of shape (n_problems,)
    gradient : ndarray of shape (n_problems, n_parameters)
    hessian : ndarray of shape (n_problems, n_parameters, n_parameters), or None
    no_optimum : ndarray of bool of shape (n_problems,)
        True where the point proves that the objective has no finite optimum.
    """

    value: FloatArray
    gradient: FloatArray
    hessian: FloatArray | None
    no_optimum: BoolArray


class Evaluate(Protocol):
    """The problem as a solver sees it."""

    def __call__(self, theta: FloatArray, *, second_order: bool) -> Evaluation:
        """Evaluate all problems of the batch at theta (n_problems, n_parameters)."""
        ...


class Solution(NamedTuple):
    """Where a solve ended.

    Parameters
    ----------
    theta : ndarray of shape (n_problems, n_parameters)
    value : ndarray of shape (n_problems,)
    gradient : ndarray of shape (n_problems, n_parameters)
    step : ndarray of shape (n_problems, n_parameters)
        The step that the solver would try next.
    decrement : ndarray of shape (n_problems,)
        The Newton decrement √(gᵀH⁻¹g): the gradient's length in units of the
        objective's own curvature, the same in any scaling of the features.
    n_iter : ndarray of int of shape (n_problems,)
    status : ndarray of int of shape (n_problems,)
        `Status` values.
    """

    theta: FloatArray
    value: FloatArray
    gradient: FloatArray
    step: FloatArray
    decrement: FloatArray
    n_iter: IntArray
    status: IntArray

    @classmethod
    def single(cls, *parts: Any) -> Solution:
        """The solution of one problem, from fields without the leading axis."""
        return cls(*(np.asarray(part)[None] for part in parts))

    @classmethod
    def concatenate(cls, parts: Sequence[Solution]) -> Solution:
        """Join the solutions of the parts of a batch."""
        return cls(*map(np.concatenate, zip(*parts, strict=True)))


SUFFICIENT_DECREASE = 1e-4
# What is always added to a Hessian's diagonal, in units of the first one's.
RELATIVE_FLOOR = 1e-10
# How many units of rounding an objective's value may be off.
ROUNDING = 256.0


def newton(
    evaluate: Evaluate,
    start: FloatArray,
    *,
    tol: float = 1e-8,
    max_iter: int = 100,
    first: Evaluation | None = None,
    precision: float = float(np.finfo(np.float64).eps),
) -> Solution:
    """Minimise a batch of smooth functions by Newton's method, damped where need be.

    Parameters
    ----------
    evaluate : callable
        Value, gradient and (on demand) Hessian of every problem in the batch.
    start : ndarray of shape (n_problems, n_parameters)
    tol : float
        A problem has converged when its Newton decrement √(gᵀH⁻¹g) is at most this.
    max_iter : int
        Steps at most; vain ones, which are tried again with more damping, don't count.
    first : Evaluation, optional
        The evaluation at start, with its Hessian, where it is known.
    precision : float
        Relative rounding error of the objective's values.
    """
    theta = np.array(start)
    here = evaluate(theta, second_order=True) if first is None else first
    assert here.hessian is not None
    value, gradient, hessian = here.value, here.gradient, here.hessian
    scale = np.abs(np.diagonal(hessian, axis1=1, axis2=2)).copy()
    damping = np.full(len(theta), RELATIVE_FLOOR)
    # Newton's own step and decrement, and what is tried: both damped after vain steps.
    step, decrement = newton_direction(hessian, gradient, RELATIVE_FLOOR * scale)
    trial, fall = step, decrement
    n_iter = np.zeros(len(theta), dtype=np.int64)
    status = np.where(decrement <= tol, Status.CONVERGED, Status.RUNNING)
    status[here.no_optimum] = Status.NO_OPTIMUM
    # Whether the Hessian is that at theta.
    exact = True
    # Vain steps included, ten are tried for each one allowed.
    for _ in range(10 * max_iter):
        running = status == Status.RUNNING
        if not running.any():
            break
        # 1. Try a step for every problem that still runs; a Hessian is left out where
        #    it should be the last.
        point = theta + running[:, None] * trial
        far = bool((running & (fall > math.sqrt(tol))).any())
        there = evaluate(point, second_order=not exact or far)
        # 2. Take it where the objective falls enough, up to its rounding error.
        noise = ROUNDING * precision * np.maximum(1.0, np.abs(value))
        # A quadratic function would fall by ½ of the squared decrement.
        least = value - SUFFICIENT_DECREASE * fall**2 + noise
        taken = running & (there.value <= least)
        taken &= np.isfinite(there.gradient.sum(axis=1))
        n_iter = n_iter + taken
        exact = there.hessian is not None or (exact and not taken.any())
        theta = np.where(taken[:, None], point, theta)
        value = np.where(taken, there.value, value)
        gradient = np.where(taken[:, None], there.gradient, gradient)
        if there.hessian is not None:
            hessian = np.where(taken[:, None, None], there.hessian, hessian)
        # 3. Aim anew, by a shorter step after a vain one (Levenberg and Marquardt).
        earlier, vain = fall, running & ~taken
        step, decrement = newton_direction(hessian, gradient, RELATIVE_FLOOR * scale)
        trial, fall = step, decrement
        if vain.any() or (damping > RELATIVE_FLOOR).any():
            less = np.maximum(damping / 10.0, RELATIVE_FLOOR)
            more = np.maximum(10.0 * damping, 1e-3)
            damping = np.where(vain, more, less)
            trial, fall = newton_direction(hessian, gradient, damping[:, None] * scale)
        # 4. See where that leaves each problem: a decrement that has sunk into the
        #    rounding error of the value and falls no more is as good as zero.
        sunk = (decrement**2 <= noise) & (decrement > 0.5 * earlier) & taken
        status[running & ((decrement <= tol) | sunk)] = Status.CONVERGED
        status[taken & there.no_optimum] = Status.NO_OPTIMUM
        status[running & (damping > 1e16)] = Status.STALLED
        spent = (status == Status.RUNNING) & (n_iter >= max_iter)
        status[spent] = Status.OUT_OF_ITERATIONS
    status[status == Status.RUNNING] = Status.OUT_OF_ITERATIONS
    return Solution(theta, value, gradient, step, decrement, n_iter, status)


def newton_direction(
    hessian: FloatArray, gradient: FloatArray, damping: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """−H⁻¹g and the decrement √(gᵀH⁻¹g), for positive definite H or not.

    A damping is added to the diagonal. Even where it is tiny beside the Hessian that a
    solve began with, collinear features, for which H is singular, don't matter. Where
    H is indefinite (a non-convex objective) its eigenvalues are replaced by their
    absolute values.
    """
    lifted = hessian.copy()
    lifted.reshape(len(hessian), -1)[:, :: hessian.shape[1] + 1] += damping
    if len(lifted) == 1:
        _, solution, failed = posv(lifted[0], -gradient[0])
        direction = solution[None]
    else:
        failed = False
        try:
            np.linalg.cholesky(lifted)
            direction = np.linalg.solve(lifted, -gradient[..., None])[..., 0]
        except np.linalg.LinAlgError:
            failed = True
    if failed:
        size = np.sqrt(np.abs(np.diagonal(lifted, axis1=1, axis2=2)))
        scale = 1.0 / np.where(size > 0.0, size, 1.0)
        scaled = lifted * scale[:, :, None] * scale[:, None, :]
        values, vectors = np.linalg.eigh(np.nan_to_num(scaled))
        magnitude = np.abs(values)
        least = 1e-10 * np.maximum(magnitude.max(axis=1, keepdims=True), 1e-300)
        along = vectors.swapaxes(1, 2) @ (-gradient * scale)[..., None]
        along /= np.maximum(magnitude, least)[..., None]
        direction = (vectors @ along)[..., 0] * scale
    decrement = np.sqrt(np.maximum(-(direction * gradient).sum(axis=1), 0.0))
    return direction, decrement


def quick_newton(
    evaluate: Evaluate,
    start: FloatArray,
    *,
    fresh: bool,
    tol: float = 1e-8,
    max_iter: int = 100,
    first: Evaluation | None = None,
    precision: float = float(np.finfo(np.float64).eps),
) -> Solution:
    """Minimise one smooth function by plain steps; `newton` goes on where one fails.

    Parameters
    ----------
    evaluate : callable
    start : ndarray of shape (1, n_parameters)
    fresh : bool
        Whether every step has a Hessian of its own, rather than that of the start,
        brought up to date by BFGS.
    tol, max_iter, precision
        As for `newton`.
    first : Evaluation, optional
        The evaluation at start; its Hessian may be an approximation if not `fresh`.
    """
    theta = np.array(start)
    limits: dict[str, Any] = {"tol": tol, "max_iter": max_iter, "precision": precision}
    first = evaluate(theta, second_order=True) if first is None else first
    assert first.hessian is not None
    here, hessian = first, first.hessian
    floor = RELATIVE_FLOOR * np.abs(np.diagonal(hessian, axis1=1, axis2=2))
    earlier, noise, n_iter = math.inf, 0.0, 0
    while True:
        # 1. Are we there? A decrement that has sunk into the rounding error of the
        #    value and falls no more is as good as zero.
        step, decrement = newton_direction(hessian, here.gradient, floor)
        length = float(decrement[0])
        solved = length <= tol or (length**2 <= noise and length > 0.5 * earlier)
        status = single_status(solved, here.no_optimum[0], n_iter, max_iter)
        if status != Status.RUNNING:
            ended = np.array([n_iter]), np.array([int(status)])
            return Solution(theta, here.value, here.gradient, step, decrement, *ended)
        # 2. Try a step. A Hessian is left out where the step should be the last.
        noise = ROUNDING * precision * max(1.0, abs(float(here.value[0])))
        bends = fresh and (here.hessian is None or length > math.sqrt(tol))
        there = evaluate(theta + step, second_order=bends)
        most = float(here.value[0]) - SUFFICIENT_DECREASE * length**2 + noise
        if not (there.value[0] <= most and np.isfinite(there.gradient.sum())):
            # Where Hessians differ much, damping is in units of the first one.
            known = first if fresh else None
            return newton(evaluate, start, first=known, **limits)
        # 3. Bring the Hessian up to date: it maps the step to the gradient's change.
        if there.hessian is not None:
            hessian = there.hessian
        elif not fresh:
            bend = there.gradient - here.gradient
            along = (hessian @ step[..., None])[..., 0]
            old, new = float((step * along).sum()), float((step * bend).sum())
            if old > 0.0 and new > 0.0:
                hessian = hessian + bend[:, :, None] * (bend / new)[:, None, :]
                hessian -= along[:, :, None] * (along / old)[:, None, :]
        theta, here, earlier, n_iter = theta + step, there, length, n_iter + 1


def lbfgs(
    evaluate: Evaluate,
    start: FloatArray,
    *,
    scale: FloatArray,
    tol: float = 1e-8,
    max_iter: int = 1000,
) -> Solution:
    """Minimise one smooth function by scipy's L-BFGS.

    Parameters
    ----------
    evaluate : callable
    start : ndarray of shape (1, n_parameters)
    scale : ndarray of shape (n_parameters,)
        A typical size of each parameter, 1/sd of its feature, to precondition by. The
        largest entry of the gradient in this scaling takes the place of Newton's
        decrement.
    tol : float
        Converged when no scaled gradient entry is larger. Below 1e-6 the line search
        can't tell values apart, and 1e-6 is taken.
    max_iter : int
    """
    tol = max(tol, 1e-6)

    def function(point: FloatArray) -> tuple[float, FloatArray]:
        here = evaluate((scale * point)[None], second_order=False)
        return float(here.value[0]), scale * here.gradient[0]

    options = {"maxiter": max_iter, "maxfun": 2 * max_iter, "gtol": tol, "ftol": 0}
    result = minimize(
        function, start[0] / scale, jac=True, method="L-BFGS-B", options=options
    )
    theta, n_iter = scale * result.x, int(result.nit)
    end = evaluate(theta[None], second_order=False)
    gradient = scale * end.gradient[0]
    length = float(np.abs(gradient).max())
    status = single_status(length <= tol, end.no_optimum[0], n_iter, max_iter)
    status = Status.STALLED if status == Status.RUNNING else status
    last = (end.value[0], end.gradient[0], -scale * gradient, length, n_iter)
    return Solution.single(theta, *last, int(status))
