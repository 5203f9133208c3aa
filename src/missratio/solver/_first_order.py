"""L-BFGS, for problems with too many parameters for a Hessian."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import minimize

from missratio._base.typing import FloatArray
from missratio.solver._result import Evaluate, Evaluation, Solution, Status
from missratio.solver._truncated import HessianAt, truncated_newton

FINEST_TOL = 1e-6
# A function in single precision shows the way until gradients are so small, or as small
# as its rounding error, which grows with the parameters. A pass takes a third. A matrix
# as scale enlarges the error where there is little spread.
COARSE_TOL = 1e-5
COARSE_MATRIX_TOL = 1e-4
COARSE_ERROR = 2e-6
# Where steps are more than these and gradients are small enough for Newton's method to
# be quick, its steps take over.
LONG_WAY = 40
SERVED_TOL = 1e-2


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
    hessian_at: HessianAt | None = None,
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
    hessian_at : callable, optional
        From parameters to a function that multiplies a vector by the Hessian there, for
        Newton's steps where the first steps were many.
    tol : float
        Converged when no scaled gradient entry is larger. Below 1e-6 the line search
        can't tell values apart, and 1e-6 is taken.
    max_iter : int
    """
    tol = max(tol, FINEST_TOL)
    search = _ScaledFunction(evaluate, scale, coarse, hessian_at)
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
    hessian_at: HessianAt | None
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
            n_iter, self.coarse = self._newton(tol, max_iter), None
            if n_iter >= max_iter or self._is_small(self.ended()[1].gradient[0], tol):
                return n_iter
            result = solve(self.latest)
        n_iter += int(result.nit)
        if self.n_coarse and not np.abs(result.jac).max() <= tol and n_iter < max_iter:
            # Where the two differ too much a line search fails: begin anew from there.
            self.coarse = None
            result = solve(result.x)
            n_iter += int(result.nit)
        if not np.array_equal(result.x, self.latest):
            self.latest, self.end = result.x, None
        return n_iter

    def _newton(self, tol: float, max_iter: int) -> int:
        """Go on by Newton's steps, and say how many there were with the first."""
        assert self.hessian_at is not None
        theta, self.end, n_iter = truncated_newton(
            self.evaluate,
            self.hessian_at,
            self.forth(self.latest),
            lambda gradient: self.forth(self.back(gradient)),
            is_small=lambda gradient: self._is_small(gradient, tol),
            max_iter=max_iter - self.n_coarse,
        )
        self.latest = _unscaled(self.scale, theta)
        return self.n_coarse + n_iter

    def _is_small(self, gradient: FloatArray, tol: float) -> bool:
        return bool(np.abs(self.back(gradient)).max() <= tol)

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
        long_way = self.n_coarse >= LONG_WAY
        if self.hessian_at and long_way and steepest < SERVED_TOL:
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
