"""What a solver is given and what it returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Protocol, runtime_checkable

import numpy as np

from missratio._base.typing import BoolArray, FloatArray, IntArray


class Status(IntEnum):
    """How a solve ended, as measured."""

    RUNNING = 0
    CONVERGED = 1
    NO_OPTIMUM = 2
    STALLED = 3
    OUT_OF_ITERATIONS = 4


def ending(no_optimum: bool, solved: bool, spent: bool) -> Status:
    """How a solve ends, if it does: what comes first counts."""
    if no_optimum:
        return Status.NO_OPTIMUM
    if solved:
        return Status.CONVERGED
    return Status.OUT_OF_ITERATIONS if spent else Status.RUNNING


@dataclass(frozen=True, slots=True)
class Evaluation:
    """An objective at a point, for a batch of problems.

    Parameters
    ----------
    value : ndarray of shape (n_problems,)
    gradient : ndarray of shape (n_problems, n_parameters)
    hessian : ndarray of shape (n_problems, n_parameters, n_parameters), or None
    no_optimum : ndarray of bool of shape (n_problems,)
        True where the point proves that the objective has no finite optimum.
    """

    value: FloatArray
    gradient: FloatArray
    hessian: FloatArray | None
    no_optimum: BoolArray


class Evaluate(Protocol):
    """The problem as a solver sees it."""

    def __call__(self, theta: FloatArray, *, second_order: bool) -> Evaluation:
        """Evaluate all problems of the batch at theta (n_problems, n_parameters)."""
        ...


@runtime_checkable
class Separable(Evaluate, Protocol):
    """A batch of problems that some can be taken from."""

    def problems(self, which: Any) -> Evaluate:
        """Some problems of the batch, by a slice or a mask."""
        ...


class Problem(Evaluate, Protocol):
    """One that is a sum over many rows, some of which say much about all."""

    @property
    def n_problems(self) -> int:
        """How many problems the batch has."""
        ...

    @property
    def n_parameters(self) -> int:
        """How many parameters each has."""
        ...

    @property
    def n_rows(self) -> int:
        """How many rows are summed over."""
        ...

    @property
    def precision(self) -> float:
        """Relative rounding error of the values."""
        ...

    @property
    def rereads(self) -> bool:
        """Whether rows are read anew at each pass, which a Hessian adds little to."""
        ...

    @property
    def cheap_rows(self) -> int:
        """How many rows a pass may have and cost no more than one of a few rows."""
        ...

    def start(self) -> FloatArray:
        """Where to begin."""
        ...

    def thinned(self, stride: int) -> Problem:
        """About the same problem, on every stride-th row."""
        ...

    def sketch(self, theta: FloatArray, share: float) -> Evaluation:
        """The evaluation with a Hessian estimated from a share of the rows."""
        ...

    def confirmed(self, solution: Solution) -> Solution:
        """The solution, its status corrected where it is on the way to infinity."""
        ...


@dataclass(frozen=True, slots=True)
class Solution:
    """Where a solve ended.

    Parameters
    ----------
    theta : ndarray of shape (n_problems, n_parameters)
    value : ndarray of shape (n_problems,)
    gradient : ndarray of shape (n_problems, n_parameters)
    hessian : ndarray of shape (n_problems, n_parameters, n_parameters), or None
        The last one used, maybe of an earlier point or an approximation; None where
        the solver used none.
    step : ndarray of shape (n_problems, n_parameters)
        The step that the solver would try next.
    decrement : ndarray of shape (n_problems,)
        The Newton decrement √(gᵀH⁻¹g): the gradient's length in units of the
        objective's own curvature, the same in any scaling of the features.
    n_iter : ndarray of int of shape (n_problems,)
    status : ndarray of int of shape (n_problems,)
        `Status` values.
    """

    theta: FloatArray
    value: FloatArray
    gradient: FloatArray
    hessian: FloatArray | None
    step: FloatArray
    decrement: FloatArray
    n_iter: IntArray
    status: IntArray

    @classmethod
    def of_one(
        cls,
        theta: FloatArray,
        value: float,
        gradient: FloatArray,
        hessian: FloatArray | None,
        step: FloatArray,
        decrement: float,
        n_iter: int,
        status: Status,
    ) -> Solution:
        """The solution of a batch of one problem, from its own numbers."""
        return cls(
            theta[None],
            np.array([value]),
            gradient[None],
            None if hessian is None else hessian[None],
            step[None],
            np.array([decrement]),
            np.array([n_iter]),
            np.array([int(status)]),
        )

    @classmethod
    def concatenate(cls, parts: Sequence[Solution]) -> Solution:
        """Join the solutions of the parts of a batch."""
        hessians = [part.hessian for part in parts if part.hessian is not None]
        return cls(
            np.concatenate([part.theta for part in parts]),
            np.concatenate([part.value for part in parts]),
            np.concatenate([part.gradient for part in parts]),
            np.concatenate(hessians) if len(hessians) == len(parts) else None,
            np.concatenate([part.step for part in parts]),
            np.concatenate([part.decrement for part in parts]),
            np.concatenate([part.n_iter for part in parts]),
            np.concatenate([part.status for part in parts]),
        )
