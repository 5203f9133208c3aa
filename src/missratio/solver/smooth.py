"""Smooth functions: what a solver is given and returns, Newton's method, and L-BFGS."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from enum import IntEnum
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.linalg.lapack import dposv as posv
from scipy.linalg.lapack import dpotrf as potrf
from scipy.linalg.lapack import dtrtri as trtri

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
    tol, max_iter, first, precision
        As for `newton`.
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
        bends = here.hessian is None or length > math.sqrt(tol)
        there = evaluate(theta + step, second_order=bends)
        most = float(here.value[0]) - SUFFICIENT_DECREASE * length**2 + noise
        if not (there.value[0] <= most and np.isfinite(there.gradient.sum())):
            return newton(evaluate, start, first=first, **limits)
        hessian = hessian if there.hessian is None else there.hessian
        theta, here, earlier, n_iter = theta + step, there, length, n_iter + 1


def whitening(hessian: FloatArray) -> FloatArray:
    """What turns parameters in which a Hessian is one into its own, for `lbfgs`.

    R⁻¹ where it is RᵀR; where it isn't definite, its diagonal alone is made one.
    """
    size = np.sqrt(np.abs(np.diagonal(hessian)))
    size = np.where(size > 0.0, size, 1.0)
    scaled = hessian / np.outer(size, size)
    scaled[np.diag_indices(len(size))] += RELATIVE_FLOOR
    root, failed = potrf(scaled)
    if failed or not np.isfinite(root).all():
        return np.asarray(1.0 / size)
    return np.asarray(trtri(root)[0] / size[:, None])


# Steps that L-BFGS remembers, and how many of them may bring nothing before it ends.
REMEMBERED, VAIN = 20, 5


# Where a function falls without end, steps overflow, and it is left there.
@np.errstate(over="ignore", invalid="ignore")
def lbfgs(
    evaluate: Evaluate,
    start: FloatArray,
    *,
    scale: FloatArray,
    tol: float = 1e-8,
    max_iter: int = 1000,
    first: Evaluation | None = None,
    precision: float = float(np.finfo(np.float64).eps),
) -> Solution:
    """Minimise one smooth function by L-BFGS, whose steps cost one gradient each.

    Unlike scipy's, it takes a first step for as long as it says, and goes on where the
    function's values are too coarse to tell points apart.

    Parameters
    ----------
    evaluate : callable
    start : ndarray of shape (1, n_parameters)
    scale : ndarray of shape (n_parameters,) or (n_parameters, n_parameters)
        Parameters are `scale` times others in which the Hessian should be near one:
        1/sd of each feature, or the inverse R⁻¹ of a Hessian's factor RᵀR.
    tol, precision
        As for `newton`; the decrement is that of the Hessian that steps have shown.
    max_iter : int
    first : Evaluation, optional
        The evaluation at start, where it is known.
    """
    times: Any = np.multiply if scale.ndim == 1 else np.matmul
    theta, steps = (
        np.array(start),
        deque[tuple[FloatArray, FloatArray, float]](maxlen=REMEMBERED),
    )
    here = evaluate(theta, second_order=False) if first is None else first
    gradient = times(scale.T, here.gradient[0])
    least, vain, n_iter = math.inf, 0, 0
    while True:
        # 1. Aim by the Hessian that the last steps have shown.
        step, parts = -gradient, []
        for moved, bent, product in reversed(steps):
            parts.append(float(moved @ step) / product)
            step -= parts[-1] * bent
        if steps:
            _, bent, product = steps[-1]
            step *= product / float(bent @ bent)
        for (moved, bent, product), part in zip(steps, reversed(parts), strict=True):
            step += moved * (part - float(bent @ step) / product)
        # 2. Are we there? Where values can't tell any more, a decrement that falls no
        #    further is as good as zero.
        length = math.sqrt(max(-float(step @ gradient), 0.0))
        vain = 0 if length < 0.5 * least else vain + 1
        least = min(least, length)
        noise = ROUNDING * precision * max(1.0, abs(float(here.value[0])))
        solved = length <= tol or (length**2 <= noise and vain >= VAIN)
        status = single_status(solved, bool(here.no_optimum[0]), n_iter, max_iter)
        # 3. Go as far as the function falls.
        reach = 1.0
        while status == Status.RUNNING:
            there = evaluate(theta + times(scale, reach * step), second_order=False)
            rise, fall = float(there.value[0] - here.value[0]), reach * length**2
            if rise <= noise - SUFFICIENT_DECREASE * fall and np.isfinite(
                there.gradient.sum()
            ):
                break
            # As far as a parabola is lowest; from infinity a tenth of the way.
            lowest = fall / (2.0 * (rise + fall)) if math.isfinite(rise) else 0.0
            reach *= min(max(lowest, 0.1), 0.5)
            status = Status.RUNNING if reach > 1e-12 else Status.STALLED
        if status != Status.RUNNING:
            last = (here.value[0], here.gradient[0], times(scale, step), length, n_iter)
            return Solution.single(theta[0], *last, int(status))
        theta, here, n_iter = theta + times(scale, reach * step), there, n_iter + 1
        bent = times(scale.T, here.gradient[0]) - gradient
        gradient = gradient + bent
        if (curved := reach * float(step @ bent)) > 0.0:
            steps.append((reach * step, bent, curved))
