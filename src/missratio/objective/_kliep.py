"""KLIEP's objective for the log-linear ratio."""

from __future__ import annotations

import numpy as np

from missratio._base.typing import FloatArray
from missratio.objective._base import Combination, Expectations, Objective, Term


class KLIEPObjective(Objective):
    """Minimise −E[s(Z¹)] + log E[exp s(Z⁰)], with s(z) = θᵀf(z).

    The negative of the paper's sample (M-)KLIEP objective in its log-linear form.
    Value, gradient and Hessian are the log-mass, mean and covariance of the
    denominator rows tilted by w·exp(s), less the numerator's weighted mean. Adding a
    constant to s changes nothing, so there is no intercept: the normaliser
    N̂ = E[exp s(Z⁰)] is read off the optimum.
    """

    fits_intercept = False
    linear_numerator = True

    def numerator(self, score: FloatArray) -> Term:
        """g1(s) = s."""
        return Term.linear(score)

    def denominator(self, score: FloatArray) -> Term:
        """g0(s) = exp(s)."""
        return Term.exponential(score)

    def combine(self, expectations: Expectations) -> Combination:
        """h(a, b) = −a + log b."""
        mean_score, tilted_mass = expectations.value
        value = -mean_score + np.log(tilted_mass) + expectations.log_scale[1]
        inverse = 1.0 / tilted_mass
        gradient = np.full((2, len(inverse)), -1.0)
        gradient[1] = inverse
        hessian = np.zeros((2, 2, len(inverse)))
        hessian[1, 1] = -inverse * inverse
        return Combination(value, gradient, hessian)
