"""Density-ratio estimators: missingness × basis × objective × solver, composed."""

from missratio.ratio._base import (
    BaseRatio,
    NoFiniteOptimumWarning,
    check_choice,
    check_no_infinity,
    two_classes,
)
from missratio.ratio._batch import BatchFit, fit_batch
from missratio.ratio._kliep import KLIEP
from missratio.ratio._kliep_cv import KLIEPCV
from missratio.ratio._naive_bayes import NaiveBayesRatio
from missratio.ratio._objective_ratio import FDivergenceRatio, ObjectiveRatio
from missratio.ratio._rows import check_missingness, class_model
from missratio.ratio._two_samples import density_ratio

__all__ = [
    "KLIEP",
    "KLIEPCV",
    "BaseRatio",
    "BatchFit",
    "FDivergenceRatio",
    "NaiveBayesRatio",
    "NoFiniteOptimumWarning",
    "ObjectiveRatio",
    "check_choice",
    "check_missingness",
    "check_no_infinity",
    "class_model",
    "density_ratio",
    "fit_batch",
    "two_classes",
]
