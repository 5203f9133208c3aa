"""Coefficients of a linear score, with intervals where they can be had."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline

from missratio._typing import FloatArray
from missratio.app.report._rows import LabelledRows
from missratio.ratio import JointRatio, NaiveBayesRatio, feature_names
from missratio.uncertainty import UnreliableIntervalWarning, ratio_uncertainty

MOST_LISTED = 60
DOUBT = "A few rows with large weights decide: intervals may be too short."


def coefficients(
    rows: LabelledRows, confidence: float, columns: list[str]
) -> dict[str, Any] | None:
    """The coefficients of a score that is linear in its features.

    Parameters
    ----------
    rows : LabelledRows
    confidence : float
        Of the intervals.
    columns : list of str
        Names of the table's columns.

    Returns
    -------
    dict, or None
        Those largest in size first, and how many are left out; None where the
        estimator has none.
    """
    estimator = rows.classifier.estimator_
    last = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
    values = np.asarray(getattr(last, "coef_", np.zeros(0)), dtype=np.float64)
    if values.ndim == 2 and len(values) == 1:
        values = values[0]
    if values.ndim != 1 or not len(values):
        return None
    # The score is towards the other class, whichever the estimator has second.
    values = values * rows.classifier._sign
    names = _names(estimator, last, columns, len(values))
    order = np.argsort(-np.abs(values), kind="stable")[:MOST_LISTED]
    reach, doubt = _reach(rows, confidence)
    reach = None if reach is None else reach[order]
    return {
        "names": [names[j] for j in order],
        "values": values[order],
        "low": None if reach is None else values[order] - reach,
        "high": None if reach is None else values[order] + reach,
        "confidence": confidence,
        "doubt": doubt,
        "left_out": len(values) - len(order),
    }


def _reach(
    rows: LabelledRows, confidence: float
) -> tuple[FloatArray | None, str | None]:
    """Of the coefficients' intervals, and why it may be wrong; None if not to be had.

    They can't for other estimators, where the ratio was fitted elsewhere or with sample
    weights, and where its optimum wasn't reached.
    """
    classifier = rows.classifier
    ratio = classifier.estimator_
    is_ratio = isinstance(ratio, JointRatio | NaiveBayesRatio)
    if not is_ratio or not hasattr(classifier, "calibration_index_"):
        return None, None
    kept = np.ones(len(rows.y), dtype=bool)
    kept[classifier.calibration_index_] = False
    fitted = rows.take(np.flatnonzero(kept))
    labels = (fitted.y != rows.controlled).astype(int)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            known = ratio_uncertainty(
                ratio, fitted.X, labels, inclusion=fitted.inclusion
            )
            reach = known.reach(confidence)
        except (ValueError, np.linalg.LinAlgError):
            return None, None
    # Which coefficients it is about is said by the ratio's own names for them.
    few = any(isinstance(w.message, UnreliableIntervalWarning) for w in caught)
    return reach, DOUBT if few else None


def _names(estimator: Any, last: Any, columns: list[str], width: int) -> list[str]:
    """What the features are called, or their numbers."""
    names = columns
    if isinstance(estimator, Pipeline) and len(estimator) > 1:
        try:
            names = [*map(str, estimator[:-1].get_feature_names_out(columns))]
        except (AttributeError, ValueError, NotFittedError):
            names = []
    if isinstance(last, JointRatio | NaiveBayesRatio) and names:
        names = feature_names(last, names)
    return names if len(names) == width else [f"x{j}" for j in range(width)]
