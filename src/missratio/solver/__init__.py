"""Solvers: they minimise functions and know no statistics."""

from missratio.solver.proximal import proximal_newton as proximal_newton
from missratio.solver.simplex import SimplexSolution as SimplexSolution
from missratio.solver.simplex import least_on_simplex as least_on_simplex
from missratio.solver.simplex import mixture_proportions as mixture_proportions
from missratio.solver.smooth import Evaluation as Evaluation
from missratio.solver.smooth import Solution as Solution
from missratio.solver.smooth import Status as Status
from missratio.solver.smooth import lbfgs as lbfgs
from missratio.solver.smooth import newton as newton
from missratio.solver.smooth import newton_direction as newton_direction
from missratio.solver.smooth import quick_newton as quick_newton
from missratio.solver.smooth import whitening as whitening
