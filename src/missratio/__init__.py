"""Density ratios and Neyman-Pearson classifiers from data missing not at random."""

from importlib.metadata import version

from missratio.basis import (
    Basis,
    GaussianBasis,
    LinearBasis,
    PolynomialBasis,
    TransformerBasis,
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
    FDivergenceRatio,
    NoFiniteOptimumWarning,
    ObjectiveRatio,
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
    "Combination",
    "Divergence",
    "Expectations",
    "FDivergenceRatio",
    "FunctionMissingness",
    "GaussianBasis",
    "LinearBasis",
    "LogisticMissingness",
    "Missingness",
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
    "effective_sample_size",
    "inverse_probability_weights",
    "worst_case_sample_size",
]
