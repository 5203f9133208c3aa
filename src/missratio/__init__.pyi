"""Every public name and where it lives; loaded when first used."""

from . import (
    app,
    basis,
    classifier,
    datasets,
    evaluation,
    exceptions,
    imputation,
    learning,
    missingness,
    objective,
    ratio,
    rows,
    theory,
    threshold,
    uncertainty,
    weights,
)
from .app.modelfile import load_model, save_model
from .app.report import build_report
from .basis import (
    GaussianBasis,
    PolynomialBasis,
)
from .classifier import (
    GroupedNeymanPearsonClassifier,
    MulticlassNeymanPearsonClassifier,
    NeymanPearsonClassifier,
    expected_power,
    query_budget,
    required_calibration_rows,
    sensitivity_curve,
)
from .evaluation import (
    NPROCDisplay,
    TypeIErrorMonitor,
    compare_np_roc,
    error_scorer,
    np_roc,
    power,
    type_i_error,
    type_ii_error,
)
from .imputation import (
    ImputationEnsemble,
    TiltedImputer,
)
from .learning import (
    QueryPlan,
    learn_missingness,
    plan_queries,
)
from .missingness import (
    FunctionMissingness,
    LogisticMissingness,
    StepMissingness,
    corrupt,
    missingness_check,
    missingness_patterns,
)
from .ratio import (
    KLIEP,
    KLIEPCV,
    FDivergenceRatio,
    NaiveBayesRatio,
    ObjectiveRatio,
    density_ratio,
    fit_batch,
)
from .rows import scan_parquet
from .uncertainty import ratio_uncertainty

__version__: str

__all__ = [
    "KLIEP",
    "KLIEPCV",
    "FDivergenceRatio",
    "FunctionMissingness",
    "GaussianBasis",
    "GroupedNeymanPearsonClassifier",
    "ImputationEnsemble",
    "LogisticMissingness",
    "MulticlassNeymanPearsonClassifier",
    "NPROCDisplay",
    "NaiveBayesRatio",
    "NeymanPearsonClassifier",
    "ObjectiveRatio",
    "PolynomialBasis",
    "QueryPlan",
    "StepMissingness",
    "TiltedImputer",
    "TypeIErrorMonitor",
    "app",
    "basis",
    "build_report",
    "classifier",
    "compare_np_roc",
    "corrupt",
    "datasets",
    "density_ratio",
    "error_scorer",
    "evaluation",
    "exceptions",
    "expected_power",
    "fit_batch",
    "imputation",
    "learn_missingness",
    "learning",
    "load_model",
    "missingness",
    "missingness_check",
    "missingness_patterns",
    "np_roc",
    "objective",
    "plan_queries",
    "power",
    "query_budget",
    "ratio",
    "ratio_uncertainty",
    "required_calibration_rows",
    "rows",
    "save_model",
    "scan_parquet",
    "sensitivity_curve",
    "theory",
    "threshold",
    "type_i_error",
    "type_ii_error",
    "uncertainty",
    "weights",
]
