"""A joint fit as one problem in all features, or as one for each column."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from missratio._typing import FloatArray, IntArray
from missratio.basis import Basis
from missratio.engine import Sample
from missratio.objective import Objective
from missratio.ratio._checks import constant_features
from missratio.ratio._means import weighted_mean
from missratio.ratio._penalty import PenaltyUnits, Strength
from missratio.ratio._problem import RatioProblem, WeightedMean
from missratio.ratio._rows import ClassRows, observed_sample
from missratio.ratio._solve import solve
from missratio.solver import Solution, Status
from missratio.weights import effective_sample_size

Fallback = Literal["raise", "naive-bayes"]
FALLBACKS = ("raise", "naive-bayes")
Side = tuple[FloatArray, ClassRows]
Weights = tuple[FloatArray | None, FloatArray | None]


@dataclass(frozen=True, slots=True)
class Part:
    """The problem of some of the basis features.

    Parameters
    ----------
    features : ndarray of int, or slice
    problem : RatioProblem
    """

    features: IntArray | slice
    problem: RatioProblem


@dataclass(frozen=True, slots=True)
class JointSolution:
    """The solutions of all parts, as one.

    Parameters
    ----------
    solutions : tuple of Solution
        One for each part.
    coef, gradient : ndarray of shape (n_features,)
    intercepts : ndarray of shape (n_parts,)
        For features that are not centred; the ratio's is their sum.
    """

    solutions: tuple[Solution, ...]
    coef: FloatArray
    gradient: FloatArray
    intercepts: FloatArray

    @property
    def value(self) -> float:
        """The objective, penalties included."""
        return float(sum(solution.value[0] for solution in self.solutions))

    @property
    def n_iter(self) -> int:
        """The most iterations that a part took."""
        return max(int(solution.n_iter[0]) for solution in self.solutions)

    @property
    def worst(self) -> Solution:
        """Of the parts that didn't converge the one that says most, else the first."""
        order = {Status.NO_OPTIMUM: 0, Status.CONVERGED: 2}
        return min(self.solutions, key=lambda one: order.get(Status(one.status[0]), 1))


@dataclass(frozen=True, slots=True)
class JointProblem:
    """Parts that share no feature, and the weights of both classes' rows.

    Parameters
    ----------
    parts : tuple of Part
    weights : pair of ndarray, or None
        Inverse-probability weights of the numerator and the denominator, of rows or of
        single features or columns.
    """

    parts: tuple[Part, ...]
    weights: Weights

    @property
    def n_features(self) -> int:
        """How many basis features all parts have."""
        return sum(part.problem.centre.shape[1] for part in self.parts)

    def _gather(self, values: list[FloatArray]) -> FloatArray:
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
            means.append(part.problem.numerator.mean[0] + part.problem.centre[0])
        return self._gather(means)

    def centre(self) -> FloatArray:
        """Where each basis feature is centred."""
        return self._gather([part.problem.centre[0] for part in self.parts])

    def start_gradient(self) -> FloatArray:
        """Of the objective, at a ratio of one."""
        gradients = []
        for part in self.parts:
            plain = replace(part.problem, l1=None, l2=None)
            gradient = plain(plain.start(), second_order=False).gradient[0]
            gradients.append(gradient[: part.problem.centre.shape[1]])
        return self._gather(gradients)

    def denominator_variance(self) -> FloatArray:
        """Of each basis feature, as in KLIEP's Hessian at a ratio of one."""
        variances = []
        for part in self.parts:
            plain = replace(part.problem, l1=None, l2=None)
            hessian = plain(plain.start(), second_order=True).hessian
            assert hessian is not None
            variance = np.maximum(np.diagonal(hessian[0]), 0.0)
            variance[constant_features(plain.denominator)] = 0.0
            variances.append(variance)
        return self._gather(variances)

    def penalised(self, units: PenaltyUnits, strength: Strength) -> JointProblem:
        """The same parts under penalties."""
        l1, l2 = units.times(strength)
        parts = []
        for part in self.parts:
            own_l1 = None if l1 is None else l1[part.features]
            own_l2 = None if l2 is None else l2[part.features]
            if own_l2 is not None and own_l2.ndim == 2:
                own_l2 = own_l2[:, part.features]
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
        widths = [part.problem.centre.shape[1] for part in self.parts]
        pairs = list(zip(solutions, widths, strict=True))
        intercepts = [
            part.problem.intercept(solution)[0]
            for part, solution in zip(self.parts, solutions, strict=True)
        ]
        return JointSolution(
            tuple(solutions),
            self._gather([solution.theta[0, :width] for solution, width in pairs]),
            self._gather([solution.gradient[0, :width] for solution, width in pairs]),
            np.array(intercepts),
        )

    def value(self, coef: FloatArray, intercepts: FloatArray) -> float:
        """The objective at given coefficients, and intercepts of the parts."""
        total = 0.0
        for part, intercept in zip(self.parts, intercepts, strict=True):
            own = coef[part.features][None]
            theta = part.problem.theta(own, np.array([intercept]))
            total += float(part.problem(theta, second_order=False).value[0])
        return total


def joint_problem(
    objective: Objective, upper: Side, lower: Side, basis: Basis
) -> JointProblem:
    """One problem in all features, without penalties."""
    mean, mass, upper_weights = weighted_mean(*upper, basis.required_columns_)
    centre = mean / mass
    denominator, lower_weights = observed_sample(*lower, centre)
    numerator: Sample | WeightedMean
    if objective.linear_numerator:
        whole = mass if len(mass) == 1 else np.ones(1)
        numerator = WeightedMean.centred(mean[None], whole, centre, objective)
    else:
        numerator, upper_weights = observed_sample(*upper, centre)
    problem = RatioProblem(objective, numerator, denominator, centre[None])
    return JointProblem((Part(slice(None), problem),), (upper_weights, lower_weights))


def separate_problem(
    objective: Objective, upper: Side, lower: Side, basis: Basis
) -> JointProblem:
    """One problem for each column: the denominator's columns taken as independent.

    Each uses all denominator rows in which its column is observed.
    """
    mean, mass, upper_weights = weighted_mean(*upper, basis.required_columns_)
    centre = mean / mass
    whole = mass if len(mass) == 1 else np.ones(1)
    features, rows = lower
    owner = single_columns(basis)
    parts = []
    for column in np.unique(owner):
        own = rows
        if rows.weights is not None and rows.weights.ndim == 2:
            own = replace(rows, weights=rows.weights[:, column])
        chosen = np.flatnonzero(owner == column)
        sample, _ = observed_sample(features[:, chosen], own, centre[chosen])
        numerator = WeightedMean.centred(
            mean[None, chosen], whole, centre[chosen], objective
        )
        problem = RatioProblem(objective, numerator, sample, centre[None, chosen])
        parts.append(Part(chosen, problem))
    lower_weights = rows.weights
    if lower_weights is not None and lower_weights.ndim == 2:
        lower_weights = lower_weights[:, owner]
    return JointProblem(tuple(parts), (upper_weights, lower_weights))


def single_columns(basis: Basis) -> IntArray:
    """The column that each basis feature needs, where it needs no other."""
    required = basis.required_columns_
    several = np.flatnonzero(required.sum(axis=1) != 1)
    if len(several):
        names = [str(name) for name in basis.get_feature_names_out()[several[:10]]]
        raise ValueError(
            "fallback='naive-bayes' needs basis features of one column each, and "
            f"{names} are not. Use a basis without products, or fallback='raise'."
        )
    owner: IntArray = required.argmax(axis=1)
    return owner


def few_complete_rows(rows: ClassRows, n_columns: int) -> str | None:
    """Say so where a class that loses single values has too few complete rows left.

    Too few are as many as there are columns, counted after Kish: fewer can't tell
    the columns apart.
    """
    if rows.weights is None or rows.weights.ndim != 2:
        return None
    weights = rows.combined(rows.whole_row_weights())
    assert weights is not None
    complete = int(np.count_nonzero(weights))
    size = effective_sample_size(weights) if complete else 0.0
    if float(size) > n_columns:
        return None
    return (
        f"Class {rows.label!r} has {complete} row(s) in which everything is observed, "
        f"of {rows.n_rows}, worth {size:.1f} of equal weight; a joint fit of "
        f"{n_columns} column(s) needs more than {n_columns}."
    )
