"""The problem that rows pose, a function of parameters; whether it has an optimum."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.basis import Basis
from missratio.engine import BLOCK_ELEMENTS, AnySample, sample_of
from missratio.moments import Link, Parameters, Sums
from missratio.objective import Expectations, KLIEPObjective, Objective
from missratio.ratio.base import Two
from missratio.ratio.pairs import NormalMoments, floored, pair_covariance
from missratio.rows import ClassRows, WeightSums, only_columns
from missratio.solver import Evaluation, Solution, Status, newton_direction

# Scores that spread by more than this may be on their way to infinity.
FAR_OUT = 5.0

# Strengths of the L1 and the ridge penalty for each feature, and what strength one is:
# of |θ_j|, and of ½θ_j² or a matrix M of ½θᵀMθ; None stands for ones.
Strength = tuple[FloatArray, FloatArray]
PenaltyUnits = tuple[FloatArray | None, FloatArray | None]


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
    centred: ClassVar[bool] = True
    # Means are divided already.
    total: ClassVar[FloatArray] = np.ones(1)

    def problems(self, which: slice | BoolArray) -> WeightedMean:
        """The means of some problems of the batch."""
        return WeightedMean(self.mean[which], self.mass[which])

    def held(self, stride: int, centre: FloatArray) -> WeightedMean:
        """The means of all rows, for a sample of some."""
        return self

    def sums(self, term_of: Link, at: Parameters, **_: Any) -> list[Sums]:
        """E s, E f̃ and no curvature, in the accumulator's form."""
        slope, value = self.mean, np.vecdot(at.coef, self.mean)
        if at.intercept is not None:
            slope = np.concatenate([slope, self.mass[:, None]], axis=1)
            value += self.mass * at.intercept
        return [Sums(np.zeros(len(value)), value, slope, None, value, value)]


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
    features : ndarray of int of shape (n_problems, n_features)
        Which of a ratio's basis features each problem has. A problem with fewer than
        others has −1 at the end, and its coefficients there are zero.
    l2 : ndarray of shape (n_problems, n_features[, n_features]), or None
        The penalty is ½ Σ l2_j θ_j², or ½ θᵀ l2 θ for a matrix.
    l1 : ndarray of shape (n_problems, n_features), or None
        The penalty Σ l1_j |θ_j| is left to the solver; it counts for whether an optimum
        exists.
    weight_sums : Two of WeightSums, or None
        What was found of both classes' weights.
    """

    objective: Objective
    numerator: AnySample | WeightedMean
    denominator: AnySample
    centre: FloatArray
    features: IntArray
    l2: FloatArray | None = None
    l1: FloatArray | None = None
    weight_sums: Two[WeightSums] | None = None

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
    def bounded(self) -> bool:
        """Whether a ridge holds every coefficient; a matrix is definite."""
        if isinstance(self.denominator, NormalMoments):
            return True
        return self.l2 is not None and (self.l2.ndim == 3 or bool(self.l2.all()))

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
        rough: bool = False,
        lowest: bool = False,
    ) -> tuple[list[Sums], list[Sums]]:
        """The weighted sums over the numerator's and the denominator's rows.

        The lowest score of the denominator's rows is looked for where asked for.
        """
        coef, intercept = theta, None
        if self.objective.fits_intercept:
            coef, intercept = theta[:, :-1], theta[:, -1]
        elements = BLOCK_ELEMENTS
        if second_order:
            # A block has more rows than a Hessian, or merging would cost more.
            elements = max(elements // 4, 2 * self.n_parameters**2)

        found = []
        for term_of, sample in (
            (self.objective.numerator, self.numerator),
            (self.objective.denominator, self.denominator),
        ):
            at = Parameters(coef, None, intercept)
            if not sample.centred:
                at = Parameters(coef, self.centre, intercept, self._about_zero)
            found.append(
                sample.sums(
                    term_of,
                    at,
                    second_order=second_order,
                    rough=rough,
                    lowest=lowest or sample is not self.denominator,
                    elements=elements,
                )
            )
        return found[0], found[1]

    def __call__(
        self, theta: FloatArray, *, second_order: bool, rough: bool = False
    ) -> Evaluation:
        """Value, gradient and Hessian of the penalised objective, by the chain rule.

        A rough Hessian may be that of some of the rows, where all would be dear.
        """
        numerator, denominator = self.sums(
            theta, second_order=second_order, rough=rough
        )
        # 1. The objective as a function of the terms' means.
        terms = numerator + denominator
        totals = self.numerator.total, self.denominator.total
        divisors = np.array(np.broadcast_arrays(*totals))
        if len(terms) > 2:
            divisors = divisors.repeat([len(numerator), len(denominator)], axis=0)
        outer = self.objective.combine(
            Expectations(
                np.array([term.value for term in terms]) / divisors,
                np.array([term.log_scale for term in terms]),
                len(numerator),
            )
        )
        # 2. Its derivatives in the parameters.
        first = outer.gradient / divisors
        slopes = np.array([term.slope for term in terms])
        gradient = (first[..., None] * slopes).sum(axis=0)
        hessian = None
        if denominator[0].curvature is not None:
            parts = zip(first, [term.curvature for term in terms], strict=True)
            curved = [f[:, None, None] * c for f, c in parts if c is not None]
            hessian = curved[0]
            for part in curved[1:]:
                hessian += part
            if outer.hessian is not None:
                slopes /= divisors[..., None]
                inner = outer.hessian.transpose(2, 0, 1) @ slopes.transpose(1, 0, 2)
                hessian += slopes.transpose(1, 2, 0) @ inner
        # 3. The ridge penalty; L1 is left to the solver.
        value = outer.value
        if self.l2 is not None:
            n_features = self.l2.shape[1]
            coef = theta[:, :n_features]
            pull = self._pull(coef)
            value = value + 0.5 * np.vecdot(pull, coef)
            gradient[:, :n_features] += pull
            if hessian is not None and self.l2.ndim == 3:
                hessian[:, :n_features, :n_features] += self.l2
            elif hessian is not None:
                np.einsum("bii->bi", hessian)[:, :n_features] += self.l2
        # 4. Places that a problem has no feature at stay at zero.
        if (self.features < 0).any():
            n_features = self.features.shape[1]
            unused = np.zeros(theta.shape, dtype=bool)
            unused[:, :n_features] = self.features < 0
            gradient[unused] = 0.0
            if hessian is not None:
                hessian[unused[:, :, None] | unused[:, None, :]] = 0.0
                np.einsum("bii->bi", hessian)[unused] = 1.0
        # 5. Scores that separate the classes, under an L1 penalty by more than it takes
        #    to grow, prove that no finite optimum exists.
        proof = np.zeros(len(theta), dtype=bool)
        if self.l2 is None and self.objective.diverges_when_separated:
            highest = denominator[0].highest
            if self.l1 is not None:
                highest = highest + self._growth(theta)
            proof = numerator[0].lowest > highest + 1e-8 * (1.0 + np.abs(highest))
        return Evaluation(value, gradient, hessian, proof)

    def _pull(self, coef: FloatArray) -> FloatArray:
        """The ridge penalty's gradient."""
        assert self.l2 is not None
        if self.l2.ndim == 3:
            return np.asarray((coef[:, None, :] @ self.l2)[:, 0])
        return self.l2 * coef

    def _growth(self, theta: FloatArray) -> Any:
        """Σ l1 |θ|, which grows as fast as the scores do."""
        assert self.l1 is not None
        return np.vecdot(np.abs(theta[:, : self.l1.shape[1]]), self.l1)

    def recedes(self, direction: FloatArray) -> BoolArray:
        """Whether the objective falls for ever, or levels off, along a direction.

        It does where no denominator row scores above the numerator: the numerator's
        mean then lies on the hull of the denominator's rows, or outside of it.
        """
        length = np.abs(direction).max(axis=1, keepdims=True)
        unit = direction / np.where(length > 0.0, length, 1.0)
        numerator, denominator = self.sums(unit, second_order=False, lowest=True)
        lowest = numerator[0].lowest
        highest = denominator[0].highest
        if self.l1 is not None:
            highest = highest + self._growth(unit)
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
        units.
        """
        if self.bounded or not self.objective.diverges_when_separated:
            return solution
        suspect = (solution.status != Status.CONVERGED) | self.far_out(solution)
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
        return np.asarray(centred - np.vecdot(coef, self.centre))

    def theta(self, coef: FloatArray, intercept: FloatArray) -> FloatArray:
        """The parameter vectors of given coefficients and (uncentred) intercepts."""
        if not self.objective.fits_intercept:
            return coef
        centred = intercept + np.vecdot(coef, self.centre)
        return np.concatenate([coef, centred[:, None]], axis=1)

    def log_mass(self, solution: Solution) -> FloatArray:
        """Log E[exp s(Z⁰)], where s = θᵀf is not centred."""
        coef = solution.theta[:, : self.centre.shape[1]]
        shift = np.vecdot(coef, self.centre)
        if isinstance(self.objective, KLIEPObjective):
            assert isinstance(self.numerator, WeightedMean)
            # It is a part of the optimal value, −θᵀE f + log E exp s + penalty.
            log_mean = solution.value + np.vecdot(coef, self.numerator.mean)
            if self.l2 is not None:
                log_mean -= 0.5 * np.vecdot(self._pull(coef), coef)
            if self.l1 is not None:
                log_mean -= self._growth(coef)
            return np.asarray(log_mean + shift)
        log_mean = self._log_tilted(coef) - np.log(self.denominator.total)
        return np.asarray(log_mean + shift)

    def tilt_size(self, solution: Solution) -> FloatArray:
        """Kish's effective number of denominator rows under the weights w·exp(θᵀf).

        They are what KLIEP's gradient and Hessian are means over.
        """
        coef = solution.theta[:, : self.centre.shape[1]]
        log_total = self.log_mass(solution) - np.vecdot(coef, self.centre)
        log_total += np.log(self.denominator.total)
        log_squares = self._log_tilted(2.0 * coef, squared=True)
        return np.asarray(np.exp(2.0 * log_total - log_squares))

    def _log_tilted(self, coef: FloatArray, *, squared: bool = False) -> FloatArray:
        """Log Σ w exp(θᵀf̃) over the denominator's rows, or with squared weights."""
        sample, term_of = self.denominator, KLIEPObjective().denominator
        at = Parameters(coef, None if sample.centred else self.centre, None)
        (found,) = sample.sums(term_of, at, second_order=False, squared=squared)
        return np.asarray(np.log(found.value) + found.log_scale)

    def thinned(self, stride: int) -> RatioProblem:
        """The same problem on every stride-th row, in single precision."""
        return replace(
            self,
            numerator=self.numerator.held(stride, self.centre),
            denominator=self.denominator.held(stride, self.centre),
        )

    def problems(self, which: Any, width: int | None = None) -> RatioProblem:
        """Some problems of the batch, with their first features, or with all."""
        l1, l2, first = self.l1, self.l2, slice(width)
        if l2 is not None:
            l2 = l2[which][:, first] if l2.ndim == 2 else l2[which][:, first, first]
        samples: list[Any] = []
        for sample in (self.numerator, self.denominator):
            some: Any = sample.problems(which)
            if width is not None and isinstance(some, WeightedMean):
                some = replace(some, mean=some.mean[:, :width])
            elif width is not None and some.features is not None:
                some = replace(some, features=some.features[..., :width])
                if getattr(some, "stand_in", None) is not None:
                    some = replace(some, stand_in=some.stand_in[:, :width])
            samples.append(some)
        return replace(
            self,
            numerator=samples[0],
            denominator=samples[1],
            centre=self.centre[which][:, first],
            l2=l2,
            l1=None if l1 is None else l1[which][:, first],
            features=self.features[which][:, first],
        )

    # A ratio's basis features, and the problems that they are shared out to.

    def gather(self, values: FloatArray) -> FloatArray:
        """Values of the problems' features, in the order of the basis features."""
        real = self.features >= 0
        if len(real) == 1:
            return values[0, : real.shape[1]].copy()
        gathered = np.empty(int(real.sum()))
        gathered[self.features[real]] = values[:, : real.shape[1]][real]
        return gathered

    def penalised(self, units: PenaltyUnits, strength: Strength) -> RatioProblem:
        """The same problems under penalties."""
        l1, l2 = (
            each if unit is None else each * unit
            for each, unit in zip(strength, units, strict=True)
        )
        if not l1.any() and not l2.any():
            return self
        index = self.features
        pull = l2[index] if l2.ndim == 1 else l2[index[:, :, None], index[:, None, :]]
        return replace(
            self, l1=l1[index] if l1.any() else None, l2=pull if l2.any() else None
        )

    def at_one(self) -> tuple[FloatArray, FloatArray]:
        """The gradient at a ratio of one, and each basis feature's variance.

        Without penalties; the variance is the diagonal of KLIEP's Hessian there.
        """
        plain = replace(self, l1=None, l2=None)
        start = plain(plain.start(), second_order=True)
        assert start.hessian is not None
        variance = np.diagonal(start.hessian, axis1=1, axis2=2)
        variance = np.maximum(variance[:, : self.centre.shape[1]], 0.0)
        variance = np.where(constant_features(self.denominator), 0.0, variance)
        return self.gather(start.gradient), self.gather(variance)

    def value(self, coef: FloatArray, intercepts: FloatArray) -> float:
        """The objective at basis features' coefficients, and problems' intercepts."""
        shared_out = np.where(self.features >= 0, coef[self.features], 0.0)
        theta = self.theta(shared_out, intercepts)
        return float(self(theta, second_order=False).value.sum())


def constant_features(sample: AnySample) -> BoolArray:
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


def weighted_means(
    rows: ClassRows, sums: WeightSums, n_tables: int = 1
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """A class's means of features, their centre, and the mean of the weights.

    The means are ΣWf/ΣW (Hájek) or ΣWf/n, as the class is divided, and the centre is
    ΣWf/ΣW. Rows may be those of several tables of one length.
    """
    # Rounded as the features are, so that both classes are centred alike.
    dtype = rows.source.features.dtype
    if rows.adjusted is not None:
        # Terms of all rows: a fold may do without any in which one is observed.
        mean = np.average(rows.adjusted, axis=0, weights=rows.source.sample_weight)
        centre = mean.astype(dtype).astype(np.float64)
        return mean, centre, np.ones(len(mean))
    totals = sums.sums
    if sums.origin is not None:
        totals = totals + sums.mass * sums.origin.astype(np.float64)
    divisor = rows.divisor(sums.mass)
    if not rows.self_normalised:
        divisor = divisor / n_tables
    centre = (totals / sums.mass).astype(dtype).astype(np.float64)
    return totals / divisor, centre, sums.mass / divisor


def pose(
    objective: Objective,
    two: Two[ClassRows],
    basis: Basis,
    *,
    apart: bool,
    pairs: bool = False,
    complete: tuple[ClassRows, WeightSums] | None = None,
) -> RatioProblem:
    """The problem that two classes' rows pose, without penalties.

    It is one in all features, on the denominator's complete rows, or by its pairs of
    columns; or, where they are apart, one for each column (naive Bayes), on all rows in
    which it is observed.
    """
    # 1. Which features each problem has; −1 fills up where some have fewer.
    required = basis.required_columns_
    columns = only_columns(required)
    features = np.arange(len(required))[None]
    if (apart or pairs) and columns.ndim == 2:
        several = np.flatnonzero(required.sum(axis=1) != 1)[:10]
        names = [str(name) for name in basis.get_feature_names_out()[several]]
        raise ValueError(
            "fallback='naive-bayes' and pairs=True need basis features of one column "
            f"each, and {names} are not. Use a basis without products, or "
            "fallback='raise' and pairs=False."
        )
    if apart:
        owners, widths = np.unique(columns, return_counts=True)
        features = np.full((len(owners), int(widths.max())), -1)
        real = np.arange(features.shape[1]) < widths[:, None]
        features[real] = np.argsort(columns, kind="stable")
    filled = np.where(features < 0, features[:, :1], features)
    # 2. The numerator's means, which features are centred at.
    sums = two.numerator.feature_sums(columns)
    mean, centres, mass = weighted_means(two.numerator, sums)
    centre = centres[filled]

    # 3. Both classes' rows.
    def sample(
        rows: ClassRows, known: tuple[ClassRows, WeightSums] | None = None
    ) -> tuple[AnySample, WeightSums]:
        if apart:
            found = rows.feature_sums(columns)
            total = np.broadcast_to(rows.divisor(found.mass), columns.shape)
            by: dict[str, Any] = {"features": filled, "columns": owners}
            by["stand_in"] = rows.some_observed(required.argmax(axis=1))[filled]
            return sample_of(rows, total[features[:, 0]], centre, **by), found
        whole, found = rows.complete() if known is None else known
        if not found.count[0]:
            raise ValueError(
                f"Class {rows.label!r} has no row in which everything is observed (of "
                f"{found.n_rows}), and its joint fit needs complete rows. Use "
                "NaiveBayesRatio, fewer columns, or more rows."
            )
        return sample_of(whole, rows.divisor(found.mass), centre), found

    numerator: AnySample | WeightedMean
    if objective.linear_numerator:
        share = np.ones(1) if len(mass) > 1 and not apart else mass
        share = np.broadcast_to(share, columns.shape[:1])[features[:, 0]]
        # Without an intercept the printed objective, θᵀΣWf/n − log …, is kept exactly
        # even where the weights don't average to one: both sides gain θᵀc.
        scale = share[:, None] if objective.fits_intercept else 1.0
        numerator = WeightedMean(mean[filled] - scale * centre, share)
    else:
        numerator, sums = sample(two.numerator)
    denominator: AnySample
    if pairs:
        # One covariance of both classes has half the noise of that of one.
        others = two.denominator.feature_sums(columns)
        other_mean = weighted_means(two.denominator, others)[0]
        pooled = pair_covariance(two.numerator, mean, required)
        pooled += pair_covariance(two.denominator, other_mean, required)
        size = min(float(sums.kish.min()), float(others.kish.min()))
        covariance = floored(pooled / 2.0, min(len(mean) / size, 1.0))
        denominator = NormalMoments.of(other_mean - centre[0], covariance)
    else:
        denominator, others = sample(two.denominator, complete)
    return RatioProblem(
        objective,
        numerator,
        denominator,
        centre,
        features,
        weight_sums=Two(sums, others),
    )
