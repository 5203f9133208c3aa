"""Classifiers with a certificate, and the planning of their calibration."""

from missratio.classifier._budget import QueryBudget, query_budget
from missratio.classifier._calibration import Calibration
from missratio.classifier._cautions import NoPowerWarning, RepeatedRowsWarning
from missratio.classifier._certificate import Certificate, named, rows_of
from missratio.classifier._class_scores import ClassScores
from missratio.classifier._class_search import ClassSearch
from missratio.classifier._comparison import (
    CandidatePower,
    PowerComparison,
    measured_power,
)
from missratio.classifier._decisions import OrderedDecision, UnorderedDecision
from missratio.classifier._grouped import GroupedNeymanPearsonClassifier
from missratio.classifier._grouped_certificate import (
    GroupedCertificate,
    KeptPromise,
)
from missratio.classifier._groups import UnknownGroupWarning
from missratio.classifier._multiclass import MulticlassNeymanPearsonClassifier
from missratio.classifier._multiclass_certificate import MulticlassCertificate
from missratio.classifier._neyman_pearson import NeymanPearsonClassifier
from missratio.classifier._planner import (
    expected_power,
    required_calibration_rows,
    sorted_scores,
)
from missratio.classifier._power_search import PowerSearch
from missratio.classifier._reading import check_same_rows
from missratio.classifier._rounding import UnstableScoresWarning
from missratio.classifier._scores import complete_mask
from missratio.classifier._sensitivity import (
    SensitivityCurve,
    Variation,
    sensitivity_curve,
)
from missratio.classifier._target import WeakTargetWarning
from missratio.classifier._trade_off import TradeOff
from missratio.classifier._training import missingness_parameters
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
