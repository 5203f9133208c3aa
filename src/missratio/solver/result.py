"""What a solver is given and what it returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
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


@dataclass(frozen=True, slots=True)
class Solution:
    """Where a solve ended.

    Parameters
    ----------
    theta : ndarray of shape (n_problems, n_parameters)
    value : ndarray of shape (n_problems,)
    gradient : ndarray of shape (n_problems, n_parameters)
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
    step: FloatArray
    decrement: FloatArray
    n_iter: IntArray
    status: IntArray

    @classmethod
    def concatenate(cls, parts: Sequence[Solution]) -> Solution:
        """Join the solutions of the parts of a batch."""
        columns = zip(*map(_values, parts), strict=True)
        return cls(*(np.concatenate(each) for each in columns))

    def take(self, which: IntArray | BoolArray) -> Solution:
        """The solutions of some problems."""
        return Solution(*(each[which] for each in _values(self)))


def _values(solution: Solution) -> list[Any]:
    return [getattr(solution, each.name) for each in fields(solution)]
