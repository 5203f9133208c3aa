"""A solved problem to first order, and what rows so do to its solution.

The gradient G = Σ_t h_t S_t + λθ is made of means over rows: a_t = E g_t, and
S_t = E g_t' f̃. It is zero at the solution, and so a change of the means moves that by

    δ(θ, b) = −H⁻¹ δG,    δG = Σ_t h_t δS_t + Σ_tu h_tu S_t δa_u,

with H the Hessian. A mean moves with every row by w(u − ū)/Σw after Hájek, and by
(wu − ū)/n after Horvitz and Thompson: so it is enough to know each row's u. The sum
over rows of the outer product of what each does is the covariance of a class's part;
where weights were learned, their estimation adds its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.learning import LearnedMissingness
from missratio.missingness import Block
from missratio.objective import Expectations, KLIEPObjective
from missratio.ratio import RatioProblem, WeightedMean, feature_weights
from missratio.rows import ClassRows, RowBlock
from missratio.uncertainty.reliability import rates, weight_sums

# A row that has all of the weight can't be left out: no row counts for more than this.
LARGEST_LEVERAGE = 0.99


@dataclass(frozen=True, slots=True)
class Means:
    """One class's means in the gradient, as functions of a row."""

    # ū, the means over the rows, of shape (n_means,).
    mean: FloatArray
    # What a change of the means does to (θ, log N̂), (n_features + 1, n_means).
    to_result: FloatArray
    # On which columns' weights each mean depends, (n_means, n_columns).
    mask: BoolArray
    # Whether each feature has weights of its own.
    by_feature: bool
    # Each row's u by its features, and what its leverage is once multiplied by its
    # weight; None for ones. Leverage is the share of a row in the Hessian (and in the
    # normaliser): without the row the solution would move further than to first order
    # by 1/(1 − leverage).
    rows: Callable[[FloatArray], tuple[FloatArray, FloatArray | None]]


def expand(
    problem: RatioProblem,
    coef: FloatArray,
    intercept: float,
    used: BoolArray,
    required: BoolArray | None,
) -> tuple[tuple[Means, Means], float]:
    """The means of numerator and denominator, and the decrement √(GᵀH⁻¹G).

    Parameters
    ----------
    problem : RatioProblem
        One problem of a ratio where it was solved: all of a joint fit, or a column's.
    coef : ndarray of shape (n_features,)
    intercept : float
        The score's, for features that are not centred.
    used : ndarray of bool of shape (n_columns,)
        The table's columns that must be observed for a row to count.
    required : ndarray of bool of shape (n_features, n_columns), or None
        The columns that each basis feature needs, where a numerator that enters through
        means alone has weights of its own for each; None where rows count as one.
    """
    objective = problem.objective
    # 1. The solution, its Hessian, and what parameters do to (θ, log N̂).
    theta = problem.theta(coef[None], np.array([intercept]))
    evaluation = problem(theta, second_order=True)
    assert evaluation.hessian is not None
    hessian, gradient = evaluation.hessian[0], evaluation.gradient[0]
    size = np.sqrt(np.abs(np.diagonal(hessian)))
    size[size == 0.0] = 1.0
    scaled = hessian / np.outer(size, size)
    if np.linalg.cond(scaled) > 1e12:
        raise ValueError(
            "The objective is flat in some direction at its optimum, so that standard "
            "errors have no bound: some basis features are combinations of others. "
            "Drop them, or set l2 > 0."
        )
    inverse = np.linalg.inv(scaled) / np.outer(size, size)
    centre, log_normalizer = problem.centre[0], 0.0
    if objective.fits_intercept:
        to_result = np.eye(len(centre) + 1)
        to_result[-1] = np.append(centre, -1.0)
    else:
        # log E exp s, centred, moves by the tilted mean.
        tilted_problem = replace(problem, objective=KLIEPObjective())
        _, sums = tilted_problem.sums(coef[None], second_order=False)
        mean = centre + sums.slope[0] / sums.value[0]
        to_result = np.concatenate([np.eye(len(centre)), mean[None]])
        log_normalizer = -intercept - float(coef @ centre)
    to_result = -to_result @ inverse
    # 2. Derivatives of the outer function, the numerator's first: h_t as `first`,
    #    Σ_u h_tu S_u as `second`, and h_t S_t + a_t Σ_u h_tu S_u, the mean of what rows
    #    do to the gradient, as `part`.
    totals = problem.numerator.total, problem.denominator.total
    pairs = list(zip(problem.sums(theta, second_order=False), totals, strict=True))
    value = np.array([term.value / total for term, total in pairs])
    slope = np.array([term.slope[0] / total[0] for term, total in pairs])
    scale = np.array([term.log_scale for term, _ in pairs])
    outer = objective.combine(Expectations(value, scale))
    first, second = outer.gradient[:, 0], np.zeros_like(slope)
    if outer.hessian is not None:
        second = outer.hessian[:, :, 0] @ slope
    part = first[:, None] * slope + second * value

    def score_means(is_numerator: bool) -> Means:
        """A class that enters row by row, through functions of the score."""
        which = 0 if is_numerator else 1
        function = objective.numerator if is_numerator else objective.denominator
        constant = float(theta[0, -1]) if objective.fits_intercept else 0.0
        # Without an intercept the last mean of the denominator is that of the
        # normalised tilt, which moves log N̂ alone.
        tilted = not (is_numerator or objective.fits_intercept)

        def rows(features: FloatArray) -> tuple[FloatArray, FloatArray]:
            centred = _centred(features, centre)
            score = centred @ coef + constant
            term, full = function(score), centred
            if objective.fits_intercept:
                full = np.concatenate([centred, np.ones((len(centred), 1))], axis=1)
            times = np.exp(np.asarray(term.log_scale) - scale[which, 0])
            outer_slope = first[which] * times
            u = (times * term.value)[:, None] * second[which]
            u += (outer_slope * term.slope)[:, None] * full
            leverage = outer_slope * term.curvature
            leverage = leverage * ((full @ inverse) * full).sum(axis=1)
            if tilted:
                tilt = np.exp(score - log_normalizer)
                u = np.concatenate([u, tilt[:, None]], axis=1)
                leverage = leverage + tilt
            return u, leverage

        mean, change = part[which], to_result
        if tilted:
            alone = np.eye(len(to_result))[:, -1:]
            mean, change = np.append(mean, 1.0), np.hstack([to_result, alone])
        mask = np.tile(used, (len(mean), 1))
        return Means(mean, change, mask, False, rows)

    if isinstance(problem.numerator, WeightedMean):
        # The printed objective has the means of features that are not centred, even
        # where weights don't average to one.
        numerator, mask, by_feature = problem.numerator, required, required is not None
        mean, shift = numerator.mean[0] + centre, np.zeros_like(centre)
        if objective.fits_intercept and not by_feature:
            mean, shift = numerator.mean[0], centre
        if mask is None:
            mask = np.tile(used, (len(centre), 1))
        if objective.fits_intercept:
            mean = np.append(mean, 0.0 if by_feature else numerator.mass[0])
            last = np.zeros_like(used) if by_feature else used
            mask = np.concatenate([mask, last[None]])

        def features_of(features: FloatArray) -> tuple[FloatArray, None]:
            width = len(mean) - features.shape[1]
            constant = np.full((len(features), width), float(not by_feature))
            return np.concatenate([_centred(features, shift), constant], axis=1), None

        change = first[0] * np.eye(theta.shape[1]) + np.outer(second[0], theta[0])
        means = Means(mean, to_result @ change, mask, by_feature, features_of)
    else:
        means = score_means(True)
    decrement = float(np.sqrt(max(gradient @ inverse @ gradient, 0.0)))
    return (means, score_means(False)), decrement


def _centred(features: FloatArray, centre: FloatArray) -> FloatArray:
    centred = features - centre
    centred[np.isnan(centred)] = 0.0
    return centred


def class_spread(
    rows: ClassRows,
    factors: Sequence[tuple[IntArray, Means]],
    parts: Sequence[LearnedPart],
    to_result: FloatArray,
) -> tuple[FloatArray, ...]:
    """How far the results move with the rows of a class.

    Parameters
    ----------
    rows : ClassRows
    factors : sequence
        Which features each factor of the ratio has, and its means.
    parts : sequence of LearnedPart
        What was learned of the class's φ.
    to_result : ndarray of shape (n_results, n_means)
        What a change of the means does to the results.

    Returns
    -------
    covariance : ndarray of shape (n_results, n_results)
        Of the results, with the error of a learned φ.
    variance, fourth : ndarray of shape (n_results,)
        What the sampling of rows does, φ taken as given, and the sums of the fourth
        powers of what each row does.
    through, heavy : ndarray of shape (n_results,)
        The variance through each mean, summed; and times the rate of its weights.
    """
    sizes = [len(means.mean) for _, means in factors]
    size, hajek, adjusted = sum(sizes), rows.self_normalised, rows.adjusted

    def weigh(block: RowBlock) -> list[FloatArray]:
        """Weights, (n_rows, 1), or (n_rows, n_means) where each mean has its own."""
        weighed, more = [], block.sample_weight
        for _, means in factors:
            needed, lacking = means.mask[:1], 0
            if means.by_feature:
                # Where there is an intercept, its mean of ones has no weights.
                needed = means.mask[means.mask.any(axis=1)]
                lacking = len(means.mask) - len(needed)
            weights = feature_weights(rows, block, needed)
            weights = np.pad(weights, ((0, 0), (0, lacking)), constant_values=1.0)
            weighed.append(weights if more is None else weights * more[:, None])
        return weighed

    def beside(columns: list[FloatArray]) -> FloatArray:
        """What all means have, (n_rows, n_means)."""
        whole = [
            np.broadcast_to(column, (len(column), width))
            for column, width in zip(columns, sizes, strict=True)
        ]
        return whole[0] if len(whole) == 1 else np.concatenate(whole, axis=1)

    # 1. What each factor's weighted sums are divided by.
    masses = rows.fold(
        lambda block: [weights.sum(axis=0) for weights in weigh(block)],
        lambda parts: [np.sum(part, axis=0) for part in zip(*parts, strict=True)],
    )
    totals = [rows.divisor(mass) for mass in masses]

    # 2. What each row does to the means: `plain` is w ∂(mean)/∂w, for a change of the
    # row's weight; `left_out` is that divided by 1 − leverage; `moved` is the row's
    # influence, which is what the sampling of rows moves.
    def work(block: RowBlock) -> FloatArray:
        features = block.features.astype(np.float64, copy=False)
        counts = block.sample_weight
        counts = np.ones(len(features)) if counts is None else counts
        counts = (counts / rows.sample_weight_total)[:, None]
        weighed = weigh(block)
        plain, left_out, moved = [], [], []
        for k, (place, means) in enumerate(factors):
            if adjusted is not None and means.by_feature:
                # Slopes come from other folds: to first order only the terms move.
                terms = adjusted[block.place][:, place]
                u = np.pad(terms, ((0, 0), (0, len(means.mean) - terms.shape[1])))
                share, lever = counts, counts
            else:
                share = weighed[k] / totals[k]
                u, leverage = means.rows(features[:, place])
                lever = share if leverage is None else share * leverage[:, None]
            change = share * (u - means.mean if hajek else u)
            factor = 1.0 / (1.0 - np.clip(lever, 0.0, LARGEST_LEVERAGE))
            plain.append(change)
            left_out.append(factor * change)
            moved.append(left_out[-1] if hajek else left_out[-1] - counts * means.mean)
        influence = beside(moved)
        sums = [
            (influence.T @ influence).ravel(),
            ((influence @ to_result.T) ** 4).sum(axis=0),
            weight_sums(beside(weighed)).ravel(),
        ]
        for part in parts:
            assert block.ipw is not None
            sums += part.sums(block.rows, block.ipw, beside(plain), beside(left_out))
        return np.concatenate(sums)

    total = rows.fold(work, lambda parts: np.sum(parts, axis=0))
    ends = np.cumsum([size * size, len(to_result), 5 * size])
    squares, fourth, sums, rest = np.split(total, ends)
    meat = squares.reshape(size, size)
    covariance = to_result @ meat @ to_result.T
    variance = np.diagonal(covariance).copy()
    through = to_result**2 * np.diagonal(meat)
    # 3. What the estimation of φ adds.
    mask = np.concatenate([means.mask for _, means in factors])
    for part in parts:
        n_groups, width, _ = part.influence[2].shape
        sums_of_part, rest = np.split(rest, [2 * width * size * n_groups])
        slope, overlap = sums_of_part.reshape(2, width, size, n_groups)
        by_phi = part.covariance(slope, overlap, mask)
        covariance = covariance + to_result @ by_phi @ to_result.T
    # 4. How widely weights are spread, by what they are at most too.
    most = np.full(size, np.inf)
    if rows.model is not None:
        with np.errstate(divide="ignore"):
            largest = 1.0 / (1.0 - rows.model.column_maxima(rows.source.table.shape[1]))
        largest = largest if rows.model.rowwise else largest[None]
        heaviest = rows.source.sample_weight
        heaviest = None if heaviest is None else heaviest.max(keepdims=True)
        one = np.ones((1, 1))
        most = beside(weigh(RowBlock(one, one, heaviest, ipw=largest)))[0]
    rate = rates(sums.reshape(5, size), rows.source.n_rows, most)
    return covariance, variance, fourth, through.sum(axis=1), through @ rate


@dataclass(frozen=True)
class LearnedPart:
    """A learned φ of the columns of a table, or of those that go missing together."""

    model: LearnedMissingness
    # Whether it was learned from these rows (or from more than these): the errors of
    # φ̂ and of the means then go together.
    shared: bool
    # Whose φ it is, where that is a category's; None for all columns.
    block: Block | None = None

    @cached_property
    def influence(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """How the rows that it was learned from move its parameters."""
        return self.model.influence()

    def sums(
        self,
        table: FloatArray,
        weights: FloatArray,
        plain: FloatArray,
        left_out: FloatArray,
    ) -> list[FloatArray]:
        """What some rows add to how means depend on φ, and go together with its error.

        First the means' derivatives in the parameters of φ, Σ w ∂mean/∂w φ x with
        x = (1, z); then Σ w ∂mean/∂w p x over observed rows.
        """
        if self.block is not None:
            weights = weights[:, [self.block.columns[0]]]
            table = table[:, list(self.block.inputs)]
        elif self.model.rowwise:
            weights = weights[:, None]
        odds = np.maximum(weights - 1.0, 0.0)
        known_odds = self.influence[0] * odds
        values = np.where(np.isnan(table), 0.0, table)
        design = values.T[:, :, None] if self.model.rowwise else values[None]
        added = []
        for moved, odd in ((plain, odds), (left_out, known_odds)):
            probability = odd / (1.0 + odd)
            added += [moved.T @ probability, moved.T @ (probability * design)]
        return [sums.ravel() for sums in added]

    def covariance(
        self, slope: FloatArray, overlap: FloatArray, mask: BoolArray
    ) -> FloatArray:
        """What the estimation of φ adds to the means' covariance (or takes from it).

        `slope` and `overlap` are the sums over all rows, (width, n_means, n_groups). A
        mean depends only on the φ of the columns in its row of the mask.
        """
        if self.block is not None:
            mask = np.asarray(mask[:, self.block.columns].any(axis=1, keepdims=True))
        elif self.model.rowwise:
            mask = np.ones((len(mask), 1), dtype=bool)
        # (n_groups, n_means, width)
        slope, overlap = ((x * mask).transpose(2, 1, 0) for x in (slope, overlap))
        _, inverse, variance = self.influence
        if not self.shared:
            variance = self.model.covariance.reshape(variance.shape)
        by_phi = np.asarray((slope @ variance @ slope.swapaxes(1, 2)).sum(axis=0))
        if not self.shared:
            return by_phi
        cross = (slope @ inverse @ overlap.swapaxes(1, 2)).sum(axis=0)
        return np.asarray(by_phi - cross - cross.T)
