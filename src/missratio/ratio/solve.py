"""Solving ratio problems: in chunks, and with an eye on infinity."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.linalg import LinAlgError, cholesky

from missratio._base.threads import one_blas_thread, share
from missratio._base.typing import FloatArray
from missratio.engine import Sample
from missratio.ratio.problem import RatioProblem
from missratio.solver import (
    Solution,
    Status,
    correlation_kept,
    lbfgs,
    minimise,
    minimise_with_l1,
    newton,
    shrunk,
)

# Above this many parameters a Hessian costs more than it saves.
NEWTON_PARAMETERS = 500
# Up to this many one Hessian at the end is worth knowing that there is an optimum.
CONFIRMED_PARAMETERS = 1000
NEWTON_TOL = 1e-8
# L-BFGS scales features by their spread over so many rows, or by a covariance from so
# many for each feature, where more than this part of their correlations isn't noise.
SCALE_ROWS = 2000
COVARIANCE_ROWS = 5
CORRELATED = 0.5
# Small problems are solved together up to this many numbers, which fit the cache.
CHUNK_ELEMENTS = 262_144


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
        "auto" takes Newton's method up to 500 parameters, and L-BFGS above. With an L1
        penalty it is the proximal Newton method, whichever is chosen.
    tol, max_iter
        As for the solvers.
    start : ndarray of shape (n_problems, n_parameters), optional
        Where to begin.
    """
    one, length = _solve_newton, problem.n_problems
    if problem.l1 is not None:
        one, length = _solve_proximal, 1
    elif solver == "lbfgs" or (
        solver == "auto" and problem.n_parameters > NEWTON_PARAMETERS
    ):
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
    return problem.confirmed(minimise(problem, begin, tol=tol, max_iter=max_iter))


def _solve_proximal(
    problem: RatioProblem, begin: FloatArray | None, *, tol: float, max_iter: int
) -> Solution:
    assert problem.l1 is not None
    l1 = np.zeros(problem.n_parameters)
    l1[: problem.l1.shape[1]] = problem.l1[0]
    solution = minimise_with_l1(problem, l1, begin, tol=tol, max_iter=max_iter)
    return problem.confirmed(solution)


def _solve_first_order(
    problem: RatioProblem, begin: FloatArray | None, *, tol: float, max_iter: int
) -> Solution:
    """L-BFGS on features scaled by what some denominator rows show of them.

    Where it ends short of an optimum that a penalty vouches for, Newton's method goes
    on: it takes a weak one with nearly as many parameters as rows.
    """
    start = problem.start() if begin is None else begin
    solution = lbfgs(
        problem, start, scale=_scale(problem), tol=tol, max_iter=10 * max_iter
    )
    unsolved = solution.status[0] in (Status.STALLED, Status.OUT_OF_ITERATIONS)
    if unsolved and problem.bounded:
        return _solve_newton(problem, solution.theta, tol=tol, max_iter=max_iter)
    if problem.n_parameters > CONFIRMED_PARAMETERS:
        return solution
    checked = problem.confirmed(solution)
    if checked.status[0] != Status.CONVERGED:
        return checked
    # Too coarse to tell by one step of Newton's: a few more show where it leads.
    return _confirmed(problem, solution, max_iter)


def _scale(problem: RatioProblem) -> FloatArray:
    """What L-BFGS is preconditioned by: the features' spread, or their covariance.

    The covariance where features are correlated: 1,000 of them with correlations of 0.9
    then take a fifth of the passes. Where they aren't it wouldn't pay.
    """
    rows = _some_rows(problem, SCALE_ROWS)
    spread = rows.std(axis=0, dtype=np.float64)
    visible = spread > 1e-8 * np.abs(rows).max(axis=0)
    scale = np.ones(problem.n_parameters)
    scale[: len(spread)] = 1.0 / np.where(visible, spread, 1.0)
    few = rows[:, :: 1 + rows.shape[1] // 200]
    if not visible.all() or few.shape[1] < 2:
        return scale
    if correlation_kept(np.cov(few.T), len(few)) < CORRELATED:
        return scale
    # L with LLᵀ the features' covariance, shrunk and penalised.
    rows = _some_rows(problem, COVARIANCE_ROWS * len(scale))
    hessian, n_features = np.diag(scale**-2.0), rows.shape[1]
    hessian[:n_features, :n_features] = np.cov(rows.T, bias=True)
    hessian = shrunk(hessian[None], len(rows))[0]
    if problem.l2 is not None:
        pull = problem.l2[0]
        hessian[:n_features, :n_features] += np.diag(pull) if pull.ndim == 1 else pull
    try:
        return np.asarray(cholesky(hessian, lower=True))
    except LinAlgError:
        return scale


def _some_rows(problem: RatioProblem, n_rows: int) -> FloatArray:
    """Features of about so many denominator rows."""
    stride = max(1, problem.denominator.n_rows // n_rows)
    return np.asarray(problem.denominator.held(stride, problem.centre).features[0])


def _confirmed(problem: RatioProblem, solution: Solution, max_iter: int) -> Solution:
    """The same solution, unless Newton's steps from it lead to infinity."""
    if not problem.far_out(solution).any():
        return solution
    onwards = newton(problem, solution.theta, tol=NEWTON_TOL, max_iter=max_iter)
    if problem.confirmed(onwards).status[0] == Status.NO_OPTIMUM:
        return replace(solution, status=np.array([Status.NO_OPTIMUM]))
    return solution
