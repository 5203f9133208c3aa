"""Solving ratio problems: in chunks, and with an eye on infinity."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from missratio._threads import one_blas_thread, share
from missratio._typing import BoolArray, FloatArray
from missratio.engine import Sample
from missratio.moments import dot
from missratio.ratio._problem import RatioProblem
from missratio.solver import (
    Solution,
    Status,
    lbfgs,
    minimise,
    minimise_with_l1,
    newton,
    newton_direction,
)

# Above this many parameters a Hessian costs more than it saves.
NEWTON_PARAMETERS = 1000
NEWTON_TOL = 1e-8
# L-BFGS scales features by their spread over so many rows.
SCALE_ROWS = 2000
# Small problems are solved together up to this many numbers, which fit the cache.
CHUNK_ELEMENTS = 262_144
# Scores that spread by more than this may be on their way to infinity.
FAR_OUT = 5.0
LONG_WAY = 8
# From this many rows on a pilot may have gone most of the way.
MANY_ROWS = 4000
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
        is the proximal Newton method, whichever is chosen.
    tol, max_iter
        As for the solvers.
    start : ndarray of shape (n_problems, n_parameters), optional
        Where to begin.
    """
    if solver == "auto":
        solver = "newton" if problem.n_parameters <= NEWTON_PARAMETERS else "lbfgs"
    one, length = _solve_newton, problem.n_problems
    if problem.l1 is not None:
        one, length = _solve_proximal, 1
    elif solver != "newton":
        one, length = _solve_first_order, 1
    elif isinstance(problem.denominator, Sample):
        per_problem = problem.denominator.size // problem.n_problems
        length = max(1, CHUNK_ELEMENTS // max(per_problem, 1))
    chunks = [slice(i, i + length) for i in range(0, problem.n_problems, length)]
    with one_blas_thread(problem.denominator.size) as threads:
        if len(chunks) == 1:
            return one(problem, start, tol=tol, max_iter=max_iter)

        def part(which: slice) -> Solution:
            begin = None if start is None else start[which]
            return one(problem.problems(which), begin, tol=tol, max_iter=max_iter)

        return Solution.concatenate(share(part, chunks, threads))


def _solve_newton(
    problem: RatioProblem, begin: FloatArray | None, *, tol: float, max_iter: int
) -> Solution:
    solution = minimise(problem, begin, tol=tol, max_iter=max_iter)
    return _without_receding(problem, solution)


def _solve_proximal(
    problem: RatioProblem, begin: FloatArray | None, *, tol: float, max_iter: int
) -> Solution:
    assert problem.l1 is not None
    l1 = np.zeros(problem.n_parameters)
    l1[: problem.l1.shape[1]] = problem.l1[0]
    solution = minimise_with_l1(problem, l1, begin, tol=tol, max_iter=max_iter)
    return _without_receding(problem, solution)


def _far_out(problem: RatioProblem, solution: Solution) -> BoolArray:
    """Whether scores spread so much that they may be on their way to infinity."""
    n_features = problem.centre.shape[1]
    few = problem.denominator.peek()
    spread = few.std(axis=1, dtype=np.float64) * solution.theta[:, :n_features]
    return dot(spread, spread) > FAR_OUT**2


def _without_receding(problem: RatioProblem, solution: Solution) -> Solution:
    """Tell a flat stretch on the way to infinity from an optimum.

    Only a solution far out can be one, where scores spread by more than a few units;
    and as a step on the way moves them by about one, it takes many.
    """
    unsolved = solution.status != CONVERGED
    long_way = solution.n_iter.max() >= LONG_WAY or problem.n_rows >= MANY_ROWS
    if not (unsolved.any() or long_way):
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
        if problem.l2 is not None and problem.l2.ndim == 2:
            # What is penalised can't go to infinity; the rest may.
            step[:, : problem.l2.shape[1]] *= problem.l2 == 0.0
        status[suspect & problem.recedes(step)] = Status.NO_OPTIMUM
    return replace(solution, status=status)


def _solve_first_order(
    problem: RatioProblem, begin: FloatArray | None, *, tol: float, max_iter: int
) -> Solution:
    """L-BFGS on features scaled by their spread over some denominator rows."""
    stride = max(1, problem.denominator.n_rows // SCALE_ROWS)
    features = problem.denominator.held(stride, problem.centre).features
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
