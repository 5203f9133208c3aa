"""L-BFGS, for problems with too many parameters for a Hessian."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import minimize

from missratio._base.typing import FloatArray
from missratio.solver.result import Evaluate, Evaluation, Solution, Status

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
    scale : ndarray of shape (n_parameters,)
        A typical size of each parameter, 1/sd of its feature, to precondition by. The
        largest entry of the gradient in this scaling takes the place of Newton's
        decrement.
    tol : float
        Converged when no scaled gradient entry is larger. Below 1e-6 the line search
        can't tell values apart, and 1e-6 is taken.
    max_iter : int
    """
    tol = max(tol, FINEST_TOL)
    # Where it was evaluated last, on L-BFGS's scale, and what was found there.
    latest: list[tuple[FloatArray, Evaluation]] = []

    def function(point: FloatArray) -> tuple[float, FloatArray]:
        found = evaluate((scale * point)[None], second_order=False)
        latest[:] = [(point.copy(), found)]
        if found.no_optimum[0]:
            raise _NoOptimumError
        value, gradient = float(found.value[0]), scale * found.gradient[0]
        if not (math.isfinite(value) and np.isfinite(gradient).all()):
            # Outside of the objective's domain: the line search must turn back.
            return math.inf, np.zeros_like(gradient)
        return value, gradient

    status, n_iter = Status.CONVERGED, 0
    options = {"maxiter": max_iter, "maxfun": 2 * max_iter, "gtol": tol, "ftol": 0}
    try:
        result = minimize(
            function, start[0] / scale, jac=True, method="L-BFGS-B", options=options
        )
        n_iter = int(result.nit)
        if not np.array_equal(result.x, latest[0][0]):
            function(result.x)
    except _NoOptimumError:
        status = Status.NO_OPTIMUM
    point, end = latest[0]
    gradient = scale * end.gradient[0]
    length = float(np.abs(gradient).max())
    if status == Status.CONVERGED and not length <= tol:
        out = n_iter >= max_iter
        status = Status.OUT_OF_ITERATIONS if out else Status.STALLED
    return Solution(
        (scale * point)[None],
        end.value,
        end.gradient,
        -(scale * gradient)[None],
        np.array([length]),
        np.array([n_iter]),
        np.array([int(status)]),
    )
