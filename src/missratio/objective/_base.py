"""The general form: minimise h(E g1(Z¹), E g0(Z⁰)) over log-ratio scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from missratio._base.typing import FloatArray

# Exponentials of largest scores up to this, or down to minus this, need no scale.
MODERATE = 30.0


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
        moderate = np.abs(highest) <= MODERATE
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
    """The weighted means E g, numerator terms first, times exp(−log_scale).

    Parameters
    ----------
    value, log_scale : ndarray of shape (n_terms, n_problems)
    n_numerator : int
        How many of the terms belong to the numerator class.
    """

    value: FloatArray
    log_scale: FloatArray
    n_numerator: int = 1


@dataclass(frozen=True, slots=True)
class Combination:
    """The value of h and its derivatives in the (scaled) expectations.

    Parameters
    ----------
    value : ndarray of shape (n_problems,)
    gradient : ndarray of shape (n_terms, n_problems)
    hessian : ndarray of shape (n_terms, n_terms, n_problems) or None
        None where h is linear.
    """

    value: FloatArray
    gradient: FloatArray
    hessian: FloatArray | None = None


class Objective(ABC):
    """A density-ratio objective, argmin over r of h(E g1(Z¹), E g0(Z⁰)).

    This is the paper's *General Extension*. Both g's are functions of the score
    s(z) = log r(z) (unless an estimator says otherwise), so an objective is written
    as `numerator` and `denominator`, each a `Term` with two derivatives, and
    `combine`, which is h. By default h is the sum of all the expectations. Every
    expectation is a weighted mean over rows, the weights 1{observed}/(1 − φ)
    included, so an objective knows neither missingness nor data.

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
    unit_score : float
        The score of a ratio of one, where solvers start.

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
    unit_score: float = 0.0

    def __repr__(self) -> str:
        """The class's name."""
        return f"{type(self).__name__}()"

    @abstractmethod
    def numerator(self, score: FloatArray) -> Term | Sequence[Term]:
        """g1 at the scores of numerator rows."""

    @abstractmethod
    def denominator(self, score: FloatArray) -> Term | Sequence[Term]:
        """g0 at the scores of denominator rows."""

    def combine(self, expectations: Expectations) -> Combination:
        """Evaluate h, here the sum of the expectations, and its derivatives."""
        scale = np.exp(expectations.log_scale)
        return Combination((scale * expectations.value).sum(axis=0), scale)
