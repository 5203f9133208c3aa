"""Which solver takes a problem, and where it begins."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from missratio._base.threads import one_blas_thread
from missratio._base.threads import share as in_threads
from missratio._base.typing import FloatArray
from missratio.engine import Sample
from missratio.ratio.problem import RatioProblem
from missratio.solver import (
    Evaluation,
    Solution,
    Status,
    lbfgs,
    newton,
    proximal_newton,
    quick_newton,
    whitening,
)

# From this many parameters or numbers on, a second Hessian costs more than it saves.
MANY_PARAMETERS, MANY_NUMBERS = 48, 250_000
# Rows in files or on a cluster are read anew for each step: up to so many by Hessians.
MANY_REREAD = 500
# A pilot has so many rows at least, and is tried where it leaves out nine of ten.
PILOT_ROWS = 2000
PILOT_STRIDE = 10
# Up to so many parameters, L-BFGS begins by a Hessian of all rows.
MANY_HESSIANS = 128
# With more than so many it would take too much memory: spreads have to do, to 1e-6.
MOST_WHITENED, WIDE_TOL = 2000, 1e-6
# A Hessian costs about as much as a gradient for each of so many parameters.
HESSIAN_COST = 16
# As many steps are worth a try before a Hessian.
FEWEST_STEPS = 8


def solve(
    problem: RatioProblem,
    *,
    solver: str = "auto",
    tol: float,
    max_iter: int,
    start: FloatArray | None = None,
) -> Solution:
    """Solve a batch of problems, in chunks that stay in the cache.

    With an L1 penalty by the proximal Newton method; else one problem of many
    parameters, or for solver="lbfgs", by L-BFGS; and by Newton's. `start` has the shape
    (n_problems, n_parameters).
    """
    sample, (n_problems, n_parameters) = problem.denominator, problem.centre.shape
    n_parameters += problem.objective.fits_intercept
    # Without a better one, from the ratio that is one everywhere.
    begin = np.zeros((n_problems, n_parameters)) if start is None else start
    many = n_parameters > MANY_REREAD
    if n_problems == 1 and not sample.rereads:
        many = n_parameters >= MANY_PARAMETERS or sample.size >= MANY_NUMBERS
    method, length = _second_order, n_problems
    if problem.l1 is not None:
        length = 1
    elif solver == "lbfgs" or (solver == "auto" and many):
        method, length = _first_order, 1
    elif isinstance(sample, Sample):
        # Small problems are solved together up to 2 MB, which fit the cache.
        length = max(1, 262_144 * n_problems // max(sample.size, 1))
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
    """Newton's method, after a pilot where rows are many."""
    options: dict[str, Any] = {"tol": tol, "max_iter": max_iter}
    if problem.l1 is not None:
        # An intercept has no penalty.
        l1 = np.pad(problem.l1[0], (0, begin.shape[1] - problem.l1.shape[1]))
        return proximal_newton(problem, begin, l1, **options)
    first, precision = None, problem.denominator.precision
    if len(begin) > 1:
        return newton(problem, begin, precision=precision, **options)
    pilot = None if known else _pilot(problem, begin, _second_order, True, **options)
    if pilot is not None:
        _, begin, first = pilot
    return quick_newton(problem, begin, first=first, precision=precision, **options)


def _first_order(
    problem: RatioProblem, begin: FloatArray, *, known: bool, tol: float, max_iter: int
) -> Solution:
    """L-BFGS in parameters in which a Hessian is near one.

    Up to some number of parameters it is that of all rows, and else of a pilot's, or of
    ten rows a parameter. Where it would cost many steps, these come first, on features
    scaled by their spread: independent columns need no more. Where L-BFGS ends short of
    an optimum, or so far out that there may be none, Newton's method goes on: it takes
    a weak penalty with nearly as many parameters as rows, and shows where coefficients
    grow without bound.
    """
    sample, n_parameters = problem.denominator, begin.shape[1]
    options: dict[str, Any] = {"tol": tol, "max_iter": max_iter}
    # 1. Where to begin, and the rows that know the Hessian there.
    exact = n_parameters < MANY_HESSIANS and not sample.cheap_rows
    pilot = None if known else _pilot(problem, begin, _first_order, exact, **options)
    some, here = problem, None
    stride = min(n_parameters // 20, sample.n_rows // (10 * n_parameters))
    if pilot is not None:
        few, begin, here = pilot
        some = problem if exact else few
    elif not exact and stride > 1 and n_parameters <= MOST_WHITENED:
        some = _thinned(problem, stride)
    # 2. Steps on scaled features, for as long as a Hessian would take.
    within, most = {"tol": tol, "precision": sample.precision}, 10 * max_iter
    early = some.denominator.n_rows * n_parameters // (HESSIAN_COST * sample.n_rows)
    early = min(early, most) if early >= FEWEST_STEPS else 0
    if n_parameters > MOST_WHITENED:
        early, within["tol"] = most, max(tol, WIDE_TOL)
    origin, end = begin, None
    if early:
        rows = np.asarray(sample.peek()[0])
        spread = rows.std(axis=0, dtype=np.float64)
        visible = spread > 1e-8 * np.abs(rows).max(axis=0)
        scale = np.ones(n_parameters)
        scale[: len(spread)] = 1.0 / np.where(visible, spread, 1.0)
        end = lbfgs(problem, begin, scale=scale, max_iter=early, first=here, **within)
        begin, here = end.theta, None
    # 3. Steps by the Hessian.
    if end is None or (early < most and end.status[0] == Status.OUT_OF_ITERATIONS):
        curved = here if exact and here else some(origin, second_order=True)
        here = curved if exact else here
        assert curved.hessian is not None
        scale, left = whitening(curved.hessian[0]), most - early
        end = lbfgs(problem, begin, scale=scale, max_iter=left, first=here, **within)
        end = end._replace(n_iter=end.n_iter + early)
    near = problem.bounded or not problem.far_out(end).any()
    solved = end.status[0] == Status.CONVERGED and near
    if solved or end.status[0] == Status.NO_OPTIMUM:
        return end
    return _second_order(problem, end.theta, known=True, **options)


def _thinned(problem: RatioProblem, stride: int) -> RatioProblem:
    """The problem of every stride-th row."""
    numerator = problem.numerator.held(stride, problem.centre)
    denominator = problem.denominator.held(stride, problem.centre)
    return replace(problem, numerator=numerator, denominator=denominator)


def _pilot(
    problem: RatioProblem,
    begin: FloatArray,
    method: Callable[..., Solution],
    second_order: bool,
    *,
    tol: float,
    max_iter: int,
) -> tuple[RatioProblem, FloatArray, Evaluation] | None:
    """Some of many rows, their solution to its own statistical error, and all there."""
    sample, n_parameters = problem.denominator, begin.shape[1]
    # Weights of few rows mislead it where these are few for each parameter.
    stride = sample.n_rows // max(PILOT_ROWS, 100 * n_parameters, sample.cheap_rows)
    if stride < PILOT_STRIDE:
        return None
    # More rows than this for each parameter would cost more than they save.
    most = PILOT_ROWS * n_parameters
    some = _thinned(problem, min(stride, max(PILOT_STRIDE, sample.n_rows // most)))
    coarse = max(tol, 0.3 * math.sqrt(n_parameters / some.denominator.n_rows))
    end = method(some, begin, known=False, tol=coarse, max_iter=max_iter)
    if some.confirmed(end).status[0] != Status.CONVERGED:
        return None
    here = problem(end.theta, second_order=second_order)
    misled = not here.value[0] < end.value[0] + 1.0
    return None if misled else (some, end.theta, here)
