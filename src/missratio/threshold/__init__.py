"""Thresholds with a certificate: P(type I error > α) ≤ δ, on complete and MNAR rows."""

from missratio.threshold._rules import (
    FIXED_RULES,
    RULES,
    AutoRule,
    BernsteinRule,
    PaperRule,
    Rule,
    Selection,
    TunedBettingRule,
    binomial_tail,
)
from missratio.threshold._sample import CalibrationSample

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
