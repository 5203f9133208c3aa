"""Rules that choose a threshold with P(type I error > α) ≤ δ."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import bdtr, bdtrik, betaincinv, poch, xlogy
from scipy.stats import binom

from missratio.threshold._bets import Doubt, largest_tail, mixture, tune_bet
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
    # The quantile as a real number, then the exact probability at whole ones.
    k = math.ceil(bdtrik(delta, n_rows, alpha)) + 1 if n_rows else -1
    while k >= 0 and bdtr(k, n_rows, alpha) > delta:
        k -= 1
    return k


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
        return _order_statistic(sample, alpha, delta, self.name)


def _order_statistic(
    sample: CalibrationSample, alpha: float, delta: float, name: str
) -> Selection:
    n_rows = sample.n_observed
    n_tail = binomial_tail(n_rows, alpha, delta)
    if n_tail < 0:
        return Selection(None, name, alpha, n_rows)
    bound = min(alpha, binomial_bound(n_rows, n_tail, delta))
    return Selection(sample.threshold(n_tail), name, bound, n_rows)


def _known_bound(sample: CalibrationSample, name: str) -> float:
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
        effective = sample.n_rows / _known_bound(sample, self.name)
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
        bound = _known_bound(sample, self.name)
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


class ThinningRule(Rule):
    """Keep row i with probability W_i/B: what is left is a complete i.i.d. sample.

    Its size is random and the exact binomial rule applies to it. The guarantee is over
    the draw of the rows to keep as well, so fix the seed beforehand. Where the weights
    are uncertain, a row in the tail is kept by its largest and any other by its least:
    of the rows kept, at least the share of the error is then in the tail.
    """

    name = "thinning"

    def select(
        self,
        sample: CalibrationSample,
        alpha: float,
        delta: float,
        rng: np.random.Generator,
    ) -> Selection:
        """Thin, then choose an order statistic."""
        bound = _known_bound(sample, self.name)
        draws = rng.uniform(size=sample.n_observed) * bound
        if sample.edges is None:
            scores = sample.scores[draws < sample.weights]
            thinned = CalibrationSample(scores, None, len(scores), 1.0)
            return _order_statistic(thinned, alpha, delta, self.name)
        tail = np.concatenate([[0], np.cumsum(draws < sample.high_weights)])
        rest = np.concatenate([[0], np.cumsum((draws < sample.low_weights)[::-1])])
        kept = tail + rest[::-1]

        def passes(n_tail: int) -> bool:
            return bool(bdtr(tail[n_tail], kept[n_tail], alpha) <= delta)

        n_tail = bisect_tail(passes, sample.n_observed)
        return self._from_tail(sample, n_tail, alpha)


def expected_thinning_root(
    n_rows: int, bound: float, alpha: float, delta: float
) -> float:
    """The mean of √μ, μ the type I error at the threshold that thinning certifies.

    Of N rows kept the (k + 1)-th highest score is taken, above which there is a share
    that is Beta(k + 1, N − k); N is binomial, and none is certified for small N.
    """
    levels = (np.arange(41) + 0.5) / 41
    kept = binom.ppf(levels, n_rows, 1.0 / bound).astype(int)
    roots = {}
    for n in np.unique(kept).tolist():
        k = binomial_tail(n, alpha, delta)
        roots[n] = poch(k + 1, 0.5) / poch(n + 1, 0.5) if k >= 0 else 0.0
    return float(np.mean([roots[n] for n in kept.tolist()]))


class BettingRule(Rule):
    """The average of fixed bets against "the error is at least α", from 0 to the most.

    Adapts to the variance that is really there: it gains where φ is small among high
    scores.
    """

    name = "betting"
    ratio: ClassVar[float] = 0.0

    def select(
        self,
        sample: CalibrationSample,
        alpha: float,
        delta: float,
        rng: np.random.Generator,
    ) -> Selection:
        """Choose the smallest threshold at which the capital reaches 1/δ."""
        del rng
        bound = _known_bound(sample, self.name) if self.needs_bound else None
        bets = mixture(self.ratio, alpha, bound)
        n_tail = largest_tail(sample, bets, alpha, delta)
        return self._from_tail(sample, n_tail, alpha)


class FlippedBettingRule(BettingRule):
    """Bets that E[W·1{h ≤ C}] > 1 − α, which needs only W ≥ 0 and no bound on φ."""

    name = "flipped-betting"
    needs_bound = False
    ratio = 1.0


class TunedBettingRule(Rule):
    """One bet (λ, γ), chosen on training rows to certify as large an error as it can.

    The bet on the weights, γ, takes the luck of how much weight came up out of the bet
    on the tail; plain and flipped betting are its two ends.

    Parameters
    ----------
    training : CalibrationSample
        Rows of the controlled class that take no part in calibration.
    """

    name = "tuned-betting"
    needs_bound = False

    def __init__(self, training: CalibrationSample) -> None:
        self.training = training

    def select(
        self,
        sample: CalibrationSample,
        alpha: float,
        delta: float,
        rng: np.random.Generator,
    ) -> Selection:
        """Tune on the training rows, then bet on the calibration rows."""
        del rng
        bet, _ = tune_bet(self.training, alpha, delta, sample.n_rows, sample.bound)
        n_tail = largest_tail(sample, [bet], alpha, delta)
        return self._from_tail(sample, n_tail, alpha)


class AutoRule(Rule):
    """The rule that should certify the largest error, chosen before any score is seen.

    Complete rows: the binomial rule. Otherwise thinning or tuned betting, whichever is
    expected to do better, judged by n, the bound on φ and training rows: the mean root
    of the type I error that it certifies counts, which power grows about as. Without
    training rows: thinning where φ has a bound, and flipped betting where not.

    Parameters
    ----------
    training : CalibrationSample, optional
    complete : bool
        Whether the calibration rows can't be missing.
    """

    name = "auto"
    needs_bound = False

    def __init__(self, training: CalibrationSample | None, *, complete: bool) -> None:
        self.training = training
        self.complete = complete

    def choose(
        self, n_rows: int, bound: float | None, alpha: float, delta: float
    ) -> Rule:
        """The rule for a calibration sample of this size and bound."""
        if self.complete:
            return BinomialRule()
        if self.training is None or self.training.n_observed == 0:
            return FlippedBettingRule() if bound is None else ThinningRule()
        _, betting = tune_bet(self.training, alpha, delta, n_rows, bound)
        thinning = -1.0
        if bound is not None:
            thinning = expected_thinning_root(n_rows, bound, alpha, delta)
            doubt = Doubt.of(self.training, alpha)
            thinning *= math.sqrt(doubt.low / doubt.high_tail)
        return ThinningRule() if thinning > betting else TunedBettingRule(self.training)

    def select(
        self,
        sample: CalibrationSample,
        alpha: float,
        delta: float,
        rng: np.random.Generator,
    ) -> Selection:
        """Choose a rule, then let it choose."""
        rule = self.choose(sample.n_rows, sample.bound, alpha, delta)
        return rule.select(sample, alpha, delta, rng)


FIXED_RULES: dict[str, type[Rule]] = {
    rule.name: rule
    for rule in (
        BinomialRule,
        PaperRule,
        BernsteinRule,
        HoeffdingBentkusRule,
        ThinningRule,
        BettingRule,
        FlippedBettingRule,
    )
}
RULES = ("auto", *FIXED_RULES, "tuned-betting")
