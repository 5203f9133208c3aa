"""Rules that keep rows at random, so that what is kept has an exact law."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial

import numpy as np
from scipy.stats import binom

from missratio._base.typing import IntArray
from missratio.threshold._rules import (
    Rule,
    Selection,
    attained,
    binomial_tail,
    bisect_tail,
    expected_root,
    few_enough,
    fewest,
    known_bound,
    least_trials,
    order_statistic,
)
from missratio.threshold._sample import CalibrationSample

# With how much certainty the random number of rows that thinning keeps is to suffice.
THINNING_CERTAINTY = 0.9


class ThinningRule(Rule):
    """Keep row i with probability W_i/B: what is left is a complete i.i.d. sample.

    Its size is random and the exact binomial rule applies to it. The guarantee is over
    the draw of the rows to keep as well, so fix the seed beforehand; one more number,
    the sample's coin, makes the level of the binomial rule exactly δ. Where the weights
    are uncertain, a row in the tail is kept by its largest and any other by its least:
    of the rows kept, at least the share of the error is then in the tail.
    """

    name = "thinning"

    def select(
        self, sample: CalibrationSample, alpha: float, delta: float
    ) -> Selection:
        """Thin, then choose an order statistic."""
        return self.select_levels(sample, [alpha], delta)[0]

    def select_levels(
        self, sample: CalibrationSample, alphas: Sequence[float], delta: float
    ) -> list[Selection]:
        """Thin once, then choose an order statistic for each level."""
        low, high = sample.kept(known_bound(sample, self.name))
        if sample.edges is None:
            scores = sample.scores[high]
            thinned = CalibrationSample(scores, None, len(scores), 1.0)
            return [
                order_statistic(thinned, alpha, delta, self.name, sample.coin)
                for alpha in alphas
            ]
        tail = np.concatenate([[0], np.cumsum(high)])
        rest = np.concatenate([[0], np.cumsum(low[::-1])])
        kept = tail + rest[::-1]

        def passes(alpha: float, n_tail: int) -> bool:
            counts = tail[n_tail], kept[n_tail]
            return bool(few_enough(*counts, alpha, delta, sample.coin))

        tails = [
            bisect_tail(partial(passes, alpha), sample.n_observed) for alpha in alphas
        ]
        return [
            self._from_tail(sample, n_tail, alpha)
            for n_tail, alpha in zip(tails, alphas, strict=True)
        ]

    def expected_root(
        self, n_rows: int, bound: float | None, alpha: float, delta: float
    ) -> float | None:
        """The root by the law of what is kept, which n and the bound determine."""
        if bound is None:
            return None
        return expected_thinning_root(n_rows, bound, alpha, delta)

    def least_rows(self, alpha: float, delta: float, bound: float) -> int | None:
        """So many that enough are kept with probability 0.9."""
        least = least_trials(alpha, delta)
        allowed = 1.0 - THINNING_CERTAINTY
        return fewest(lambda n: bool(binom.cdf(least - 1, n, 1.0 / bound) <= allowed))


class CountingRule(Rule):
    """Keep row i with probability W_i/B, and count those kept above the threshold.

    A row, missing or not, is observed, kept and in the tail with probability μ/B, μ
    the error. So of all n rows, the missing ones included, the number kept in the tail
    is exactly Bin(n, μ/B), and the binomial rule applies at the level α/B. It needs the
    weights of rows in the tail only, their largest where they are uncertain; how many
    rows are observed or kept elsewhere doesn't enter. The sample's coin makes the level
    exactly δ.
    """

    name = "counting"

    def select(
        self, sample: CalibrationSample, alpha: float, delta: float
    ) -> Selection:
        """Choose the kept row that has as many kept rows above it as are allowed."""
        bound = known_bound(sample, self.name)
        n_rows, share, coin = sample.n_rows, alpha / bound, sample.coin
        most = binomial_tail(n_rows, share, delta, coin)
        if most < 0 or not sample.n_scored:
            return Selection(None, self.name, alpha, n_rows)
        kept = np.flatnonzero(sample.kept(bound)[1])
        n_tail = int(kept[most]) if len(kept) > most else sample.n_scored
        error_bound = min(alpha, bound * attained(n_rows, most, share, delta, coin))
        return Selection(sample.threshold(n_tail), self.name, error_bound, n_rows)

    def expected_root(
        self, n_rows: int, bound: float | None, alpha: float, delta: float
    ) -> float | None:
        """The root by the law of what is kept, which n and the bound determine."""
        if bound is None:
            return None
        return expected_counting_root(n_rows, bound, alpha, delta)

    def least_rows(self, alpha: float, delta: float, bound: float) -> int | None:
        """So many that (1 − α/B)ⁿ ≤ δ."""
        return least_trials(alpha / bound, delta)


@lru_cache(maxsize=1024)
def expected_thinning_root(
    n_rows: int, bound: float, alpha: float, delta: float
) -> float:
    """The mean of √μ, μ the type I error at the threshold that thinning certifies.

    Of N rows kept the (k + 1)-th highest score is taken, above which there is a share
    that is Beta(k + 1, N − k); N is binomial, and none is certified for small N.
    """
    kept, times = _kept_rows(n_rows, bound)
    return float(np.average(expected_root(kept, alpha, delta), weights=times))


@lru_cache(maxsize=64)
def _kept_rows(n_rows: int, bound: float) -> tuple[IntArray, IntArray]:
    """How many rows thinning may keep: quantiles, and how many of them are the same."""
    levels = (np.arange(41) + 0.5) / 41
    kept = binom.ppf(levels, n_rows, 1.0 / bound).astype(np.intp)
    return np.unique(kept, return_counts=True)


@lru_cache(maxsize=1024)
def expected_counting_root(
    n_rows: int, bound: float, alpha: float, delta: float
) -> float:
    """The mean of √μ, μ the type I error at the threshold that counting certifies.

    μ/B is Beta(k + 1, n − k), k the number of kept rows allowed above the threshold.
    """
    root = expected_root(np.array([n_rows]), alpha / bound, delta)
    return float(np.sqrt(bound) * root[0])
