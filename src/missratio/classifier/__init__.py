"""Classifiers with a certificate, and the planning of their calibration."""

from missratio.classifier._budget import QueryBudget, query_budget
from missratio.classifier._calibration import (
    check_levels,
    make_rule,
    sorted_scores,
)
from missratio.classifier._certificate import Certificate
from missratio.classifier._find_levels import find_levels
from missratio.classifier._levels import Levels
from missratio.classifier._neyman_pearson import NeymanPearsonClassifier
from missratio.classifier._planner import expected_power, required_calibration_rows
from missratio.classifier._scores import complete_mask
from missratio.classifier._training import missingness_parameters
from missratio.exceptions import NoCertificateError

__all__ = [
    "Certificate",
    "Levels",
    "NeymanPearsonClassifier",
    "NoCertificateError",
    "QueryBudget",
    "check_levels",
    "complete_mask",
    "expected_power",
    "find_levels",
    "make_rule",
    "missingness_parameters",
    "query_budget",
    "required_calibration_rows",
    "sorted_scores",
]
