"""L-BFGS, for problems with too many parameters for a Hessian."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import minimize

from missratio._base.typing import FloatArray
from missratio.solver._result import Evaluate, Evaluation, Solution, Status

FINEST_TOL = 1e-6
# A function in single precision shows the way until gradients are so small, or as small
# as its rounding error, which grows with the parameters. A pass takes a third. A matrix
# as scale enlarges the error where there is little spread.
COARSE_TOL = 1e-5
COARSE_MATRIX_TOL = 1e-4
COARSE_ERROR = 2e-6
# Where steps are more than these, and than one for so many parameters, a Hessian to
# precondition by costs less than the rest of them, once gradients are small enough for
# it to serve.
LONG_WAY = 50
PARAMETERS_A_STEP = 40
SERVED_TOL = 3e-3


class _NoOptimumError(Exception):
    pass


class _LongWayError(Exception):
    pass


def lbfgs(
    evaluate: Evaluate,
    start: FloatArray,
    *,
    scale: FloatArray,
    coarse: Evaluate | None = None,
    rescale: Callable[[FloatArray], FloatArray] | None = None,
    tol: float = 1e-8,
    max_iter: int = 1000,
) -> Solution:
    """Minimise one smooth function by scipy's L-BFGS.

    Parameters
    ----------
    evaluate : callable
    start : ndarray of shape (1, n_parameters)
    scale : ndarray of shape (n_parameters,) or (n_parameters, n_parameters)
        A typical size of each parameter, 1/sd of its feature, to precondition by; or a
        lower triangular matrix L with LLᵀ about the Hessian. The length of the gradient
        in this scaling takes the place of Newton's decrement.
    coarse : callable, optional
        The same function in single precision, for the first steps.
    rescale : callable, optional
        From parameters to the scale to go on with from there, where the first steps
        were many.
    tol : float
        Converged when no scaled gradient entry is larger. Below 1e-6 the line search
        can't tell values apart, and 1e-6 is taken.
    max_iter : int

    Returns
    -------
    Solution
    """
    tol = max(tol, FINEST_TOL)
    search = _ScaledFunction(evaluate, scale, coarse, rescale)
    search.latest = _unscaled(scale, start[0])
    status, n_iter = Status.CONVERGED, 0
    try:
        n_iter = search.run(tol, max_iter)
    except _NoOptimumError:
        status = Status.NO_OPTIMUM
    theta, end = search.ended()
    value, gradient = float(end.value[0]), end.gradient[0]
    scaled_gradient = search.back(gradient)
    length = float(np.abs(scaled_gradient).max())
    if status == Status.CONVERGED and not length <= tol:
        out = n_iter >= max_iter
        status = Status.OUT_OF_ITERATIONS if out else Status.STALLED
    step = -search.forth(scaled_gradient)
    return Solution.of_one(theta, value, gradient, None, step, length, n_iter, status)


@dataclass(slots=True)
class _ScaledFunction:
    """The function on L-BFGS's scale, and where it was evaluated last."""

    evaluate: Evaluate
    scale: FloatArray
    coarse: Evaluate | None
    rescale: Callable[[FloatArray], FloatArray] | None
    latest: FloatArray = field(init=False)
    end: Evaluation | None = None
    n_coarse: int = 0

    def forth(self, point: FloatArray) -> FloatArray:
        return _scaled(self.scale, point, trans=1)

    def back(self, gradient: FloatArray) -> FloatArray:
        return _scaled(self.scale, gradient, trans=0)

    def run(self, tol: float, max_iter: int) -> int:
        """Minimise, and say in how many steps."""
        options = {"maxiter": max_iter, "maxfun": 2 * max_iter, "gtol": tol, "ftol": 0}
        solve = partial(minimize, self, jac=True, method="L-BFGS-B", options=options)
        n_iter = 0
        try:
            result = solve(self.latest)
        except _LongWayError:
            assert self.rescale is not None
            theta, n_iter, self.coarse = self.forth(self.latest), self.n_coarse, None
            self.scale = self.rescale(theta)
            result = solve(_unscaled(self.scale, theta))
        n_iter += int(result.nit)
        if self.n_coarse and not np.abs(result.jac).max() <= tol and n_iter < max_iter:
            # Where the two differ too much a line search fails: begin anew from there.
            self.coarse = None
            result = solve(result.x)
            n_iter += int(result.nit)
        if not np.array_equal(result.x, self.latest):
            self.latest, self.end = result.x, None
        return n_iter

    def ended(self) -> tuple[FloatArray, Evaluation]:
        """Where it ended, and the evaluation there."""
        theta = self.forth(self.latest)
        if self.end is None:
            self.end = self.evaluate(theta[None], second_order=False)
        return theta, self.end

    def __call__(self, point: FloatArray) -> tuple[float, FloatArray]:
        """Value and gradient on the scale, as scipy asks for them."""
        result = self._at(point)
        self.latest = point.copy()
        gradient = self.back(result.gradient[0])
        if self.coarse and self._leads_on(point, result, gradient):
            self.n_coarse += 1
        elif self.coarse:
            self.coarse = None
            result = self._at(point)
            gradient = self.back(result.gradient[0])
        self.end = result
        if result.no_optimum[0]:
            raise _NoOptimumError
        value = float(result.value[0])
        if not (math.isfinite(value) and np.isfinite(gradient).all()):
            # Outside of the objective's domain: the line search must turn back.
            return math.inf, np.zeros_like(gradient)
        return value, gradient

    def _at(self, point: FloatArray) -> Evaluation:
        evaluate = self.coarse or self.evaluate
        return evaluate(self.forth(point)[None], second_order=False)

    def _leads_on(
        self, point: FloatArray, result: Evaluation, gradient: FloatArray
    ) -> bool:
        """Whether single precision still shows the way; a Hessian may do so better."""
        steepest = float(np.abs(gradient).max())
        long_way = self.n_coarse > max(LONG_WAY, len(point) / PARAMETERS_A_STEP)
        if self.rescale and long_way and steepest < SERVED_TOL:
            raise _LongWayError
        least = COARSE_TOL if self.scale.ndim == 1 else COARSE_MATRIX_TOL
        least = max(least, COARSE_ERROR * float(np.linalg.norm(point)))
        return not result.no_optimum[0] and steepest > least


def _unscaled(scale: FloatArray, theta: FloatArray) -> FloatArray:
    return theta / scale if scale.ndim == 1 else np.asarray(theta @ scale)


def _scaled(scale: FloatArray, vector: FloatArray, *, trans: int) -> FloatArray:
    """A point on the parameters' own scale (L⁻ᵀx), or a gradient off it (L⁻¹g)."""
    if scale.ndim == 1:
        return scale * vector
    # Looking at the matrix again and again would take a quarter of a fit.
    solved = solve_triangular(
        scale, vector, lower=True, trans=trans, check_finite=False
    )
    return np.asarray(solved)
