"""Density-ratio estimators: missingness × basis × objective × solver, composed."""

from missratio.exceptions import NoFiniteOptimumWarning
from missratio.ratio._base import (
    BaseRatio,
    check_choice,
    check_no_infinity,
    two_classes,
)
from missratio.ratio._batch import BatchFit, fit_batch
from missratio.ratio._joint import JointRatio
from missratio.ratio._kernel_ratio import KernelRatio
from missratio.ratio._kliep import KLIEP
from missratio.ratio._kliep_cv import KLIEPCV
from missratio.ratio._naive_bayes import NaiveBayesRatio
from missratio.ratio._objective_ratio import FDivergenceRatio, ObjectiveRatio
from missratio.ratio._optimum import (
    Factor,
    Optimum,
    basis_features,
    feature_names,
    joint_ratio,
    missingness_of,
    optimum,
)
from missratio.ratio._problem import RatioProblem, WeightedMean
from missratio.ratio._two_samples import density_ratio

__all__ = [
    "KLIEP",
    "KLIEPCV",
    "BaseRatio",
    "BatchFit",
    "FDivergenceRatio",
    "Factor",
    "JointRatio",
    "KernelRatio",
    "NaiveBayesRatio",
    "NoFiniteOptimumWarning",
    "ObjectiveRatio",
    "Optimum",
    "RatioProblem",
    "WeightedMean",
    "basis_features",
    "check_choice",
    "check_no_infinity",
    "density_ratio",
    "feature_names",
    "fit_batch",
    "joint_ratio",
    "missingness_of",
    "optimum",
    "two_classes",
]
