"""Quadratic programmes: on a simplex by least squares, others by Clarabel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.linalg import solve_triangular
from scipy.optimize import nnls

from missratio._base.typing import FloatArray
from missratio.solver._result import Status

# Of the form's mean diagonal: columns that are the same would make it singular.
RIDGE = 1e-13
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
    ridged.flat[:: len(form) + 1] += RIDGE * form.trace() / len(form)
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
