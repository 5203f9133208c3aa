"""How far a fitted ratio may be off: standard errors, and intervals on predictions."""

from missratio.uncertainty.intervals import (
    RatioUncertainty,
    UnreliableIntervalWarning,
    ratio_uncertainty,
)

__all__ = ["RatioUncertainty", "UnreliableIntervalWarning", "ratio_uncertainty"]
