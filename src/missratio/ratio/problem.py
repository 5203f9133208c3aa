"""The problem that rows pose, a function of parameters; whether it has an optimum."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from missratio import rows as class_rows
from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.engine import AnySample, RowSample, Sample
from missratio.moments import Link, Parameters, Sums
from missratio.objective import Expectations, KLIEPObjective, Objective
from missratio.ratio.base import Two, no_complete_row
from missratio.rows import ClassRows, RowBlock, WeightSums, only_columns
from missratio.rows import source as limits
from missratio.solver import Evaluation, Solution, Status, newton_direction

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

    def problems(self, which: Any, width: int | None = None) -> WeightedMean:
        """The means of some problems of the batch, of their first features."""
        return WeightedMean(self.mean[which][:, :width], self.mass[which])

    def held(self, stride: int, centre: FloatArray) -> WeightedMean:
        """The means of all rows, for a sample of some."""
        return self

    def sums(self, term_of: Link, at: Parameters, **_: Any) -> Sums:
        """E s, E f̃ and no curvature, in the accumulator's form."""
        slope, value = self.mean, np.vecdot(at.coef, self.mean)
        if at.intercept is not None:
            slope = np.concatenate([slope, self.mass[:, None]], axis=1)
            value += self.mass * at.intercept
        return Sums(np.zeros(len(value)), value, slope, None, value, value)


# An objective's least value is minus a divergence, no larger than the number of rows.
# Pearson's has no lower bound, and isn't followed further.
LEAST_VALUE = -1e9


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

    @property
    def bounded(self) -> bool:
        """Whether a ridge holds every coefficient; a matrix is definite."""
        if isinstance(self.denominator, NormalMoments):
            return True
        return self.l2 is not None and (self.l2.ndim == 3 or bool(self.l2.all()))

    def sums(self, theta: FloatArray, *, second_order: bool) -> tuple[Sums, Sums]:
        """The weighted sums over the numerator's and the denominator's rows."""
        coef, intercept = theta, None
        if self.objective.fits_intercept:
            coef, intercept = theta[:, :-1], theta[:, -1]

        sums = []
        for sample, term_of in (
            (self.numerator, self.objective.numerator),
            (self.denominator, self.objective.denominator),
        ):
            at = Parameters(coef, None if sample.centred else self.centre, intercept)
            sums.append(sample.sums(term_of, at, second_order=second_order))
        return sums[0], sums[1]

    def __call__(self, theta: FloatArray, *, second_order: bool) -> Evaluation:
        """Value, gradient and Hessian of the penalised objective, by the chain rule."""
        numerator, denominator = self.sums(theta, second_order=second_order)
        # 1. The objective as a function of the terms' means.
        terms = numerator, denominator
        divisors = np.empty((2, len(theta)))
        divisors[0], divisors[1] = self.numerator.total, self.denominator.total
        means = np.array([term.value for term in terms]) / divisors
        scales = np.array([term.log_scale for term in terms])
        outer = self.objective.combine(Expectations(means, scales))
        # 2. Its derivatives in the parameters.
        first = outer.gradient / divisors
        slopes = np.array([term.slope for term in terms])
        gradient = (first[..., None] * slopes).sum(axis=0)
        hessian = None
        if denominator.curvature is not None:
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
        #    to grow, prove that no finite optimum exists; so does a value that is below
        #    any divergence's.
        proof = np.asarray(value < LEAST_VALUE)
        if self.l2 is None and self.objective.diverges_when_separated:
            highest = denominator.highest
            if self.l1 is not None:
                highest = highest + self._growth(theta)
            proof |= numerator.lowest > highest + 1e-8 * (1.0 + np.abs(highest))
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

    def far_out(self, solution: Solution) -> BoolArray:
        """Whether scores spread so much that they may be on their way to infinity."""
        few = self.denominator.peek()
        coef = solution.theta[:, : self.centre.shape[1], None]
        with np.errstate(over="ignore", invalid="ignore"):
            spread = (few - few[:, :1]).astype(np.float64, copy=False) @ coef
            return np.asarray(spread[..., 0].std(axis=1) > 5.0)

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
            # The objective falls for ever, or levels off, where no denominator row
            # scores above the numerator: its mean is on the rows' hull, or outside.
            length = np.abs(step).max(axis=1, keepdims=True)
            unit = step / np.where(length > 0.0, length, 1.0)
            numerator, denominator = self.sums(unit, second_order=False)
            lowest, highest = numerator.lowest, denominator.highest
            if self.l1 is not None:
                highest = highest + self._growth(unit)
            spread = highest - np.minimum(denominator.lowest, lowest)
            # Along collinear features scores don't differ, but for rounding.
            few = self.denominator.peek()
            size = np.abs(unit[:, : few.shape[2]]) * few.std(axis=1, dtype=np.float64)
            recedes = spread > 1e-6 * size.max(axis=1)
            recedes &= highest - lowest <= 1e-6 * spread
            status[suspect & recedes] = Status.NO_OPTIMUM
        return solution._replace(status=status)

    def intercept(self, solution: Solution) -> FloatArray:
        """The score's intercept for features that are not centred.

        Where the objective has none, it makes E[exp s(Z⁰)] one: −log N̂.
        """
        coef = solution.theta[:, : self.centre.shape[1]]
        shift = np.vecdot(coef, self.centre)
        if self.objective.fits_intercept:
            return np.asarray(solution.theta[:, -1] - shift)
        if not isinstance(self.objective, KLIEPObjective):
            tilted = replace(self, objective=KLIEPObjective())
            _, sums = tilted.sums(coef, second_order=False)
            log_mean = np.log(sums.value / self.denominator.total) + sums.log_scale
            return np.asarray(-log_mean - shift)
        assert isinstance(self.numerator, WeightedMean)
        # It is a part of the optimal value, −θᵀE f + log E exp s + penalty.
        log_mean = solution.value + np.vecdot(coef, self.numerator.mean)
        if self.l2 is not None:
            log_mean -= 0.5 * np.vecdot(self._pull(coef), coef)
        if self.l1 is not None:
            log_mean -= self._growth(coef)
        return np.asarray(-log_mean - shift)

    def theta(self, coef: FloatArray, intercept: FloatArray) -> FloatArray:
        """The parameter vectors of given coefficients and (uncentred) intercepts."""
        if not self.objective.fits_intercept:
            return coef
        centred = intercept + np.vecdot(coef, self.centre)
        return np.concatenate([coef, centred[:, None]], axis=1)

    def tilt_size(self, coef: FloatArray) -> float:
        """Kish's effective number of denominator rows under the weights w·exp(θᵀf).

        KLIEP's gradient and Hessian are means over them. Where rows are many, some
        stand for all.
        """
        # Two million numbers are enough.
        sample, stride = self.denominator, 1 + self.denominator.size // 2_000_000
        if stride > 1:
            sample = sample.held(stride, self.centre)
        assert self.weight_sums is not None
        mass = sample.log_masses(coef)
        mass = np.exp(mass - mass.max())
        n_rows = self.weight_sums.denominator.count[0]
        return float(mass.sum() ** 2 / (mass @ mass) * n_rows / len(mass))

    def problems(self, which: Any, width: int | None = None) -> RatioProblem:
        """Some problems of the batch, with their first features, or with all."""
        l1, l2, first = self.l1, self.l2, slice(width)
        if l2 is not None:
            l2 = l2[which][:, first] if l2.ndim == 2 else l2[which][:, first, first]
        return replace(
            self,
            numerator=self.numerator.problems(which, width),
            denominator=self.denominator.problems(which, width),
            centre=self.centre[which][:, first],
            l2=l2,
            l1=None if l1 is None else l1[which][:, first],
            features=self.features[which][:, first],
        )

    # A ratio's basis features, and the problems that they are shared out to.

    def gather(self, values: FloatArray) -> FloatArray:
        """Values of the problems' features, in the order of the basis features."""
        real = self.features >= 0
        gathered = np.empty(int(real.sum()))
        gathered[self.features[real]] = values[:, : real.shape[1]][real]
        return gathered

    def penalised(self, units: PenaltyUnits, strength: Strength) -> RatioProblem:
        """The same problems under penalties."""
        l1, l2 = (
            penalty if unit is None else penalty * unit
            for penalty, unit in zip(strength, units, strict=True)
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
        flat = self.theta(np.zeros_like(self.centre), np.zeros(len(self.centre)))
        start = plain(flat, second_order=True)
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
    return sample.fold(
        lambda features, weights: np.asarray((features == value).all(axis=1)),
        merge=lambda parts: np.asarray(np.all(parts, axis=0)),
    )


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
    totals, divisor = sums.sums, rows.divisor(sums.mass)
    if not rows.self_normalised:
        divisor = divisor / n_tables
    centre = (totals / sums.mass).astype(dtype).astype(np.float64)
    return totals / divisor, centre, sums.mass / divisor


class NormalMoments(Sample):
    """Rows of one problem that stand for a normal law, by their mean and covariance.

    They take the place of the class under the exponent where few of its rows are
    complete: log E exp(θᵀf) is taken to be θᵀm + ½ θᵀΣθ, and KLIEP's optimum is then
    θ = Σ⁻¹(μ₁ − m), Fisher's discriminant. The moments need pairs of columns only.
    """

    @classmethod
    def of(cls, mean: FloatArray, covariance: FloatArray) -> NormalMoments:
        """Rows with these moments: two on each axis of the covariance."""
        values, vectors = np.linalg.eigh(covariance)
        axes = (vectors * np.sqrt(len(values) * np.maximum(values, 0.0))).T
        rows = mean + np.concatenate([axes, -axes])
        return cls(rows[None], np.ones(1), centred=True)

    def sums(self, term_of: Link, at: Parameters, **options: Any) -> Sums:
        """E exp s under the normal law, and its derivatives."""
        mean, coef = self.features[0].mean(axis=0), at.coef[0]
        change = self.features[0] - mean
        covariance = change.T @ change / len(change)
        log_mean = coef @ mean + 0.5 * coef @ covariance @ coef
        slope, size = mean + covariance @ coef, len(mean)
        if at.intercept is not None:
            log_mean, slope = log_mean + at.intercept[0], np.append(slope, 1.0)
        curvature = np.outer(slope, slope)
        curvature[:size, :size] += covariance
        bend = curvature[None] if options["second_order"] else None
        far = np.full(1, np.inf)
        return Sums(np.array([log_mean]), np.ones(1), slope[None], bend, -far, far)


def feature_weights(
    rows: ClassRows, block: RowBlock, columns: BoolArray | IntArray
) -> FloatArray:
    """What a block's rows weigh for each feature, or, in one column, for all."""
    if block.ipw is None:
        return np.ones((len(block.rows), 1))
    if block.ipw.ndim == 1:
        return block.ipw[:, None]
    return class_rows.weights_of_features(block.ipw, columns, rows.groups)


def pair_moments(
    rows: ClassRows, columns: IntArray
) -> tuple[FloatArray, FloatArray, WeightSums]:
    """A class's mean and covariance of features, pair by pair, and its weights' sums.

    A covariance is Σ w_jk (f_j − m_j)(f_k − m_k) / Σ w_jk, with w_jk the weight of a
    row in which both columns are observed: the product of theirs, or that of one where
    they are lost together. No row has to be complete. `columns` has the only column
    that each feature needs.
    """
    sums = rows.feature_sums(columns)
    mean = weighted_means(rows, sums)[0]
    owner = columns if rows.groups is None else rows.groups[columns]
    together = owner[:, None] == owner

    def work(block: RowBlock) -> FloatArray:
        weights = feature_weights(rows, block, columns)
        once = together | (weights.shape[1] == 1)
        weights = np.broadcast_to(weights, block.features.shape)
        seen = weights > 0.0
        change = np.where(seen, block.features - mean, 0.0)
        share = weights
        if block.sample_weight is not None:
            share = block.sample_weight[:, None] * weights
        return np.array(
            [
                np.where(once, x.T @ (seen * y), x.T @ (weights * y))
                for x, y in ((share * change, change), (share, seen))
            ]
        )

    products, mass = rows.fold(work, lambda parts: np.sum(parts, axis=0))
    covariance = products / np.where(mass > 0.0, mass, 1.0)
    return mean, np.asarray((covariance + covariance.T) / 2.0), sums


def pose(
    ratio: Any,
    objective: Objective,
    two: Two[ClassRows],
    complete: tuple[ClassRows, WeightSums] | None = None,
) -> RatioProblem:
    """The problem that two classes' rows pose to a ratio, without penalties.

    It is one in all features, on the denominator's complete rows, or by its pairs of
    columns; or, for naive Bayes, one for each column, on all rows in which it is
    observed. The denominator's complete rows are given where they are known.
    """
    # 1. Which features each problem has; −1 fills up where some have fewer.
    required, apart = ratio.basis_.required_columns_, ratio._apart
    columns = only_columns(required)
    features = np.arange(len(required))[None]
    if ratio.pairs_used_ and columns.ndim == 2:
        several = np.flatnonzero(required.sum(axis=1) != 1)[:10]
        names = [str(name) for name in ratio.basis_.get_feature_names_out()[several]]
        raise ValueError(
            f"pairs=True needs basis features of one column each, and {names} are not. "
            "Use a basis without products, or pairs=False."
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

    # 3. Both classes' rows: on their device, as a centred copy, or in place.
    def sample(
        rows: ClassRows, known: tuple[ClassRows, WeightSums] | None = None
    ) -> tuple[AnySample, WeightSums]:
        by: dict[str, Any] = {}
        if apart:
            whole, weight_sums = rows, rows.feature_sums(columns)
            total = np.broadcast_to(rows.divisor(weight_sums.mass), columns.shape)
            total = total[features[:, 0]]
            by = {"features": filled, "columns": owners}
            by["stand_in"] = rows.some_observed(required.argmax(axis=1))[filled]
        else:
            whole, weight_sums = rows.complete() if known is None else known
            total = rows.divisor(weight_sums.mass)
            if not weight_sums.count[0]:
                raise no_complete_row(rows.label, weight_sums.n_rows)
        if whole.source.sample is not None:
            return whole.source.sample(total), weight_sums
        in_place = RowSample(whole, total, **by)
        if in_place.size > limits.HELD_ELEMENTS:
            return in_place, weight_sums
        # Small samples are copied, so that a class lies together in memory.
        return in_place.held(1, centre), weight_sums

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
    if ratio.pairs_used_:
        # One covariance of both classes has half the noise of that of one. Entries that
        # come from different rows may make up none: eigenvalues have a floor.
        only = required.argmax(axis=1)
        (_, above, _), (below_mean, below, others) = (
            pair_moments(rows, only) for rows in two
        )
        pooled = (above + below) / 2.0
        floor = min(len(mean) / min(sums.kish.min(), others.kish.min()), 1.0)
        spread = np.sqrt(np.maximum(np.diagonal(pooled), 0.0))
        unit = np.where(spread > 0.0, spread, 1.0)
        values, vectors = np.linalg.eigh(pooled / np.outer(unit, unit))
        lifted = (vectors * np.maximum(values, floor)) @ vectors.T
        covariance = lifted * np.outer(spread, spread)
        denominator = NormalMoments.of(below_mean - centre[0], covariance)
    else:
        denominator, others = sample(two.denominator, complete)
    both = Two(sums, others)
    parts = objective, numerator, denominator, centre, features
    return RatioProblem(*parts, weight_sums=both)
