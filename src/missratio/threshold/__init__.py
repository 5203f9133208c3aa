"""Thresholds with a certificate: P(type I error > α) ≤ δ, on complete and MNAR rows."""

from missratio.threshold._rules import (
    BernsteinRule,
    PaperRule,
    Rule,
    Selection,
    binomial_tail,
)
from missratio.threshold._sample import CalibrationSample, LookUps
from missratio.threshold._strata import LookUpRule, looked_up_sample
from missratio.threshold._weighted import (
    FIXED_RULES,
    RULES,
    AutoRule,
    TunedBettingRule,
)

__all__ = [
    "FIXED_RULES",
    "RULES",
    "AutoRule",
    "BernsteinRule",
    "CalibrationSample",
    "LookUpRule",
    "LookUps",
    "PaperRule",
    "Rule",
    "Selection",
    "TunedBettingRule",
    "binomial_tail",
    "looked_up_sample",
]
