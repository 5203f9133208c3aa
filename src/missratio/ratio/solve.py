"""Which solver takes a problem, and where it begins."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from missratio._base.threads import one_blas_thread
from missratio._base.threads import share as in_threads
from missratio._base.typing import FloatArray
from missratio.engine import Sample
from missratio.ratio.problem import RatioProblem
from missratio.solver import (
    Solution,
    Status,
    lbfgs,
    newton,
    proximal_newton,
    quick_newton,
)

# From this many parameters on a Hessian is kept over several steps.
KEPT_PARAMETERS = 48
# A pilot has so many rows at least, and is tried where it leaves out nine of ten.
PILOT_ROWS = 2000
PILOT_STRIDE = 10


def solve(
    problem: RatioProblem,
    *,
    solver: str = "auto",
    tol: float,
    max_iter: int,
    start: FloatArray | None = None,
) -> Solution:
    """Solve a batch of problems, in chunks that stay in the cache.

    With an L1 penalty by the proximal Newton method; else up to 500 parameters by
    Newton's, and above, or for solver="lbfgs", by L-BFGS. `start` has the shape
    (n_problems, n_parameters).
    """
    n_problems, n_parameters = problem.centre.shape
    n_parameters += problem.objective.fits_intercept
    # Without a better one, from the ratio that is one everywhere.
    begin = np.zeros((n_problems, n_parameters)) if start is None else start
    method, length = _second_order, n_problems
    if problem.l1 is not None:
        length = 1
    elif solver == "lbfgs" or (solver == "auto" and n_parameters > 500):
        # Of so many parameters a Hessian costs more than it saves.
        method, length = _first_order, 1
    elif isinstance(problem.denominator, Sample):
        # Small problems are solved together up to 2 MB, which fit the cache.
        length = max(1, 262_144 * n_problems // max(problem.denominator.size, 1))
    options: dict[str, Any] = {"tol": tol, "max_iter": max_iter}
    options["known"] = start is not None
    with one_blas_thread(problem.denominator.size) as threads:
        if length >= n_problems:
            return problem.confirmed(method(problem, begin, **options))

        def part(which: slice) -> Solution:
            some = problem.problems(which)
            return some.confirmed(method(some, begin[which], **options))

        chunks = [slice(i, i + length) for i in range(0, n_problems, length)]
        return Solution.concatenate(in_threads(part, chunks, threads))


def _second_order(
    problem: RatioProblem, begin: FloatArray, *, known: bool, tol: float, max_iter: int
) -> Solution:
    """Newton's method; with few Hessians where they are dear, and after a pilot.

    A pilot, unless the beginning is known, is the solution on some of the rows, to its
    own statistical error.
    """
    sample, n_parameters = problem.denominator, begin.shape[1]
    if problem.l1 is not None:
        # An intercept has no penalty.
        l1 = np.pad(problem.l1[0], (0, n_parameters - problem.l1.shape[1]))
        return proximal_newton(problem, begin, l1, tol=tol, max_iter=max_iter)
    options: dict[str, Any] = {"max_iter": max_iter, "precision": sample.precision}
    if len(begin) > 1:
        return newton(problem, begin, tol=tol, **options)
    dear = n_parameters >= KEPT_PARAMETERS
    # 1. A pilot where rows are many.
    rough = None
    least = max(PILOT_ROWS, 20 * n_parameters, sample.cheap_rows)
    stride = sample.n_rows // least
    # From about 200 parameters on half of the rows save more than they cost; for 60 to
    # 120 such a pilot took a fifth of the fit.
    fewest = 2 if n_parameters >= 4 * KEPT_PARAMETERS else PILOT_STRIDE
    if not known and stride >= fewest:
        # More rows than this for each parameter would cost more than they save.
        most = PILOT_ROWS * n_parameters
        stride = min(stride, max(PILOT_STRIDE, sample.n_rows // most))
        few = sample.held(stride, problem.centre)
        means = problem.numerator.held(stride, problem.centre)
        pilot = replace(problem, numerator=means, denominator=few)
        coarse = max(tol, 0.3 * math.sqrt(n_parameters / few.n_rows))
        rough = pilot.confirmed(
            _second_order(pilot, begin, known=False, tol=coarse, max_iter=max_iter)
        )
    # 2. All rows, from where the pilot ended if it hasn't misled.
    first, piloted = None, rough is not None and rough.status[0] == Status.CONVERGED
    # Reading rows anew costs more than a Hessian.
    fresh = sample.rereads or not (piloted or dear)
    if rough is not None and piloted:
        first = problem(rough.theta, second_order=True, rough=not fresh)
        if first.value[0] < rough.value[0] + 1.0:
            begin = rough.theta
        else:
            first = None
    return quick_newton(problem, begin, fresh=fresh, first=first, tol=tol, **options)


def _first_order(
    problem: RatioProblem, begin: FloatArray, *, known: bool, tol: float, max_iter: int
) -> Solution:
    """L-BFGS on features scaled by their spread over some denominator rows.

    Where it ends short of an optimum, or so far out that there may be none, Newton's
    method goes on: it takes a weak penalty with nearly as many parameters as rows, and
    shows where coefficients grow without bound.
    """
    rows = np.asarray(problem.denominator.peek()[0])
    spread = rows.std(axis=0, dtype=np.float64)
    visible = spread > 1e-8 * np.abs(rows).max(axis=0)
    scale = np.ones(begin.shape[1])
    scale[: len(spread)] = 1.0 / np.where(visible, spread, 1.0)
    end = lbfgs(problem, begin, scale=scale, tol=tol, max_iter=10 * max_iter)
    near = problem.bounded or not problem.far_out(end).any()
    solved = end.status[0] == Status.CONVERGED and near
    if solved or end.status[0] == Status.NO_OPTIMUM:
        return end
    return _second_order(problem, end.theta, known=True, tol=tol, max_iter=max_iter)
