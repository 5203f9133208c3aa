"""What becomes of the certificate if φ is wrong."""

from __future__ import annotations

import math
import warnings
from dataclasses import asdict
from typing import Any

from missratio.app.report._rows import LabelledRows
from missratio.app.report._words import NO_SLACK, number
from missratio.classifier import SensitivityCurve, sensitivity_curve


def sensitivity(rows: LabelledRows, most: int) -> dict[str, Any] | None:
    """Certified error and power where φ is another, and the tipping points.

    Parameters
    ----------
    rows : LabelledRows
        Those that the classifier was fitted with.
    most : int
        Calibration rows beyond which it takes too long.

    Returns
    -------
    dict, or None
        None where no φ is assumed, nothing is certified, or rows are too many.
    """
    classifier = rows.classifier
    certificate = classifier.certificate_
    model = classifier.calibration_.trust.model
    if model is None or not certificate.certified or certificate.rows > most:
        return None
    with warnings.catch_warnings():
        # Rows of a dataframe are scored as an array, and the estimator says so.
        warnings.simplefilter("ignore", UserWarning)
        curve = sensitivity_curve(classifier, rows.X, rows.y)
    return {
        "alpha": curve.alpha,
        "odds": asdict(curve.odds),
        "controlled": asdict(curve.controlled),
        "other": None if curve.other is None else asdict(curve.other),
        "words": _words(curve, rows.controlled),
    }


def _words(curve: SensitivityCurve, label: Any) -> list[str]:
    """The tipping points in sentences."""
    gamma = curve.tipping_factor
    if math.isinf(gamma):
        odds = "No odds factor up to 1000 undoes the certificate."
    elif gamma < NO_SLACK:
        odds = "Tipping point: the certificate has no slack, it needs φ to be exact."
    else:
        odds = (
            f"Tipping point: the certificate is lost once the odds of being missing "
            f"are wrong by more than a factor of Γ = {number(gamma, 3)}."
        )
    down, up = curve.controlled.tipping
    parts = [
        f"{number(abs(at), 2)} standard deviations {where}"
        for at, where in ((down, "lower"), (up, "higher"))
        if math.isfinite(at)
    ]
    if not parts:
        reach = max(abs(curve.controlled.amount))
        tilt = (
            f"It survives missing values of class {label} that lie up to "
            f"{number(reach, 2)} standard deviations lower or higher than φ says."
        )
    else:
        tilt = (
            f"It is lost where the missing values of class {label} lie "
            f"{' or '.join(parts)} than φ says."
        )
    return [odds, tilt]
