"""Density ratios and Neyman-Pearson classifiers from data missing not at random."""

from importlib.metadata import version

from missratio.basis import (
    Basis,
    GaussianBasis,
    LinearBasis,
    PolynomialBasis,
    TransformerBasis,
)
from missratio.classifier import (
    Certificate,
    NeymanPearsonClassifier,
    expected_power,
    required_calibration_rows,
)
from missratio.missingness import (
    FunctionMissingness,
    LogisticMissingness,
    Missingness,
    StepMissingness,
    corrupt,
)
from missratio.objective import (
    Combination,
    Divergence,
    Expectations,
    Objective,
    Term,
)
from missratio.ratio import (
    KLIEP,
    BatchFit,
    FDivergenceRatio,
    NaiveBayesRatio,
    NoFiniteOptimumWarning,
    ObjectiveRatio,
    density_ratio,
    fit_batch,
)
from missratio.weights import (
    SampleSize,
    WeightConcentrationWarning,
    effective_sample_size,
    inverse_probability_weights,
    worst_case_sample_size,
)

__version__ = version("missratio")

__all__ = [
    "KLIEP",
    "Basis",
    "BatchFit",
    "Certificate",
    "Combination",
    "Divergence",
    "Expectations",
    "FDivergenceRatio",
    "FunctionMissingness",
    "GaussianBasis",
    "LinearBasis",
    "LogisticMissingness",
    "Missingness",
    "NaiveBayesRatio",
    "NeymanPearsonClassifier",
    "NoFiniteOptimumWarning",
    "Objective",
    "ObjectiveRatio",
    "PolynomialBasis",
    "SampleSize",
    "StepMissingness",
    "Term",
    "TransformerBasis",
    "WeightConcentrationWarning",
    "corrupt",
    "density_ratio",
    "effective_sample_size",
    "expected_power",
    "fit_batch",
    "inverse_probability_weights",
    "required_calibration_rows",
    "worst_case_sample_size",
]
