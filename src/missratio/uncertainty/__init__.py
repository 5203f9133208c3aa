"""How far a fitted ratio may be off: standard errors, and intervals on predictions."""

from missratio.uncertainty._result import RatioUncertainty, ratio_uncertainty

__all__ = ["RatioUncertainty", "ratio_uncertainty"]
