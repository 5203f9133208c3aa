"""How far a fitted ratio may be off: standard errors, and intervals on predictions."""

from missratio.uncertainty.intervals import RatioUncertainty as RatioUncertainty
from missratio.uncertainty.intervals import (
    UnreliableIntervalWarning as UnreliableIntervalWarning,
)
from missratio.uncertainty.intervals import ratio_uncertainty as ratio_uncertainty
