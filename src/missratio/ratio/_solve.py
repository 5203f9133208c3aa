"""Solving ratio problems: in chunks, from pilots, and with an eye on infinity."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from missratio._threads import one_blas_thread, share
from missratio._typing import BoolArray, FloatArray
from missratio.moments import dot
from missratio.ratio._problem import RatioProblem
from missratio.solver import (
    Solution,
    Status,
    lbfgs,
    newton,
    newton_direction,
    proximal_newton,
)

# Above this many parameters a Hessian costs more than it saves.
NEWTON_PARAMETERS = 1000
NEWTON_TOL = 1e-8
# A pilot fit takes every PILOT_STRIDE-th row, or more where that leaves too few of
# them; one that needs many steps is given up.
PILOT_STRIDE = 10
PILOT_ROWS = 2000
PILOT_STEPS = 20
# Where the objective over all rows lies so far above the pilot's, it has misled.
PILOT_GAP = 1.0
# What part of the rows the first Hessian after a pilot is estimated from, and how many
# they are for each parameter at least and at most.
HESSIAN_SHARE = 0.1
HESSIAN_ROWS = (250, 10_000)
# Where more than this part would be drawn, a pilot's rows say about as much.
MOST_DRAWN = 0.5
# From this many parameters on a Hessian is kept over several steps.
FREEZE_PARAMETERS = 48
# Small problems are solved together up to this many numbers, which fit the cache.
CHUNK_ELEMENTS = 262_144
# Scores that spread by more than this may be on their way to infinity.
FAR_OUT = 5.0
LONG_WAY = 8
CONVERGED = int(Status.CONVERGED)


def solve(
    problem: RatioProblem,
    *,
    solver: str = "auto",
    tol: float,
    max_iter: int,
    start: FloatArray | None = None,
) -> Solution:
    """Solve a batch of problems, in chunks that stay in the cache.

    Parameters
    ----------
    problem : RatioProblem
    solver : {"auto", "newton", "lbfgs"}
        "auto" takes Newton's method up to a thousand parameters. With an L1 penalty it
        is the proximal Newton method, for one problem, whichever is chosen.
    tol, max_iter
        As for the solvers.
    start : ndarray of shape (1, n_parameters), optional
        Where to begin, for one problem.
    """
    if problem.l1 is not None:
        with one_blas_thread(problem.denominator.size):
            return _solve_proximal(problem, start, tol=tol, max_iter=max_iter)
    n_problems = len(problem.centre)
    if solver == "auto":
        solver = "newton" if problem.n_parameters <= NEWTON_PARAMETERS else "lbfgs"
    one = _solve_newton if solver == "newton" else _solve_first_order
    per_problem = problem.denominator.size // n_problems
    length = max(1, CHUNK_ELEMENTS // max(per_problem, 1)) if solver == "newton" else 1
    chunks = [slice(i, i + length) for i in range(0, n_problems, length)]
    with one_blas_thread(problem.denominator.size) as threads:
        if len(chunks) == 1:
            return one(problem, start, tol=tol, max_iter=max_iter)
        return Solution.concatenate(
            share(
                lambda which: one(
                    problem.problems(which), None, tol=tol, max_iter=max_iter
                ),
                chunks,
                threads,
            )
        )


def _solve_newton(
    problem: RatioProblem, begin: FloatArray | None, *, tol: float, max_iter: int
) -> Solution:
    """Newton, begun by a pilot where that is worth its while."""
    start, first = problem.start() if begin is None else begin, None
    rough = _solve_pilot(problem, tol, max_iter) if begin is None else None
    if rough is not None and rough.status[0] == Status.CONVERGED:
        # A Hessian estimated where the pilot ends serves for all steps, as a rule.
        share = _hessian_share(problem)
        if share <= MOST_DRAWN:
            first = problem.sketch(rough.theta, share)
        else:
            here = problem(rough.theta, second_order=False)
            first = replace(here, hessian=rough.hessian)
        if first.value[0] < rough.value[0] + PILOT_GAP:
            start = rough.theta
        else:
            first = None
    solution = newton(
        problem,
        start,
        first=first,
        freeze=rough is not None
        or (len(start) == 1 and problem.n_parameters >= FREEZE_PARAMETERS),
        precision=float(np.finfo(problem.denominator.features.dtype).eps),
        tol=tol,
        max_iter=max_iter,
    )
    return _without_receding(problem, solution)


def _solve_pilot(problem: RatioProblem, tol: float, max_iter: int) -> Solution | None:
    """Solve a pilot no further than to its own statistical error, if there is one.

    Its Hessian is that at its end where it is to serve for all rows.
    """
    pilot = _pilot(problem)
    if pilot is None:
        return None
    coarse, steps = _pilot_tolerance(pilot, tol), min(max_iter, PILOT_STEPS)
    rough = _solve_newton(pilot, None, tol=coarse, max_iter=steps)
    if _hessian_share(problem) <= MOST_DRAWN:
        return rough
    return replace(rough, hessian=pilot(rough.theta, second_order=True).hessian)


def _solve_proximal(
    problem: RatioProblem, begin: FloatArray | None, *, tol: float, max_iter: int
) -> Solution:
    """Proximal Newton, begun by a pilot where that is worth its while."""
    assert problem.l1 is not None
    start = problem.start() if begin is None else begin
    l1 = np.zeros(problem.n_parameters)
    l1[: len(problem.l1)] = problem.l1
    pilot = _pilot(problem) if begin is None else None
    if pilot is not None:
        coarse = _pilot_tolerance(pilot, tol)
        steps = min(max_iter, PILOT_STEPS)
        rough = proximal_newton(pilot, start, l1, tol=coarse, max_iter=steps)
        if rough.status[0] == Status.CONVERGED:
            start = rough.theta
    solution = proximal_newton(problem, start, l1, tol=tol, max_iter=max_iter)
    return _without_receding(problem, solution)


def _pilot(problem: RatioProblem) -> RatioProblem | None:
    """The problem on a part of the rows; None where that wouldn't pay.

    With few parameters a Hessian is cheap, and a pilot pays for many rows only.
    """
    n_parameters = problem.n_parameters
    stride = problem.denominator.n_rows // max(PILOT_ROWS, 20 * n_parameters)
    least = 2 if n_parameters >= FREEZE_PARAMETERS else PILOT_STRIDE
    if len(problem.centre) > 1 or stride < least:
        return None
    return problem.thin(min(stride, PILOT_STRIDE))


def _hessian_share(problem: RatioProblem) -> float:
    """What part of the rows a first Hessian is estimated from."""
    n_rows = problem.denominator.n_rows
    least, most = (each * problem.n_parameters for each in HESSIAN_ROWS)
    return max(least, min(most, HESSIAN_SHARE * n_rows)) / n_rows


def _pilot_tolerance(pilot: RatioProblem, tol: float) -> float:
    """About a pilot's own statistical error, in decrements."""
    return max(tol, 0.3 * math.sqrt(pilot.n_parameters / pilot.denominator.n_rows))


def _far_out(problem: RatioProblem, solution: Solution) -> BoolArray:
    """Whether scores spread so much that they may be on their way to infinity."""
    n_features = problem.centre.shape[1]
    spread = problem.denominator.peek().std(axis=1) * solution.theta[:, :n_features]
    return dot(spread, spread) > FAR_OUT**2


def _without_receding(problem: RatioProblem, solution: Solution) -> Solution:
    """Tell a flat stretch on the way to infinity from an optimum.

    Only a solution far out can be one, where scores spread by more than a few units;
    and as a step on the way moves them by about one, it takes many.
    """
    unsolved = solution.status != CONVERGED
    if not (unsolved.any() or solution.n_iter.max() >= LONG_WAY):
        return solution
    if problem.bounded or not problem.objective.diverges_when_separated:
        return solution
    suspect = unsolved | _far_out(problem, solution)
    if not suspect.any():
        return solution
    end = problem(solution.theta, second_order=True)
    assert end.hessian is not None
    status = solution.status.copy()
    # Far enough out the Hessian underflows; such a step tells nothing, and needn't.
    with np.errstate(over="ignore", invalid="ignore"):
        step, _ = newton_direction(
            end.hessian, end.gradient, np.zeros_like(end.gradient)
        )
        if problem.l1 is not None:
            step = solution.step.copy()
        if problem.l2 is not None and problem.l2.ndim == 1:
            # What is penalised can't go to infinity; the rest may.
            step[:, : len(problem.l2)] *= problem.l2 == 0.0
        status[suspect & problem.recedes(step)] = Status.NO_OPTIMUM
    return replace(solution, status=status)


def _solve_first_order(
    problem: RatioProblem, begin: FloatArray | None, *, tol: float, max_iter: int
) -> Solution:
    """L-BFGS on features scaled by their spread over some denominator rows."""
    stride = max(1, problem.denominator.n_rows // PILOT_ROWS)
    thinned = problem.denominator.thin(stride, problem.centre)
    features, _ = thinned.block(0, thinned.n_rows)
    spread = features[0].std(axis=0, dtype=np.float64)
    visible = spread > 1e-8 * np.abs(features[0]).max(axis=0)
    scale = np.ones(problem.n_parameters)
    scale[: len(spread)] = 1.0 / np.where(visible, spread, 1.0)
    start = problem.start() if begin is None else begin
    solution = lbfgs(problem, start, scale=scale, tol=tol, max_iter=10 * max_iter)
    if problem.n_parameters > NEWTON_PARAMETERS:
        return solution
    checked = _without_receding(problem, solution)
    if checked.status[0] != Status.CONVERGED:
        return checked
    # Too coarse to tell by one step of Newton's: a few more show where it leads.
    return _confirmed(problem, solution, max_iter)


def _confirmed(problem: RatioProblem, solution: Solution, max_iter: int) -> Solution:
    """The same solution, unless Newton's steps from it lead to infinity."""
    if not _far_out(problem, solution).any():
        return solution
    onwards = newton(problem, solution.theta, tol=NEWTON_TOL, max_iter=max_iter)
    if _without_receding(problem, onwards).status[0] == Status.NO_OPTIMUM:
        return replace(solution, status=np.array([Status.NO_OPTIMUM]))
    return solution
