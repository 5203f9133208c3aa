"""Classifiers with a certificate, and the planning of their calibration."""

from missratio.classifier.certificate import Certificate as Certificate
from missratio.classifier.certificate import GroupedCertificate as GroupedCertificate
from missratio.classifier.certificate import (
    MulticlassCertificate as MulticlassCertificate,
)
from missratio.classifier.certificate import named as named
from missratio.classifier.certificate import rows_of as rows_of
from missratio.classifier.estimators import (
    UnstableScoresWarning as UnstableScoresWarning,
)
from missratio.classifier.estimators import complete_mask as complete_mask
from missratio.classifier.multiclass import ClassBounds as ClassBounds
from missratio.classifier.multiclass import (
    MulticlassNeymanPearsonClassifier as MulticlassNeymanPearsonClassifier,
)
from missratio.classifier.multiclass import UnorderedDecision as UnorderedDecision
from missratio.classifier.neyman_pearson import (
    GroupedNeymanPearsonClassifier as GroupedNeymanPearsonClassifier,
)
from missratio.classifier.neyman_pearson import (
    NeymanPearsonClassifier as NeymanPearsonClassifier,
)
from missratio.classifier.planning import SensitivityCurve as SensitivityCurve
from missratio.classifier.planning import Variation as Variation
from missratio.classifier.planning import expected_power as expected_power
from missratio.classifier.planning import forecast_power as forecast_power
from missratio.classifier.planning import (
    required_calibration_rows as required_calibration_rows,
)
from missratio.classifier.planning import sensitivity_curve as sensitivity_curve
from missratio.classifier.planning import sorted_scores as sorted_scores
from missratio.classifier.promise import Calibration as Calibration
from missratio.classifier.reading import NoPowerWarning as NoPowerWarning
from missratio.classifier.reading import RepeatedRowsWarning as RepeatedRowsWarning
from missratio.classifier.reading import UnknownGroupWarning as UnknownGroupWarning
from missratio.classifier.reading import UnknownWordWarning as UnknownWordWarning
from missratio.classifier.reading import check_same_rows as check_same_rows
from missratio.classifier.reading import known_labels as known_labels
from missratio.classifier.search import CandidatePower as CandidatePower
from missratio.classifier.search import PowerComparison as PowerComparison
from missratio.classifier.search import PowerSearch as PowerSearch
from missratio.classifier.search import measured_power as measured_power
from missratio.exceptions import NoCertificateError as NoCertificateError
