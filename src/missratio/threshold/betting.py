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
from bisect import bisect_left
from copy import copy
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import ndtri

from missratio._base.storable import storable
from missratio._base.typing import FloatArray
from missratio.threshold.rules import BoundUse, Rule, Selection, known_bound
from missratio.threshold.sample import CalibrationSample

# Capital must never reach zero: bets stay below the largest possible by this factor.
SAFE = 0.98
GRID = 24


@dataclass(frozen=True, slots=True)
class Bet:
    """A fixed bet (λ, γ) of the family above."""

    on_tail: float
    on_weight: float


def largest_bet(ratio: float, alpha: float, bound: float | None) -> float:
    """The largest λ for which capital can't turn negative, given γ = ratio·λ.

    A missing row has the factor 1 + λα − γ, and a row in the tail of weight W
    1 + λα − γ − (λ − γ)W, least at the bound of W where γ < λ.
    """
    limits = []
    if ratio > alpha:
        limits.append(1.0 / (ratio - alpha))
    if ratio < 1.0:
        if bound is None:
            return 0.0
        # Written so that nothing cancels where the bound is tiny and ratio is α.
        limits.append(1.0 / ((1.0 - ratio) * bound + (ratio - alpha)))
    return min(limits)


def mixture(ratio: float, alpha: float, bound: float | None) -> list[Bet]:
    """Bets from timid to bold, with γ = ratio·λ, to be averaged."""
    boldest = SAFE * largest_bet(ratio, alpha, bound)
    return [Bet(bet, ratio * bet) for bet in boldest * np.geomspace(0.005, 1.0, GRID)]


def log_capital(
    sample: CalibrationSample, bet: Bet, alpha: float, n_tail: int
) -> FloatArray:
    """Log capital of a bet for tails of the 0, 1, …, n_tail highest rows."""
    heaviest = sample.high_weights[:n_tail].max(initial=0.0)
    lost = 1.0 + (bet.on_tail * alpha - bet.on_weight)
    if lost + (bet.on_weight - bet.on_tail) * heaviest <= 0.0:
        raise ValueError(
            f"A weight of {heaviest:.6g} would lose more than a bet has: it exceeds "
            "the bound that the bet was made for. Give the bound that belongs to the "
            "rows' missingness."
        )
    out = lost + bet.on_weight * sample.low_weights
    within = lost + (bet.on_weight - bet.on_tail) * sample.high_weights[:n_tail]
    missing = sample.n_rows - sample.n_observed
    steps = np.log(within) - np.log(out[:n_tail])
    if bet.on_weight == 0.0:
        everywhere = sample.n_observed * math.log1p(bet.on_tail * alpha)
    else:
        everywhere = float(np.log(out).sum())
    start = everywhere + missing * math.log(lost)
    return start + np.concatenate([[0.0], np.cumsum(steps)])


def hopeful_tail(sample: CalibrationSample, ratio: float, alpha: float) -> int:
    """How many rows a tail can have at most for capital to be above one.

    Capital is at most what the average row would make of it, which is above one only if
    α − mean L + (γ/λ)(mean W − 1) is above zero, the weights as a bet takes them.
    """
    low, high = sample.low_tail_masses, sample.high_tail_masses
    allowed = sample.n_rows * alpha + ratio * (float(low[-1]) - sample.n_rows)

    def mass(n_tail: int) -> float:
        return float(ratio * low[n_tail] + (1.0 - ratio) * high[n_tail])

    n_tail = bisect_left(range(1, len(low)), allowed, key=mass)
    return min(n_tail, sample.n_scored)


def largest_tail(
    sample: CalibrationSample, bets: list[Bet], alpha: float, delta: float
) -> int:
    """Size of the largest tail at which the bets' average capital reaches 1/δ.

    Returns −1 if even an empty tail is not enough.
    """
    ratio = bets[0].on_weight / bets[0].on_tail
    n_tail = hopeful_tail(sample, ratio, alpha)
    capital = log_capital(sample, bets[0], alpha, n_tail)
    for bet in bets[1:]:
        np.logaddexp(capital, log_capital(sample, bet, alpha, n_tail), out=capital)
    needed = math.log(len(bets) / delta)
    # Capital falls along the tail: count how often it is enough.
    return int(np.count_nonzero(capital >= needed)) - 1


def tune_bet(
    training: CalibrationSample,
    alpha: float,
    delta: float,
    n_rows: int,
    bound: float | None,
    ratio: float | None = None,
) -> tuple[Bet, float]:
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
    ratio : float, optional
        γ/λ, where it is given.

    Returns
    -------
    root_error : float
        The mean of √μ over the draw of the calibration rows, μ the type I error at the
        threshold that is certified, and 0 where none is.
    """
    needed, total = math.log(1.0 / delta), training.n_rows
    # 1. The variance, the bet and the error to expect of it, for each γ/λ.
    ratios, variances = _variances(training, alpha, bound, ratio)
    boldest = [SAFE * largest_bet(float(ratio), alpha, bound) for ratio in ratios]
    bets = np.minimum(boldest, np.sqrt(2.0 * needed / (n_rows * variances)))
    errors = alpha - needed / (n_rows * bets) - bets * variances / 2
    doubt = Doubt.of(training, alpha, bound)
    errors = (errors - ratios * doubt.shortfall) / (
        ratios * doubt.low_tail + (1.0 - ratios) * doubt.high_tail
    )
    best = int(np.argmax(errors))
    ratio, on_tail = float(ratios[best]), float(bets[best])
    bet = Bet(on_tail, ratio * on_tail)
    # 2. The error by the training rows' own capital: less steady, but exact where few
    # rows decide. The mean of both is spread over draws as the capital is.
    # Where not even an empty tail should pass, they have nothing to add.
    expected = float(errors[best])
    own = min(_own_error(training, bet, alpha, needed, n_rows / total), alpha)
    centre = (expected + own) / 2 if own > 0.0 else min(expected, 0.0)
    spread = math.sqrt(float(variances[best]) / n_rows)
    draws = centre + spread * ndtri((np.arange(41) + 0.5) / 41)
    return bet, float(np.sqrt(np.maximum(draws, 0.0)).mean())


def _variances(
    training: CalibrationSample, alpha: float, bound: float | None, ratio: float | None
) -> tuple[FloatArray, FloatArray]:
    """Candidates for γ/λ, and the variance of W·1{h > C} − (γ/λ)(W − 1) at each."""
    squares, total = training.tail_squares, training.n_rows
    loss_square = max(float(squares[training.tail_of(alpha)]) / total, alpha)
    loss_weight = loss_square - alpha
    weight_variance = max(float(squares[-1]) / total - 1.0, 1e-12)
    ratios = np.ones(1)
    if bound is not None and ratio is not None:
        ratios = np.array([ratio])
    elif bound is not None:
        regression = min(loss_weight / weight_variance, 1.0)
        ratios = np.append(np.linspace(0.0, 1.0, GRID), regression)
    variances = loss_square - alpha**2 - 2 * ratios * loss_weight
    variances += ratios**2 * weight_variance
    return ratios, np.maximum(variances, alpha * (1.0 - alpha) / 4)


@dataclass(frozen=True, slots=True)
class Doubt:
    """How far uncertain weights are from the estimated ones.

    Parameters
    ----------
    shortfall : float
        By how much the mean of the least weights falls short of one.
    low : float
        The sum of the least weights, each the bound at most, as a multiple of the sum
        of the weights: by what share thinning keeps fewer rows than it should.
    low_tail, high_tail : float
        The error by the least and by the largest weights, as multiples of the error, in
        the tail of mass α.
    """

    shortfall: float
    low: float
    low_tail: float
    high_tail: float

    @classmethod
    def of(
        cls, training: CalibrationSample, alpha: float, bound: float | None
    ) -> Doubt:
        """Measured on training rows; none where weights are certain and in bounds."""
        masses, low = training.tail_masses, training.low_tail_masses
        kept = training.low_weights
        if bound is not None:
            kept = np.minimum(kept, bound)
        share = float(kept.sum() / masses[-1])
        if training.edges is None:
            return cls(0.0, share, 1.0, 1.0)
        tail = max(training.tail_of(alpha), 1)
        return cls(
            float(masses[-1] - low[-1]) / training.n_rows,
            share,
            float(low[tail] / masses[tail]),
            float(training.high_tail_masses[tail] / masses[tail]),
        )


def _own_error(
    training: CalibrationSample, bet: Bet, alpha: float, needed: float, scale: float
) -> float:
    """The error that a bet certifies on the training rows, were they scale as many."""
    n_tail = hopeful_tail(training, bet.on_weight / bet.on_tail, alpha)
    capital = log_capital(training, bet, alpha, n_tail) * scale
    passed = int(np.count_nonzero(capital >= needed)) - 1
    if passed < 0:
        return 0.0
    # Somewhere within the next row, whose weight may be large, capital runs out.
    part = 0.0
    if passed < n_tail:
        part = (capital[passed] - needed) / (capital[passed] - capital[passed + 1])
        part *= training.weights[passed]
    return (float(training.tail_masses[passed]) + part) / training.n_rows


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
        bound = known_bound(sample, self.name) if self.bound == "needed" else None
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
class TunedBettingRule(Rule):
    """One bet (λ, γ), chosen on training rows to certify as large an error as it can.

    The bet on the weights, γ, takes the luck of how much weight came up out of the bet
    on the tail; plain and flipped betting are its two ends.

    Parameters
    ----------
    training : CalibrationSample, optional
        Rows of the controlled class that take no part in calibration. None takes
        those that `prepare` is given.
    ratio : float, optional
        γ/λ, fixed beforehand; None has it chosen too.
    """

    name = "tuned-betting"
    bound: ClassVar[BoundUse] = "used"

    def __init__(
        self, training: CalibrationSample | None = None, ratio: float | None = None
    ) -> None:
        self.training = training
        self.ratio = ratio

    def prepare(self, training: CalibrationSample | None, *, complete: bool) -> Rule:
        """Learn from these training rows, unless it has its own."""
        del complete
        if self.training is not None:
            return self
        prepared = copy(self)
        prepared.training = training
        return prepared

    def _ratio(self, alpha: float) -> float | None:
        """γ/λ where it is fixed, whatever α is."""
        del alpha
        return self.ratio

    def _training(self) -> CalibrationSample:
        if self.training is None or not self.training.n_observed:
            raise ValueError(
                "The rule 'tuned-betting' learns its bet from training rows of the "
                "controlled class, and there are none. Give training scores, or choose "
                "another rule."
            )
        return self.training

    def select(
        self, sample: CalibrationSample, alpha: float, delta: float
    ) -> Selection:
        """Tune on the training rows, then bet on the calibration rows."""
        rows = sample.n_rows, sample.bound
        bet, _ = tune_bet(self._training(), alpha, delta, *rows, self._ratio(alpha))
        n_tail = largest_tail(sample, [bet], alpha, delta)
        return self._from_tail(sample, n_tail, alpha)

    def expected_root(
        self, n_rows: int, bound: float | None, alpha: float, delta: float
    ) -> float:
        """The root that the bet reaches on the training rows."""
        rows = n_rows, bound
        return tune_bet(self._training(), alpha, delta, *rows, self._ratio(alpha))[1]


@storable()
class TargetRule(TunedBettingRule):
    """A tuned bet with γ = λα: on W(α − 1{h > C}), so that the scale of W is free.

    Certifies E[W·1{h > C}] ≤ α·E[W]: for weights that don't average to one, as those
    of another population don't.

    Parameters
    ----------
    training : CalibrationSample, optional
        As for `TunedBettingRule`.
    """

    name = "target"
    bound = "needed"

    def __init__(self, training: CalibrationSample | None = None) -> None:
        super().__init__(training)

    def _ratio(self, alpha: float) -> float:
        return alpha

    def select(
        self, sample: CalibrationSample, alpha: float, delta: float
    ) -> Selection:
        """Tune on the training rows, then bet on the calibration rows."""
        known_bound(sample, self.name)
        return super().select(sample, alpha, delta)

    def least_rows(self, alpha: float, delta: float, bound: float) -> int | None:
        """None: it depends on how the weights are spread."""
        del alpha, delta, bound
        return None
