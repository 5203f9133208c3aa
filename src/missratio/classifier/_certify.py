"""From scored rows of the controlled class to a certificate."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from missratio._typing import FloatArray
from missratio.classifier._calibration import make_rule
from missratio.classifier._certificate import Certificate, assumptions
from missratio.classifier._levels import Levels
from missratio.classifier._planner import infeasible
from missratio.missingness import Missingness
from missratio.threshold import CalibrationSample, Rule
from missratio.weights import (
    complete_row_weight_edges,
    complete_row_weights,
    weight_edges,
)

# Odds that are wrong by more are as good as unknown.
LARGEST_FACTOR = 1024.0
# What a cap stays below when odds are widened.
LARGEST_LOG_CAP = 700.0
# Rules that can do without a bound on φ.
UNBOUNDED_RULES = ("auto", "flipped-betting", "tuned-betting")
# Which shares of the observed training rows a cap may leave.
CAP_LEVELS = (0.25, 0.5, 0.75, 0.9, 0.98, 1.0)
FACTOR_PRECISION = 1e-3


@dataclass(frozen=True)
class ScoredRows:
    """Rows with their scores.

    Parameters
    ----------
    rows : array or dataframe of shape (n_rows, n_columns)
        NaN where a value is missing.
    scores : ndarray of shape (n_rows,)
    probability : ndarray of shape (n_rows,) or (n_rows, n_columns), optional
        The controlled class's φ there, where it was computed already.
    """

    rows: Any
    scores: FloatArray
    probability: FloatArray | None = None

    def sample(self, trust: Trust) -> CalibrationSample:
        """Rows of the controlled class, as a rule sees them."""
        if trust.model is None:
            return CalibrationSample.build(self.scores)
        bound = trust.bound(self.rows.shape[1])
        if self.probability is None:
            weights = complete_row_weights(self.rows, trust.model)
            if trust.is_certain and trust.cap is None:
                return CalibrationSample.build(self.scores, weights, bound)
            low, high = trust.edges(self.rows)
        else:
            weights = self._weights
            low, high = weight_edges(
                self.probability, self.probability, trust.odds_factor
            )
        scores = trust.apply(self.scores, high)
        if trust.is_certain:
            return CalibrationSample.build(scores, weights, bound)
        # The edges are kept from being huge; rounding apart, this is all clipping does.
        weights = np.clip(weights, low, high)
        return CalibrationSample.build(scores, weights, bound, (low, high))

    @cached_property
    def _weights(self) -> FloatArray:
        """By the probability that was computed already."""
        assert self.probability is not None
        return weight_edges(self.probability, self.probability, 1.0)[0]


@dataclass(frozen=True)
class Trust:
    """How far the weights of the controlled class are trusted.

    Parameters
    ----------
    model : Missingness or None
        Why its rows are missing; None where none is.
    delta : float or None
        φ lies within its band at this level; None takes it at its word.
    odds_factor : float
        By what factor the odds of being missing may be wrong beyond that.
    cap : float or None
        Where the largest possible weight is above it, nothing can be certified, and
        rows get the controlled class. So what is left has a bound, even if φ comes
        arbitrarily close to 1.
    """

    model: Missingness | None
    delta: float | None = None
    odds_factor: float = 1.0
    cap: float | None = None

    @property
    def is_certain(self) -> bool:
        """Whether the weights are what the model says."""
        return self.delta is None and self.odds_factor == 1.0

    def widened(self, factor: float) -> Trust:
        """The estimated odds wrong by up to a factor, of rows within the same reach."""
        cap = self.cap
        if cap is not None and self.model is not None:
            more = max(factor / self.odds_factor, 1.0)
            if self.model.rowwise:
                cap = 1.0 + (cap - 1.0) * more
            else:
                cap = math.exp(min(more * math.log(cap), LARGEST_LOG_CAP))
        return Trust(self.model, None, factor, cap)

    def score(self, scored: ScoredRows) -> FloatArray:
        """Scores of any rows, −∞ where too little is ever observed."""
        if self.cap is None:
            return scored.scores
        return self.apply(scored.scores, self.edges(scored.rows)[1])

    def apply(self, scores: FloatArray, heaviest: FloatArray) -> FloatArray:
        """Take the scores of rows that may weigh more than the cap."""
        if self.cap is None:
            return scores
        return np.where(heaviest > self.cap, -np.inf, scores)

    def edges(self, rows: Any) -> tuple[FloatArray, FloatArray]:
        """The least and the largest that the weights of complete rows may be."""
        assert self.model is not None
        return complete_row_weight_edges(
            rows, self.model, delta=self.delta, odds_factor=self.odds_factor
        )

    def bound(self, n_columns: int) -> float | None:
        """The largest weight of a row that can be in a tail; None if unknown."""
        if self.model is None:
            return 1.0
        known = self.model.weight_bound(n_columns, self.odds_factor)
        bounds = [bound for bound in (known, self.cap) if bound is not None]
        return min(bounds, default=None)


@dataclass(frozen=True, slots=True)
class Calibration:
    """What a threshold is to guarantee, and how it is chosen.

    Parameters
    ----------
    alpha, delta : float
    missingness_delta : float or None
        The part of δ that a learned φ may be out of its band with; None for half.
    odds_factor : float
    rule : str
    deployment : {"complete", "as-observed"}
    on_infeasible : {"raise", "reject_all"}
    controlled : object
        The controlled class.
    """

    alpha: float
    delta: float
    missingness_delta: float | None
    odds_factor: float
    rule: str
    deployment: str
    on_infeasible: str
    controlled: Any

    def certify(
        self,
        calibration: ScoredRows,
        training: ScoredRows | None,
        other: Callable[[], ScoredRows] | None,
        model: Missingness | None,
        rng: np.random.Generator,
    ) -> tuple[Certificate, Levels]:
        """Choose a threshold and say what it guarantees.

        Parameters
        ----------
        calibration : ScoredRows
            Of the controlled class.
        training : ScoredRows or None
            Rows of the controlled class that take no part in calibration, to choose a
            bet by.
        other : callable or None
            Gives rows of the other class, where a cap has to be chosen by them.
        model : Missingness or None
            Why rows are missing; None where none can be.
        rng : Generator
            For rules that draw.
        """
        trust, delta = self._trust(model)
        trust = self._with_cap(trust, training, other, delta)
        sample = calibration.sample(trust)
        rule = self._rule(trust, training)
        levels = Levels(sample, trust, rule, delta, deepcopy(rng))
        name, threshold, error_bound, factor = rule.name, None, 0.0, None
        if sample.n_observed:
            chosen = rule.select(sample, self.alpha, delta, rng)
            name, threshold = chosen.rule, chosen.threshold
            if threshold is not None:
                error_bound = chosen.error_bound
                factor = self._sensitivity(
                    calibration, trust, rule, threshold, delta, levels.rng
                )
        if threshold is None and self.on_infeasible == "raise":
            known = training.sample(trust) if training is not None else None
            raise infeasible(sample, known, self.controlled, self.alpha, delta, name)
        certified = threshold is not None
        error = sample.estimated_error(threshold) if threshold is not None else 0.0
        certificate = Certificate(
            alpha=self.alpha,
            delta=self.delta,
            rule=name,
            controlled_class=self.controlled,
            deployment=self.deployment,
            rows=sample.n_rows,
            observed=sample.n_observed,
            effective_rows=sample.effective_rows,
            threshold=np.inf if threshold is None else threshold,
            estimated_error=error,
            error_bound=error_bound,
            certified=certified,
            assumptions=assumptions(
                self.controlled, self.deployment, model, self.odds_factor, trust.cap
            ),
            missingness_delta=trust.delta or 0.0,
            sensitivity=factor,
        )
        return certificate, levels

    def _trust(self, model: Missingness | None) -> tuple[Trust, float]:
        """What the weights are trusted to be, and the part of δ that is the rule's."""
        if model is None:
            return Trust(None), self.delta
        if not model.learned:
            return Trust(model, None, self.odds_factor), self.delta
        part = self.missingness_delta
        part = self.delta / 2.0 if part is None else part
        return Trust(model, part, self.odds_factor), self.delta - part

    def _rule(self, trust: Trust, training: ScoredRows | None) -> Rule:
        known = None
        if training is not None and trust.model is not None:
            known = training.sample(trust)
        return make_rule(self.rule, training=known, complete=trust.model is None)

    def _with_cap(
        self,
        trust: Trust,
        training: ScoredRows | None,
        other: Callable[[], ScoredRows] | None,
        delta: float,
    ) -> Trust:
        """A cap where φ has no bound: the one that promises most power.

        Judged by training rows, as if they were the calibration rows, so before any of
        these is seen.
        """
        if training is None or trust.model is None or self.rule == "flipped-betting":
            return trust
        if trust.bound(training.rows.shape[1]) is not None:
            return trust
        heaviest = trust.edges(training.rows)[1]
        heaviest = heaviest[heaviest > 0.0]
        if not len(heaviest):
            return trust
        if other is None:
            return replace(trust, cap=float(heaviest.max()))
        rng, detected = np.random.default_rng(0), other()
        best, most = replace(trust, cap=float(heaviest.max())), -1.0
        caps = np.unique(np.quantile(heaviest, CAP_LEVELS))[::-1].tolist()
        for candidate in [replace(trust, cap=cap) for cap in (None, *caps)]:
            if candidate.cap is None and self.rule not in UNBOUNDED_RULES:
                continue
            rule = self._rule(candidate, training)
            sample = training.sample(candidate)
            threshold = rule.select(sample, self.alpha, delta, rng).threshold
            if threshold is not None:
                power = float(np.mean(candidate.score(detected) > threshold))
                best, most = (candidate, power) if power > most else (best, most)
        return best

    def _sensitivity(
        self,
        calibration: ScoredRows,
        trust: Trust,
        rule: Rule,
        threshold: float,
        delta: float,
        rng: np.random.Generator,
    ) -> float | None:
        """By what factor the odds of being missing, as estimated, may be wrong.

        The largest Γ at which the rule, with weights between those of odds/Γ and of
        odds·Γ, would have chosen this threshold or a smaller one.
        """
        if trust.model is None:
            return None
        scores = trust.score(calibration)
        # Sorted once, so that the sample of every factor need not be.
        order = np.argsort(-scores)
        probability = trust.model.missing_probability(calibration.rows)
        reached = ScoredRows(calibration.rows, scores[order], probability[order])

        def holds(factor: float) -> bool:
            sample = reached.sample(trust.widened(factor))
            chosen = rule.select(sample, self.alpha, delta, deepcopy(rng))
            return chosen.threshold is not None and chosen.threshold <= threshold

        return largest_factor(holds)


def largest_factor(holds: Callable[[float], bool]) -> float:
    """The largest factor ≥ 1 up to which a claim holds; infinite beyond 1024."""
    low, high = 1.0, 2.0
    while holds(high):
        low, high = high, 2.0 * high
        if low >= LARGEST_FACTOR:
            return np.inf
    while high - low > FACTOR_PRECISION * low:
        middle = (low * high) ** 0.5
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
