"""Solvers: they minimise functions and know no statistics."""

from missratio.solver.first_order import lbfgs
from missratio.solver.newton import newton, newton_direction, quick_newton
from missratio.solver.proximal import proximal_newton
from missratio.solver.result import Evaluation, Solution, Status
from missratio.solver.simplex import (
    SimplexSolution,
    least_on_simplex,
    mixture_proportions,
)

__all__ = [
    "Evaluation",
    "SimplexSolution",
    "Solution",
    "Status",
    "lbfgs",
    "least_on_simplex",
    "mixture_proportions",
    "newton",
    "newton_direction",
    "proximal_newton",
    "quick_newton",
]
