"""Quadratic programmes, by Clarabel's interior-point method."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from missratio._base.typing import FloatArray
from missratio.solver._result import Status


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
            "Kernel mean matching solves a quadratic programme with Clarabel: pip "
            "install 'missratio[kmm]'."
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
