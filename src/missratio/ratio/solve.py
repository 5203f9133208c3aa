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

# Above this many parameters a Hessian costs more than it saves.
NEWTON_PARAMETERS = 500
# From this many on it is kept over several steps.
KEPT_PARAMETERS = 48
# A pilot has so many rows at least, and at least so many for each parameter. It is
# tried where that leaves out nine rows of ten, or half where Hessians are dear.
PILOT_ROWS = 2000
PILOT_ROWS_A_PARAMETER = 20
PILOT_STRIDE = 10
PILOT_STEPS = 20
# Where the objective over all rows lies so far above the pilot's, it has misled.
PILOT_GAP = 1.0
# L-BFGS scales features by their spread over so many rows.
SCALE_ROWS = 2000
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

    With an L1 penalty by the proximal Newton method; else up to 500 parameters by
    Newton's, and above, or for solver="lbfgs", by L-BFGS. `start` has the shape
    (n_problems, n_parameters).
    """
    n_problems = len(problem.centre)
    one, length = _second_order, n_problems
    if problem.l1 is not None:
        one, length = _with_l1, 1
    elif solver == "lbfgs" or (
        solver == "auto" and problem.n_parameters > NEWTON_PARAMETERS
    ):
        one, length = _first_order, 1
    elif isinstance(problem.denominator, Sample):
        length = max(1, CHUNK_ELEMENTS * n_problems // max(problem.denominator.size, 1))
    begin = problem.start() if start is None else start

    options: dict[str, Any] = {"tol": tol, "max_iter": max_iter}
    options["known"] = start is not None
    with one_blas_thread(problem.denominator.size) as threads:
        if length >= n_problems:
            return one(problem, begin, **options)

        def part(which: slice) -> Solution:
            return one(problem.problems(which), begin[which], **options)

        chunks = [slice(i, i + length) for i in range(0, n_problems, length)]
        return Solution.concatenate(in_threads(part, chunks, threads))


def _second_order(
    problem: RatioProblem, begin: FloatArray, *, known: bool, tol: float, max_iter: int
) -> Solution:
    """Newton's method; with few Hessians where they are dear, and after a pilot.

    A pilot finds where to begin, unless that is known.
    """
    options: dict[str, Any] = {
        "tol": tol,
        "max_iter": max_iter,
        "precision": problem.denominator.precision,
    }
    first = None
    if len(problem.centre) > 1:
        return problem.confirmed(newton(problem, begin, **options))
    rough = None if known else _pilot(problem, tol, max_iter)
    # Reading rows anew costs more than a Hessian.
    fresh = problem.denominator.rereads or (
        rough is None and problem.n_parameters < KEPT_PARAMETERS
    )
    if rough is not None:
        first = problem(rough.theta, second_order=True, rough=not fresh)
        if first.value[0] < rough.value[0] + PILOT_GAP:
            begin = rough.theta
        else:
            first = None
    return problem.confirmed(
        quick_newton(problem, begin, fresh=fresh, first=first, **options)
    )


def _with_l1(
    problem: RatioProblem, begin: FloatArray, *, known: bool, tol: float, max_iter: int
) -> Solution:
    """The proximal Newton method."""
    assert problem.l1 is not None
    l1 = np.zeros(problem.n_parameters)
    l1[: problem.l1.shape[1]] = problem.l1[0]
    found = proximal_newton(problem, begin, l1, tol=tol, max_iter=max_iter)
    return problem.confirmed(found)


def _first_order(
    problem: RatioProblem, begin: FloatArray, *, known: bool, tol: float, max_iter: int
) -> Solution:
    """L-BFGS on features scaled by their spread over some denominator rows.

    Where it ends short of an optimum that a penalty vouches for, Newton's method goes
    on: it takes a weak one with nearly as many parameters as rows.
    """
    stride = max(1, problem.denominator.n_rows // SCALE_ROWS)
    rows = np.asarray(problem.denominator.held(stride, problem.centre).features[0])
    spread = rows.std(axis=0, dtype=np.float64)
    visible = spread > 1e-8 * np.abs(rows).max(axis=0)
    scale = np.ones(problem.n_parameters)
    scale[: len(spread)] = 1.0 / np.where(visible, spread, 1.0)
    found = lbfgs(problem, begin, scale=scale, tol=tol, max_iter=10 * max_iter)
    unsolved = found.status[0] in (Status.STALLED, Status.OUT_OF_ITERATIONS)
    if unsolved and problem.bounded:
        limits: dict[str, Any] = {"tol": tol, "max_iter": max_iter}
        return _second_order(problem, found.theta, known=True, **limits)
    checked = problem.confirmed(found)
    if checked.status[0] != Status.CONVERGED or not problem.far_out(found).any():
        return checked
    # Too coarse to tell by one step of Newton's: a few more show where it leads.
    onwards = newton(problem, found.theta, tol=tol, max_iter=max_iter)
    if problem.confirmed(onwards).status[0] == Status.NO_OPTIMUM:
        return replace(found, status=np.array([int(Status.NO_OPTIMUM)]))
    return found


def _pilot(problem: RatioProblem, tol: float, max_iter: int) -> Solution | None:
    """The solution on some of the rows, to its own statistical error.

    None where rows aren't many, or where it has none.
    """
    n_parameters = problem.n_parameters
    least = max(
        PILOT_ROWS,
        PILOT_ROWS_A_PARAMETER * n_parameters,
        problem.denominator.cheap_rows,
    )
    stride = problem.denominator.n_rows // least
    worth = 2 if n_parameters >= KEPT_PARAMETERS else PILOT_STRIDE
    if len(problem.centre) > 1 or stride < worth:
        return None
    # More rows than this for each parameter would cost more than they save.
    most = PILOT_ROWS * n_parameters
    stride = min(stride, max(PILOT_STRIDE, problem.denominator.n_rows // most))
    pilot = problem.thinned(stride)
    coarse = max(tol, 0.3 * math.sqrt(n_parameters / pilot.denominator.n_rows))
    steps = min(max_iter, PILOT_STEPS)
    start = pilot.start()
    rough = _second_order(pilot, start, known=False, tol=coarse, max_iter=steps)
    return rough if rough.status[0] == Status.CONVERGED else None
