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
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from missratio._base.threads import one_blas_thread, share
from missratio._base.typing import FloatArray

_BETS = np.geomspace(3e-4, 0.95, 14)
_LOG_STAKES = np.log1p(-_BETS)
_PENALTIES = -_LOG_STAKES - _BETS
# A product of eight must not overflow.
_SMALLEST_ODDS, _LARGEST_ODDS = 1e-16, 1e30
_FEWEST = 10
_BLOCK = 4096


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
    def of_columns(cls, weights: FloatArray) -> list[WeightEvidence]:
        """Sums of each column of weights: 0 where missing, else 1/(1 − φ)."""
        n_rows, width = weights.shape
        step = 8 * max(1, _BLOCK // width)
        blocks = [weights[i : i + step] for i in range(0, max(n_rows, 1), step)]
        with one_blas_thread(weights.size) as threads:
            parts = share(_block_sums, blocks, threads)
        added, least, largest, growth = zip(*parts, strict=True)
        n_observed, odds, squares = np.sum(added, axis=0)
        columns = zip(
            n_observed.astype(int).tolist(),
            odds.tolist(),
            squares.tolist(),
            np.min(least, axis=0).tolist(),
            np.max(largest, axis=0).tolist(),
            np.sum(growth, axis=0).T,
            strict=True,
        )
        return [cls(n_rows, *column) for column in columns]

    @classmethod
    def of(cls, weights: Any) -> WeightEvidence:
        """Sums of weights of shape (n,)."""
        return cls.of_columns(np.asarray(weights, dtype=np.float64)[:, None])[0]

    @property
    def total(self) -> float:
        """Σ W."""
        return self.n_observed + self.odds

    @property
    def plausible_bound(self) -> float:
        """A bound on weights by those observed, where φ's maximum isn't known.

        With r the range of the observed log-odds, 1 + 2 max o · e^min(r, 1): were what
        is missing spread over another r of log-odds beyond the largest that was
        observed, some of it would have been observed below the bound. A few values show
        no range: then there is no bound.
        """
        if self.n_observed < _FEWEST:
            return math.inf
        if self.largest == 0.0:
            return 1.0
        spread = math.log(self.largest / max(self.least, _SMALLEST_ODDS))
        spread = max(spread, 0.0)
        return 1.0 + 2.0 * self.largest * math.exp(min(spread, 1.0))

    def room(self, bound: float | None) -> float:
        """The largest odds that are possible; None: that are plausible."""
        largest = (self.plausible_bound if bound is None else bound) - 1.0
        return max(largest, self.largest, _SMALLEST_ODDS)


def log_evidence(
    tested: Sequence[WeightEvidence], bounds: Sequence[float | None]
) -> tuple[list[float], list[float]]:
    """Log e-values against "not too much" and "not too little" weight, of each.

    Parameters
    ----------
    tested : sequence of WeightEvidence
    bounds : sequence of float or None
        On the weights; None: the plausible one.
    """
    n_missing = np.array([[each.n_rows - each.n_observed] for each in tested])
    over = n_missing * _LOG_STAKES + np.array([each.growth for each in tested])
    pairs = zip(tested, bounds, strict=True)
    room = np.array([[each.room(bound)] for each, bound in pairs])
    odds = np.array([[each.odds] for each in tested])
    squares = np.array([[each.odds_squares] for each in tested])
    # A missing row's ξ = 1/room is known; observed rows take Fan's bound.
    under = (
        n_missing * np.log1p(_BETS / room)
        - _BETS * (odds / room)
        - _PENALTIES * (squares / room / room)
    )
    return _log_mean_exp(over), _log_mean_exp(under)


def _block_sums(
    weights: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Counts, Σ o and Σ o² of each column; least and largest odds; their growth."""
    observed = weights > 0
    # Where a weight rounds to less than one, φ is zero.
    odds = np.clip(weights - 1.0, 0.0, _LARGEST_ODDS)
    squares = np.einsum("ij,ij->j", odds, odds)
    return (
        np.stack([observed.sum(axis=0), odds.sum(axis=0), squares]),
        odds.min(axis=0, where=observed, initial=np.inf),
        odds.max(axis=0, initial=0.0),
        _growth(odds),
    )


def _growth(odds: FloatArray) -> FloatArray:
    """Σ log(1 + λo), (n_bets, n_columns); of products of eight, which is faster."""
    eights = np.zeros((8, -(-len(odds) // 8), odds.shape[1]))
    eights.reshape(-1, odds.shape[1])[: len(odds)] = odds
    return np.stack(
        [np.log((1.0 + b * eights).prod(axis=0)).sum(axis=0) for b in _BETS]
    )


def _log_mean_exp(exponents: FloatArray) -> list[float]:
    top = exponents.max(axis=1)
    mean = np.exp(exponents - top[:, None]).mean(axis=1)
    found: list[float] = (top + np.log(mean)).tolist()
    return found
