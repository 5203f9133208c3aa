"""Every public name and where it lives; loaded when first used."""

from . import (
    app,
    basis,
    classifier,
    comparison,
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
from .app.queries import QueryPlan, plan_queries
from .app.report import build_report
from .basis import (
    GaussianBasis,
    PolynomialBasis,
)
from .classifier import (
    GroupedNeymanPearsonClassifier,
    MulticlassNeymanPearsonClassifier,
    NeymanPearsonClassifier,
    sensitivity_curve,
)
from .comparison import estimate_divergence, ratio_test
from .evaluation import (
    NPROCDisplay,
    TypeIErrorMonitor,
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
from .learning import learn_missingness
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
    ClassifierRatio,
    FDivergenceRatio,
    KernelRatio,
    NaiveBayesRatio,
    ObjectiveRatio,
    Ratio,
    density_ratio,
)
from .rows import scan_parquet
from .uncertainty import ratio_uncertainty

__version__: str

__all__ = [
    "KLIEP",
    "KLIEPCV",
    "ClassifierRatio",
    "FDivergenceRatio",
    "FunctionMissingness",
    "GaussianBasis",
    "GroupedNeymanPearsonClassifier",
    "ImputationEnsemble",
    "KernelRatio",
    "LogisticMissingness",
    "MulticlassNeymanPearsonClassifier",
    "NPROCDisplay",
    "NaiveBayesRatio",
    "NeymanPearsonClassifier",
    "ObjectiveRatio",
    "PolynomialBasis",
    "QueryPlan",
    "Ratio",
    "StepMissingness",
    "TiltedImputer",
    "TypeIErrorMonitor",
    "app",
    "basis",
    "build_report",
    "classifier",
    "comparison",
    "corrupt",
    "datasets",
    "density_ratio",
    "error_scorer",
    "estimate_divergence",
    "evaluation",
    "exceptions",
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
    "ratio",
    "ratio_test",
    "ratio_uncertainty",
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
