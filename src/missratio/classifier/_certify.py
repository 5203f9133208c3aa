"""From scored rows of the controlled class to a certificate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from missratio._typing import FloatArray
from missratio.classifier._calibration import Calibration
from missratio.classifier._certificate import Certificate, assumptions
from missratio.classifier._planner import infeasible
from missratio.classifier._rounding import measure_rounding
from missratio.classifier._trust import ScoredRows, Trust
from missratio.missingness import Missingness
from missratio.threshold import Rule, make_rule

# Odds that are wrong by more are as good as unknown.
LARGEST_FACTOR = 1024.0
# Which shares of the observed training rows a cap may leave.
CAP_LEVELS = (0.25, 0.5, 0.75, 0.9, 0.98, 1.0)
FACTOR_PRECISION = 1e-3
TIE = 1e-6


@dataclass(frozen=True, slots=True)
class Promise:
    """What a threshold is to guarantee, and how it is chosen.

    Parameters
    ----------
    alpha, delta : float
    missingness_delta : float or None
        The part of δ that a learned φ may be out of its band with; None for half.
    odds_factor : float
    rule : str or Rule
    deployment : {"complete", "as-observed"}
    on_infeasible : {"raise", "reject_all"}
    controlled : object
        The controlled class.
    """

    alpha: float
    delta: float
    missingness_delta: float | None
    odds_factor: float
    rule: str | Rule
    deployment: str
    on_infeasible: str
    controlled: Any

    def certify(
        self,
        rows: ScoredRows,
        training: ScoredRows | None,
        other: Callable[[], ScoredRows] | None,
        model: Missingness | None,
        score: Callable[[Any], FloatArray],
    ) -> tuple[Certificate, Calibration]:
        """Choose a threshold and say what it guarantees.

        Parameters
        ----------
        rows : ScoredRows
            Calibration rows, of the controlled class.
        training : ScoredRows or None
            Rows of the controlled class that take no part in calibration, to prepare
            the rule with.
        other : callable or None
            Gives rows of the other class, where a cap has to be chosen by them.
        model : Missingness or None
            Why rows are missing; None where none can be.
        score : callable
            Gives the scores of rows, to see how they are rounded.
        """
        trust, delta = self._trust(model)
        trust = self._with_cap(trust, training, other, len(rows.scores), delta)
        sample, rule = rows.sample(trust), self._rule(trust, training)
        calibration = Calibration(sample, trust, rule, delta)
        name, threshold, error_bound, factor = rule.name, None, 0.0, None
        if sample.n_observed:
            chosen = calibration.select([self.alpha])[0]
            name, threshold = chosen.rule, chosen.threshold
            if threshold is not None:
                rounding = measure_rounding(score, rows.rows, rows.scores, threshold)
                calibration = replace(calibration, rounding=rounding)
                threshold = rounding.moved(threshold)
                error_bound = chosen.error_bound
                factor = self._sensitivity(rows, calibration, threshold)
        if threshold is None and self.on_infeasible == "raise":
            raise infeasible(calibration, self.controlled, self.alpha, name)
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
            estimated_error=(
                0.0 if threshold is None else sample.estimated_error(threshold)
            ),
            error_bound=error_bound,
            certified=threshold is not None,
            assumptions=assumptions(
                self.controlled, self.deployment, model, self.odds_factor, trust.cap
            ),
            missingness_delta=trust.delta or 0.0,
            sensitivity=factor,
        )
        return certificate, calibration

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
        n_rows: int,
        delta: float,
    ) -> Trust:
        """A cap on the weights, or none: the one that promises most power.

        Judged by training rows, so before any calibration row is seen.
        """
        if training is None or trust.model is None:
            return trust
        uses = make_rule(self.rule).bound
        known = trust.bound(training.rows.shape[1])
        heaviest = trust.edges(training.rows)[1]
        heaviest = heaviest[heaviest > 0.0]
        if uses == "unused" or not len(heaviest):
            return trust
        caps = np.unique(np.quantile(heaviest, CAP_LEVELS))[::-1]
        if known is not None:
            caps = caps[caps < known] if uses != "given" else caps[:0]
        capped = [replace(trust, cap=cap) for cap in caps.tolist()]
        if other is None or not capped:
            return capped[0] if capped else trust
        candidates = [trust, *capped] if known is not None or uses == "used" else capped
        detected = other()
        promised = [
            self._promised_power(candidate, training, detected, n_rows, delta)
            for candidate in candidates
        ]
        return candidates[int(np.argmax(promised))]

    def _promised_power(
        self,
        trust: Trust,
        training: ScoredRows,
        other: ScoredRows,
        n_rows: int,
        delta: float,
    ) -> float:
        """The power that training rows promise, if they were the calibration rows.

        At the threshold that they certify, and where the rule can tell, on average with
        that at the error which so many calibration rows should certify.
        """
        sample, rule = training.sample(trust), self._rule(trust, training)
        found = rule.select(sample, self.alpha, delta).threshold
        thresholds = [found]
        root = rule.expected_root(n_rows, sample.bound, self.alpha, delta)
        if root is not None:
            expected = sample.threshold(sample.tail_of(root**2))
            thresholds.append(expected if root > 0.0 and sample.n_scored else None)
        scores = trust.score(other)
        powers = [-1.0 if t is None else float(np.mean(scores > t)) for t in thresholds]
        # Of caps that promise the same power, the one that certifies the larger error.
        return float(np.mean(powers)) + TIE * (root or 0.0)

    def _sensitivity(
        self, rows: ScoredRows, calibration: Calibration, threshold: float
    ) -> float | None:
        """By what factor the odds of being missing, as estimated, may be wrong.

        The largest Γ at which the rule, with weights between those of odds/Γ and of
        odds·Γ, would have chosen this threshold or a smaller one.
        """
        trust = calibration.trust
        if trust.model is None:
            return None
        scores = trust.score(rows)
        # Sorted once, so that the sample of every factor need not be.
        order = np.argsort(-scores)
        probability = trust.model.missing_probability(rows.rows)[order]
        assert rows.draws is not None
        reached = ScoredRows(rows.rows, scores[order], rows.draws[order], probability)

        def holds(factor: float) -> bool:
            widened = replace(calibration, sample=reached.sample(trust.widened(factor)))
            chosen = widened.select([self.alpha])[0].threshold
            return chosen is not None and chosen <= threshold

        return largest_factor(holds, self.odds_factor)


def largest_factor(holds: Callable[[float], bool], start: float = 1.0) -> float:
    """The largest factor up to which a claim holds; infinite beyond 1024.

    Parameters
    ----------
    holds : callable
    start : float
        A factor at which it is known to.
    """
    low, high = start, 2.0 * start
    while holds(high):
        low, high = high, 2.0 * high
        if low >= LARGEST_FACTOR:
            return np.inf
    while high - low > FACTOR_PRECISION * low:
        middle = (low * high) ** 0.5
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
