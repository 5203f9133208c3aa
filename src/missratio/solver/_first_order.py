"""L-BFGS, for problems with too many parameters for a Hessian."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import minimize

from missratio._base.typing import FloatArray
from missratio.solver._result import Evaluate, Solution, Status

FINEST_TOL = 1e-6


class _NoOptimumError(Exception):
    pass


def lbfgs(
    evaluate: Evaluate,
    start: FloatArray,
    *,
    scale: FloatArray,
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
    tol : float
        Converged when no scaled gradient entry is larger. Below 1e-6 the line search
        can't tell values apart, and 1e-6 is taken.
    max_iter : int

    Returns
    -------
    Solution
    """
    tol = max(tol, FINEST_TOL)
    forth, back = partial(_scaled, scale, trans=1), partial(_scaled, scale, trans=0)
    latest = start[0] / scale if scale.ndim == 1 else start[0] @ scale

    def scaled(point: FloatArray) -> tuple[float, FloatArray]:
        nonlocal latest
        result = evaluate(forth(point)[None], second_order=False)
        latest = point.copy()
        if result.no_optimum[0]:
            raise _NoOptimumError
        value, gradient = float(result.value[0]), back(result.gradient[0])
        if not (math.isfinite(value) and np.isfinite(gradient).all()):
            # Outside of the objective's domain: the line search must turn back.
            return math.inf, np.zeros_like(gradient)
        return value, gradient

    status, n_iter = Status.CONVERGED, 0
    options = {"maxiter": max_iter, "maxfun": 2 * max_iter, "gtol": tol, "ftol": 0.0}
    try:
        result = minimize(scaled, latest, jac=True, method="L-BFGS-B", options=options)
        latest, n_iter = result.x, result.nit
    except _NoOptimumError:
        status = Status.NO_OPTIMUM
    theta = forth(latest)
    end = evaluate(theta[None], second_order=False)
    value, gradient = float(end.value[0]), end.gradient[0]
    scaled_gradient = back(gradient)
    length = float(np.abs(scaled_gradient).max())
    if status == Status.CONVERGED and not length <= tol:
        out = n_iter >= max_iter
        status = Status.OUT_OF_ITERATIONS if out else Status.STALLED
    step = -forth(scaled_gradient)
    return Solution.of_one(theta, value, gradient, None, step, length, n_iter, status)


def _scaled(scale: FloatArray, vector: FloatArray, *, trans: int) -> FloatArray:
    """A point on the parameters' own scale (L⁻ᵀx), or a gradient off it (L⁻¹g)."""
    if scale.ndim == 1:
        return scale * vector
    return np.asarray(solve_triangular(scale, vector, lower=True, trans=trans))
