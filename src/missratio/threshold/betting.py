"""Test martingales for weighted errors, and the rules that bet by them.

Bets are fixed, or chosen beforehand.

For a threshold C let L = W·1{h > C}, so that E L is the type I error. A bet (λ, γ)
multiplies its capital, row by row, by

    1 + λ(α − L) + γ(W − 1),

which has a mean of at most one wherever E L ≥ α, because E W = 1 whatever φ is. So by
Markov's inequality the capital reaches 1/δ with probability δ at most, and where it
does, the error is below α. The first part bets that few rows score high. The second
bets on how much weight came up at all, so that chance in the weights matters less to
the first: γ = 0 is plain betting, γ = λα is a bet on observed rows alone if φ is
constant, and γ = λ, "flipped" betting, on E[W·1{h ≤ C}], which needs no bound on W.

Where φ is not known exactly, W lies somewhere between two edges, and a factor takes its
least value between them: a row in the tail is given its largest weight, as γ ≤ λ, and
any other row its least. The capital is then at most what the true weights would make.

The factor falls when a row enters the tail {h > C}. So the capital of any fixed bet,
and of any average of them, falls with C, and it does not depend on the rows' order: one
test at the smallest threshold that passes is enough.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.special import ndtri

from missratio._base.storable import storable
from missratio._base.typing import FloatArray
from missratio.threshold.rules import BoundUse, Rule, Selection, known_bound
from missratio.threshold.sample import CalibrationSample

# Capital must never reach zero: bets stay below the largest possible by this factor.
SAFE = 0.98
GRID = 24


class Bet(NamedTuple):
    """A fixed bet (λ, γ) of the family above."""

    on_tail: float
    on_weight: float


class Tuned(NamedTuple):
    """A bet that was chosen on training rows, and what to expect of it.

    Where weights are uncertain, two shares say how far their edges are from them.
    """

    bet: Bet
    root_error: float
    """The mean of √μ over the draw of the calibration rows, μ the type I error at the
    threshold that is certified, and 0 where none is."""
    kept: float
    """What thinning by the least weights, each the bound at most, keeps of what it
    would keep by the weights."""
    tail: float
    """The error by the largest weights as a multiple of the error, in the tail of
    mass α."""


def largest_bet(
    ratio: float | FloatArray, alpha: float, bound: float | None
) -> FloatArray:
    """The largest λ for which capital can't turn negative, given γ = ratio·λ.

    A missing row has the factor 1 + λα − γ, and a row in the tail of weight W
    1 + λα − γ − (λ − γ)W, the smaller of the two and least at the bound of W. Without
    a bound nothing can be bet unless γ = λ.
    """
    ratio = np.asarray(ratio)
    if bound is None:
        return np.where(ratio < 1.0, 0.0, 1.0 / (1.0 - alpha))
    # Written so that nothing cancels where the bound is tiny and ratio is α.
    return np.asarray(1.0 / ((1.0 - ratio) * bound + (ratio - alpha)))


def mixture(ratio: float, alpha: float, bound: float | None) -> list[Bet]:
    """Bets from timid to bold, with γ = ratio·λ, to be averaged."""
    boldest = SAFE * largest_bet(ratio, alpha, bound)
    return [Bet(bet, ratio * bet) for bet in boldest * np.geomspace(0.005, 1.0, GRID)]


def log_capital(
    sample: CalibrationSample, bet: Bet, alpha: float, n_tail: int | None = None
) -> FloatArray:
    """Log capital of a bet for tails of the 0, 1, …, n_tail highest rows.

    None stops where a longer tail has no hope. Capital is at most what the average row
    would make of it, which is above one only if α − mean L + (γ/λ)(mean W − 1) is above
    zero, the weights as a bet takes them.
    """
    ranked, n_rows = sample.ranked, sample.n_rows
    if n_tail is None:
        ratio, mass = bet.on_weight / bet.on_tail, ranked.masses[1:]
        least = float(ranked.low.sum())
        if sample.edges is not None:
            mass = np.cumsum(ratio * ranked.low + (1.0 - ratio) * ranked.high)
        allowed = n_rows * alpha + ratio * (least - n_rows)
        n_tail = min(int(np.searchsorted(mass, allowed)), ranked.n_scored)
    heaviest = ranked.high[:n_tail].max(initial=0.0)
    lost = 1.0 + (bet.on_tail * alpha - bet.on_weight)
    if lost + (bet.on_weight - bet.on_tail) * heaviest <= 0.0:
        raise ValueError(
            f"A weight of {heaviest:.6g} would lose more than a bet has: it exceeds "
            "the bound that the bet was made for. Give the bound that belongs to the "
            "rows' missingness."
        )
    out = lost + bet.on_weight * ranked.low
    within = lost + (bet.on_weight - bet.on_tail) * ranked.high[:n_tail]
    steps = np.log(within) - np.log(out[:n_tail])
    if bet.on_weight == 0.0:
        everywhere = len(out) * math.log1p(bet.on_tail * alpha)
    else:
        everywhere = float(np.log(out).sum())
    start = everywhere + (n_rows - len(out)) * math.log(lost)
    return start + np.append(0.0, np.cumsum(steps))


def largest_tail(
    sample: CalibrationSample, bets: list[Bet], alpha: float, delta: float
) -> int:
    """Size of the largest tail at which the bets' average capital reaches 1/δ.

    All bets have the same γ/λ. Returns −1 if even an empty tail is not enough.
    """
    capital = log_capital(sample, bets[0], alpha)
    for bet in bets[1:]:
        other = log_capital(sample, bet, alpha, len(capital) - 1)
        np.logaddexp(capital, other, out=capital)
    needed = math.log(len(bets) / delta)
    # Capital falls along the tail: count how often it is enough.
    return int(np.count_nonzero(capital >= needed)) - 1


def tune_bet(
    training: CalibrationSample | None,
    alpha: float,
    delta: float,
    n_rows: int,
    bound: float | None,
) -> Tuned:
    """The bet for n_rows calibration rows, from training rows like them.

    Capital grows by λ(α − μ) − λ²v/2 a row to second order, where μ is the error and v
    the variance of W·1{h > C} − (γ/λ)(W − 1). So for each γ/λ the bet
    λ = √(2 log(1/δ)/(n v)) reaches 1/δ at the largest μ, unless the bound on W keeps it
    smaller, and the γ/λ with the largest μ is taken: the one that makes v least, a
    regression coefficient, or a larger one where the bound matters. To estimate these
    at the tail of mass α is far steadier than to look for the bet that would have won
    on the training rows. Where weights are uncertain, what they may be wrong by is
    taken off.

    Parameters
    ----------
    training : CalibrationSample
        Rows that take no part in calibration.
    alpha, delta : float
    n_rows : int
        Of the calibration sample to come.
    bound : float or None
        Of its weights.
    """
    if training is None or not training.n_observed:
        raise ValueError(
            "The rule 'tuned-betting' learns its bet from training rows of the "
            "controlled class, and there are none. Give training scores, or choose "
            "another rule."
        )
    needed, total, ranked = math.log(1.0 / delta), training.n_rows, training.ranked
    # The tail: the highest rows that weigh at most a share of α of all rows.
    tail = int(np.searchsorted(ranked.masses[1:], alpha * total, side="right"))
    squares = ranked.weights**2
    # 1. Candidates for γ/λ, and the variance at each.
    loss_square = max(float(squares[:tail].sum()) / total, alpha)
    loss_weight = loss_square - alpha
    weight_variance = max(float(squares.sum()) / total - 1.0, 1e-12)
    ratios = np.ones(1)
    if bound is not None:
        regression = min(loss_weight / weight_variance, 1.0)
        ratios = np.append(np.linspace(0.0, 1.0, GRID), regression)
    variances = loss_square - alpha**2 - 2 * ratios * loss_weight
    variances += ratios**2 * weight_variance
    variances = np.maximum(variances, alpha * (1.0 - alpha) / 4)
    # 2. How far the edges of uncertain weights are from them, at the tail and in all.
    tail, low, high = max(tail, 1), ranked.low, ranked.high
    weight, in_all = float(ranked.weights[:tail].sum()), float(ranked.weights.sum())
    low_tail, high_tail = low[:tail].sum() / weight, high[:tail].sum() / weight
    shortfall = (in_all - float(low.sum())) / total
    kept = low if bound is None else np.minimum(low, bound)
    # 3. The bet, and the error to expect of it, at each γ/λ.
    boldest = SAFE * largest_bet(ratios, alpha, bound)
    bets = np.minimum(boldest, np.sqrt(2.0 * needed / (n_rows * variances)))
    errors = alpha - needed / (n_rows * bets) - bets * variances / 2
    errors = (errors - ratios * shortfall) / (
        ratios * low_tail + (1.0 - ratios) * high_tail
    )
    best = int(np.argmax(errors))
    on_tail, expected = float(bets[best]), float(errors[best])
    bet = Bet(on_tail, float(ratios[best]) * on_tail)
    # 4. The error by the training rows' capital: less steady, but exact where few rows
    # decide.
    capital, observed = log_capital(training, bet, alpha) * (n_rows / total), 0.0
    passed = int(np.count_nonzero(capital >= needed)) - 1
    if passed >= 0:
        observed = float(ranked.masses[passed])
        # Capital runs out somewhere within the next row, whose weight may be large.
        if passed + 1 < len(capital):
            part = (capital[passed] - needed) / (capital[passed] - capital[passed + 1])
            observed += float(part * ranked.weights[passed])
    observed = min(observed / total, alpha)
    # 5. The mean of both is spread over draws as the capital is. Where not even an
    # empty tail should pass, training rows have nothing to add.
    centre = (expected + observed) / 2 if observed > 0.0 else min(expected, 0.0)
    if bound is None:
        # One rare row decides either of the two: it makes the variance, or the capital.
        centre = min(centre, expected, observed)
    spread = math.sqrt(float(variances[best]) / n_rows)
    draws = centre + spread * ndtri((np.arange(41) + 0.5) / 41)
    root_error = float(np.sqrt(np.maximum(draws, 0.0)).mean())
    return Tuned(bet, root_error, float(kept.sum()) / in_all, float(high_tail))


@storable()
class BettingRule(Rule):
    """The average of fixed bets against "the error is at least α", from 0 to the most.

    Adapts to the variance that is really there: it gains where φ is small among high
    scores.
    """

    name = "betting"
    ratio: ClassVar[float] = 0.0

    def select(
        self, sample: CalibrationSample, alpha: float, delta: float
    ) -> Selection:
        """Choose the smallest threshold at which the capital reaches 1/δ."""
        bound = known_bound(sample, self.name) if self.ratio < 1.0 else None
        bets = mixture(self.ratio, alpha, bound)
        n_tail = largest_tail(sample, bets, alpha, delta)
        return self._from_tail(sample, n_tail, alpha)


@storable()
class FlippedBettingRule(BettingRule):
    """Bets that E[W·1{h ≤ C}] > 1 − α, which needs only W ≥ 0 and no bound on φ."""

    name = "flipped-betting"
    bound = "unused"
    ratio = 1.0


@storable()
@dataclass(eq=False, repr=False)
class TunedBettingRule(Rule):
    """One bet (λ, γ), chosen on training rows to certify as large an error as it can.

    The bet on the weights, γ, takes the luck of how much weight came up out of the bet
    on the tail; plain and flipped betting are its two ends.

    Parameters
    ----------
    training : CalibrationSample, optional
        Rows of the controlled class that take no part in calibration. None takes
        those that `prepare` is given.
    """

    name = "tuned-betting"
    bound: ClassVar[BoundUse] = "used"

    training: CalibrationSample | None = None

    def prepare(self, training: CalibrationSample | None, *, complete: bool) -> Rule:
        """Learn from these training rows, unless it has its own."""
        return self if self.training is not None else type(self)(training)

    def select(
        self, sample: CalibrationSample, alpha: float, delta: float
    ) -> Selection:
        """Tune on the training rows, then bet on the calibration rows."""
        tuned = tune_bet(self.training, alpha, delta, sample.n_rows, sample.bound)
        n_tail = largest_tail(sample, [tuned.bet], alpha, delta)
        return self._from_tail(sample, n_tail, alpha)

    def expected_root(
        self, n_rows: int, bound: float | None, alpha: float, delta: float
    ) -> float:
        """The root that the bet reaches on the training rows."""
        return tune_bet(self.training, alpha, delta, n_rows, bound).root_error
