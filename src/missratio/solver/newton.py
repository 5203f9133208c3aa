"""Newton's method, with all Hessians or with one."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from scipy.linalg.lapack import dposv as posv

from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.solver.result import (
    Evaluate,
    Evaluation,
    Separable,
    Solution,
    Status,
    ending,
)

SUFFICIENT_DECREASE = 1e-4
RUNNING, NO_OPTIMUM = int(Status.RUNNING), int(Status.NO_OPTIMUM)
CONVERGED, STALLED = int(Status.CONVERGED), int(Status.STALLED)
OUT_OF_ITERATIONS = int(Status.OUT_OF_ITERATIONS)
# What is added to a Hessian's diagonal, in units of the first one's: always, and from
# the first vain step on.
RELATIVE_FLOOR = 1e-10
LEAST_DAMPING = 1e-3
MOST_DAMPING = 1e16
DAMPING_UP = 10.0
DAMPING_DOWN = 0.1
# At most so many tries for each step allowed.
TRIALS = 10
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
        Value, gradient and (on demand) Hessian of every problem in the batch. Where it
        has a method `problems`, the others are left behind as soon as no more than half
        of a batch still run.
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
    state = _State.at(np.array(start), evaluate, first, tol)
    _iterate(evaluate, state, _Limits(tol, max_iter, ROUNDING * precision))
    state.status[state.status == RUNNING] = OUT_OF_ITERATIONS
    return state.solution()


@dataclass(frozen=True, slots=True)
class _Limits:
    """When a problem is solved, and when it is given up."""

    tol: float
    max_iter: int
    # The relative error of the objective's values.
    noise: float


def _iterate(
    evaluate: Evaluate, state: _State, limits: _Limits, trials: int = 0
) -> None:
    """Take steps until no problem runs, or so many were tried as may be."""
    tol, max_iter = limits.tol, limits.max_iter
    for n_trials in range(trials + 1, TRIALS * max_iter + 1):
        running = state.status == RUNNING
        n_running = np.count_nonzero(running)
        if not n_running:
            return
        if 2 * n_running <= len(running) and isinstance(evaluate, Separable):
            rest = state.take(running)
            _iterate(evaluate.problems(running), rest, limits, n_trials - 1)
            state.put(running, rest)
            return
        # 1. Try a step for every problem that still runs; a Hessian is left out where
        #    it should be the last.
        trial = state.theta + running[:, None] * state.direction
        far = bool((running & (state.decrement > math.sqrt(tol))).any())
        there = evaluate(trial, second_order=not state.exact or far)

        # 2. Take it where the objective falls enough, up to its rounding error.
        noise = limits.noise * np.maximum(1.0, np.abs(state.value))
        # A quadratic function would fall by ½ of the squared decrement.
        least = state.value - SUFFICIENT_DECREASE * state.decrement**2 + noise
        taken = running & _falls(there, least)
        state.move(trial, there, taken)

        # 3. Aim anew, and see where that leaves each problem: a decrement that has sunk
        #    into the rounding error of the value and falls no more is as good as zero.
        earlier = state.decrement
        state.aim(running & ~taken)
        sunk = (state.plain**2 <= noise) & (state.plain > 0.5 * earlier) & taken
        state.status[running & ((state.plain <= tol) | sunk)] = CONVERGED
        state.status[taken & there.no_optimum] = NO_OPTIMUM
        state.status[running & (state.damping > MOST_DAMPING)] = STALLED
        if n_trials >= max_iter:
            spent = (state.status == RUNNING) & (state.n_iter >= max_iter)
            state.status[spent] = OUT_OF_ITERATIONS


@dataclass(slots=True)
class _State:
    """Where a batch stands, and where it aims: plainly, and as damped."""

    theta: FloatArray
    value: FloatArray
    gradient: FloatArray
    curvature: FloatArray
    scale: FloatArray
    newton_step: FloatArray
    plain: FloatArray
    direction: FloatArray
    decrement: FloatArray
    damping: FloatArray
    n_iter: IntArray
    status: IntArray
    # Whether the curvature is that at theta.
    exact: bool = True

    @classmethod
    def at(
        cls,
        theta: FloatArray,
        evaluate: Evaluate,
        first: Evaluation | None,
        tol: float,
    ) -> _State:
        here = evaluate(theta, second_order=True) if first is None else first
        assert here.hessian is not None
        scale = np.abs(np.diagonal(here.hessian, axis1=1, axis2=2)).copy()
        aim = newton_direction(here.hessian, here.gradient, RELATIVE_FLOOR * scale)
        status = np.where(aim[1] <= tol, CONVERGED, RUNNING)
        status[here.no_optimum] = NO_OPTIMUM
        point = (theta, here.value, here.gradient, here.hessian, scale)
        damping = np.full(len(theta), RELATIVE_FLOOR)
        n_iter = np.zeros(len(theta), dtype=np.int64)
        return cls(*point, *aim, *aim, damping, n_iter, status)

    def move(self, trial: FloatArray, there: Evaluation, taken: BoolArray) -> None:
        """Go on where a step was taken."""
        self.n_iter += taken
        self.exact = there.hessian is not None or (self.exact and not taken.any())
        self.theta = _where(taken, trial, self.theta)
        self.value = _where(taken, there.value, self.value)
        self.gradient = _where(taken, there.gradient, self.gradient)
        if there.hessian is not None:
            self.curvature = _where(taken, there.hessian, self.curvature)

    def aim(self, vain: BoolArray) -> None:
        """Newton's step, shortened after a vain one (Levenberg and Marquardt)."""
        floor = RELATIVE_FLOOR * self.scale
        aim = newton_direction(self.curvature, self.gradient, floor)
        self.newton_step, self.plain = self.direction, self.decrement = aim
        if vain.any() or (self.damping > RELATIVE_FLOOR).any():
            self.damping = _next_damping(self.damping, vain)
            lift = self.damping[:, None] * self.scale
            damped = newton_direction(self.curvature, self.gradient, lift)
            self.direction, self.decrement = damped

    def take(self, which: BoolArray) -> _State:
        """Some problems of the batch."""
        return replace(
            self, **{name: getattr(self, name)[which] for name in self._arrays}
        )

    def put(self, which: BoolArray, part: _State) -> None:
        """Go on where some problems of the batch went on to."""
        for name in self._arrays:
            merged = getattr(self, name).copy()
            merged[which] = getattr(part, name)
            setattr(self, name, merged)
        self.exact = part.exact

    @property
    def _arrays(self) -> list[str]:
        """What is known of each problem, in the order of the fields."""
        return [each.name for each in fields(self) if each.name != "exact"]

    def solution(self) -> Solution:
        return Solution(
            self.theta,
            self.value,
            self.gradient,
            self.newton_step,
            self.plain,
            self.n_iter,
            self.status,
        )


def _falls(there: Evaluation, least: FloatArray) -> BoolArray:
    """Whether a step leads to a value that is at most this, and finite."""
    finite = np.isfinite(there.gradient.sum(axis=1))
    return np.asarray((there.value <= least) & finite)


def _where(taken: BoolArray, there: FloatArray, here: FloatArray) -> FloatArray:
    """What holds after a step that some problems took."""
    if taken.all():
        return there
    return np.where(taken.reshape(-1, *[1] * (here.ndim - 1)), there, here)


def _next_damping(damping: FloatArray, vain: BoolArray) -> FloatArray:
    """More after a vain step, less otherwise."""
    less = np.maximum(DAMPING_DOWN * damping, RELATIVE_FLOOR)
    more = np.maximum(DAMPING_UP * damping, LEAST_DAMPING)
    return np.where(vain, more, less)


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
    direction = _solve_definite(lifted, -gradient)
    if direction is None:
        direction = _solve_indefinite(lifted, -gradient)
    decrement = np.sqrt(np.maximum(-(direction * gradient).sum(axis=1), 0.0))
    return direction, decrement


def _solve_definite(matrix: FloatArray, target: FloatArray) -> FloatArray | None:
    """Solve by Cholesky; None where a matrix is not positive definite."""
    if len(matrix) == 1:
        _, solution, info = posv(matrix[0], target[0])
        return solution[None] if info == 0 else None
    try:
        np.linalg.cholesky(matrix)
        solution = np.linalg.solve(matrix, target[..., None])
    except np.linalg.LinAlgError:
        return None
    return np.asarray(solution[..., 0], np.float64)


def _solve_indefinite(matrix: FloatArray, target: FloatArray) -> FloatArray:
    scale = np.sqrt(np.abs(np.diagonal(matrix, axis1=1, axis2=2)))
    scale = 1.0 / np.where(scale > 0.0, scale, 1.0)
    scaled = matrix * scale[:, :, None] * scale[:, None, :]
    values, vectors = np.linalg.eigh(np.nan_to_num(scaled))
    magnitude = np.abs(values)
    least = 1e-10 * np.maximum(magnitude.max(axis=1, keepdims=True), 1e-300)
    along = vectors.swapaxes(1, 2) @ (target * scale)[..., None]
    along /= np.maximum(magnitude, least)[..., None]
    return np.asarray((vectors @ along)[..., 0] * scale, dtype=np.float64)


# If a Hessian that isn't its own serves, a step falls by at least this part of the
# squared decrement, and the decrement shrinks by this factor in one of two steps.
LEAST_SERVED = 0.1
SLOW = 0.7


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
    limits: dict[str, Any] = {"tol": tol, "precision": precision}
    first = evaluate(theta, second_order=True) if first is None else first
    assert first.hessian is not None
    here, hessian = first, first.hessian
    floor = RELATIVE_FLOOR * np.abs(np.diagonal(hessian, axis1=1, axis2=2))
    least = SUFFICIENT_DECREASE if fresh else LEAST_SERVED
    earlier, noise, n_slow, n_iter = math.inf, 0.0, 0, 0
    while True:
        # 1. Are we there? A decrement that has sunk into the rounding error of the
        #    value and falls no more is as good as zero.
        step, decrement = newton_direction(hessian, here.gradient, floor)
        length = float(decrement[0])
        solved = length <= tol or (length**2 <= noise and length > 0.5 * earlier)
        status = ending(bool(here.no_optimum[0]), solved, n_iter >= max_iter)
        if status != Status.RUNNING:
            return Solution(
                theta, here.value, here.gradient, step, decrement,
                np.array([n_iter]), np.array([int(status)]),
            )  # fmt: skip
        # 2. Try a step. A Hessian is left out where the step should be the last, and
        #    one that serves so badly that two steps were slow is given up.
        noise = ROUNDING * precision * max(1.0, abs(float(here.value[0])))
        n_slow = n_slow + 1 if length > SLOW * earlier and not fresh else 0
        bends = fresh and (here.hessian is None or length > math.sqrt(tol))
        there = None if n_slow > 1 else evaluate(theta + step, second_order=bends)
        if there is None or not _falls(
            there, here.value - least * decrement**2 + noise
        ):
            if fresh:
                # Where Hessians differ much, damping is in units of the first one.
                return newton(evaluate, start, max_iter=max_iter, first=first, **limits)
            rest = newton(evaluate, theta, max_iter=max_iter - n_iter, **limits)
            return replace(rest, n_iter=rest.n_iter + n_iter)
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
