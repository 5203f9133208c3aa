"""Classifiers with a certificate, and the planning of their calibration."""

from missratio.classifier.cautions import NoPowerWarning, RepeatedRowsWarning
from missratio.classifier.certificate import (
    Certificate,
    GroupedCertificate,
    KeptPromise,
    MulticlassCertificate,
    named,
    rows_of,
)
from missratio.classifier.decision import OrderedDecision, UnorderedDecision
from missratio.classifier.grouped import GroupedNeymanPearsonClassifier
from missratio.classifier.multiclass import MulticlassNeymanPearsonClassifier, TradeOff
from missratio.classifier.neyman_pearson import NeymanPearsonClassifier
from missratio.classifier.planner import (
    expected_power,
    required_calibration_rows,
    sorted_scores,
)
from missratio.classifier.promise import Calibration
from missratio.classifier.reading import UnknownGroupWarning, check_same_rows
from missratio.classifier.scores import (
    ClassScores,
    UnstableScoresWarning,
    complete_mask,
)
from missratio.classifier.search import (
    CandidatePower,
    ClassSearch,
    PowerComparison,
    PowerSearch,
    measured_power,
)
from missratio.classifier.sensitivity import (
    QueryBudget,
    SensitivityCurve,
    Variation,
    query_budget,
    sensitivity_curve,
)
from missratio.classifier.target import WeakTargetWarning
from missratio.classifier.training import missingness_parameters
from missratio.exceptions import NoCertificateError

__all__ = [
    "Calibration",
    "CandidatePower",
    "Certificate",
    "ClassScores",
    "ClassSearch",
    "GroupedCertificate",
    "GroupedNeymanPearsonClassifier",
    "KeptPromise",
    "MulticlassCertificate",
    "MulticlassNeymanPearsonClassifier",
    "NeymanPearsonClassifier",
    "NoCertificateError",
    "NoPowerWarning",
    "OrderedDecision",
    "PowerComparison",
    "PowerSearch",
    "QueryBudget",
    "RepeatedRowsWarning",
    "SensitivityCurve",
    "TradeOff",
    "UnknownGroupWarning",
    "UnorderedDecision",
    "UnstableScoresWarning",
    "Variation",
    "WeakTargetWarning",
    "check_same_rows",
    "complete_mask",
    "expected_power",
    "measured_power",
    "missingness_parameters",
    "named",
    "query_budget",
    "required_calibration_rows",
    "rows_of",
    "sensitivity_curve",
    "sorted_scores",
]
