"""Coefficients of a linear score, with intervals where they can be had."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline

from missratio.report._rows import LabelledRows

MOST_LISTED = 60


def coefficients(rows: LabelledRows, confidence: float) -> dict[str, Any] | None:
    """The coefficients of a score that is linear in its features.

    Parameters
    ----------
    rows : LabelledRows
    confidence : float
        Of the intervals.

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
    names = _names(estimator, last, len(values))
    order = np.argsort(-np.abs(values), kind="stable")[:MOST_LISTED]
    return {
        "names": [names[j] for j in order],
        "values": values[order],
        "low": None,
        "high": None,
        "confidence": confidence,
        "left_out": len(values) - len(order),
    }


def _names(estimator: Any, last: Any, width: int) -> list[str]:
    """What the features are called, or their numbers."""
    names: list[str] = []
    if hasattr(last, "summary_frame"):
        names = last.summary_frame(backend="pyarrow").column("feature").to_pylist()
    elif isinstance(estimator, Pipeline) and len(estimator) > 1:
        try:
            names = [str(name) for name in estimator[:-1].get_feature_names_out()]
        except (AttributeError, ValueError, NotFittedError):
            names = []
    else:
        names = [str(name) for name in getattr(last, "feature_names_in_", ())]
    return names if len(names) == width else [f"x{j}" for j in range(width)]
