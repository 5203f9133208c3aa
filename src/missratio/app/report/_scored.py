"""Rows that can't be scored, as they were found."""

from __future__ import annotations

from typing import Any

import numpy as np

from missratio._base.typing import BoolArray
from missratio.app.report._rows import LabelledRows


def unscored(few: LabelledRows) -> list[dict[str, Any]]:
    """The share of each class's rows that get a class without a score.

    Parameters
    ----------
    few : LabelledRows
        Rows of all classes; what was looked up is left out, as it will be missing
        again.
    """
    found = few.as_found
    result = []
    for label in found.labels:
        X = found.rows(label)
        lost = _lost(found.classifier, X) if X.shape[0] else np.zeros(0, dtype=bool)
        result.append(
            {
                "label": label,
                "share": float(lost.mean()) if len(lost) else 0.0,
                "rows": len(lost),
            }
        )
    return result


def _lost(classifier: Any, X: Any) -> BoolArray:
    """Which rows have no score."""
    if hasattr(classifier, "class_scores"):
        found: BoolArray = np.isnan(classifier.class_scores(X)).any(axis=1)
        return found
    scores = classifier.score_samples(X)
    return np.asarray(~np.isfinite(scores) & (scores != np.inf))
