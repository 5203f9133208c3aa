"""A density-ratio fit as a function of its parameters; whether it has an optimum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.engine import BLOCK_ELEMENTS, AnySample, RowSample
from missratio.moments import Link, Parameters, Sums, accumulate, dot
from missratio.objective import (
    Combination,
    Expectations,
    KLIEPObjective,
    Objective,
)
from missratio.solver import Evaluation, Solution, Status, newton_direction
from missratio.tensor import TensorSample

# Scores that spread by more than this may be on their way to infinity.
FAR_OUT = 5.0
LONG_WAY = 8
# From this many rows on a pilot may have gone most of the way.
MANY_ROWS = 4000
CONVERGED = int(Status.CONVERGED)


@dataclass(frozen=True, slots=True)
class WeightedMean:
    """The numerator class where it enters through E f alone.

    Parameters
    ----------
    mean : ndarray of shape (n_problems, n_features)
        Weighted mean of the centred features, each with its own weights.
    mass : ndarray of shape (n_problems,)
        Mean of the weights, which an intercept is multiplied by: one under Hájek's
        normalisation.
    """

    mean: FloatArray
    mass: FloatArray

    @classmethod
    def centred(
        cls,
        mean: FloatArray,
        mass: FloatArray,
        centre: FloatArray,
        objective: Objective,
    ) -> WeightedMean:
        """From the mean of features that are not centred.

        Without an intercept the printed objective, θᵀΣWf/n − log …, is kept exactly
        even where the weights don't average to one: both sides gain θᵀc.
        """
        share = mass[:, None] if objective.fits_intercept else 1.0
        return cls(mean - share * centre, mass)

    @property
    def total(self) -> FloatArray:
        """Means are divided already."""
        return np.ones(len(self.mass))

    def problems(self, which: slice | BoolArray) -> WeightedMean:
        """The means of some problems of the batch."""
        return WeightedMean(self.mean[which], self.mass[which])

    def sums(self, coef: FloatArray, intercept: FloatArray | None) -> Sums:
        """E s, E f̃ and no curvature, in the accumulator's form."""
        slope, value = self.mean, dot(coef, self.mean)
        if intercept is not None:
            slope = np.concatenate([slope, self.mass[:, None]], axis=1)
            value += self.mass * intercept
        return Sums(np.zeros(len(value)), value, slope, None, value, value)


@dataclass(frozen=True)
class RatioProblem:
    """An objective with its two samples: what a solver evaluates.

    Parameters are θ in centred features f − centre, and last the intercept where the
    objective has one.

    Parameters
    ----------
    objective : Objective
    numerator : Sample, RowSample or WeightedMean
    denominator : Sample or RowSample
    centre : ndarray of shape (n_problems, n_features)
        What is subtracted from features, by now or in passing.
    l2 : ndarray of shape (n_problems, n_features[, n_features]), or None
        The penalty is ½ Σ l2_j θ_j², or ½ θᵀ l2 θ for a matrix.
    l1 : ndarray of shape (n_problems, n_features), or None
        The penalty Σ l1_j |θ_j| is left to the solver; it counts for whether an optimum
        exists.
    features : ndarray of int of shape (n_problems, n_features)
        Which of a ratio's basis features each problem has, where it is part of one.
    """

    objective: Objective
    numerator: AnySample | TensorSample | WeightedMean
    denominator: AnySample | TensorSample
    centre: FloatArray
    l2: FloatArray | None = None
    l1: FloatArray | None = None
    features: IntArray = field(default_factory=lambda: np.empty((0, 0), dtype=np.intp))

    @cached_property
    def _totals(self) -> FloatArray:
        return np.array([self.numerator.total, self.denominator.total])

    @cached_property
    def _about_zero(self) -> bool:
        """Whether all features' centres lie within their spread of zero."""
        spread = self.denominator.peek().std(axis=1)
        return bool((np.abs(self.centre) <= spread).all())

    @property
    def n_parameters(self) -> int:
        """Length of a parameter vector."""
        return int(self.centre.shape[1]) + self.objective.fits_intercept

    @property
    def n_problems(self) -> int:
        """How many problems the batch has."""
        return len(self.centre)

    @property
    def n_rows(self) -> int:
        """How many denominator rows there are."""
        return self.denominator.n_rows

    @property
    def precision(self) -> float:
        """Relative rounding error of the values."""
        return self.denominator.precision

    @property
    def rereads(self) -> bool:
        """Whether rows are read anew at each pass, from files or on a cluster."""
        return isinstance(self.denominator, RowSample) and self.denominator.in_passing

    @property
    def cheap_rows(self) -> int:
        """How many rows a pass may have and cost no more than one of a few rows."""
        return getattr(self.denominator, "cheap_rows", 0)

    @property
    def bounded(self) -> bool:
        """Whether the ridge penalty holds every coefficient; a matrix is definite."""
        return self.l2 is not None and (self.l2.ndim == 3 or bool(self.l2.all()))

    def split(self, theta: FloatArray) -> tuple[FloatArray, FloatArray | None]:
        """Coefficients and intercepts of a batch of parameter vectors."""
        if not self.objective.fits_intercept:
            return theta, None
        return theta[:, :-1], theta[:, -1]

    def start(self) -> FloatArray:
        """Parameters of the ratio that is one everywhere."""
        theta = np.zeros((len(self.centre), self.n_parameters))
        if self.objective.fits_intercept:
            theta[:, -1] = self.objective.unit_score
        return theta

    def sums(
        self,
        theta: FloatArray,
        *,
        second_order: bool,
        drawn: float | None = None,
        lowest: bool = False,
    ) -> tuple[list[Sums], list[Sums]]:
        """The weighted sums over the numerator's and the denominator's rows.

        The lowest score of the denominator's rows is looked for where asked for.
        """
        coef, intercept = self.split(theta)
        elements = BLOCK_ELEMENTS
        if second_order:
            # A block has more rows than a Hessian, or merging would cost more.
            elements = max(elements // 4, 2 * self.n_parameters**2)

        def sweep(term_of: Link, sample: AnySample | TensorSample) -> list[Sums]:
            if sample.centred:
                at = Parameters(coef, None, intercept)
            else:
                at = Parameters(coef, self.centre, intercept, self._about_zero)
            if isinstance(sample, TensorSample):
                return sample.sums(term_of, at, second_order=second_order, drawn=drawn)

            def work(features: FloatArray, weights: FloatArray | None) -> list[Sums]:
                found = accumulate(
                    term_of,
                    features,
                    weights,
                    at,
                    second_order=second_order,
                    drawn=drawn,
                    lowest=lowest or sample is not self.denominator,
                )
                if isinstance(sample, RowSample):
                    sample.check_finite(found[0].slope)
                return found

            return sample.fold(work, elements)

        if isinstance(self.numerator, WeightedMean):
            numerator = [self.numerator.sums(coef, intercept)]
        else:
            numerator = sweep(self.objective.numerator, self.numerator)
        return numerator, sweep(self.objective.denominator, self.denominator)

    def __call__(self, theta: FloatArray, *, second_order: bool) -> Evaluation:
        """Value, gradient and Hessian of the penalised objective, by the chain rule."""
        return self._evaluation(theta, *self.sums(theta, second_order=second_order))

    def sketch(self, theta: FloatArray, share: float) -> Evaluation:
        """The same with a Hessian estimated from a share of the rows, for one problem.

        They are drawn in proportion to their part in it, so that its relative error is
        about 2√(parameters/rows drawn) in any direction, however uneven the ratio is.
        """
        sums = self.sums(theta, second_order=False, drawn=share)
        return self._evaluation(theta, *sums)

    def outer(
        self, numerator: list[Sums], denominator: list[Sums]
    ) -> tuple[Combination, FloatArray]:
        """The objective as a function of its terms, and what their sums are divided by.

        Both have a row for each term, the numerator's first.
        """
        terms = numerator + denominator
        divisors = self._totals
        if len(terms) > 2:
            divisors = divisors.repeat([len(numerator), len(denominator)], axis=0)
        expectations = Expectations(
            np.array([term.value for term in terms]) / divisors,
            np.array([term.log_scale for term in terms]),
            len(numerator),
        )
        return self.objective.combine(expectations), divisors

    def _evaluation(
        self, theta: FloatArray, numerator: list[Sums], denominator: list[Sums]
    ) -> Evaluation:
        """What the sums over both classes' rows come to."""
        terms = numerator + denominator
        outer, divisors = self.outer(numerator, denominator)
        first = outer.gradient / divisors
        gradient = sum_terms(first[..., None], [term.slope for term in terms])
        hessian = None
        if denominator[0].curvature is not None:
            curvatures = [term.curvature for term in terms]
            hessian = sum_terms(first[..., None, None], curvatures)
            if outer.hessian is not None:
                slopes = np.array([term.slope for term in terms]) / divisors[..., None]
                inner = outer.hessian.transpose(2, 0, 1) @ slopes.transpose(1, 0, 2)
                hessian += slopes.transpose(1, 2, 0) @ inner
        value = self._penalise(theta, outer.value, gradient, hessian)
        proof = self._proof(theta, numerator[0].lowest, denominator[0].highest)
        return Evaluation(value, gradient, hessian, proof)

    def _penalise(
        self,
        theta: FloatArray,
        value: FloatArray,
        gradient: FloatArray,
        hessian: FloatArray | None,
    ) -> FloatArray:
        """Add the penalty to gradient and Hessian in place, and return the value."""
        if self.l2 is None:
            return value
        n_features = self.l2.shape[1]
        coef = theta[:, :n_features]
        gradient[:, :n_features] += self.pull(coef)
        if hessian is not None and self.l2.ndim == 3:
            hessian[:, :n_features, :n_features] += self.l2
        elif hessian is not None:
            np.einsum("bii->bi", hessian)[:, :n_features] += self.l2
        return value + 0.5 * dot(self.pull(coef), coef)

    def pull(self, coef: FloatArray) -> FloatArray:
        """The ridge penalty's gradient."""
        assert self.l2 is not None
        if self.l2.ndim == 3:
            return np.asarray((coef[:, None, :] @ self.l2)[:, 0])
        return self.l2 * coef

    def penalty(self, coef: FloatArray) -> FloatArray:
        """All that is added to the objective."""
        total = np.zeros(len(coef))
        if self.l2 is not None:
            total += 0.5 * dot(self.pull(coef), coef)
        if self.l1 is not None:
            total += self._growth(coef)
        return total

    def _proof(
        self, theta: FloatArray, lowest: FloatArray, highest: FloatArray
    ) -> BoolArray:
        """Whether scores separate the classes, so that no finite optimum exists.

        Under an L1 penalty, by more than what it takes to grow.
        """
        if self.l2 is not None or not self.objective.diverges_when_separated:
            return np.zeros(len(lowest), dtype=bool)
        highest = highest + self._growth(theta)
        return lowest > highest + 1e-8 * (1.0 + np.abs(highest))

    def _growth(self, theta: FloatArray) -> FloatArray | float:
        """Σ l1 |θ|, which grows as fast as the scores do."""
        if self.l1 is None:
            return 0.0
        return dot(np.abs(theta[:, : self.l1.shape[1]]), self.l1)

    def recedes(self, direction: FloatArray) -> BoolArray:
        """Whether the objective falls for ever, or levels off, along a direction.

        It does where no denominator row scores above the numerator: the numerator's
        mean then lies on the hull of the denominator's rows, or outside of it.
        """
        length = np.abs(direction).max(axis=1, keepdims=True)
        unit = direction / np.where(length > 0.0, length, 1.0)
        numerator, denominator = self.sums(unit, second_order=False, lowest=True)
        lowest = numerator[0].lowest
        highest = denominator[0].highest + self._growth(unit)
        spread = highest - np.minimum(denominator[0].lowest, lowest)
        # Along collinear features scores don't differ, but for rounding.
        few = self.denominator.peek()
        size = np.abs(unit[:, : few.shape[2]]) * few.std(axis=1, dtype=np.float64)
        real = spread > 1e-6 * size.max(axis=1)
        return np.asarray(real & (highest - lowest <= 1e-6 * spread), dtype=bool)

    def far_out(self, solution: Solution) -> BoolArray:
        """Whether scores spread so much that they may be on their way to infinity."""
        few = self.denominator.peek()
        coef = solution.theta[:, : self.centre.shape[1], None]
        with np.errstate(over="ignore", invalid="ignore"):
            spread = (few - few[:, :1]).astype(np.float64, copy=False) @ coef
            return np.asarray(spread[..., 0].std(axis=1) > FAR_OUT)

    def confirmed(self, solution: Solution) -> Solution:
        """Tell a flat stretch on the way to infinity from an optimum.

        Only a solution far out can be one, where scores spread by more than a few
        units; and as a step on the way moves them by about one, it takes many.
        """
        unsolved = solution.status != CONVERGED
        long_way = solution.n_iter.max() >= LONG_WAY or self.n_rows >= MANY_ROWS
        if not (unsolved.any() or long_way):
            return solution
        if self.bounded or not self.objective.diverges_when_separated:
            return solution
        suspect = unsolved | self.far_out(solution)
        if not suspect.any():
            return solution
        end = self(solution.theta, second_order=True)
        assert end.hessian is not None
        status = solution.status.copy()
        # Far enough out the Hessian underflows; such a step tells nothing.
        with np.errstate(over="ignore", invalid="ignore"):
            step, _ = newton_direction(
                end.hessian, end.gradient, np.zeros_like(end.gradient)
            )
            if self.l1 is not None:
                step = solution.step.copy()
            if self.l2 is not None and self.l2.ndim == 2:
                # What is penalised can't go to infinity; the rest may.
                step[:, : self.l2.shape[1]] *= self.l2 == 0.0
            status[suspect & self.recedes(step)] = Status.NO_OPTIMUM
        return replace(solution, status=status)

    def intercept(self, solution: Solution) -> FloatArray:
        """The score's intercept for features that are not centred.

        Where the objective has none, it makes E[exp s(Z⁰)] one: −log N̂.
        """
        if not self.objective.fits_intercept:
            return -self.log_mass(solution)
        coef, centred = solution.theta[:, :-1], solution.theta[:, -1]
        return centred - dot(coef, self.centre)

    def theta(self, coef: FloatArray, intercept: FloatArray) -> FloatArray:
        """The parameter vectors of given coefficients and (uncentred) intercepts."""
        if not self.objective.fits_intercept:
            return coef
        centred = intercept + dot(coef, self.centre)
        return np.concatenate([coef, centred[:, None]], axis=1)

    def log_mass(self, solution: Solution) -> FloatArray:
        """Log E[exp s(Z⁰)], where s = θᵀf is not centred."""
        coef = solution.theta[:, : self.centre.shape[1]]
        shift = dot(coef, self.centre)
        if isinstance(self.objective, KLIEPObjective) and isinstance(
            self.numerator, WeightedMean
        ):
            # It is a part of the optimal value, −θᵀE f + log E exp s + penalty.
            log_mean = solution.value + dot(coef, self.numerator.mean)
            return log_mean - self.penalty(coef) + shift
        exponential = replace(self, objective=KLIEPObjective())
        _, (tilted,) = exponential.sums(coef, second_order=False)
        log_mean = np.log(tilted.value / self.denominator.total)
        return log_mean + tilted.log_scale + shift

    def tilt_size(self, solution: Solution) -> FloatArray:
        """Kish's effective number of denominator rows under the weights w·exp(θᵀf).

        They are what KLIEP's gradient and Hessian are means over.
        """
        coef = solution.theta[:, : self.centre.shape[1]]
        log_total = self.log_mass(solution) - dot(coef, self.centre)
        log_total += np.log(self.denominator.total)
        sample, term_of = self.denominator, KLIEPObjective().denominator
        at = Parameters(2.0 * coef, None if sample.centred else self.centre, None)
        if isinstance(sample, TensorSample):
            weights = None if sample.weights is None else sample.weights**2
            squared = replace(sample, weights=weights)
            (found,) = squared.sums(term_of, at, second_order=False)
        else:
            (found,) = sample.fold(
                lambda features, weights: accumulate(
                    term_of,
                    features,
                    None if weights is None else weights**2,
                    at,
                    second_order=False,
                )
            )
        log_squares = np.log(found.value) + found.log_scale
        return np.asarray(np.exp(2.0 * log_total - log_squares))

    def thinned(self, stride: int) -> RatioProblem:
        """The same problem on every stride-th row, in single precision."""
        numerator = self.numerator
        if not isinstance(numerator, WeightedMean):
            numerator = numerator.held(stride, self.centre)
        denominator = self.denominator.held(stride, self.centre)
        return replace(self, numerator=numerator, denominator=denominator)

    def problems(self, which: slice | BoolArray) -> RatioProblem:
        """Some problems of the batch."""
        return replace(
            self,
            numerator=self.numerator.problems(which),
            denominator=self.denominator.problems(which),
            centre=self.centre[which],
            l2=None if self.l2 is None else self.l2[which],
            l1=None if self.l1 is None else self.l1[which],
            features=self.features[which] if len(self.features) else self.features,
        )


def sum_terms(factors: FloatArray, arrays: Sequence[FloatArray | None]) -> FloatArray:
    """Σ factor · array over the terms that have one."""
    pairs = zip(factors, arrays, strict=True)
    products = [factor * array for factor, array in pairs if array is not None]
    total: FloatArray = products[0]
    for product in products[1:]:
        total += product
    return total
