"""How far a fitted ratio may be off: standard errors, and intervals on predictions."""

from missratio.uncertainty._intervals import (
    RatioUncertainty,
    UnreliableIntervalWarning,
)
from missratio.uncertainty._result import ratio_uncertainty

__all__ = ["RatioUncertainty", "UnreliableIntervalWarning", "ratio_uncertainty"]
