"""Density-ratio estimators: missingness × basis × objective × solver, composed."""

from missratio.exceptions import NoFiniteOptimumWarning
from missratio.ratio._base import (
    BaseRatio,
    check_choice,
    check_no_infinity,
    two_classes,
)
from missratio.ratio._batch import BatchFit, fit_batch
from missratio.ratio._bumps import Bumps, gaussian
from missratio.ratio._checks import check_columns, stack_samples
from missratio.ratio._classifier_ratio import ClassifierRatio, weight_parameter
from missratio.ratio._complete import TwoTables, WeightedTable
from missratio.ratio._joint import JointRatio
from missratio.ratio._kernel_ratio import KernelName, KernelRatio
from missratio.ratio._kliep import KLIEP
from missratio.ratio._kliep_cv import KLIEPCV
from missratio.ratio._l1_path import L1Path, l1_path
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
from missratio.ratio._reading import MissingnessParameter
from missratio.ratio._subspace import SubspaceRatio
from missratio.ratio._two_samples import density_ratio

__all__ = [
    "KLIEP",
    "KLIEPCV",
    "BaseRatio",
    "BatchFit",
    "Bumps",
    "ClassifierRatio",
    "FDivergenceRatio",
    "Factor",
    "JointRatio",
    "KernelName",
    "KernelRatio",
    "L1Path",
    "MissingnessParameter",
    "NaiveBayesRatio",
    "NoFiniteOptimumWarning",
    "ObjectiveRatio",
    "Optimum",
    "RatioProblem",
    "SubspaceRatio",
    "TwoTables",
    "WeightedMean",
    "WeightedTable",
    "basis_features",
    "check_choice",
    "check_columns",
    "check_no_infinity",
    "density_ratio",
    "feature_names",
    "fit_batch",
    "gaussian",
    "joint_ratio",
    "l1_path",
    "missingness_of",
    "optimum",
    "stack_samples",
    "two_classes",
    "weight_parameter",
]
