"""Solvers: they minimise functions and know no statistics."""

from missratio.solver._first_order import lbfgs
from missratio.solver._large import frozen_newton
from missratio.solver._mixture import MixtureSolution, mixture_proportions
from missratio.solver._newton import newton, newton_direction
from missratio.solver._pilot import (
    correlation_kept,
    minimise,
    minimise_with_l1,
    shrunk,
)
from missratio.solver._proximal import proximal_newton
from missratio.solver._quadratic import (
    least_on_simplex,
    quadratic_program,
)
from missratio.solver._result import Evaluation, Solution, Status

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
