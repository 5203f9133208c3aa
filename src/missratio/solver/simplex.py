"""Minima on a simplex: proportions of a mixture, and a quadratic form."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import nnls

from missratio._base.typing import FloatArray
from missratio.solver.result import Status

# Of the Hessian's mean diagonal: components that are the same would make it singular.
RIDGE = 1e-10
SHRINK = 0.5
SUFFICIENT = 1e-4
MOST_HALVINGS = 40
# Of the largest pull: components with less of it wait for the next step.
WANTED = 0.3
# No row's likelihood falls by more than this at once.
LEAST_LEFT = 1e-6


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
    found = np.full(n_components, 1.0 / n_components) if start is None else start
    there = np.flatnonzero(found)
    mixed = likelihood.T[there].T @ found[there]
    status, gap, n_iter = Status.OUT_OF_ITERATIONS, np.inf, 0
    for n_iter in range(max_iter + 1):
        # 1. The derivative towards each component; none is positive at the optimum.
        pull = likelihood.T @ (weights / mixed) - 1.0
        gap = float(pull.max())
        if gap <= tol:
            status = Status.CONVERGED
            break
        if n_iter == max_iter:
            break
        # 2. Newton's step among components that are there or wanted most.
        among = np.flatnonzero((found > 0.0) | (pull > WANTED * gap))
        part = likelihood.T[among].T
        target = _newton_target(part, weights / mixed**2, found[among], pull[among])
        step = target - found[among]
        # 3. Back until the likelihood rises, by enough of what the slope promises.
        moved = _line_search(
            mixed, part @ step, weights, float(pull[among] @ step), step
        )
        if moved is None:
            status = Status.STALLED
            break
        # The likelihood is largest at sum one.
        moved_to = np.maximum(found[among] + moved * step, 0.0)
        found = np.zeros(n_components)
        found[among] = moved_to / moved_to.sum()
        mixed = part @ found[among]
    return SimplexSolution(found, gap, n_iter, status)


def _newton_target(
    part: FloatArray, curvature: FloatArray, found: FloatArray, pull: FloatArray
) -> FloatArray:
    """Minimise the second-order model of −Σ w log Lπ + Σ π over π ≥ 0."""
    scaled = part * np.sqrt(curvature)[:, None]
    hessian = scaled.T @ scaled
    hessian.flat[:: len(hessian) + 1] += RIDGE * hessian.trace() / len(hessian)
    upper = np.linalg.cholesky(hessian).T
    right = solve_triangular(upper, hessian @ found + pull, trans="T")
    target: FloatArray = nnls(upper, right)[0]
    return target


def _line_search(
    mixed: FloatArray,
    change: FloatArray,
    weights: FloatArray,
    slope: float,
    step: FloatArray,
) -> float | None:
    """How far to go, of 1, ½, ¼ and so on; None where nothing is gained."""
    length, total = 1.0, step.sum()
    for _ in range(MOST_HALVINGS):
        after = mixed + length * change
        if (after > LEAST_LEFT * mixed).all():
            gain = weights @ np.log(after / mixed) - length * total
            if gain >= SUFFICIENT * length * slope > 0.0:
                return length
        length *= SHRINK
    return None


# Of the form's mean diagonal: columns that are the same would make it singular.
FORM_RIDGE = 1e-13
MOST_STEPS = 10


def least_on_simplex(form: FloatArray, normal: FloatArray) -> SimplexSolution:
    """Minimise ½xᵀPx over x ≥ 0 with aᵀx = 1.

    A multiple of x minimises ½xᵀPx − aᵀx over x ≥ 0, by the conditions of both: with
    P = UᵀU these are least squares without negative coefficients, which Lawson and
    Hanson's method solves in a finite number of steps.

    P, of shape (n, n), is positive semidefinite, and a is positive.
    """
    ridged = form.copy()
    ridged.flat[:: len(form) + 1] += FORM_RIDGE * form.trace() / len(form)
    upper = np.linalg.cholesky(ridged).T
    most = MOST_STEPS * len(form)
    try:
        x = nnls(upper, solve_triangular(upper, normal, trans="T"), maxiter=most)[0]
    except RuntimeError:
        flat = np.full(len(form), 1.0 / normal.sum())
        return SimplexSolution(flat, np.inf, most, Status.OUT_OF_ITERATIONS)
    return SimplexSolution(x / (normal @ x), 0.0, 1, Status.CONVERGED)
