"""Rules that choose a threshold with P(type I error > α) ≤ δ."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import bdtr, bdtrik, betaincinv, xlogy
from scipy.stats import binom

from missratio._typing import IntArray
from missratio.threshold._sample import CalibrationSample


@dataclass(frozen=True, slots=True)
class Selection:
    """What a rule chose.

    Parameters
    ----------
    threshold : float or None
        Rows that score above it are given to the other class; None where no threshold
        can be certified.
    rule : str
        The rule's name.
    error_bound : float
        The bound on the type I error that holds with probability 1 − δ: α, or a smaller
        one where order statistics don't come any closer.
    n_used : int
        Rows that the choice was made with.
    """

    threshold: float | None
    rule: str
    error_bound: float
    n_used: int


class Rule(ABC):
    """Chooses the smallest threshold C that certifies P(h(Z⁰) > C) ≤ α.

    Every rule tests, at each candidate, whether the error is above α, and takes the
    smallest C that passes. The tests are monotone in C, so that no correction for
    looking at many candidates is needed: a wrong choice means that the test at the one
    critical threshold inf{C : P(h > C) ≤ α} was wrong, ties in the scores included.
    """

    name: ClassVar[str]
    needs_bound: ClassVar[bool] = True

    @abstractmethod
    def select(
        self,
        sample: CalibrationSample,
        alpha: float,
        delta: float,
        rng: np.random.Generator,
    ) -> Selection:
        """Choose a threshold.

        Parameters
        ----------
        sample : CalibrationSample
        alpha, delta : float
        rng : Generator
            For rules that draw.
        """

    def select_levels(
        self,
        sample: CalibrationSample,
        alphas: Sequence[float],
        delta: float,
        rng: np.random.Generator,
    ) -> list[Selection]:
        """Choose at several levels what `select` would choose at each.

        Parameters
        ----------
        sample : CalibrationSample
        alphas : sequence of float
        delta : float
        rng : Generator
            Every level starts from its state, which stays as it is.
        """
        return [self.select(sample, alpha, delta, deepcopy(rng)) for alpha in alphas]

    def _from_tail(
        self, sample: CalibrationSample, n_tail: int, alpha: float
    ) -> Selection:
        certified = n_tail >= 0 and sample.n_scored > 0
        threshold = sample.threshold(n_tail) if certified else None
        return Selection(threshold, self.name, alpha, sample.n_rows)


def binomial_tail(n_rows: int, alpha: float, delta: float) -> int:
    """The most of n_rows rows that may score above a threshold; −1 if none may.

    The largest k with P(Bin(n, α) ≤ k) ≤ δ. With i* = n − k it is the paper's
    Algorithm 2: the smallest i* with P(Bin(n, 1 − α) ≥ i*) ≤ δ.
    """
    return int(binomial_tails(np.array([n_rows]), alpha, delta)[0])


def binomial_tails(n_rows: IntArray, alpha: float, delta: float) -> IntArray:
    """The same for several numbers of rows."""
    # The quantile as a real number, then the exact probability at whole ones.
    quantile = np.ceil(bdtrik(delta, np.maximum(n_rows, 1), alpha))
    k = np.where(n_rows > 0, quantile.astype(np.intp) + 1, -1)
    while True:
        above = (k >= 0) & (bdtr(k, n_rows, alpha) > delta)
        if not above.any():
            return k
        k -= above


def binomial_bound(n_rows: int, n_tail: int, delta: float) -> float:
    """Clopper and Pearson's upper bound on the error, for a tail of fixed size."""
    if n_tail >= n_rows:
        return 1.0
    return float(betaincinv(n_tail + 1, n_rows - n_tail, 1.0 - delta))


class BinomialRule(Rule):
    """The binomial order-statistic rule for complete rows (the paper's Algorithm 2).

    Exact for continuous scores, and valid with ties: rows must score strictly above.
    """

    name = "binomial"

    def select(
        self,
        sample: CalibrationSample,
        alpha: float,
        delta: float,
        rng: np.random.Generator,
    ) -> Selection:
        """Choose an order statistic."""
        del rng
        if not sample.is_complete:
            raise ValueError(
                "The binomial rule is for complete calibration rows; these have "
                "missing rows or weights. Choose a weighted rule, or rule='auto'."
            )
        return order_statistic(sample, alpha, delta, self.name)


def order_statistic(
    sample: CalibrationSample, alpha: float, delta: float, name: str
) -> Selection:
    n_rows = sample.n_observed
    n_tail = binomial_tail(n_rows, alpha, delta)
    if n_tail < 0:
        return Selection(None, name, alpha, n_rows)
    bound = min(alpha, binomial_bound(n_rows, n_tail, delta))
    return Selection(sample.threshold(n_tail), name, bound, n_rows)


def known_bound(sample: CalibrationSample, name: str) -> float:
    if sample.bound is None:
        raise ValueError(
            f"The rule {name!r} needs the largest missing probability, and the "
            "missingness model doesn't know it. Give it a maximum below 1, or choose "
            "rule='flipped-betting' or rule='auto', which need none."
        )
    return sample.bound


class PaperRule(Rule):
    """The paper's rule: mean W·1{h > C} ≤ α − √(16 log(1/δ)/m_eff).

    As its Lemma on missing NP classification has it, summing strictly above C; the
    printed Algorithm 1 sums from C on, which is one order statistic stricter.
    """

    name = "paper"

    def margin(self, alpha: float, delta: float, effective_rows: float) -> float:
        """The paper's Δ."""
        del alpha
        return math.sqrt(16.0 * math.log(1.0 / delta) / effective_rows)

    def select(
        self,
        sample: CalibrationSample,
        alpha: float,
        delta: float,
        rng: np.random.Generator,
    ) -> Selection:
        """Choose by a margin below α."""
        del rng
        effective = sample.n_rows / known_bound(sample, self.name)
        allowed = alpha - self.margin(alpha, delta, effective)
        if allowed < 0.0:
            return Selection(None, self.name, alpha, sample.n_rows)
        sums = np.cumsum(sample.high_weights) / sample.n_rows
        n_tail = int(np.searchsorted(sums, allowed, side="right"))
        return self._from_tail(sample, n_tail, alpha)


class BernsteinRule(PaperRule):
    """A margin √(2α log(1/δ)/m_eff), from the second moment E[W²1{h > C}] ≤ Bα.

    For W ≥ 0, E exp(−sW) ≤ exp(−sμ + s²E[W²]/2), so the mean falls short of μ by t with
    probability exp(−nt²/(2E[W²])) at most.
    """

    name = "bernstein"

    def margin(self, alpha: float, delta: float, effective_rows: float) -> float:
        """Smaller than the paper's by the factor √(α/8)."""
        return math.sqrt(2.0 * alpha * math.log(1.0 / delta) / effective_rows)


class HoeffdingBentkusRule(Rule):
    """The smaller of Hoeffding's and Bentkus's p-values for W·1{h > C}/B in [0, 1].

    min(exp(−n·KL(mean/B ‖ α/B)), e·P(Bin(n, α/B) ≤ ⌈n·mean/B⌉)), as in risk-controlling
    prediction sets.
    """

    name = "hoeffding-bentkus"

    def select(
        self,
        sample: CalibrationSample,
        alpha: float,
        delta: float,
        rng: np.random.Generator,
    ) -> Selection:
        """Choose by bisection: the p-value grows with the tail."""
        del rng
        bound = known_bound(sample, self.name)
        sums = np.concatenate([[0.0], np.cumsum(sample.high_weights)])
        n_rows, share = sample.n_rows, alpha / bound

        def passes(n_tail: int) -> bool:
            mean = sums[n_tail] / (n_rows * bound)
            if mean >= share:
                return False
            divergence = xlogy(mean, mean / share)
            divergence += xlogy(1.0 - mean, (1.0 - mean) / (1.0 - share))
            bentkus = math.e * binom.cdf(math.ceil(n_rows * mean), n_rows, share)
            return bool(min(math.exp(-n_rows * divergence), bentkus) <= delta)

        return self._from_tail(sample, bisect_tail(passes, sample.n_observed), alpha)


def bisect_tail(passes: Callable[[int], bool], most: int) -> int:
    """The largest n in 0..most that passes a test which is monotone; −1 if none."""
    if not passes(0):
        return -1
    low, high = 0, most + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if passes(middle) else (low, middle)
    return low
