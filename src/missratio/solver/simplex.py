"""Minima on a simplex: proportions of a mixture, and a quadratic form."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import nnls

from missratio._base.typing import FloatArray
from missratio.solver.smooth import SUFFICIENT_DECREASE, Status


@dataclass(frozen=True, slots=True)
class SimplexSolution:
    """Where a solve ended, at a point without negative entries.

    A likelihood is at most `gap` below its maximum there: the largest derivative
    towards a component, which is zero at the optimum.
    """

    point: FloatArray
    gap: float
    n_iter: int
    status: Status


def mixture_proportions(
    likelihood: FloatArray,
    weights: FloatArray,
    start: FloatArray | None = None,
    tol: float = 1e-8,
    max_iter: int = 100,
) -> SimplexSolution:
    """Maximise Σ w_i log Σ_k L_ik π_k over the simplex, by Newton's steps.

    Each step minimises the second-order model over proportions that are not negative,
    in the components that matter, and is cut back until the likelihood rises.

    Parameters
    ----------
    likelihood : ndarray of shape (n_rows, n_components)
        L, not negative, with something positive in every row.
    weights : ndarray of shape (n_rows,)
        w, with sum one.
    start : ndarray of shape (n_components,), optional
        Where to begin; equal proportions by default.
    tol : float
        The gap at which to stop.
    max_iter : int
    """
    n_components = likelihood.shape[1]
    point = np.full(n_components, 1.0 / n_components) if start is None else start
    mixed = likelihood @ point
    for n_iter in range(max_iter + 1):
        # 1. The derivative towards each component; none is positive at the optimum.
        pull = likelihood.T @ (weights / mixed) - 1.0
        gap = float(pull.max())
        status = Status.CONVERGED if gap <= tol else Status.OUT_OF_ITERATIONS
        if gap <= tol or n_iter == max_iter:
            break
        # 2. Newton's step among components that are there or wanted most: to the least
        #    of the second-order model of −Σ w log Lπ + Σ π over π ≥ 0. Components that
        #    are the same make its Hessian singular but for a ridge.
        among = np.flatnonzero((point > 0.0) | (pull > 0.3 * gap))
        part = likelihood.T[among].T
        scaled = part * np.sqrt(weights / mixed**2)[:, None]
        hessian = _ridged(scaled.T @ scaled, 1e-10)
        slope = hessian @ point[among] + pull[among]
        step = _least_form(hessian, slope) - point[among]
        # 3. Back until the likelihood rises, by enough of what the slope promises, and
        #    no row's falls by more than a millionth of it at once.
        change, rise = part @ step, float(pull[among] @ step)
        for length in 0.5 ** np.arange(40):
            after = mixed + length * change
            if (after > 1e-6 * mixed).all():
                gain = weights @ np.log(after / mixed) - length * step.sum()
                if gain >= SUFFICIENT_DECREASE * length * rise > 0.0:
                    break
        else:
            status = Status.STALLED
            break
        # The likelihood is largest at sum one.
        moved_to = np.maximum(point[among] + length * step, 0.0)
        point = np.zeros(n_components)
        point[among] = moved_to / moved_to.sum()
        mixed = part @ point[among]
    return SimplexSolution(point, gap, n_iter, status)


def _ridged(form: FloatArray, ridge: float) -> FloatArray:
    """A form whose diagonal is lifted by a part of its mean."""
    return np.asarray(form + ridge * form.trace() / len(form) * np.eye(len(form)))


def _least_form(form: FloatArray, slope: FloatArray) -> FloatArray:
    """Minimise ½xᵀPx − aᵀx over x ≥ 0: with P = UᵀU these are least squares."""
    upper = np.linalg.cholesky(form).T
    target = solve_triangular(upper, slope, trans="T")
    return np.asarray(nnls(upper, target, maxiter=10 * len(form))[0])


def least_on_simplex(form: FloatArray, normal: FloatArray) -> SimplexSolution:
    """Minimise ½xᵀPx over x ≥ 0 with aᵀx = 1.

    A multiple of x minimises ½xᵀPx − aᵀx over x ≥ 0, by the conditions of both, and
    Lawson and Hanson's method finds it in a finite number of steps.

    P, of shape (n, n), is positive semidefinite, and a is positive.
    """
    try:
        x = _least_form(_ridged(form, 1e-13), normal)
    except RuntimeError:
        flat = np.full(len(form), 1.0 / normal.sum())
        return SimplexSolution(flat, np.inf, 1, Status.OUT_OF_ITERATIONS)
    return SimplexSolution(x / (normal @ x), 0.0, 1, Status.CONVERGED)
