"""Thresholds with a certificate: P(type I error > α) ≤ δ, on complete and MNAR rows."""

from missratio.threshold._rules import (
    BernsteinRule,
    PaperRule,
    Rule,
    Selection,
    binomial_tail,
)
from missratio.threshold._sample import CalibrationSample
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
    "PaperRule",
    "Rule",
    "Selection",
    "TunedBettingRule",
    "binomial_tail",
]
