"""Classifiers with a certificate, and the planning of their calibration."""

from missratio.classifier._budget import QueryBudget, query_budget
from missratio.classifier._calibration import (
    check_levels,
    make_rule,
    sorted_scores,
)
from missratio.classifier._certificate import Certificate
from missratio.classifier._neyman_pearson import NeymanPearsonClassifier
from missratio.classifier._planner import (
    NoCertificateError,
    expected_power,
    required_calibration_rows,
)

__all__ = [
    "Certificate",
    "NeymanPearsonClassifier",
    "NoCertificateError",
    "QueryBudget",
    "check_levels",
    "expected_power",
    "make_rule",
    "query_budget",
    "required_calibration_rows",
    "sorted_scores",
]
