"""Classifiers with a certificate, and the planning of their calibration."""

from missratio.classifier._calibration import make_rule
from missratio.classifier._certificate import Certificate
from missratio.classifier._neyman_pearson import NeymanPearsonClassifier
from missratio.classifier._planner import expected_power, required_calibration_rows

__all__ = [
    "Certificate",
    "NeymanPearsonClassifier",
    "expected_power",
    "make_rule",
    "required_calibration_rows",
]
