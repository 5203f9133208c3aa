"""A fit as one problem in all features, or as a batch of one for each column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from missratio._typing import BoolArray, FloatArray, IntArray
from missratio.basis import Basis
from missratio.engine import HELD_ELEMENTS, AnySample, RowSample
from missratio.objective import Objective
from missratio.ratio._penalty import PenaltyUnits, Strength
from missratio.ratio._problem import RatioProblem, WeightedMean
from missratio.ratio._solve import solve
from missratio.rows import (
    ClassRows,
    KnownWeights,
    MemorySource,
    WeightSums,
    only_columns,
    single_sums,
)
from missratio.solver import Solution, Status
from missratio.tensor import TensorSample, TensorSource
from missratio.weights import effective_sample_size

Fallback = Literal["raise", "naive-bayes"]
FALLBACKS = ("raise", "naive-bayes")


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
    """Parts that share no feature, and what was found of both classes' weights.

    Parameters
    ----------
    parts : tuple of Part
    numerator, denominator : WeightSums
    """

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
        """Of the objective, at a ratio of one."""
        gradients = []
        for part in self.parts:
            plain = replace(part.problem, l1=None, l2=None)
            gradient = plain(plain.start(), second_order=False).gradient
            gradients.append(gradient[:, : part.features.shape[1]])
        return self._gather(gradients)

    def denominator_variance(self) -> FloatArray:
        """Of each basis feature, as in KLIEP's Hessian at a ratio of one."""
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


@dataclass(frozen=True, slots=True)
class CompleteRows:
    """A class's complete rows.

    Parameters
    ----------
    rows : ClassRows
        With all that they weigh as their weights; or, if `in_passing`, all rows of the
        class, which are too many to write their weights down.
    sums : WeightSums
        Of the inverse-probability weights.
    total : ndarray of shape (1,)
        What weighted sums are divided by.
    in_passing : bool
    """

    rows: ClassRows
    sums: WeightSums
    total: FloatArray
    in_passing: bool = False

    @classmethod
    def of(cls, rows: ClassRows) -> CompleteRows:
        """Find them, in one pass over the class's rows."""
        if not isinstance(rows.source, MemorySource):
            sums = rows.complete_sums()
            return cls(rows, sums, rows.divisor(sums.mass), in_passing=True)
        weights = rows.whole_row_weights()
        sums = single_sums(weights, rows)
        return cls(rows.complete_rows(weights), sums, rows.divisor(sums.mass))

    def few(self, n_columns: int) -> str | None:
        """Say so where too few are left of a class that loses single values.

        Too few are as many as there are columns, counted after Kish: fewer can't tell
        the columns apart.
        """
        size = float(self.sums.kish[0]) if self.in_passing else float(self.rows.n_rows)
        if size and isinstance(self.rows.weighing, KnownWeights):
            size = float(effective_sample_size(self.rows.weighing.weights))
        if size > n_columns:
            return None
        return (
            f"Class {self.rows.label!r} has {int(self.sums.count[0])} row(s) in which "
            f"everything is observed, of {self.sums.n_rows}, worth {size:.1f} of equal "
            f"weight; a joint fit of {n_columns} column(s) needs more than {n_columns}."
        )

    def sample(self, centre: FloatArray) -> AnySample | TensorSample:
        """As a sample of one problem."""
        if not self.sums.count[0]:
            raise ValueError(
                f"Class {self.rows.label!r} has no row in which everything is observed "
                f"(of {self.sums.n_rows}), and its joint fit needs complete rows. Use "
                "NaiveBayesRatio, fewer columns, or more rows."
            )
        if isinstance(self.rows.source, TensorSource):
            return self.rows.source.sample(self.total)
        sample = RowSample(
            self.rows, None, None, self.total, in_passing=self.in_passing
        )
        return _held(sample, centre)


def _held(sample: RowSample, centre: FloatArray) -> AnySample:
    """Small samples as a centred copy, large ones read in place."""
    if sample.size <= HELD_ELEMENTS:
        return sample.held(1, centre, single=False)
    return sample


@dataclass(frozen=True, slots=True)
class WeightedMeans:
    """A class's weighted means, feature by feature.

    Parameters
    ----------
    mean, centre : ndarray of shape (n_features,)
        Weighted sums, divided by the class's divisor and by the sum of the weights.
    mass : ndarray of shape (n_features,) or (1,)
        The mean of the weights.
    """

    mean: FloatArray
    centre: FloatArray
    mass: FloatArray


def weighted_means(rows: ClassRows, sums: WeightSums) -> WeightedMeans:
    """ΣWf/ΣW, or ΣWf/n: the means of a class's features, given their sums."""
    # Rounded as the features are, so that both classes are centred alike.
    dtype = rows.source.features.dtype
    if rows.adjusted is not None:
        # Terms of all rows: a fold may do without any in which one is observed.
        mean = np.average(rows.adjusted, axis=0, weights=rows.source.weights)
        centre = mean.astype(dtype).astype(np.float64)
        return WeightedMeans(mean, centre, np.ones(len(mean)))
    totals = sums.sums
    if sums.origin is not None:
        totals = totals + sums.mass * sums.origin.astype(np.float64)
    divisor = rows.divisor(sums.mass)
    centre = (totals / sums.mass).astype(dtype).astype(np.float64)
    return WeightedMeans(totals / divisor, centre, sums.mass / divisor)


def joint_problem(
    objective: Objective,
    numerator: ClassRows,
    denominator: ClassRows,
    basis: Basis,
    complete: CompleteRows | None = None,
) -> JointProblem:
    """One problem in all features, without penalties, on complete denominator rows."""
    sums = numerator.feature_sums(only_columns(basis.required_columns_))
    means = weighted_means(numerator, sums)
    complete = CompleteRows.of(denominator) if complete is None else complete
    centre = means.centre[None]
    sample: AnySample | TensorSample | WeightedMean
    if objective.linear_numerator:
        whole = means.mass if len(means.mass) == 1 else np.ones(1)
        sample = WeightedMean.centred(means.mean[None], whole, centre, objective)
    else:
        own = CompleteRows.of(numerator)
        sample, sums = own.sample(centre), own.sums
    problem = RatioProblem(objective, sample, complete.sample(centre), centre)
    features = np.arange(centre.shape[1])[None]
    return JointProblem((Part(features, problem),), sums, complete.sums)


def separate_problem(
    objective: Objective, numerator: ClassRows, denominator: ClassRows, basis: Basis
) -> JointProblem:
    """One problem for each column: naive Bayes, without penalties.

    Each uses all rows in which its column is observed.
    """
    owner = single_columns(basis)
    sums = [rows.feature_sums(owner) for rows in (numerator, denominator)]
    means = weighted_means(numerator, sums[0])
    mass = np.broadcast_to(means.mass, owner.shape)
    parts = []
    for features in _by_width(owner):
        centre = means.centre[features]
        own: AnySample | WeightedMean
        if objective.linear_numerator:
            share = mass[features[:, 0]]
            own = WeightedMean.centred(means.mean[features], share, centre, objective)
        else:
            own = _column_sample(numerator, sums[0], owner, features, centre)
        other = _column_sample(denominator, sums[1], owner, features, centre)
        parts.append(Part(features, RatioProblem(objective, own, other, centre)))
    return JointProblem(tuple(parts), sums[0], sums[1])


def _column_sample(
    rows: ClassRows,
    sums: WeightSums,
    owner: IntArray,
    features: IntArray,
    centre: FloatArray,
) -> AnySample:
    total = np.broadcast_to(rows.divisor(sums.mass), owner.shape)[features[:, 0]]
    stand_in = rows.some_observed(owner)[features]
    sample = RowSample(rows, features, owner[features[:, 0]], total, stand_in)
    return _held(sample, centre)


def _by_width(owner: IntArray) -> list[IntArray]:
    """Features of columns, an array for the columns that have as many each."""
    own = [np.flatnonzero(owner == column) for column in np.unique(owner)]
    widths = np.array([len(each) for each in own])
    return [
        np.array([each for each in own if len(each) == width])
        for width in np.unique(widths)
    ]


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
