"""Objectives that fall for ever: a flat stretch on the way to infinity."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from missratio._base.typing import BoolArray
from missratio.solver import Solution, Status, newton_direction

if TYPE_CHECKING:
    from missratio.ratio._problem import RatioProblem

# Scores that spread by more than this may be on their way to infinity.
FAR_OUT = 5.0
LONG_WAY = 8
# From this many rows on a pilot may have gone most of the way.
MANY_ROWS = 4000
CONVERGED = int(Status.CONVERGED)


def far_out(problem: RatioProblem, solution: Solution) -> BoolArray:
    """Whether scores spread so much that they may be on their way to infinity."""
    few = problem.denominator.peek()
    coef = solution.theta[:, : problem.centre.shape[1], None]
    with np.errstate(over="ignore", invalid="ignore"):
        spread = (few - few[:, :1]).astype(np.float64, copy=False) @ coef
        return np.asarray(spread[..., 0].std(axis=1) > FAR_OUT)


def without_receding(problem: RatioProblem, solution: Solution) -> Solution:
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
    suspect = unsolved | far_out(problem, solution)
    if not suspect.any():
        return solution
    end = problem(solution.theta, second_order=True)
    assert end.hessian is not None
    status = solution.status.copy()
    # Far enough out the Hessian underflows; such a step tells nothing.
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
