"""Every public name and where it lives; loaded when first used."""

from .basis import (
    Basis,
    GaussianBasis,
    LinearBasis,
    PolynomialBasis,
    TransformerBasis,
)
from .classifier import (
    Certificate,
    NeymanPearsonClassifier,
    expected_power,
    required_calibration_rows,
)
from .evaluation import (
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
from .learning import (
    LearnedMissingness,
    QueryPlan,
    Revealed,
    learn_missingness,
    plan_queries,
)
from .missingness import (
    FunctionMissingness,
    LogisticMissingness,
    Missingness,
    StepMissingness,
    corrupt,
)
from .modelfile import ModelFileError, TableModel, load_model, save_model
from .objective import (
    Combination,
    Divergence,
    Expectations,
    Objective,
    Term,
)
from .ratio import (
    KLIEP,
    BatchFit,
    FDivergenceRatio,
    NaiveBayesRatio,
    NoFiniteOptimumWarning,
    ObjectiveRatio,
    density_ratio,
    fit_batch,
)
from .threshold import CalibrationSample
from .weights import (
    SampleSize,
    WeightConcentrationWarning,
    effective_sample_size,
    inverse_probability_weights,
    worst_case_sample_size,
)

__version__: str

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
    "LearnedMissingness",
    "LinearBasis",
    "LogisticMissingness",
    "Missingness",
    "ModelFileError",
    "NPROCComparison",
    "NPROCDisplay",
    "NaiveBayesRatio",
    "NeymanPearsonClassifier",
    "NoFiniteOptimumWarning",
    "Objective",
    "ObjectiveRatio",
    "PolynomialBasis",
    "QueryPlan",
    "Revealed",
    "SampleSize",
    "StepMissingness",
    "TableModel",
    "Term",
    "TransformerBasis",
    "WeightConcentrationWarning",
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
    "load_model",
    "np_roc",
    "plan_queries",
    "power",
    "power_interval",
    "required_calibration_rows",
    "save_model",
    "type_i_error",
    "type_i_interval",
    "type_ii_error",
    "worst_case_sample_size",
]
