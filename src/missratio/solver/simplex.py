"""Minima on a simplex: proportions of a mixture, and quadratic programmes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse
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
class MixtureSolution:
    """Where a solve ended.

    Parameters
    ----------
    proportions : ndarray of shape (n_components,)
        Not negative, with sum one.
    gap : float
        The likelihood is at most this much below its maximum: the largest derivative
        towards a component, which is zero at the optimum.
    n_iter : int
    status : Status
    """

    proportions: FloatArray
    gap: float
    n_iter: int
    status: Status


def mixture_proportions(
    likelihood: FloatArray,
    weights: FloatArray,
    start: FloatArray | None = None,
    tol: float = 1e-8,
    max_iter: int = 100,
) -> MixtureSolution:
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
    return MixtureSolution(found, gap, n_iter, status)


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


@dataclass(frozen=True, slots=True)
class QuadraticSolution:
    """Where a solve ended.

    Parameters
    ----------
    x : ndarray of shape (n,)
    n_iter : int
    status : Status
    """

    x: FloatArray
    n_iter: int
    status: Status


def least_on_simplex(form: FloatArray, normal: FloatArray) -> QuadraticSolution:
    """Minimise ½xᵀPx over x ≥ 0 with aᵀx = 1.

    A multiple of x minimises ½xᵀPx − aᵀx over x ≥ 0, by the conditions of both: with
    P = UᵀU these are least squares without negative coefficients, which Lawson and
    Hanson's method solves in a finite number of steps.

    Parameters
    ----------
    form : ndarray of shape (n, n)
        P, positive semidefinite.
    normal : ndarray of shape (n,)
        a, positive.
    """
    ridged = form.copy()
    ridged.flat[:: len(form) + 1] += FORM_RIDGE * form.trace() / len(form)
    upper = np.linalg.cholesky(ridged).T
    most = MOST_STEPS * len(form)
    try:
        x = nnls(upper, solve_triangular(upper, normal, trans="T"), maxiter=most)[0]
    except RuntimeError:
        flat = np.full(len(form), 1.0 / normal.sum())
        return QuadraticSolution(flat, most, Status.OUT_OF_ITERATIONS)
    return QuadraticSolution(x / (normal @ x), 1, Status.CONVERGED)


def quadratic_program(
    form: FloatArray,
    linear: FloatArray,
    equal: tuple[FloatArray, float],
    at_most: tuple[FloatArray, FloatArray] | None = None,
) -> QuadraticSolution:
    """Minimise ½xᵀPx − qᵀx over x ≥ 0 with aᵀx = b and Gx ≤ h.

    Parameters
    ----------
    form : ndarray of shape (n, n)
        P, positive semidefinite.
    linear : ndarray of shape (n,)
        q.
    equal : tuple of ndarray of shape (n,) and float
        a and b.
    at_most : tuple of ndarray of shape (m, n) and (m,), optional
        G and h.
    """
    try:
        import clarabel
    except ImportError as error:
        raise ImportError(
            "Kernel mean matching with a ratio that reaches max_ratio is a quadratic "
            "programme for Clarabel: pip install 'missratio[kmm]', or raise max_ratio."
        ) from error
    n = len(linear)
    normal, level = equal
    blocks = [normal[None, :], -np.eye(n)]
    levels = [np.array([level]), np.zeros(n)]
    if at_most is not None:
        blocks.append(at_most[0])
        levels.append(at_most[1])
    limits = np.concatenate(levels)
    cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(len(limits) - 1)]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    # Rounding of sums over threads would make fits differ from run to run.
    settings.max_threads = 1
    solver = clarabel.DefaultSolver(
        sparse.csc_matrix(np.triu(form)),
        -linear,
        sparse.csc_matrix(np.concatenate(blocks)),
        limits,
        cones,
        settings,
    )
    found = solver.solve()
    solved = (clarabel.SolverStatus.Solved, clarabel.SolverStatus.AlmostSolved)
    status = Status.CONVERGED if found.status in solved else Status.STALLED
    if found.status == clarabel.SolverStatus.MaxIterations:
        status = Status.OUT_OF_ITERATIONS
    return QuadraticSolution(np.array(found.x), int(found.iterations), status)
