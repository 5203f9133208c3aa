"""A fit as one problem in all features, or as a batch of one for each column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.engine import AnySample
from missratio.ratio._penalty import PenaltyUnits, Strength
from missratio.ratio._problem import RatioProblem, WeightedMean
from missratio.ratio._solve import solve
from missratio.rows import WeightSums
from missratio.solver import Solution, Status
from missratio.tensor import TensorSample


@dataclass(frozen=True, slots=True)
class Part:
    """Problems of as many basis features each, as one batch.

    Parameters
    ----------
    features : ndarray of int of shape (n_problems, n_features)
        Which basis features each problem has.
    problem : RatioProblem
    """

    features: IntArray
    problem: RatioProblem


@dataclass(frozen=True, slots=True)
class JointSolution:
    """The solutions of all parts, as one.

    Parameters
    ----------
    solutions : tuple of Solution
        One for each part.
    coef, gradient : ndarray of shape (n_features,)
    intercepts : ndarray of shape (n_problems,)
        For features that are not centred, in the order of the problems' features; the
        ratio's is their sum.
    status, n_iter : ndarray of int of shape (n_problems,)
        In the same order.
    """

    solutions: tuple[Solution, ...]
    coef: FloatArray
    gradient: FloatArray
    intercepts: FloatArray
    status: IntArray
    n_iter: IntArray

    @property
    def value(self) -> float:
        """The objective, penalties included."""
        return float(sum(solution.value.sum() for solution in self.solutions))

    @property
    def worst(self) -> tuple[int, float, int]:
        """Status, decrement and steps of the problem that says most.

        That is one without an optimum, else one that didn't converge, else any.
        """
        order = {Status.NO_OPTIMUM: 0, Status.CONVERGED: 2}
        found = [
            (int(status), float(decrement), int(n_iter))
            for one in self.solutions
            for status, decrement, n_iter in zip(
                one.status, one.decrement, one.n_iter, strict=True
            )
        ]
        return min(found, key=lambda each: order.get(Status(each[0]), 1))


@dataclass(frozen=True)
class JointProblem:
    """Parts that share no feature, and what was found of both classes' weights."""

    parts: tuple[Part, ...]
    numerator: WeightSums
    denominator: WeightSums

    @property
    def n_features(self) -> int:
        """How many basis features all parts have."""
        return sum(part.features.size for part in self.parts)

    @cached_property
    def order(self) -> IntArray:
        """The problems of all parts in the order of their features."""
        return np.argsort(np.concatenate([part.features[:, 0] for part in self.parts]))

    def _gather(self, values: Sequence[FloatArray]) -> FloatArray:
        """One array in the order of the basis features."""
        gathered = np.empty(self.n_features)
        for part, each in zip(self.parts, values, strict=True):
            gathered[part.features] = each
        return gathered

    def numerator_mean(self) -> FloatArray:
        """The numerator's weighted mean of each basis feature, as it is matched."""
        means = []
        for part in self.parts:
            assert isinstance(part.problem.numerator, WeightedMean)
            means.append(part.problem.numerator.mean + part.problem.centre)
        return self._gather(means)

    def centre(self) -> FloatArray:
        """Where each basis feature is centred."""
        return self._gather([part.problem.centre for part in self.parts])

    def start_gradient(self) -> FloatArray:
        """The gradient of the objective at a ratio of one."""
        gradients = []
        for part in self.parts:
            plain = replace(part.problem, l1=None, l2=None)
            gradient = plain(plain.start(), second_order=False).gradient
            gradients.append(gradient[:, : part.features.shape[1]])
        return self._gather(gradients)

    def denominator_variance(self) -> FloatArray:
        """Each basis feature's variance, as in KLIEP's Hessian at a ratio of one."""
        variances = []
        for part in self.parts:
            plain = replace(part.problem, l1=None, l2=None)
            hessian = plain(plain.start(), second_order=True).hessian
            assert hessian is not None
            variance = np.maximum(np.diagonal(hessian, axis1=1, axis2=2), 0.0).copy()
            variance[constant_features(plain.denominator)] = 0.0
            variances.append(variance)
        return self._gather(variances)

    def penalised(self, units: PenaltyUnits, strength: Strength) -> JointProblem:
        """The same parts under penalties."""
        l1, l2 = units.times(strength)
        parts = []
        for part in self.parts:
            own = part.features
            own_l1 = None if l1 is None else l1[own]
            own_l2 = None if l2 is None else l2[own]
            if l2 is not None and l2.ndim == 2:
                own_l2 = l2[own[:, :, None], own[:, None, :]]
            problem = replace(part.problem, l1=own_l1, l2=own_l2)
            parts.append(replace(part, problem=problem))
        return replace(self, parts=tuple(parts))

    def solve(
        self,
        *,
        solver: str,
        tol: float,
        max_iter: int,
        start: JointSolution | None = None,
    ) -> JointSolution:
        """Solve all parts, beginning at another solution if there is one."""
        begin: list[FloatArray | None] = [None] * len(self.parts)
        if start is not None:
            begin = [solution.theta for solution in start.solutions]
        return self._joined(
            [
                solve(
                    part.problem, solver=solver, tol=tol, max_iter=max_iter, start=theta
                )
                for part, theta in zip(self.parts, begin, strict=True)
            ]
        )

    def _joined(self, solutions: list[Solution]) -> JointSolution:
        """The parts' solutions as one."""
        pairs = list(zip(self.parts, solutions, strict=True))
        coef, gradient = (
            self._gather([each[:, : part.features.shape[1]] for part, each in values])
            for values in (
                [(part, one.theta) for part, one in pairs],
                [(part, one.gradient) for part, one in pairs],
            )
        )
        intercepts = [part.problem.intercept(one) for part, one in pairs]
        return JointSolution(
            tuple(solutions),
            coef,
            gradient,
            np.concatenate(intercepts)[self.order],
            np.concatenate([one.status for one in solutions])[self.order],
            np.concatenate([one.n_iter for one in solutions])[self.order],
        )

    def tilt_size(self, solution: JointSolution) -> float:
        """The effective number of tilted denominator rows; the least over parts."""
        pairs = zip(self.parts, solution.solutions, strict=True)
        return float(min(part.problem.tilt_size(one).min() for part, one in pairs))

    def value(self, coef: FloatArray, intercepts: FloatArray) -> float:
        """The objective at given coefficients, and intercepts of the problems."""
        total, start = 0.0, 0
        unordered = np.empty_like(intercepts)
        unordered[self.order] = intercepts
        for part in self.parts:
            own = unordered[start : (start := start + len(part.features))]
            theta = part.problem.theta(coef[part.features], own)
            total += float(part.problem(theta, second_order=False).value.sum())
        return total


def constant_features(sample: AnySample | TensorSample) -> BoolArray:
    """Which features have one value only over all rows, (n_problems, n_features)."""
    few = sample.peek()
    value = few[:, :1]
    constant: BoolArray = (few == value).all(axis=1)
    if not constant.any():
        return constant
    found = sample.fold(
        lambda features, weights: (features == value).all(axis=1),
        merge=lambda parts: np.all(parts, axis=0),
    )
    return np.asarray(found)
