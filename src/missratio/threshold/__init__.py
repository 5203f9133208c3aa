"""Thresholds with a certificate: P(type I error > α) ≤ δ, on complete and MNAR rows."""

from missratio.threshold.auto import RULES, AutoRule, check_levels, make_rule
from missratio.threshold.betting import (
    BettingRule,
    FlippedBettingRule,
    TargetRule,
    TunedBettingRule,
)
from missratio.threshold.look_ups import LookUpRule, fewest_look_ups, looked_up_sample
from missratio.threshold.rules import (
    BernsteinRule,
    BinomialRule,
    CountingRule,
    HoeffdingBentkusRule,
    PaperRule,
    Rule,
    Selection,
    ThinningRule,
    binomial_bound,
    binomial_tail,
    fewest,
)
from missratio.threshold.sample import CalibrationSample, LookUps

__all__ = [
    "RULES",
    "AutoRule",
    "BernsteinRule",
    "BettingRule",
    "BinomialRule",
    "CalibrationSample",
    "CountingRule",
    "FlippedBettingRule",
    "HoeffdingBentkusRule",
    "LookUpRule",
    "LookUps",
    "PaperRule",
    "Rule",
    "Selection",
    "TargetRule",
    "ThinningRule",
    "TunedBettingRule",
    "binomial_bound",
    "binomial_tail",
    "check_levels",
    "fewest",
    "fewest_look_ups",
    "looked_up_sample",
    "make_rule",
]
