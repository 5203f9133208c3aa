"""Objectives: functions of two weighted expectations, and nothing about data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, log_expit
from sklearn.base import BaseEstimator

from missratio._base.hints import check_choice
from missratio._base.storable import storable
from missratio._base.typing import FloatArray


@dataclass(frozen=True, slots=True)
class Term:
    """A function g of the score s and its two derivatives in s, row by row.

    Parameters
    ----------
    value, slope, curvature : ndarray of shape (..., n_rows)
        g(s), g'(s) and g''(s), all times exp(−log_scale).
    log_scale : float or ndarray of shape (...)
        A common log factor, so that an exponential never overflows.
    highest : ndarray of shape (...), optional
        The largest score, where it was found on the way.
    """

    value: FloatArray
    slope: FloatArray
    curvature: FloatArray
    log_scale: FloatArray | float = 0.0
    highest: FloatArray | None = None

    @classmethod
    def exponential(cls, score: FloatArray) -> Term:
        """g(s) = exp(s), scaled by its largest value where that is far from one."""
        # Operations are few: threads wait for the interpreter between them.
        highest = score.max(axis=-1)
        # Exponentials of largest scores up to 30, or down to −30, need no scale.
        moderate = np.abs(highest) <= 30.0
        if moderate.all():
            scaled = np.exp(score)
            return cls(scaled, scaled, scaled, 0.0, highest)
        log_scale = np.where(moderate, 0.0, highest)
        scaled = score - log_scale[..., None].astype(score.dtype)
        np.exp(scaled, out=scaled)
        return cls(scaled, scaled, scaled, log_scale, highest)

    @classmethod
    def linear(cls, score: FloatArray) -> Term:
        """g(s) = s."""
        return cls(score, np.ones_like(score), np.zeros_like(score))


@dataclass(frozen=True, slots=True)
class Expectations:
    """The weighted means E g1 and E g0, times exp(−log_scale).

    Parameters
    ----------
    value, log_scale : ndarray of shape (2, n_problems)
    """

    value: FloatArray
    log_scale: FloatArray


@dataclass(frozen=True, slots=True)
class Combination:
    """The value of h and its derivatives in the (scaled) expectations.

    Parameters
    ----------
    value : ndarray of shape (n_problems,)
    gradient : ndarray of shape (2, n_problems)
    hessian : ndarray of shape (2, 2, n_problems) or None
        None where h is linear.
    """

    value: FloatArray
    gradient: FloatArray
    hessian: FloatArray | None = None


class Objective(BaseEstimator, ABC):
    """A density-ratio objective, argmin over r of h(E g1(Z¹), E g0(Z⁰)).

    This is the paper's *General Extension*. Both g's are functions of the score
    s(z) = log r(z), so an objective is written
    as `numerator` and `denominator`, each a `Term` with two derivatives, and
    `combine`, which is h. By default h is the sum of all the expectations. Every
    expectation is a weighted mean over rows, the weights 1{observed}/(1 − φ)
    included, so an objective knows neither missingness nor data.

    `check_objective` says what is wrong with one. Parameters of its own are stored by
    ``__init__`` under their names, as scikit-learn's are, and can then be searched:
    ``GridSearchCV(ObjectiveRatio(MyObjective()), {"objective__a": [1, 2]})``.

    Attributes
    ----------
    fits_intercept : bool
        Whether the score has an intercept. An objective that doesn't change when a
        constant is added to the score, as KLIEP's, has none.
    linear_numerator : bool
        Declares g1(s) = s: the numerator class then enters through one weighted mean
        of the basis features, computed once.
    diverges_when_separated : bool
        Declares that no finite optimum exists where a score puts every numerator row
        (their mean, for a linear numerator) above every denominator row.

    Examples
    --------
    The squared Hellinger distance, as an objective of one's own:

    >>> import numpy as np
    >>> from missratio import ObjectiveRatio
    >>> from missratio.objective import Objective, Term
    >>> class Hellinger(Objective):
    ...     def numerator(self, score):
    ...         root = np.exp(-score / 2)
    ...         return Term(root, -root / 2, root / 4)
    ...     def denominator(self, score):
    ...         root = np.exp(score / 2)
    ...         return Term(root, root / 2, root / 4)
    >>> rng = np.random.default_rng(0)
    >>> X = np.r_[rng.normal(0, 1, (500, 1)), rng.normal(1, 1, (500, 1))]
    >>> y = np.repeat([0, 1], 500)
    >>> ObjectiveRatio(Hellinger()).fit(X, y).coef_.round(1)
    array([1.])
    """

    fits_intercept: ClassVar[bool] = True
    linear_numerator: ClassVar[bool] = False
    diverges_when_separated: bool = True

    @abstractmethod
    def numerator(self, score: FloatArray) -> Term:
        """g1 at the scores of numerator rows."""

    @abstractmethod
    def denominator(self, score: FloatArray) -> Term:
        """g0 at the scores of denominator rows."""

    def combine(self, expectations: Expectations) -> Combination:
        """Evaluate h, here the sum of the expectations, and its derivatives."""
        scale = np.exp(expectations.log_scale)
        return Combination((scale * expectations.value).sum(axis=0), scale)


class Divergence(BaseEstimator, ABC):
    """A convex generator f on (0, ∞) and its first three derivatives.

    An f-divergence estimator maximises E[f'(r(Z¹))] − E[f*(f'(r(Z⁰)))] (the paper's
    appendix on f-divergence based DRE). The conjugate never has to be written down:
    f*(f'(u)) = u f'(u) − f(u).

    Examples
    --------
    The squared Hellinger distance, f(u) = (√u − 1)²:

    >>> import numpy as np
    >>> from missratio import FDivergenceRatio
    >>> from missratio.objective import Divergence
    >>> class Hellinger(Divergence):
    ...     def generator(self, ratio):
    ...         return (np.sqrt(ratio) - 1) ** 2
    ...     def first(self, ratio):
    ...         return 1 - ratio**-0.5
    ...     def second(self, ratio):
    ...         return ratio**-1.5 / 2
    ...     def third(self, ratio):
    ...         return -3 * ratio**-2.5 / 4
    >>> rng = np.random.default_rng(0)
    >>> X = np.r_[rng.normal(0, 1, (500, 1)), rng.normal(1, 1, (500, 1))]
    >>> y = np.repeat([0, 1], 500)
    >>> FDivergenceRatio(Hellinger()).fit(X, y).coef_.round(1)
    array([1.])
    """

    @abstractmethod
    def generator(self, ratio: FloatArray) -> FloatArray:
        """f(u)."""

    @abstractmethod
    def first(self, ratio: FloatArray) -> FloatArray:
        """f'(u)."""

    @abstractmethod
    def second(self, ratio: FloatArray) -> FloatArray:
        """f''(u)."""

    @abstractmethod
    def third(self, ratio: FloatArray) -> FloatArray:
        """f'''(u)."""


@storable()
class Pearson(Divergence):
    """f(u) = (u − 1)²."""

    def generator(self, ratio: FloatArray) -> FloatArray:
        """f(u) = (u − 1)²."""
        return (ratio - 1.0) ** 2

    def first(self, ratio: FloatArray) -> FloatArray:
        """f'(u) = 2(u − 1)."""
        return 2.0 * (ratio - 1.0)

    def second(self, ratio: FloatArray) -> FloatArray:
        """f''(u) = 2."""
        return np.full_like(ratio, 2.0)

    def third(self, ratio: FloatArray) -> FloatArray:
        """f'''(u) = 0."""
        return np.zeros_like(ratio)


@storable()
class FDivergenceObjective(Objective):
    """Minimise −E[f'(r(Z¹))] + E[f*(f'(r(Z⁰)))] for any f.

    Parameters
    ----------
    divergence : Divergence
    """

    def __init__(self, divergence: Divergence) -> None:
        self.divergence = divergence

    @np.errstate(all="ignore")
    def numerator(self, score: FloatArray) -> Term:
        """g1(s) = −f'(r(s))."""
        ratio = np.exp(score)
        slope = ratio * self.divergence.second(ratio)
        curvature = self.divergence.third(ratio) * ratio**2 + slope
        return Term(-self.divergence.first(ratio), -slope, -curvature)

    @np.errstate(all="ignore")
    def denominator(self, score: FloatArray) -> Term:
        """g0(s) = f*(f'(r(s))) = r f'(r) − f(r)."""
        ratio = np.exp(score)
        slope = ratio**2 * self.divergence.second(ratio)
        value = ratio * self.divergence.first(ratio) - self.divergence.generator(ratio)
        curvature = 2.0 * slope + ratio**3 * self.divergence.third(ratio)
        return Term(value, slope, curvature)


@storable()
class KullbackLeiblerObjective(Objective):
    """Minimise −E[log r(Z¹)] + E[r(Z⁰)] with a log link (KL, not logged)."""

    linear_numerator = True

    def numerator(self, score: FloatArray) -> Term:
        """g1(s) = s."""
        return Term.linear(score)

    def denominator(self, score: FloatArray) -> Term:
        """g0(s) = exp(s)."""
        return Term.exponential(score)

    def combine(self, expectations: Expectations) -> Combination:
        """h(a, b) = −a + b."""
        gradient = np.exp(expectations.log_scale)
        gradient[0] = -1.0
        return Combination((gradient * expectations.value).sum(axis=0), gradient)


@storable()
class JensenShannonObjective(Objective):
    """Minimise −E[log σ(s(Z¹))] − E[log σ(−s(Z⁰))]: balanced logistic regression."""

    def numerator(self, score: FloatArray) -> Term:
        """g1(s) = −log σ(s)."""
        missed = expit(-score)
        return Term(-log_expit(score), -missed, missed * (1.0 - missed))

    def denominator(self, score: FloatArray) -> Term:
        """g0(s) = −log σ(−s)."""
        taken = expit(score)
        return Term(-log_expit(-score), taken, taken * (1.0 - taken))


DIVERGENCES: dict[str, type[Any]] = {
    "js": JensenShannonObjective,
    "kl": KullbackLeiblerObjective,
    "pearson": Pearson,
}


def as_divergence_objective(divergence: str | Divergence) -> Objective:
    """Resolve an estimator's `divergence` into an objective."""
    made: Any = divergence
    if isinstance(divergence, str):
        check_choice("divergence", divergence, sorted(DIVERGENCES))
        made = DIVERGENCES[divergence]()
        if isinstance(made, Objective):
            return made
    if not isinstance(made, Divergence):
        raise TypeError(
            f"divergence must be one of {sorted(DIVERGENCES)} or an instance of "
            f"missratio.objective.Divergence, got {divergence!r}."
        )
    return FDivergenceObjective(made)


@storable()
class KLIEPObjective(KullbackLeiblerObjective):
    """Minimise −E[s(Z¹)] + log E[exp s(Z⁰)], with s(z) = θᵀf(z).

    The negative of the paper's sample (M-)KLIEP objective in its log-linear form.
    Value, gradient and Hessian are the log-mass, mean and covariance of the
    denominator rows tilted by w·exp(s), less the numerator's weighted mean. Adding a
    constant to s changes nothing, so there is no intercept: the normaliser
    N̂ = E[exp s(Z⁰)] is read off the optimum.
    """

    fits_intercept = False

    def combine(self, expectations: Expectations) -> Combination:
        """h(a, b) = −a + log b."""
        mean_score, tilted_mass = expectations.value
        value = -mean_score + np.log(tilted_mass) + expectations.log_scale[1]
        inverse = 1.0 / tilted_mass
        gradient = np.array([-np.ones_like(inverse), inverse])
        hessian = np.zeros((2, 2, len(inverse)))
        hessian[1, 1] = -inverse * inverse
        return Combination(value, gradient, hessian)


# Scores at which a user's objective is checked, and the step of numerical derivatives.
CHECKED = np.linspace(-2.0, 2.0, 17)
STEP = 1e-4
# What rounding and the step leave of a numerical derivative, beside its largest.
WITHIN = 1e-5


def check_objective(objective: Objective | Divergence) -> None:
    """Refuse an objective of one's own that is written wrongly, and say what is wrong.

    Derivatives are compared with differences of what they are derivatives of, and the
    objective of two known laws must be smallest at their ratio.

    Parameters
    ----------
    objective : Objective or Divergence

    Raises
    ------
    ValueError
        With all that is wrong.

    Examples
    --------
    >>> import numpy as np
    >>> from missratio.objective import Objective, Term, check_objective
    >>> class Hellinger(Objective):
    ...     def numerator(self, score):
    ...         root = np.exp(-score / 2)
    ...         return Term(root, -root / 2, root / 2)
    ...     def denominator(self, score):
    ...         root = np.exp(score / 2)
    ...         return Term(root, root / 2, root / 4)
    >>> check_objective(Hellinger())
    Traceback (most recent call last):
    ...
    ValueError: Hellinger: the curvature of numerator is 2 times what it should be.
    """
    wrong = objective_faults(objective)
    if wrong:
        name = type(objective).__name__
        raise ValueError("\n".join(f"{name}: {fault}." for fault in wrong))


def objective_faults(objective: Any) -> list[str]:
    """What is wrong with an objective, in words; nothing where it is sound."""
    if isinstance(objective, Divergence):
        ratio, faults = np.exp(CHECKED), []
        for lower, upper in pairwise(("generator", "first", "second", "third")):
            numeric = _differences(getattr(objective, lower), ratio)
            faults += _off(upper, getattr(objective, upper)(ratio), numeric)
        return faults or objective_faults(FDivergenceObjective(objective))
    if not isinstance(objective, Objective):
        return [f"it is no instance of Objective or Divergence: {objective!r}"]
    # 1. The terms, and their derivatives.
    faults, scores = [], CHECKED
    for name in ("numerator", "denominator"):
        function = partial(_unscaled, getattr(objective, name))
        try:
            given = function(scores)
        except (AttributeError, TypeError, ValueError) as error:
            return [f"{name} must return a Term of the scores' shape: {error}"]
        if not np.isfinite(given).all():
            return [f"{name} isn't finite at ratios from 0.14 to 7.4"]
        numeric = _differences(function, scores)
        faults += _off(f"the slope of {name}", given[1], numeric[0])
        faults += _off(f"the curvature of {name}", given[2], numeric[1])
        linear = name == "numerator" and objective.linear_numerator
        if linear and not np.allclose(given[0], scores):
            faults.append("linear_numerator says g1(s) = s, and numerator isn't that")
    if faults:
        return faults
    # 2. h and its derivatives, at the means of two laws on six atoms.
    first, second = np.random.default_rng(0).dirichlet(np.full(6, 3.0), 2)

    def means(score: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The terms' means, and their slopes in each atom's score."""
        above = _unscaled(objective.numerator, score) * first
        below = _unscaled(objective.denominator, score) * second
        both = np.stack([above, below])
        return both[:, 0].sum(axis=1), both[:, 1]

    def combined(value: FloatArray, scale: float = 0.0) -> Combination:
        log_scale = np.array([0.0, scale])
        scaled = value * np.exp(-log_scale)
        return objective.combine(Expectations(scaled[:, None], log_scale[:, None]))

    optimum = np.log(first / second)
    value, _ = means(optimum + 0.1)
    here, unit = combined(value), np.eye(len(value))
    for k, along in enumerate(unit):
        up, down = (combined(value + sign * STEP * along) for sign in (1, -1))
        slope = (up.value - down.value) / (2.0 * STEP)
        faults += _off(f"entry {k} of combine's gradient", here.gradient[k], slope)
        bend = (up.gradient - down.gradient)[:, 0] / (2.0 * STEP)
        given = np.zeros(len(value)) if here.hessian is None else here.hessian[k, :, 0]
        faults += _off(f"row {k} of combine's hessian", given, bend)
    if not np.allclose(combined(value, 1.0).value, here.value):
        faults.append("combine must multiply means by exp(log_scale)")
    if faults:
        return faults

    # 3. The optimum.
    def slopes(score: FloatArray) -> FloatArray:
        value, slope = means(score)
        return np.asarray(combined(value).gradient[:, 0] @ slope)

    size = 1e-8 * np.abs(slopes(optimum + 0.1 * np.arange(6))).max()
    if np.abs(slopes(optimum)).max() > size:
        return ["it isn't smallest at the ratio of two laws"]
    away = np.random.default_rng(1).normal(size=(20, 6))
    if any(slopes(optimum + 0.01 * step) @ step < -size for step in away):
        return ["its value is no minimum at the ratio of two laws: look at the signs"]
    levels = [combined(means(optimum + by)[0]).value[0] for by in (0.0, 0.1)]
    if np.isclose(*levels) == objective.fits_intercept:
        what = "nothing" if objective.fits_intercept else "it"
        return [
            f"adding a constant to the score changes {what}: set "
            f"fits_intercept={not objective.fits_intercept}"
        ]
    return []


def _unscaled(function: Any, score: FloatArray) -> FloatArray:
    """Value, slope and curvature of a term, of shape (3, n_scores)."""
    term = function(score[None])
    parts = np.stack([term.value, term.slope, term.curvature])
    parts = parts * np.exp(np.asarray(term.log_scale))[..., None]
    return np.asarray(parts.reshape(3, len(score)))


def _differences(function: Any, points: FloatArray) -> Any:
    """The numerical derivative of a function."""
    return (function(points + STEP) - function(points - STEP)) / (2.0 * STEP)


def _off(what: str, given: FloatArray, numeric: FloatArray) -> list[str]:
    """By how much given derivatives differ from numerical ones, if they do."""
    given, numeric = np.ravel(given), np.ravel(numeric)
    most, gap = max(float(np.abs(numeric).max()), 1.0), np.abs(given - numeric)
    if gap.max() <= WITHIN * most:
        return []
    large = np.abs(numeric) > 1e-3 * most
    times = given[large] / numeric[large]
    if len(times) and np.ptp(times) <= 1e-3 * np.abs(times).max():
        return [f"{what} is {np.median(times):.4g} times what it should be"]
    worst = int(gap.argmax())
    return [f"{what} is {given[worst]:.4g} where it should be {numeric[worst]:.4g}"]
