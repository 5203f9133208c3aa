"""Solvers: they minimise functions and know no statistics."""

from missratio.solver.first_order import lbfgs
from missratio.solver.pilot import (
    correlation_kept,
    minimise,
    minimise_with_l1,
    shrunk,
)
from missratio.solver.proximal import proximal_newton
from missratio.solver.result import Evaluation, Solution, Status
from missratio.solver.second_order import frozen_newton, newton, newton_direction
from missratio.solver.simplex import (
    MixtureSolution,
    least_on_simplex,
    mixture_proportions,
    quadratic_program,
)

__all__ = [
    "Evaluation",
    "MixtureSolution",
    "Solution",
    "Status",
    "correlation_kept",
    "frozen_newton",
    "lbfgs",
    "least_on_simplex",
    "minimise",
    "minimise_with_l1",
    "mixture_proportions",
    "newton",
    "newton_direction",
    "proximal_newton",
    "quadratic_program",
    "shrunk",
]
