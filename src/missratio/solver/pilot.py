"""Problems with many rows: a pilot on some of them finds where to begin."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from missratio._base.typing import FloatArray
from missratio.solver.proximal import proximal_newton
from missratio.solver.result import Evaluation, Problem, Solution, Status
from missratio.solver.second_order import frozen_newton, newton

# A pilot takes every PILOT_STRIDE-th row, or more where that leaves too few of them;
# one that needs many steps is given up.
PILOT_STRIDE = 10
PILOT_ROWS = 2000
# More rows than these for each parameter would cost more than they save.
MOST_PILOT_ROWS = 2000
PILOT_STEPS = 20
# Where the objective over all rows lies so far above the pilot's, it has misled.
PILOT_GAP = 1.0
# What part of the rows the first Hessian after a pilot is estimated from, and how many
# they are for each parameter at least and at most.
HESSIAN_SHARE = 0.1
HESSIAN_ROWS = (250, 10_000)
# Where more than this part would be drawn, a pilot's rows say about as much.
MOST_DRAWN = 0.5
# From this many parameters on, one estimated from some rows is shrunk.
SHRUNK_PARAMETERS = 100
PILOT_WORTH = 0.3
# From this many parameters on a Hessian is kept over several steps.
FREEZE_PARAMETERS = 48
# Up to so many it costs less than reading rows anew, and saves such passes.
EXACT_PARAMETERS = 100


def minimise(
    problem: Problem, start: FloatArray | None = None, *, tol: float, max_iter: int
) -> Solution:
    """Minimise one problem, or a batch, by the Newton method that suits its size.

    Parameters
    ----------
    problem : Problem
    start : ndarray of shape (n_problems, n_parameters), optional
        Where to begin; without it a pilot is tried where rows are many.
    tol, max_iter
        As for `newton`.
    """
    options = {"tol": tol, "max_iter": max_iter, "precision": problem.precision}
    begin = problem.start() if start is None else start
    rough = None if start is not None else _solve_pilot(problem, tol, max_iter)
    if len(begin) > 1 or _is_exact(problem):
        if rough is None:
            return newton(problem, begin, **options)  # type: ignore[arg-type]
        return _from_pilot(problem, begin, rough, options)
    if rough is None:
        wide = problem.n_parameters >= FREEZE_PARAMETERS
        return (frozen_newton if wide else newton)(problem, begin, **options)  # type: ignore[arg-type]
    # A Hessian estimated where the pilot ends serves for all steps, as a rule.
    first = None
    if rough.status[0] == Status.CONVERGED:
        share = _hessian_share(problem)
        if share <= MOST_DRAWN:
            first = problem.sketch(rough.theta, share)
        else:
            here = problem(rough.theta, second_order=False)
            first = replace(here, hessian=rough.hessian)
        if not first.value[0] < rough.value[0] + PILOT_GAP:
            first = None
        elif problem.n_parameters >= SHRUNK_PARAMETERS:
            # Rows of a pilot weigh unequally: they are worth a part of their number.
            drawn = share * problem.n_rows
            if share > MOST_DRAWN:
                drawn = PILOT_WORTH * problem.n_rows / _stride(problem)
            first = replace(first, hessian=shrunk(first.hessian, drawn))
    begin = begin if first is None else rough.theta
    return frozen_newton(problem, begin, first=first, **options)  # type: ignore[arg-type]


def shrunk(hessian: FloatArray | None, n_rows: float) -> FloatArray:
    """A Hessian estimated from few rows, its correlations shrunk towards none.

    By the part of their squares that noise is expected to make up (as Ledoit and Wolf
    do): steps with many independent features then take no more passes than with a
    diagonal, and with correlated ones a fifth.
    """
    assert hessian is not None
    result = hessian * correlation_kept(hessian[0], n_rows)
    np.einsum("ii->i", result[0])[:] = np.diagonal(hessian[0])
    return result


def correlation_kept(hessian: FloatArray, n_rows: float) -> float:
    """What part of a matrix's squared correlations isn't the noise of so many rows."""
    scale = np.sqrt(np.abs(np.diagonal(hessian)))
    scale = np.where(scale > 0.0, scale, 1.0)
    correlations = hessian / scale / scale[:, None]
    np.fill_diagonal(correlations, 0.0)
    squares = float((correlations**2).sum())
    n_pairs = len(scale) * (len(scale) - 1)
    return max(0.0, 1.0 - n_pairs / (n_rows * max(squares, 1e-300)))


def minimise_with_l1(
    problem: Problem,
    l1: FloatArray,
    start: FloatArray | None = None,
    *,
    tol: float,
    max_iter: int,
) -> Solution:
    """Minimise one problem plus Σ l1 |θ|, begun by a pilot where rows are many."""
    begin = problem.start() if start is None else start
    pilot = None if start is not None else _pilot(problem)
    if pilot is not None:
        steps = min(max_iter, PILOT_STEPS)
        rough = proximal_newton(
            pilot, begin, l1, tol=_pilot_tolerance(pilot, tol), max_iter=steps
        )
        served = rough.status[0] == Status.CONVERGED
        if served:
            here = problem(rough.theta, second_order=False).value[0]
            served = here + l1 @ np.abs(rough.theta[0]) < rough.value[0] + PILOT_GAP
        begin = rough.theta if served else begin
    return proximal_newton(problem, begin, l1, tol=tol, max_iter=max_iter)


def _from_pilot(
    problem: Problem, begin: FloatArray, rough: Solution, options: dict[str, float]
) -> Solution:
    """Exact steps from where a pilot ended, in those problems that it served."""
    served = rough.status == Status.CONVERGED
    theta = np.where(served[:, None], rough.theta, begin)
    first: Evaluation | None = problem(theta, second_order=True)
    assert first is not None
    misled = served & ~(first.value < rough.value + PILOT_GAP)
    if misled.any():
        theta, first = np.where(misled[:, None], begin, theta), None
    return newton(problem, theta, first=first, **options)  # type: ignore[arg-type]


def _solve_pilot(problem: Problem, tol: float, max_iter: int) -> Solution | None:
    """Solve a pilot no further than to its own statistical error, if there is one.

    Its Hessian is that at its end where it is to serve for all rows.
    """
    pilot = _pilot(problem)
    if pilot is None:
        return None
    coarse, steps = _pilot_tolerance(pilot, tol), min(max_iter, PILOT_STEPS)
    rough = pilot.confirmed(minimise(pilot, tol=coarse, max_iter=steps))
    sketched = _hessian_share(problem) <= MOST_DRAWN
    if problem.n_problems > 1 or _is_exact(problem) or sketched:
        return rough
    return replace(rough, hessian=pilot(rough.theta, second_order=True).hessian)


def _is_exact(problem: Problem) -> bool:
    """Whether every step takes a Hessian over all rows."""
    return problem.rereads and problem.n_parameters <= EXACT_PARAMETERS


def _pilot(problem: Problem) -> Problem | None:
    """The problem on a part of the rows; None where that wouldn't pay.

    With few parameters a Hessian is cheap, and a pilot pays for many rows only.
    """
    least = 2 if problem.n_parameters >= FREEZE_PARAMETERS else PILOT_STRIDE
    stride = problem.n_rows // _pilot_rows(problem)
    return problem.thinned(_stride(problem)) if stride >= least else None


def _stride(problem: Problem) -> int:
    """Every how many rows a pilot takes one."""
    most = MOST_PILOT_ROWS * problem.n_parameters
    longest = max(PILOT_STRIDE, problem.n_rows // most)
    return max(1, min(problem.n_rows // _pilot_rows(problem), longest))


def _pilot_rows(problem: Problem) -> int:
    """How many rows a pilot has at least."""
    return max(PILOT_ROWS, 20 * problem.n_parameters, problem.cheap_rows)


def _hessian_share(problem: Problem) -> float:
    """What part of the rows a first Hessian is estimated from."""
    least, most = (each * problem.n_parameters for each in HESSIAN_ROWS)
    n_rows = problem.n_rows
    return max(least, min(most, HESSIAN_SHARE * n_rows)) / n_rows


def _pilot_tolerance(pilot: Problem, tol: float) -> float:
    """About a pilot's own statistical error, in decrements."""
    return max(tol, 0.3 * math.sqrt(pilot.n_parameters / pilot.n_rows))
