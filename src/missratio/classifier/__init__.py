"""Classifiers with a certificate, and the planning of their calibration."""

from missratio.classifier.certificate import (
    Certificate,
    GroupedCertificate,
    KeptPromise,
    MulticlassCertificate,
    named,
    rows_of,
)
from missratio.classifier.estimators import (
    UnstableScoresWarning,
    complete_mask,
)
from missratio.classifier.multiclass import (
    ClassBounds,
    MulticlassNeymanPearsonClassifier,
    TradeOff,
    UnorderedDecision,
)
from missratio.classifier.neyman_pearson import (
    GroupedNeymanPearsonClassifier,
    NeymanPearsonClassifier,
)
from missratio.classifier.planning import (
    SensitivityCurve,
    Variation,
    expected_power,
    required_calibration_rows,
    sensitivity_curve,
    sorted_scores,
)
from missratio.classifier.promise import Calibration
from missratio.classifier.reading import (
    NoPowerWarning,
    RepeatedRowsWarning,
    UnknownGroupWarning,
    check_same_rows,
)
from missratio.classifier.search import (
    CandidatePower,
    ClassSearch,
    PowerComparison,
    PowerSearch,
    measured_power,
)
from missratio.exceptions import NoCertificateError

__all__ = [
    "Calibration",
    "CandidatePower",
    "Certificate",
    "ClassBounds",
    "ClassSearch",
    "GroupedCertificate",
    "GroupedNeymanPearsonClassifier",
    "KeptPromise",
    "MulticlassCertificate",
    "MulticlassNeymanPearsonClassifier",
    "NeymanPearsonClassifier",
    "NoCertificateError",
    "NoPowerWarning",
    "PowerComparison",
    "PowerSearch",
    "RepeatedRowsWarning",
    "SensitivityCurve",
    "TradeOff",
    "UnknownGroupWarning",
    "UnorderedDecision",
    "UnstableScoresWarning",
    "Variation",
    "check_same_rows",
    "complete_mask",
    "expected_power",
    "measured_power",
    "named",
    "required_calibration_rows",
    "rows_of",
    "sensitivity_curve",
    "sorted_scores",
]
