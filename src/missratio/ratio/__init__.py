"""Density-ratio estimators: missingness × basis × objective × solver, composed."""

from missratio._base.hints import check_choice
from missratio.exceptions import NoFiniteOptimumWarning
from missratio.ratio.base import (
    MissingnessParameter,
    Two,
    two_classes,
)
from missratio.ratio.batch import BatchFit, fit_batch
from missratio.ratio.choice import Ratio
from missratio.ratio.complete import (
    ClassifierRatio,
    WeightedTable,
    weight_parameter,
)
from missratio.ratio.cv import KLIEPCV
from missratio.ratio.fit import (
    Factor,
    LinearRatio,
    basis_features,
    check_columns,
    feature_names,
    missingness_of,
    optimum,
    stack_samples,
)
from missratio.ratio.kernel import Bumps, KernelName, KernelRatio, gaussian
from missratio.ratio.kliep import (
    KLIEP,
    FDivergenceRatio,
    NaiveBayesRatio,
    ObjectiveRatio,
    density_ratio,
)
from missratio.ratio.problem import WeightedMean, pair_moments

__all__ = [
    "KLIEP",
    "KLIEPCV",
    "BatchFit",
    "Bumps",
    "ClassifierRatio",
    "FDivergenceRatio",
    "Factor",
    "KernelName",
    "KernelRatio",
    "LinearRatio",
    "MissingnessParameter",
    "NaiveBayesRatio",
    "NoFiniteOptimumWarning",
    "ObjectiveRatio",
    "Ratio",
    "Two",
    "WeightedMean",
    "WeightedTable",
    "basis_features",
    "check_choice",
    "check_columns",
    "density_ratio",
    "feature_names",
    "fit_batch",
    "gaussian",
    "missingness_of",
    "optimum",
    "pair_moments",
    "stack_samples",
    "two_classes",
    "weight_parameter",
]
