"""A solved problem to first order: how its solution moves with the rows' weights.

The gradient G = Σ_t h_t S_t + λθ is made of means over rows: a_t = E g_t, and
S_t = E g_t' f̃. It is zero at the solution, and so a change of the means moves that by

    δ(θ, b) = −H⁻¹ δG,    δG = Σ_t h_t δS_t + Σ_tu h_tu S_t δa_u,

with H the Hessian. A mean moves with every row by w(u − ū)/Σw after Hájek, and by
(wu − ū)/n after Horvitz and Thompson: so it is enough to know each row's u.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from missratio._base.typing import BoolArray, FloatArray
from missratio.objective import Expectations, KLIEPObjective, Term
from missratio.ratio import Factor, WeightedMean


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


def expand(factor: Factor) -> tuple[tuple[Means, Means], float]:
    """A factor's means, of numerator and denominator, and the decrement √(GᵀH⁻¹G)."""
    problem, objective = factor.problem, factor.problem.objective
    # 1. The solution, its Hessian, and what parameters do to (θ, log N̂).
    theta = problem.theta(factor.coef[None], np.array([factor.intercept]))
    evaluation = problem(theta, second_order=True)
    assert evaluation.hessian is not None
    inverse, gradient = _inverse(evaluation.hessian[0]), evaluation.gradient[0]
    to_result, log_normalizer = _results(factor)
    to_result = -to_result @ inverse
    # 2. Derivatives of the outer function, terms of the numerator first: h_t as
    #    `first`, Σ_u h_tu S_u as `second`, and h_t S_t + a_t Σ_u h_tu S_u, the mean of
    #    what rows do to the gradient, as `part`.
    numerator, denominator = problem.sums(theta, second_order=False)
    totals = [problem.numerator.total] * len(numerator)
    totals += [problem.denominator.total] * len(denominator)
    pairs = list(zip([*numerator, *denominator], totals, strict=True))
    value = np.array([term.value / total for term, total in pairs])
    slope = np.array([term.slope[0] / total[0] for term, total in pairs])
    scale = np.array([term.log_scale for term, _ in pairs])
    outer = objective.combine(Expectations(value, scale, len(numerator)))
    first, second = outer.gradient[:, 0], np.zeros_like(slope)
    if outer.hessian is not None:
        second = outer.hessian[:, :, 0] @ slope
    part = first[:, None] * slope + second * value

    def score_means(is_numerator: bool) -> Means:
        """A class that enters row by row, through functions of the score."""
        split = len(numerator)
        which = slice(split) if is_numerator else slice(split, None)
        function = objective.numerator if is_numerator else objective.denominator
        intercept = float(theta[0, -1]) if objective.fits_intercept else 0.0
        centre = problem.centre[0]
        # Without an intercept the last mean of the denominator is that of the
        # normalised tilt, which moves log N̂ alone.
        tilted = not (is_numerator or objective.fits_intercept)

        def rows(features: FloatArray) -> tuple[FloatArray, FloatArray]:
            centred = _centred(features, centre)
            score = centred @ factor.coef + intercept
            terms = function(score)
            full = centred
            if objective.fits_intercept:
                full = np.concatenate([centred, np.ones((len(centred), 1))], axis=1)
            moved, curvature = np.zeros((2, len(score)))
            u = np.zeros_like(full)
            for t, term in enumerate((terms,) if isinstance(terms, Term) else terms):
                times = np.exp(np.asarray(term.log_scale) - scale[which][t, 0])
                moved += first[which][t] * times * term.slope
                curvature += first[which][t] * times * term.curvature
                u += (times * term.value)[:, None] * second[which][t]
            u += moved[:, None] * full
            leverage = curvature * ((full @ inverse) * full).sum(axis=1)
            if tilted:
                tilt = np.exp(score - log_normalizer)
                u = np.concatenate([u, tilt[:, None]], axis=1)
                leverage = leverage + tilt
            return u, leverage

        mean, change = part[which].sum(axis=0), to_result
        if tilted:
            alone = np.eye(len(to_result))[:, -1:]
            mean, change = np.append(mean, 1.0), np.hstack([to_result, alone])
        mask = np.tile(factor.columns, (len(mean), 1))
        return Means(mean, change, mask, False, rows)

    if isinstance(problem.numerator, WeightedMean):
        change = first[0] * np.eye(theta.shape[1]) + np.outer(second[0], theta[0])
        means = _feature_means(factor, problem.numerator, to_result @ change)
    else:
        means = score_means(True)
    decrement = float(np.sqrt(max(gradient @ inverse @ gradient, 0.0)))
    return (means, score_means(False)), decrement


def _centred(features: FloatArray, centre: FloatArray) -> FloatArray:
    centred = features - centre
    centred[np.isnan(centred)] = 0.0
    return centred


def _inverse(hessian: FloatArray) -> FloatArray:
    scale = np.sqrt(np.abs(np.diagonal(hessian)))
    scale[scale == 0.0] = 1.0
    scaled = hessian / np.outer(scale, scale)
    if np.linalg.cond(scaled) > 1e12:
        raise ValueError(
            "The objective is flat in some direction at its optimum, so that standard "
            "errors have no bound: some basis features are combinations of others. "
            "Drop them, or set l2 > 0."
        )
    return np.asarray(np.linalg.inv(scaled) / np.outer(scale, scale))


def _results(factor: Factor) -> tuple[FloatArray, float]:
    """What a change of the parameters does to (θ, log N̂), and log E exp s, centred."""
    problem = factor.problem
    centre = problem.centre[0]
    size = len(centre)
    if problem.objective.fits_intercept:
        result = np.eye(size + 1)
        result[-1, :size], result[-1, -1] = centre, -1.0
        return result, 0.0
    tilted = replace(problem, objective=KLIEPObjective())
    _, (sums,) = tilted.sums(factor.coef[None], second_order=False)
    mean = centre + sums.slope[0] / sums.value[0]
    log_normalizer = -factor.intercept - float(factor.coef @ centre)
    return np.concatenate([np.eye(size), mean[None]]), log_normalizer


def _feature_means(
    factor: Factor, numerator: WeightedMean, to_result: FloatArray
) -> Means:
    """A numerator that enters through means of the features alone.

    The printed objective has the means of features that are not centred, even where
    weights don't average to one.
    """
    by_feature = factor.required is not None
    centre = factor.problem.centre[0]
    fits_intercept = factor.problem.objective.fits_intercept
    if by_feature or not fits_intercept:
        mean, shift = numerator.mean[0] + centre, np.zeros_like(centre)
    else:
        mean, shift = numerator.mean[0], centre
    mask = factor.required
    if mask is None:
        mask = np.tile(factor.columns, (len(centre), 1))
    if fits_intercept:
        mean = np.append(mean, 0.0 if by_feature else numerator.mass[0])
        last = np.zeros_like(factor.columns) if by_feature else factor.columns
        mask = np.concatenate([mask, last[None]])

    def rows(features: FloatArray) -> tuple[FloatArray, None]:
        width = len(mean) - features.shape[1]
        constant = np.full((len(features), width), float(not by_feature))
        return np.concatenate([_centred(features, shift), constant], axis=1), None

    return Means(mean, to_result, mask, by_feature, rows)
