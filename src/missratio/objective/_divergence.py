"""f-divergence objectives, E[f'(r(Z¹))] − E[f*(f'(r(Z⁰)))]."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Literal

import numpy as np
from scipy.special import expit, log_expit

from missratio._base.hints import did_you_mean
from missratio._base.typing import FloatArray
from missratio.objective._base import Combination, Expectations, Objective, Term

Link = Literal["log", "identity"]


class Divergence(ABC):
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

    def __repr__(self) -> str:
        """The class's name."""
        return f"{type(self).__name__}()"

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


class KullbackLeibler(Divergence):
    """f(u) = u log u."""

    def generator(self, ratio: FloatArray) -> FloatArray:
        """f(u) = u log u."""
        return ratio * np.log(ratio)

    def first(self, ratio: FloatArray) -> FloatArray:
        """f'(u) = 1 + log u."""
        return 1.0 + np.log(ratio)

    def second(self, ratio: FloatArray) -> FloatArray:
        """f''(u) = 1/u."""
        return 1.0 / ratio

    def third(self, ratio: FloatArray) -> FloatArray:
        """f'''(u) = −1/u²."""
        return -1.0 / ratio**2


class JensenShannon(Divergence):
    """f(u) = u log u − (u + 1) log((u + 1)/2)."""

    def generator(self, ratio: FloatArray) -> FloatArray:
        """f(u) = u log u − (u + 1) log((u + 1)/2)."""
        return ratio * np.log(ratio) - (ratio + 1.0) * np.log((ratio + 1.0) / 2.0)

    def first(self, ratio: FloatArray) -> FloatArray:
        """f'(u) = log(2u/(1 + u))."""
        return np.log(2.0 * ratio / (1.0 + ratio))

    def second(self, ratio: FloatArray) -> FloatArray:
        """f''(u) = 1/(u(1 + u))."""
        return 1.0 / (ratio * (1.0 + ratio))

    def third(self, ratio: FloatArray) -> FloatArray:
        """f'''(u) = −(1 + 2u)/(u(1 + u))²."""
        return -(1.0 + 2.0 * ratio) / (ratio * (1.0 + ratio)) ** 2


class Pearson(Divergence):
    """f(u) = (u − 1)²; with the identity link the estimator is LSIF (uLSIF)."""

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


class FDivergenceObjective(Objective):
    """Minimise −E[f'(r(Z¹))] + E[f*(f'(r(Z⁰)))] for any f and link.

    Parameters
    ----------
    divergence : Divergence
    link : {"log", "identity"}
        The score is log r, or r itself.
    """

    def __init__(self, divergence: Divergence, link: Link = "log") -> None:
        self.divergence = divergence
        self.link = link
        self.unit_score = 1.0 if link == "identity" else 0.0
        self.diverges_when_separated = link == "log"

    def _ratio(self, score: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """R and its first two derivatives in the score."""
        if self.link == "identity":
            return score, np.ones_like(score), np.zeros_like(score)
        with np.errstate(over="ignore"):
            ratio = np.exp(score)
        return ratio, ratio, ratio

    def numerator(self, score: FloatArray) -> Term:
        """g1(s) = −f'(r(s))."""
        with np.errstate(all="ignore"):
            ratio, d1, d2 = self._ratio(score)
            second = self.divergence.second(ratio)
            curvature = self.divergence.third(ratio) * d1**2 + second * d2
            return Term(-self.divergence.first(ratio), -second * d1, -curvature)

    def denominator(self, score: FloatArray) -> Term:
        """g0(s) = f*(f'(r(s))) = r f'(r) − f(r)."""
        with np.errstate(all="ignore"):
            ratio, d1, d2 = self._ratio(score)
            second = self.divergence.second(ratio)
            value = ratio * self.divergence.first(ratio)
            value = value - self.divergence.generator(ratio)
            curvature = (second + ratio * self.divergence.third(ratio)) * d1**2
            curvature = curvature + ratio * second * d2
            return Term(value, ratio * second * d1, curvature)


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


DIVERGENCES: dict[str, type[Divergence]] = {
    "kl": KullbackLeibler,
    "js": JensenShannon,
    "pearson": Pearson,
}

# Written out in the score, where the generator's own formulas would overflow.
_LOG_LINK: dict[type[Divergence], type[Objective]] = {
    KullbackLeibler: KullbackLeiblerObjective,
    JensenShannon: JensenShannonObjective,
}


def as_divergence_objective(divergence: str | Divergence, link: Link) -> Objective:
    """Resolve an estimator's `divergence` and `link` into an objective."""
    if link not in ("log", "identity"):
        raise ValueError(f"link must be 'log' or 'identity', got {link!r}.")
    if isinstance(divergence, str):
        if divergence not in DIVERGENCES:
            raise ValueError(
                f"divergence must be one of {sorted(DIVERGENCES)} or a Divergence, "
                f"got {divergence!r}.{did_you_mean(divergence, DIVERGENCES)}"
            )
        divergence = DIVERGENCES[divergence]()
    if not isinstance(divergence, Divergence):
        raise TypeError(
            f"divergence must be one of {sorted(DIVERGENCES)} or an instance of "
            f"missratio.Divergence, got {divergence!r}."
        )
    if link == "log" and type(divergence) in _LOG_LINK:
        return _LOG_LINK[type(divergence)]()
    return FDivergenceObjective(divergence, link)
