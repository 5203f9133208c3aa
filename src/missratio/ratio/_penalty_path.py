"""Problems of nearly as many parameters as rows, under penalties that fall."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from missratio._base.typing import FloatArray
from missratio.ratio._curvature import Curvature
from missratio.ratio._problem import RatioProblem
from missratio.solver import Solution, Status, truncated_newton

# The first penalty is so large a part of the features' variance, and each that follows
# so large a part of the last one.
FIRST_PENALTY = 0.3
PENALTY_RATIO = 0.4
STEPS = 2


def solve_along_penalties(
    problem: RatioProblem,
    coarse: RatioProblem,
    begin: FloatArray,
    scale: FloatArray,
    *,
    tol: float,
    max_iter: int,
) -> Solution:
    """Solve one problem by Newton's steps under falling penalties, down to its own.

    With nearly as many parameters as rows and a weak penalty, the optimum gives most
    rows no weight. On a straight way there the weights soon lie on a handful of rows,
    and what those say misleads. Under a large penalty all rows count, and each optimum
    is near the last.

    Parameters
    ----------
    problem : RatioProblem
        One whose penalty holds every coefficient.
    coarse : RatioProblem
        The same in single precision, held as arrays.
    begin : ndarray of shape (1, n_parameters)
    scale : ndarray of shape (n_parameters,)
        A typical size of each parameter, 1/sd of its feature.
    tol : float
        Converged when no scaled gradient entry is larger.
    max_iter : int
    """
    assert coarse.l2 is not None
    theta, n_iter = begin[0], 0
    step_by = partial(truncated_newton, precondition=lambda vector: scale**2 * vector)
    for times in _penalties(problem, scale):
        stage = replace(coarse, l2=times * coarse.l2)
        theta, _, n_steps = step_by(
            stage,
            partial(Curvature.at, stage),
            theta,
            is_small=lambda gradient: False,
            max_iter=STEPS,
            precision=coarse.precision,
        )
        n_iter += n_steps
    theta, end, n_steps = step_by(
        problem,
        partial(Curvature.at, coarse),
        theta,
        is_small=lambda gradient: bool(np.abs(scale * gradient).max() <= tol),
        max_iter=max_iter,
    )
    gradient = end.gradient[0]
    length, step = float(np.abs(scale * gradient).max()), -(scale**2) * gradient
    status = Status.CONVERGED
    if not length <= tol:
        status = Status.OUT_OF_ITERATIONS if n_steps >= max_iter else Status.STALLED
    value, n_iter = float(end.value[0]), n_iter + n_steps
    return Solution.of_one(theta, value, gradient, None, step, length, n_iter, status)


def _penalties(problem: RatioProblem, scale: FloatArray) -> list[float]:
    """How many times the problem's own penalty each of the first ones is."""
    assert problem.l2 is not None
    l2 = problem.l2[0] if problem.l2.ndim == 2 else np.diagonal(problem.l2[0])
    times = FIRST_PENALTY / float(np.median(l2 * scale[: len(l2)] ** 2))
    found = []
    while times > 1.0:
        found.append(times)
        times *= PENALTY_RATIO
    return found
