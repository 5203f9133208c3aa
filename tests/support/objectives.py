"""Objectives of one's own, as users would write them."""

import numpy as np

from missratio.objective import Combination, Divergence, Objective, Term


class Hellinger(Divergence):
    def generator(self, ratio):
        return (np.sqrt(ratio) - 1) ** 2

    def first(self, ratio):
        return 1 - ratio**-0.5

    def second(self, ratio):
        return ratio**-1.5 / 2

    def third(self, ratio):
        return -3 * ratio**-2.5 / 4


class KullbackLeibler(Divergence):
    def generator(self, ratio):
        return ratio * np.log(ratio)

    def first(self, ratio):
        return 1 + np.log(ratio)

    def second(self, ratio):
        return 1 / ratio

    def third(self, ratio):
        return -1 / ratio**2


class JensenShannon(Divergence):
    def generator(self, ratio):
        return ratio * np.log(ratio) - (ratio + 1) * np.log((ratio + 1) / 2)

    def first(self, ratio):
        return np.log(2 * ratio / (1 + ratio))

    def second(self, ratio):
        return 1 / (ratio * (1 + ratio))

    def third(self, ratio):
        return -(1 + 2 * ratio) / (ratio * (1 + ratio)) ** 2


class HellingerObjective(Objective):
    """E r(Z¹)^−½ + E r(Z⁰)^½, whose parts can be made wrong."""

    def __init__(self, slope=1.0, curvature=1.0, weight=1.0):
        self.slope, self.curvature, self.weight = slope, curvature, weight

    def numerator(self, score):
        root = np.exp(-score / 2)
        return Term(root, -self.slope * root / 2, self.curvature * root / 4)

    def denominator(self, score):
        root = self.weight * np.exp(score / 2)
        return Term(root, root / 2, root / 4)


class Anchored(Objective):
    """h = −a + log b + ½(log b)², with a = E s and b = E exp s: a ratio of mean one."""

    linear_numerator = True

    def numerator(self, score):
        return Term.linear(score)

    def denominator(self, score):
        return Term.exponential(score)

    def combine(self, expectations):
        a, b = expectations.value
        log_mean = np.log(b) + expectations.log_scale[1]
        hessian = np.zeros((2, 2, len(a)))
        hessian[1, 1] = -log_mean / b**2
        gradient = np.array([-np.ones_like(a), (1.0 + log_mean) / b])
        return Combination(-a + log_mean + log_mean**2 / 2, gradient, hessian)
