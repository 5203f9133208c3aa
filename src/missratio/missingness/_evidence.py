"""Evidence that weights don't have mean one.

With a right φ, E[W | z] = 1 for every row, whatever the law of z. So the weights of a
column, the products of two columns' weights and those of complete rows must each sum
to about n. The evidence against that is an e-value. Its mean is at most one if φ is
right, so that it exceeds 1/level with probability `level` at most (Markov). For ξ ≥ −1
with mean zero or less Fan's inequality,

    exp(λξ − ψ(λ)ξ²) ≤ 1 + λξ,    ψ(λ) = −log(1 − λ) − λ,    0 ≤ λ < 1,

makes exp(λ Σξ − ψ(λ) Σξ²) one for every λ, as ∏(1 + λξ) is, and averages over λ are
e-values too.

Too much weight contradicts φ: ξ = W − 1 tests it exactly, however heavy the tail of W.
Too little weight contradicts φ where its maximum is known, and with it a bound B on W:
ξ = (1 − W)/(B − 1) tests it exactly. Where φ may come near to 1, weights that never
came up could make up for any deficit. The test then takes for B the largest observed
weight, with room for a range such as the observed log-odds have, and finds a shortfall:
φ is wrong, or some values go missing so surely that none like them was observed. Either
way the weights don't stand for the whole table. Rules that need no bound on W give no
certificate then, so that a shortfall endangers estimates only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from missratio._base.typing import FloatArray

_BETS = np.geomspace(3e-4, 0.95, 14)
_LOG_STAKES = np.log1p(-_BETS)
_PENALTIES = -_LOG_STAKES - _BETS
# A product of eight must not overflow.
_SMALLEST_ODDS, _LARGEST_ODDS = 1e-16, 1e30
_FEWEST = 10
_BLOCK = 512


@dataclass(frozen=True)
class WeightEvidence:
    """What is to be known of weights to test that their mean is one.

    Kept are sums of odds o = W − 1 = φ/(1 − φ) over what is observed. Two of them add
    up to those of both tables.

    Parameters
    ----------
    n_rows : int
        Missing ones included.
    n_observed : int
        How many weights are positive.
    odds, odds_squares : float
        Σ o and Σ o².
    least, largest : float
        Of the odds; inf and 0 where nothing is observed.
    growth : ndarray of shape (n_bets,)
        Σ log(1 + λo) for each bet λ, or less.
    """

    n_rows: int
    n_observed: int
    odds: float
    odds_squares: float
    least: float
    largest: float
    growth: FloatArray

    @classmethod
    def of(cls, weights: Any) -> WeightEvidence:
        """Sums of weights of shape (n,): 0 where missing, else 1/(1 − φ)."""
        w = np.asarray(weights, dtype=np.float64)
        # Where a weight rounds to less than one, φ is zero.
        odds = np.clip(w[w > 0] - 1.0, 0.0, _LARGEST_ODDS)
        return cls(
            len(w),
            len(odds),
            float(odds.sum()),
            float(odds @ odds),
            float(odds.min(initial=np.inf)),
            float(odds.max(initial=0.0)),
            _growth(odds),
        )

    @classmethod
    def from_totals(
        cls,
        n_rows: int,
        n_observed: int,
        total: float,
        squares: float,
        least: float,
        largest: float,
    ) -> WeightEvidence:
        """From Σ W, Σ W² and the least and largest positive W: less powerful."""
        odds = max(total - n_observed, 0.0)
        # By Cauchy and Schwarz; rounding must not make less of them.
        least_squares = odds**2 / max(n_observed, 1)
        odds_squares = max(squares - 2.0 * total + n_observed, least_squares)
        return cls(
            n_rows,
            n_observed,
            odds,
            odds_squares,
            max(least - 1.0, 0.0),
            max(largest - 1.0, 0.0),
            _BETS * odds - _PENALTIES * odds_squares,
        )

    def __add__(self, other: WeightEvidence) -> WeightEvidence:
        return WeightEvidence(
            self.n_rows + other.n_rows,
            self.n_observed + other.n_observed,
            self.odds + other.odds,
            self.odds_squares + other.odds_squares,
            min(self.least, other.least),
            max(self.largest, other.largest),
            self.growth + other.growth,
        )

    @property
    def total(self) -> float:
        """Σ W."""
        return self.n_observed + self.odds

    @property
    def plausible_bound(self) -> float:
        """A bound on weights by those observed, where φ's maximum isn't known.

        With r the range of the observed log-odds, 1 + max o · e^min(r, 1) · max(r, 1):
        were what is missing spread over another r of log-odds beyond the largest that
        was observed, some of it would have been observed below the bound. A few values
        show no range: then there is no bound.
        """
        if self.n_observed < _FEWEST:
            return math.inf
        if self.largest == 0.0:
            return 1.0
        spread = math.log(self.largest / max(self.least, _SMALLEST_ODDS))
        spread = max(spread, 0.0)
        return 1.0 + self.largest * math.exp(min(spread, 1.0)) * max(spread, 1.0)

    def log_evidence(self, bound: float | None = None) -> tuple[float, float]:
        """Log e-values against "not too much" and "not too little" weight.

        Parameters
        ----------
        bound : float, optional
            On the weights; None: the plausible one.
        """
        n_missing = self.n_rows - self.n_observed
        over = n_missing * _LOG_STAKES + self.growth
        room = (self.plausible_bound if bound is None else bound) - 1.0
        room = max(room, self.largest, _SMALLEST_ODDS)
        # A missing row's ξ = 1/room is known; observed rows take Fan's bound.
        under = (
            n_missing * np.log1p(_BETS / room)
            - _BETS * (self.odds / room)
            - _PENALTIES * (self.odds_squares / room / room)
        )
        return _log_mean_exp(over), _log_mean_exp(under)


def _growth(odds: FloatArray) -> FloatArray:
    """Σ log(1 + λo) for each bet; of products of eight factors, which is faster."""
    eights = np.zeros((8, -(-len(odds) // 8)))
    eights.flat[: len(odds)] = odds
    growth = np.zeros(len(_BETS))
    for start in range(0, eights.shape[1], _BLOCK):
        grown = _BETS[:, None, None] * eights[:, start : start + _BLOCK]
        grown += 1.0
        growth += np.log(grown.prod(axis=1)).sum(axis=1)
    return growth


def _log_mean_exp(exponents: FloatArray) -> float:
    top = float(exponents.max())
    return top + math.log(float(np.exp(exponents - top).mean()))
