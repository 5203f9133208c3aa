"""Which rule to take, and rules by their names."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from operator import itemgetter

from missratio._base.hints import check_probability, did_you_mean
from missratio._base.storable import storable
from missratio.threshold import betting, rules
from missratio.threshold.sample import CalibrationSample


@storable()
@dataclass(eq=False, repr=False)
class AutoRule(rules.Rule):
    """The rule that should certify the largest error, chosen before any score is seen.

    Complete rows: the binomial rule. Otherwise thinning, counting or tuned betting,
    whichever is expected to do best, judged by n, the bound on φ and training rows: the
    mean root of the type I error that it certifies counts, which power grows about as.
    Where φ has no bound: tuned betting, or flipped betting without training rows.

    Parameters
    ----------
    training : CalibrationSample, optional
    complete : bool, default=False
        Whether the calibration rows can't be missing.
    """

    name = "auto"
    bound = "used"

    training: CalibrationSample | None = None
    complete: bool = field(default=False, kw_only=True)

    def prepare(
        self, training: CalibrationSample | None, *, complete: bool
    ) -> rules.Rule:
        """Judge by these training rows."""
        return AutoRule(training, complete=complete)

    def choose(
        self, n_rows: int, bound: float | None, alpha: float, delta: float
    ) -> tuple[rules.Rule, float]:
        """The rule for a calibration sample of this size and bound.

        Returns
        -------
        rule : Rule
        root_error : float
            The mean of √μ, μ the error that it should certify.
        """
        if self.complete:
            binomial = rules.BinomialRule()
            return binomial, binomial.expected_root(n_rows, 1.0, alpha, delta)
        expected: dict[rules.Rule, float] = {}
        kept = tail = 1.0
        if self.training is not None and self.training.n_observed:
            tuned = betting.tune_bet(self.training, alpha, delta, n_rows, bound)
            kept, tail = tuned.kept, tuned.tail
            expected[betting.TunedBettingRule(self.training)] = tuned.root_error
        if bound is not None:
            drawing = {rules.ThinningRule(): kept, rules.CountingRule(): 1.0}
            for rule, share in drawing.items():
                root = rule.expected_root(n_rows, bound, alpha, delta) or 0.0
                expected[rule] = root * math.sqrt(share / tail)
        flipped = betting.FlippedBettingRule(), 0.0
        return max(expected.items(), key=itemgetter(1), default=flipped)

    def select(
        self, sample: CalibrationSample, alpha: float, delta: float
    ) -> rules.Selection:
        """Choose a rule, then let it choose."""
        rule, _ = self.choose(sample.n_rows, sample.bound, alpha, delta)
        return rule.select(sample, alpha, delta)

    def expected_root(
        self, n_rows: int, bound: float | None, alpha: float, delta: float
    ) -> float:
        """That of the rule that it would choose."""
        return self.choose(n_rows, bound, alpha, delta)[1]

    def least_rows(self, alpha: float, delta: float, bound: float) -> int | None:
        """What counting needs, or the binomial rule: these can't fail beyond that."""
        return rules.CountingRule().least_rows(alpha, delta, bound)


RULES: dict[str, type[rules.Rule]] = {
    rule.name: rule
    for rule in (
        AutoRule,
        rules.BinomialRule,
        rules.PaperRule,
        rules.BernsteinRule,
        rules.ThinningRule,
        rules.CountingRule,
        betting.BettingRule,
        betting.FlippedBettingRule,
        betting.TunedBettingRule,
    )
}
"""Every rule by its name."""


def make_rule(
    rule: str | rules.Rule,
    *,
    training: CalibrationSample | None = None,
    complete: bool = False,
) -> rules.Rule:
    """A rule by its name, or a rule of one's own, ready to choose a threshold.

    Parameters
    ----------
    rule : str or Rule
        One of the names in `RULES`, or a rule.
    training : CalibrationSample, optional
        Scored rows that take no part in calibration, for the rules that learn from
        them.
    complete : bool, default=False
        Whether calibration rows can't be missing.
    """
    if isinstance(rule, str) and rule in RULES:
        rule = RULES[rule]()
    if not isinstance(rule, rules.Rule):
        hint = did_you_mean(str(rule), RULES)
        raise ValueError(
            f"rule must be one of {list(RULES)}, or a Rule: got {rule!r}.{hint}"
        )
    return rule.prepare(training, complete=complete)


def check_levels(alpha: float, delta: float) -> None:
    """Refuse levels that are not probabilities strictly between 0 and 1."""
    check_probability("alpha", alpha)
    check_probability("delta", delta)
