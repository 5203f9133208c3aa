"""Rules that bet against "the error is at least α"."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import ClassVar

import numpy as np
from scipy.special import logsumexp

from missratio.threshold._bets import (
    empty_tail_growth,
    largest_tail,
    mixture,
    tune_bet,
)
from missratio.threshold._rules import Rule, Selection, fewest, known_bound
from missratio.threshold._sample import CalibrationSample

# Rows of the sample that a plan takes for training rows.
PLANNED = 2000


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

    def least_rows(self, alpha: float, delta: float, bound: float) -> int | None:
        """So many that the average capital of an empty tail reaches 1/δ."""
        bets = mixture(self.ratio, alpha, bound)
        growth = np.array([empty_tail_growth(bet, alpha, bound) for bet in bets])
        needed = math.log(len(bets) / delta)
        return fewest(lambda n: bool(logsumexp(n * growth) >= needed))


class FlippedBettingRule(BettingRule):
    """Bets that E[W·1{h ≤ C}] > 1 − α, which needs only W ≥ 0 and no bound on φ."""

    name = "flipped-betting"
    bound = "unused"
    ratio = 1.0


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
    bound = "used"

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
        return TunedBettingRule(training, self.ratio)

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
        bet, _ = tune_bet(
            self._training(), alpha, delta, sample.n_rows, sample.bound, self.ratio
        )
        n_tail = largest_tail(sample, [bet], alpha, delta)
        return self._from_tail(sample, n_tail, alpha)

    def expected_root(
        self, n_rows: int, bound: float | None, alpha: float, delta: float
    ) -> float:
        """The root that the bet reaches on the training rows."""
        training = self._training()
        return tune_bet(training, alpha, delta, n_rows, bound, self.ratio)[1]

    def least_rows(self, alpha: float, delta: float, bound: float) -> int | None:
        """So many that the capital of an empty tail reaches 1/δ."""
        observed = max(1, round(PLANNED / bound))
        scores = np.arange(observed, 0, -1, dtype=np.float64)
        weights = np.full(observed, PLANNED / observed)
        training = CalibrationSample(scores, weights, PLANNED, bound)
        needed = math.log(1.0 / delta)

        def passes(n_rows: int) -> bool:
            bet, _ = tune_bet(training, alpha, delta, n_rows, bound)
            return n_rows * empty_tail_growth(bet, alpha, bound) >= needed

        return fewest(passes)


class TargetRule(Rule):
    """A tuned bet with γ = λα: on W(α − 1{h > C}), so that the scale of W is free.

    Certifies E[W·1{h > C}] ≤ α·E[W]: for weights that don't average to one, as those
    of another population don't.

    Parameters
    ----------
    training : CalibrationSample, optional
        As for `TunedBettingRule`.
    """

    name = "target"

    def __init__(self, training: CalibrationSample | None = None) -> None:
        self.training = training

    def prepare(self, training: CalibrationSample | None, *, complete: bool) -> Rule:
        """Learn from these training rows, unless it has its own."""
        del complete
        return self if self.training is not None else TargetRule(training)

    def select(
        self, sample: CalibrationSample, alpha: float, delta: float
    ) -> Selection:
        """Tune on the training rows, then bet on the calibration rows."""
        known_bound(sample, self.name)
        chosen = TunedBettingRule(self.training, alpha).select(sample, alpha, delta)
        return replace(chosen, rule=self.name)

    def expected_root(
        self, n_rows: int, bound: float | None, alpha: float, delta: float
    ) -> float:
        """The root that the bet reaches on the training rows."""
        tuned = TunedBettingRule(self.training, alpha)
        return tuned.expected_root(n_rows, bound, alpha, delta)

    def least_rows(self, alpha: float, delta: float, bound: float) -> int | None:
        """None: it depends on how the weights are spread."""
        del alpha, delta, bound
        return None
