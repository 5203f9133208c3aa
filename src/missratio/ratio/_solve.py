"""Solving ratio problems: in chunks, and with an eye on infinity."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from scipy.linalg import LinAlgError, cholesky

from missratio._base.threads import one_blas_thread, share
from missratio._base.typing import FloatArray
from missratio.engine import RowSample, Sample
from missratio.ratio._curvature import Curvature
from missratio.ratio._penalty_path import solve_along_penalties
from missratio.ratio._problem import RatioProblem
from missratio.ratio._recession import far_out
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
# And above this many where the tolerance is one that L-BFGS reaches, and rows are many
# for each parameter and in memory: half the time at 500.
GRADIENT_PARAMETERS = 250
GRADIENT_ROWS = 20
GRADIENT_TOL = 1e-6
# With fewer rows for each parameter than these, and a penalty, Newton's steps under
# falling penalties take two thirds of the time or less.
FEW_ROWS = 2
# Up to this many one Hessian at the end is worth knowing that there is an optimum.
CONFIRMED_PARAMETERS = 1000
NEWTON_TOL = 1e-8
# L-BFGS scales features by their spread over so many rows.
SCALE_ROWS = 2000
# Whether they are correlated is seen in about so many columns: where more than this
# part of their correlations' squares isn't noise.
SCALE_COLUMNS = 200
CORRELATED = 0.5
# A covariance is estimated from so many rows for each feature.
COVARIANCE_ROWS = 5
COVARIANCE_PARTS = 16
# Rows of up to so many numbers are copied in single precision for L-BFGS's first steps.
COPIED_ELEMENTS = 100_000_000
SINGLE_PRECISION = float(np.finfo(np.float32).eps)
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
        "auto" takes Newton's method up to 500 parameters, or 250 where tol is 1e-6 or
        more and rows are many. With an L1 penalty it is the proximal Newton method,
        whichever is chosen.
    tol, max_iter
        As for the solvers.
    start : ndarray of shape (n_problems, n_parameters), optional
        Where to begin.
    """
    by_size = solver == "auto" and problem.n_parameters > NEWTON_PARAMETERS
    one, length = _solve_newton, problem.n_problems
    if problem.l1 is not None:
        one, length = _solve_proximal, 1
    elif solver == "lbfgs" or by_size:
        one, length = _solve_first_order, 1
    elif solver == "auto" and _gradients_do(problem, tol):
        one, length = _solve_either, 1
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


def _gradients_do(problem: RatioProblem, tol: float) -> bool:
    """Whether L-BFGS is likely to end sooner than Newton's method."""
    return (
        tol >= GRADIENT_TOL
        and problem.n_parameters > GRADIENT_PARAMETERS
        and problem.n_problems == 1
        and isinstance(problem.denominator, Sample | RowSample)
        and not problem.rereads
        and problem.n_rows >= GRADIENT_ROWS * problem.n_parameters
    )


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
    """L-BFGS on features scaled by what some denominator rows show of them."""
    coarse = problem.thinned(1) if _is_copied(problem) else None
    start = problem.start() if begin is None else begin
    few_rows = problem.n_rows < FEW_ROWS * problem.n_parameters
    if coarse is not None and problem.bounded and few_rows:
        solution = solve_along_penalties(
            problem,
            coarse,
            start,
            _spread_scale(coarse)[0],
            tol=max(tol, GRADIENT_TOL),
            max_iter=max_iter,
        )
        if solution.status[0] == Status.CONVERGED:
            return solution
        start = solution.theta
    scale = _scale(coarse or problem)
    hessian_at = None
    if coarse is not None and problem.bounded:
        # Without a penalty a long way may have no end, and its Hessian no inverse.
        hessian_at = partial(Curvature.at, coarse)
    solution = lbfgs(
        problem,
        start,
        scale=scale,
        coarse=coarse,
        hessian_at=hessian_at,
        tol=tol,
        max_iter=10 * max_iter,
    )
    if problem.n_parameters > CONFIRMED_PARAMETERS:
        return solution
    checked = problem.confirmed(solution)
    if checked.status[0] != Status.CONVERGED:
        return checked
    # Too coarse to tell by one step of Newton's: a few more show where it leads.
    return _confirmed(problem, solution, max_iter)


def _is_copied(problem: RatioProblem) -> bool:
    """Whether first steps are taken on a copy of all rows in single precision."""
    sample = problem.denominator
    return (
        problem.n_parameters > GRADIENT_PARAMETERS
        and isinstance(sample, Sample | RowSample)
        and not problem.rereads
        and sample.precision < SINGLE_PRECISION
        and sample.size <= COPIED_ELEMENTS
    )


def _solve_either(
    problem: RatioProblem, begin: FloatArray | None, *, tol: float, max_iter: int
) -> Solution:
    """L-BFGS, and Newton's method from where it ends if that isn't the optimum."""
    solution = _solve_first_order(problem, begin, tol=tol, max_iter=max_iter)
    if solution.status[0] not in (Status.STALLED, Status.OUT_OF_ITERATIONS):
        return solution
    return _solve_newton(problem, solution.theta, tol=tol, max_iter=max_iter)


def _scale(problem: RatioProblem) -> FloatArray:
    """What L-BFGS is preconditioned by: the features' spread, or their covariance.

    The covariance where features are correlated: 1,000 of them with correlations of 0.9
    then take a fifth of the passes. Where they aren't it wouldn't pay.
    """
    scale, rows, all_visible = _spread_scale(problem)
    few = rows[:, :: 1 + rows.shape[1] // SCALE_COLUMNS]
    if not all_visible or few.shape[1] < 2:
        return scale
    if correlation_kept(np.cov(few.T), len(few)) < CORRELATED:
        return scale
    return _covariance_root(problem, scale)


def _spread_scale(problem: RatioProblem) -> tuple[FloatArray, FloatArray, bool]:
    """1/sd of each feature, the rows it is seen in, and whether all features vary."""
    rows = _some_rows(problem, SCALE_ROWS)
    spread = rows.std(axis=0, dtype=np.float64)
    visible = spread > 1e-8 * np.abs(rows).max(axis=0)
    scale = np.ones(problem.n_parameters)
    scale[: len(spread)] = 1.0 / np.where(visible, spread, 1.0)
    return scale, rows, bool(visible.all())


def _covariance_root(problem: RatioProblem, scale: FloatArray) -> FloatArray:
    """L with LLᵀ the features' covariance, shrunk and penalised; threads share it."""
    rows = _some_rows(problem, COVARIANCE_ROWS * len(scale))
    rows = rows - rows.mean(axis=0)
    hessian, n_features = np.diag(scale**-2.0), rows.shape[1]
    width = -(-n_features // COVARIANCE_PARTS)

    def below(left: int) -> None:
        own = slice(left, min(left + width, n_features))
        product = rows[:, left:].T @ rows[:, own] / len(rows)
        hessian[left:n_features, own] = product
        hessian[own, left:n_features] = product.T

    with one_blas_thread(rows.size) as threads:
        share(below, range(0, n_features, width), threads)
    hessian = shrunk(hessian[None], len(rows))[0]
    if problem.l2 is not None:
        pull = problem.l2[0]
        hessian[:n_features, :n_features] += np.diag(pull) if pull.ndim == 1 else pull
    try:
        return np.asarray(cholesky(hessian, lower=True))
    except LinAlgError:
        return np.diag(1.0 / scale)


def _some_rows(problem: RatioProblem, n_rows: int) -> FloatArray:
    """Features of about so many denominator rows."""
    stride = max(1, problem.denominator.n_rows // n_rows)
    return np.asarray(problem.denominator.held(stride, problem.centre).features[0])


def _confirmed(problem: RatioProblem, solution: Solution, max_iter: int) -> Solution:
    """The same solution, unless Newton's steps from it lead to infinity."""
    if not far_out(problem, solution).any():
        return solution
    onwards = newton(problem, solution.theta, tol=NEWTON_TOL, max_iter=max_iter)
    if problem.confirmed(onwards).status[0] == Status.NO_OPTIMUM:
        return replace(solution, status=np.array([Status.NO_OPTIMUM]))
    return solution
