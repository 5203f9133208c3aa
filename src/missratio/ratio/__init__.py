"""Density-ratio estimators: missingness × basis × objective × solver, composed."""

from missratio.ratio._base import BaseRatio, NoFiniteOptimumWarning
from missratio.ratio._kliep import KLIEP
from missratio.ratio._objective_ratio import FDivergenceRatio, ObjectiveRatio

__all__ = [
    "KLIEP",
    "BaseRatio",
    "FDivergenceRatio",
    "NoFiniteOptimumWarning",
    "ObjectiveRatio",
]
