"""Rules for weighted rows that come close to the error allowed, and which to take."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import deepcopy
from functools import lru_cache, partial
from typing import ClassVar

import numpy as np
from scipy.special import bdtr, poch
from scipy.stats import binom

from missratio._typing import IntArray
from missratio.threshold._bets import Doubt, largest_tail, mixture, tune_bet
from missratio.threshold._rules import (
    BernsteinRule,
    BinomialRule,
    HoeffdingBentkusRule,
    PaperRule,
    Rule,
    Selection,
    binomial_tails,
    bisect_tail,
    known_bound,
    order_statistic,
)
from missratio.threshold._sample import CalibrationSample


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
        return self._select(sample, [alpha], delta, rng)[0]

    def select_levels(
        self,
        sample: CalibrationSample,
        alphas: Sequence[float],
        delta: float,
        rng: np.random.Generator,
    ) -> list[Selection]:
        """Thin once, then choose an order statistic for each level."""
        return self._select(sample, alphas, delta, deepcopy(rng))

    def _select(
        self,
        sample: CalibrationSample,
        alphas: Sequence[float],
        delta: float,
        rng: np.random.Generator,
    ) -> list[Selection]:
        bound = known_bound(sample, self.name)
        draws = rng.uniform(size=sample.n_observed) * bound
        if sample.edges is None:
            scores = sample.scores[draws < sample.weights]
            thinned = CalibrationSample(scores, None, len(scores), 1.0)
            return [
                order_statistic(thinned, alpha, delta, self.name) for alpha in alphas
            ]
        tail = np.concatenate([[0], np.cumsum(draws < sample.high_weights)])
        rest = np.concatenate([[0], np.cumsum((draws < sample.low_weights)[::-1])])
        kept = tail + rest[::-1]

        def passes(alpha: float, n_tail: int) -> bool:
            return bool(bdtr(tail[n_tail], kept[n_tail], alpha) <= delta)

        tails = [
            bisect_tail(partial(passes, alpha), sample.n_observed) for alpha in alphas
        ]
        return [
            self._from_tail(sample, n_tail, alpha)
            for n_tail, alpha in zip(tails, alphas, strict=True)
        ]


@lru_cache(maxsize=1024)
def expected_thinning_root(
    n_rows: int, bound: float, alpha: float, delta: float
) -> float:
    """The mean of √μ, μ the type I error at the threshold that thinning certifies.

    Of N rows kept the (k + 1)-th highest score is taken, above which there is a share
    that is Beta(k + 1, N − k); N is binomial, and none is certified for small N.
    """
    kept, times = _kept_rows(n_rows, bound)
    k = binomial_tails(kept, alpha, delta)
    roots = np.where(k >= 0, poch(np.maximum(k, 0) + 1, 0.5) / poch(kept + 1, 0.5), 0.0)
    return float(np.average(roots, weights=times))


@lru_cache(maxsize=64)
def _kept_rows(n_rows: int, bound: float) -> tuple[IntArray, IntArray]:
    """How many rows thinning may keep: quantiles, and how many of them are the same."""
    levels = (np.arange(41) + 0.5) / 41
    kept = binom.ppf(levels, n_rows, 1.0 / bound).astype(np.intp)
    return np.unique(kept, return_counts=True)


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
        bound = known_bound(sample, self.name) if self.needs_bound else None
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

    def select_levels(
        self,
        sample: CalibrationSample,
        alphas: Sequence[float],
        delta: float,
        rng: np.random.Generator,
    ) -> list[Selection]:
        """Choose a rule for each level; each then chooses at all that it is for."""
        rules = [
            self.choose(sample.n_rows, sample.bound, alpha, delta) for alpha in alphas
        ]
        chosen: dict[float, Selection] = {}
        for rule in {rule.name: rule for rule in rules}.values():
            own = [
                alpha
                for alpha, other in zip(alphas, rules, strict=True)
                if other.name == rule.name
            ]
            found = rule.select_levels(sample, own, delta, rng)
            chosen.update(zip(own, found, strict=True))
        return [chosen[alpha] for alpha in alphas]


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
