"""Solvers: they minimise functions and know no statistics."""

from missratio.solver._first_order import lbfgs
from missratio.solver._newton import newton, newton_direction
from missratio.solver._proximal import proximal_newton
from missratio.solver._result import Evaluate, Evaluation, Solution, Status

__all__ = [
    "Evaluate",
    "Evaluation",
    "Solution",
    "Status",
    "lbfgs",
    "newton",
    "newton_direction",
    "proximal_newton",
]
