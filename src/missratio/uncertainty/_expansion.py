"""A solved problem to first order: how its solution moves with the rows' weights.

The gradient G = Σ_t h_t S_t + λθ is made of means over rows: a_t = E g_t, and
S_t = E g_t' f̃. It is zero at the solution, and so a change of the means moves that by

    δ(θ, b) = −H⁻¹ δG,    δG = Σ_t h_t δS_t + Σ_tu h_tu S_t δa_u,

with H the Hessian. A mean moves with every row by w(u − ū)/Σw after Hájek, and by
(wu − ū)/n after Horvitz and Thompson: so it is enough to know each row's u.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.objective import Expectations, KLIEPObjective, Objective, Term
from missratio.ratio import Factor, RatioProblem, WeightedMean


@dataclass(frozen=True, slots=True)
class Means:
    """One class's means in the gradient, as functions of a row.

    Parameters
    ----------
    centre : ndarray of shape (n_features,)
        Subtracted from the features.
    mean : ndarray of shape (n_means,)
        ū, the means over the rows.
    to_result : ndarray of shape (n_features + 1, n_means)
        What a change of the means does to (θ, log N̂).
    mask : ndarray of bool of shape (n_means, n_columns)
        On which columns' weights each mean depends.
    by_feature : bool
        Whether each feature has weights of its own.
    score : ScoreMeans, or None
        What a row's u is where it depends on the score; None where it is f̃ (and 1).
    hessian_inverse : ndarray of shape (n_parameters, n_parameters)
    """

    centre: FloatArray
    mean: FloatArray
    to_result: FloatArray
    mask: BoolArray
    by_feature: bool
    score: ScoreMeans | None
    hessian_inverse: FloatArray

    def rows(self, features: FloatArray) -> tuple[FloatArray, FloatArray | None]:
        """Each row's u, and what its leverage is once multiplied by its weight.

        Leverage is the share of a row in the Hessian (and in the normaliser): without
        the row the solution would move further than to first order by 1/(1 − leverage).
        None stands for ones.
        """
        centred = features - self.centre
        centred[np.isnan(centred)] = 0.0
        if self.score is None:
            width = len(self.mean) - centred.shape[1]
            constant = np.full((len(centred), width), float(not self.by_feature))
            return np.concatenate([centred, constant], axis=1), None
        return self.score.rows(centred, self.hessian_inverse)


@dataclass(frozen=True, slots=True)
class ScoreMeans:
    """One class's part of the gradient, row by row.

    Parameters
    ----------
    objective : Objective
    is_numerator : bool
        Whether the class is the numerator.
    coef : ndarray of shape (n_features,)
    intercept : float
        For centred features; 0 where the objective fits none.
    log_normalizer : float
        Log E exp s, of centred features; of use where no intercept is fitted.
    log_scale, first : ndarray of shape (n_terms,)
        Of the class's terms, and the derivatives h_t of the outer function.
    second : ndarray of shape (n_terms, n_parameters)
        Σ_u h_tu S_u.
    """

    objective: Objective
    is_numerator: bool
    coef: FloatArray
    intercept: float
    log_normalizer: float
    log_scale: FloatArray
    first: FloatArray
    second: FloatArray

    def rows(
        self, centred: FloatArray, hessian_inverse: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """As of `Means`."""
        score = centred @ self.coef + self.intercept
        function = (
            self.objective.numerator
            if self.is_numerator
            else self.objective.denominator
        )
        terms = function(score)
        if isinstance(terms, Term):
            terms = (terms,)
        full = centred
        if self.objective.fits_intercept:
            full = np.concatenate([centred, np.ones((len(centred), 1))], axis=1)
        slope, curvature = np.zeros((2, len(score)))
        u = np.zeros_like(full)
        for t, term in enumerate(terms):
            scale = np.exp(np.asarray(term.log_scale) - self.log_scale[t])
            slope += self.first[t] * scale * term.slope
            curvature += self.first[t] * scale * term.curvature
            u += (scale * term.value)[:, None] * self.second[t]
        u += slope[:, None] * full
        leverage = curvature * ((full @ hessian_inverse) * full).sum(axis=1)
        if self.objective.fits_intercept:
            return u, leverage
        tilt = np.exp(score - self.log_normalizer)
        if not self.is_numerator:
            u = np.concatenate([u, tilt[:, None]], axis=1)
        return u, leverage + tilt * (not self.is_numerator)


@dataclass(frozen=True, slots=True)
class Expansion:
    """A factor of the ratio to first order.

    Parameters
    ----------
    features : ndarray of int
        Which of the basis features it has.
    numerator, denominator : Means
    decrement : float
        √(GᵀH⁻¹G), zero at an optimum.
    """

    features: IntArray
    numerator: Means
    denominator: Means
    decrement: float


def expand(factor: Factor) -> Expansion:
    """Expand a factor's solution in its rows."""
    problem = factor.problem
    theta = problem.theta(factor.coef[None], np.array([factor.intercept]))
    evaluation = problem(theta, second_order=True)
    assert evaluation.hessian is not None
    inverse = _inverse(evaluation.hessian[0])
    gradient = evaluation.gradient[0]
    terms = _Terms.at(problem, theta)
    to_result, log_normalizer = _results(factor, problem)
    to_result = -to_result @ inverse
    if isinstance(problem.numerator, WeightedMean):
        numerator = _feature_means(factor, terms, to_result, inverse)
    else:
        numerator = _score_means(
            factor, terms, True, to_result, log_normalizer, inverse
        )
    denominator = _score_means(factor, terms, False, to_result, log_normalizer, inverse)
    decrement = float(np.sqrt(max(gradient @ inverse @ gradient, 0.0)))
    return Expansion(factor.features, numerator, denominator, decrement)


@dataclass(frozen=True, slots=True)
class _Terms:
    """Derivatives of the outer function at a solution, terms of the numerator first.

    Parameters
    ----------
    theta : ndarray of shape (n_parameters,)
    n_numerator : int
    log_scale, first : ndarray of shape (n_terms,)
        `first` is h_t.
    second : ndarray of shape (n_terms, n_parameters)
        Σ_u h_tu S_u.
    part : ndarray of shape (n_terms, n_parameters)
        h_t S_t + a_t Σ_u h_tu S_u: the mean of what rows do to the gradient.
    """

    theta: FloatArray
    n_numerator: int
    log_scale: FloatArray
    first: FloatArray
    second: FloatArray
    part: FloatArray

    @classmethod
    def at(cls, problem: RatioProblem, theta: FloatArray) -> _Terms:
        numerator, denominator = problem.sums(theta, second_order=False)
        totals = [problem.numerator.total] * len(numerator)
        totals += [problem.denominator.total] * len(denominator)
        terms = [*numerator, *denominator]
        pairs = list(zip(terms, totals, strict=True))
        value = np.array([term.value / total for term, total in pairs])
        slope = np.array([term.slope[0] / total[0] for term, total in pairs])
        scale = np.array([term.log_scale for term in terms])
        outer = problem.objective.combine(Expectations(value, scale, len(numerator)))
        first = outer.gradient[:, 0]
        second = np.zeros_like(slope)
        if outer.hessian is not None:
            second = outer.hessian[:, :, 0] @ slope
        part = first[:, None] * slope + second * value
        return cls(theta[0], len(numerator), scale[:, 0], first, second, part)

    def of(self, is_numerator: bool) -> slice:
        """The terms of one class."""
        return (
            slice(self.n_numerator) if is_numerator else slice(self.n_numerator, None)
        )


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


def _results(factor: Factor, problem: RatioProblem) -> tuple[FloatArray, float]:
    """What a change of the parameters does to (θ, log N̂), and log E exp s, centred."""
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
    factor: Factor, terms: _Terms, to_result: FloatArray, inverse: FloatArray
) -> Means:
    """A numerator that enters through means of the features alone.

    The printed objective has the means of features that are not centred, even where
    weights don't average to one.
    """
    problem, theta = factor.problem, terms.theta
    numerator = problem.numerator
    assert isinstance(numerator, WeightedMean)
    by_feature = factor.required is not None
    centre = problem.centre[0]
    if by_feature or not problem.objective.fits_intercept:
        mean, shift = numerator.mean[0] + centre, np.zeros_like(centre)
    else:
        mean, shift = numerator.mean[0], centre
    mask = factor.required
    if mask is None:
        mask = np.tile(factor.columns, (len(centre), 1))
    if problem.objective.fits_intercept:
        mean = np.append(mean, 0.0 if by_feature else numerator.mass[0])
        last = np.zeros_like(factor.columns) if by_feature else factor.columns
        mask = np.concatenate([mask, last[None]])
    change = terms.first[0] * np.eye(len(theta)) + np.outer(terms.second[0], theta)
    return Means(shift, mean, to_result @ change, mask, by_feature, None, inverse)


def _score_means(
    factor: Factor,
    terms: _Terms,
    is_numerator: bool,
    to_result: FloatArray,
    log_normalizer: float,
    inverse: FloatArray,
) -> Means:
    """A class that enters row by row, through functions of the score."""
    objective = factor.problem.objective
    which = terms.of(is_numerator)
    score = ScoreMeans(
        objective,
        is_numerator,
        factor.coef,
        float(terms.theta[-1]) if objective.fits_intercept else 0.0,
        log_normalizer,
        terms.log_scale[which],
        terms.first[which],
        terms.second[which],
    )
    mean = terms.part[which].sum(axis=0)
    if not is_numerator and not objective.fits_intercept:
        # The last mean is that of the normalised tilt, which moves log N̂ alone.
        own = np.zeros((len(to_result), 1))
        own[-1] = 1.0
        mean = np.append(mean, 1.0)
        to_result = np.concatenate([to_result, own], axis=1)
    mask = np.tile(factor.columns, (len(mean), 1))
    centre = factor.problem.centre[0]
    return Means(centre, mean, to_result, mask, False, score, inverse)
