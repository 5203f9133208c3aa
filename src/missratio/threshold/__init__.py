"""Thresholds with a certificate: P(type I error > α) ≤ δ, on complete and MNAR rows."""

from missratio.threshold._auto import RULES, AutoRule, check_levels, make_rule
from missratio.threshold._betting import (
    BettingRule,
    FlippedBettingRule,
    TargetRule,
    TunedBettingRule,
)
from missratio.threshold._drawing import CountingRule, ThinningRule
from missratio.threshold._rules import (
    BernsteinRule,
    BinomialRule,
    HoeffdingBentkusRule,
    PaperRule,
    Rule,
    Selection,
    binomial_bound,
    binomial_tail,
    fewest,
)
from missratio.threshold._sample import CalibrationSample, LookUps
from missratio.threshold._strata import LookUpRule, fewest_look_ups, looked_up_sample

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
