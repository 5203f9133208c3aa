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
    QueryBudget,
    expected_power,
    query_budget,
    required_calibration_rows,
)
from missratio.evaluation import (
    NPROC,
    NPROCComparison,
    NPROCDisplay,
    compare_np_roc,
    error_scorer,
    exact_interval,
    np_roc,
    power,
    power_interval,
    type_i_error,
    type_i_interval,
    type_ii_error,
)
from missratio.learning import (
    GoodnessOfFit,
    LearnedMissingness,
    MissingnessDisplay,
    QueryPlan,
    Revealed,
    learn_missingness,
    plan_queries,
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
from missratio.report import Report, build_report
from missratio.threshold import CalibrationSample
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
    "NPROC",
    "Basis",
    "BatchFit",
    "CalibrationSample",
    "Certificate",
    "Combination",
    "Divergence",
    "Expectations",
    "FDivergenceRatio",
    "FunctionMissingness",
    "GaussianBasis",
    "GoodnessOfFit",
    "LearnedMissingness",
    "LinearBasis",
    "LogisticMissingness",
    "Missingness",
    "MissingnessDisplay",
    "NPROCComparison",
    "NPROCDisplay",
    "NaiveBayesRatio",
    "NeymanPearsonClassifier",
    "NoFiniteOptimumWarning",
    "Objective",
    "ObjectiveRatio",
    "PolynomialBasis",
    "QueryBudget",
    "QueryPlan",
    "Report",
    "Revealed",
    "SampleSize",
    "StepMissingness",
    "Term",
    "TransformerBasis",
    "WeightConcentrationWarning",
    "build_report",
    "compare_np_roc",
    "corrupt",
    "density_ratio",
    "effective_sample_size",
    "error_scorer",
    "exact_interval",
    "expected_power",
    "fit_batch",
    "inverse_probability_weights",
    "learn_missingness",
    "np_roc",
    "plan_queries",
    "power",
    "power_interval",
    "query_budget",
    "required_calibration_rows",
    "type_i_error",
    "type_i_interval",
    "type_ii_error",
    "worst_case_sample_size",
]
