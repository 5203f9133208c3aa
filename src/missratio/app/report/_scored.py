"""Rows that can't be scored, as they were found."""

from __future__ import annotations

from typing import Any

import numpy as np

from missratio.app.report._rows import LabelledRows


def unscored(few: LabelledRows) -> list[dict[str, Any]]:
    """The share of each class's rows that get the controlled class without a score.

    Parameters
    ----------
    few : LabelledRows
        Rows of both classes; what was looked up is left out, as it will be missing
        again.
    """
    found = few.as_found
    result = []
    for label in found.labels:
        X = found.rows(label)
        scores = found.classifier.score_samples(X) if X.shape[0] else np.zeros(0)
        lost = ~np.isfinite(scores) & (scores != np.inf)
        result.append(
            {
                "label": label,
                "share": float(lost.mean()) if len(lost) else 0.0,
                "rows": len(lost),
            }
        )
    return result
