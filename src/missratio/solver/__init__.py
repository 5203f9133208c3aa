"""Solvers: they minimise functions and know no statistics."""

from missratio.solver.proximal import proximal_newton
from missratio.solver.simplex import (
    SimplexSolution,
    least_on_simplex,
    mixture_proportions,
)
from missratio.solver.smooth import (
    Evaluation,
    Solution,
    Status,
    lbfgs,
    newton,
    newton_direction,
    quick_newton,
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
