"""From scored rows of the controlled class to a certificate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from missratio._base.typing import FloatArray
from missratio.classifier._calibration import Calibration
from missratio.classifier._certificate import Certificate, assumptions
from missratio.classifier._planner import infeasible
from missratio.classifier._rounding import measure_rounding
from missratio.classifier._target import TargetRatio
from missratio.classifier._trust import ScoredRows, Trust
from missratio.classifier._worst import worst_model
from missratio.learning import LearnedMissingness
from missratio.missingness import Missingness
from missratio.ratio import check_choice
from missratio.threshold import (
    CountingRule,
    LookUpRule,
    Rule,
    TargetRule,
    TunedBettingRule,
    make_rule,
)

# Odds that are wrong by more are as good as unknown.
LARGEST_FACTOR = 1024.0
# Which shares of the observed training rows a cap may leave.
CAP_LEVELS = (0.25, 0.5, 0.75, 0.9, 0.98, 1.0)
# γ/λ of bets that a learned φ is taken at its worst for, beside α.
RATIOS = (0.4,)
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
    controlled, other : object
        The controlled class, and the other.
    caps : bool
        Whether rows of large weight may be given up for a smaller bound, by giving
        them the controlled class.
    cap : float or None
        A cap that was chosen before.
    target : TargetRatio or None
        Of the population that the guarantee is for, where that is another.
    """

    alpha: float
    delta: float
    missingness_delta: float | None
    odds_factor: float
    rule: str | Rule
    deployment: str
    on_infeasible: str
    controlled: Any
    other: Any
    caps: bool = True
    target: TargetRatio | None = None
    cap: float | None = None

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
        delta = self.delta - self._missingness_part(model)
        trust, how = self._choose(model, training, other, len(rows.scores))
        sample = rows.sample(trust)
        rule = self._rule(how, trust, training, looked_up=sample.lookups is not None)
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
        certificate = replace(self._nothing_certified(calibration, model), rule=name)
        if threshold is not None:
            certificate = replace(
                certificate,
                threshold=threshold,
                estimated_error=sample.estimated_error(threshold),
                error_bound=error_bound,
                certified=True,
                sensitivity=factor,
                target_factor=self._target_factor(rows, calibration, threshold),
            )
        return certificate, calibration

    def _nothing_certified(
        self, calibration: Calibration, model: Missingness | None
    ) -> Certificate:
        """The certificate of a classifier that gives all to the controlled class."""
        sample, lookups = calibration.sample, calibration.sample.lookups
        return Certificate(
            alpha=self.alpha,
            delta=self.delta,
            rule=calibration.rule.name,
            controlled_class=self.controlled,
            other_class=self.other,
            deployment=self.deployment,
            rows=sample.n_rows,
            observed=sample.n_known,
            effective_rows=sample.effective_rows,
            threshold=np.inf,
            estimated_error=0.0,
            error_bound=0.0,
            certified=False,
            assumptions=assumptions(
                self.controlled,
                self.deployment,
                model,
                self.odds_factor,
                calibration.trust.cap,
                looked_up=lookups is not None,
                target=self.target,
            ),
            target_rows=None if self.target is None else self.target.rows,
            missingness_delta=self._missingness_part(model),
            looked_up=0 if lookups is None else int(lookups.drawn.sum()),
            not_found=0 if lookups is None else lookups.not_found,
        )

    def _missingness_part(self, model: Missingness | None) -> float:
        """The part of δ that a learned φ may be out of its region with."""
        if model is None or not model.learned:
            return 0.0
        part = self.missingness_delta
        return self.delta / 2.0 if part is None else part

    def _rule(
        self,
        rule: str | Rule,
        trust: Trust,
        training: ScoredRows | None,
        *,
        looked_up: bool = False,
    ) -> Rule:
        if looked_up and isinstance(rule, str):
            check_choice("rule", rule, ("auto", LookUpRule.name))
            return LookUpRule()
        known = None
        is_complete = trust.model is None and trust.target is None
        if training is not None and not is_complete:
            known = training.sample(trust)
        return make_rule(rule, training=known, complete=is_complete)

    def _target_rule(self) -> Rule:
        """The rule for weights that may not average to one."""
        if isinstance(self.rule, Rule):
            return self.rule
        check_choice("rule", self.rule, ("auto", TargetRule.name))
        return TargetRule()

    def _choose(
        self,
        model: Missingness | None,
        training: ScoredRows | None,
        other: Callable[[], ScoredRows] | None,
        n_rows: int,
    ) -> tuple[Trust, str | Rule]:
        """What the weights are taken for, and the rule: what promises most power.

        Judged by training rows, so before any calibration row is seen: caps on the
        weights, and for a learned φ its band, or the worst φ for a rule.
        """
        delta = self._missingness_part(model) or None
        trust = Trust(model, delta, self.odds_factor, target=self.target)
        if training is None or (model is None and self.target is None):
            return trust, self.rule
        how = self.rule if self.target is None else self._target_rule()
        choices = self._capped(trust, how, training, other is not None)
        for worst, rule in self._worst(trust, training):
            more = self._capped(worst, rule, training, other is not None)
            # Without a bound there is one bet only, γ = λ, whose worst φ is another.
            choices += [c for c in more if c[0].bound(training.rows.shape[1])]
        if other is None or len(choices) == 1:
            return choices[0]
        detected, left = other(), self.delta - (delta or 0.0)
        promised = [
            self._promised_power(*choice, training, detected, n_rows, left)
            for choice in choices
        ]
        return choices[int(np.argmax(promised))]

    def _capped(
        self, trust: Trust, rule: str | Rule, training: ScoredRows, several: bool
    ) -> list[tuple[Trust, str | Rule]]:
        """The same with caps on the weights, or without; the mildest of them first."""
        if self.cap is not None:
            return [(replace(trust, cap=self.cap), rule)]
        uses = make_rule(rule).bound
        known = trust.bound(training.rows.shape[1])
        heaviest = trust.edges(training.rows)[1]
        heaviest = heaviest[heaviest > 0.0]
        if uses == "unused" or not len(heaviest) or not self.caps:
            return [(trust, rule)]
        caps = np.unique(np.quantile(heaviest, CAP_LEVELS))[::-1]
        if known is not None:
            caps = caps[caps < known] if uses != "given" else caps[:0]
        capped = [(replace(trust, cap=cap), rule) for cap in caps.tolist()]
        if capped and not several:
            # Nobody can say what it costs to give rows up: only where there's no bound.
            return capped[:1] if known is None else [(trust, rule)]
        if capped and known is None and uses != "used":
            return capped
        return [(trust, rule), *capped]

    def choose_cap(
        self,
        model: Missingness,
        training: ScoredRows,
        other: ScoredRows,
        n_rows: int,
    ) -> Trust | None:
        """The cap that promises most power, where it has to be known beforehand.

        Parameters
        ----------
        model : Missingness
        training : ScoredRows
            Rows of the controlled class that take no part in calibration.
        other : ScoredRows
            Rows of other classes, to be told from these.
        n_rows : int
            Calibration rows to come.

        Returns
        -------
        Trust or None
            With its cap; None where no cap does better.
        """
        part = self._missingness_part(model)
        trust = Trust(model, part or None, self.odds_factor)
        if not trust.weights(training.rows).any():
            return None
        choices = self._capped(trust, self.rule, training, several=True)
        promised = [
            self._promised_power(*each, training, other, n_rows, self.delta - part)
            for each in choices
        ]
        best = choices[int(np.argmax(promised))][0]
        return None if best.cap is None else best

    def expected_error(
        self, model: Missingness, training: ScoredRows, n_rows: int
    ) -> Callable[[float], float] | None:
        """The error that should be certified at a level; None if the rule can't tell.

        Parameters
        ----------
        model : Missingness
        training : ScoredRows
            Rows of the controlled class that take no part in calibration.
        n_rows : int
            Calibration rows to come.
        """
        part = self._missingness_part(model)
        trust = Trust(model, part or None, self.odds_factor, self.cap)
        sample = training.sample(trust)
        if not sample.n_observed:
            return None
        rule, left = self._rule(self.rule, trust, training), self.delta - part

        @cache
        def error(level: float) -> float:
            root = rule.expected_root(n_rows, sample.bound, level, left)
            return max(root or 0.0, 0.0) ** 2

        return (
            None
            if rule.expected_root(n_rows, sample.bound, self.alpha, left) is None
            else error
        )

    def _worst(
        self, trust: Trust, training: ScoredRows
    ) -> list[tuple[Trust, str | Rule]]:
        """For a learned φ, the worst that it may be for rules that allow for it so."""
        model = trust.model
        if not isinstance(model, LearnedMissingness) or trust.delta is None:
            return []
        if trust.target is not None:
            return []
        rules: dict[float, Rule] = {}
        if self.rule in ("auto", "counting"):
            rules[0.0] = CountingRule()
        if self.rule in ("auto", "tuned-betting"):
            rules |= {r: TunedBettingRule(ratio=r) for r in (self.alpha, *RATIOS)}
        sample = training.sample(replace(trust, delta=None))
        critical = sample.threshold(sample.tail_of(self.alpha))
        in_tail = (training.scores > critical).astype(np.float64)
        found: list[tuple[Trust, str | Rule]] = []
        for ratio, rule in rules.items():
            worst = worst_model(model, trust.delta, training.rows, in_tail, ratio)
            if worst is not None:
                found.append((Trust(worst, None, self.odds_factor), rule))
        return found

    def _promised_power(
        self,
        trust: Trust,
        how: str | Rule,
        training: ScoredRows,
        other: ScoredRows,
        n_rows: int,
        delta: float,
    ) -> float:
        """The power that training rows promise, if they were the calibration rows.

        At the threshold that they certify, and where the rule can tell, on average with
        that at the error which so many calibration rows should certify.
        """
        sample, rule = training.sample(trust), self._rule(how, trust, training)
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
        """By what factor the odds of being missing, as calibrated with, may be wrong.

        The largest Γ at which the rule, with weights between those of odds/Γ and of
        odds·Γ, would have chosen this threshold or a smaller one.
        """
        trust = calibration.trust
        if trust.model is None or trust.target is not None:
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

    def _target_factor(
        self, rows: ScoredRows, calibration: Calibration, threshold: float
    ) -> float | None:
        """By what factor the target's density ratio may be wrong, either way."""
        trust, target = calibration.trust, calibration.trust.target
        if target is None or trust.cap is None:
            return None
        cap, start = trust.cap, target.factor

        def holds(factor: float) -> bool:
            wider = replace(
                trust, target=replace(target, factor=factor), cap=cap * factor / start
            )
            widened = replace(calibration, sample=rows.sample(wider))
            chosen = widened.select([self.alpha])[0].threshold
            return chosen is not None and chosen <= threshold

        return largest_factor(holds, start)


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
