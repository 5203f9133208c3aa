"""Shares of rows with their intervals, weighted or not."""

from __future__ import annotations

from typing import Any

import numpy as np

from missratio._base.typing import BoolArray, FloatArray
from missratio.evaluation import Interval, beta_interval, exact_interval
from missratio.weights import effective_sample_size

EXACT = "Clopper and Pearson's exact interval"
WEIGHTED = "Korn and Graubard's interval for weighted rows, approximate"


def weighted_interval(
    events: BoolArray, weights: FloatArray, confidence: float
) -> tuple[float, Interval]:
    """The weighted share of events (Hájek), and Korn and Graubard's interval of it.

    Clopper and Pearson's, for the number of equally weighted rows whose share would
    have the same variance.

    Parameters
    ----------
    events : ndarray of bool of shape (n,)
    weights : ndarray of shape (n,)
        Positive.
    confidence : float
    """
    scaled = weights / weights.sum()
    share = float(scaled[events].sum())
    size = float(effective_sample_size(weights))
    if events.all() or not events.any():
        # Exactly, whatever weights add up to.
        share = float(events.all())
    else:
        variance = float((scaled**2 * (events - share) ** 2).sum())
        # One row may have all the weight there is, as far as numbers go.
        if variance > 0.0:
            size = min(share * (1.0 - share) / variance, float(len(events)))
    return share, beta_interval(share * size, size, confidence)


def share_of(
    events: BoolArray, weights: FloatArray | None, confidence: float
) -> dict[str, Any]:
    """A share of rows with its interval, as data.

    Parameters
    ----------
    events : ndarray of bool of shape (n,)
    weights : ndarray of shape (n,), or None
        Rows of weight zero are left out. None where all count the same.
    confidence : float
    """
    kept = events if weights is None else events[weights > 0.0]
    if not len(kept):
        return {"estimate": None, "low": 0.0, "high": 1.0, "rows": 0,
                "confidence": confidence, "method": EXACT}  # fmt: skip
    weighted = weights is not None and np.ptp(weights[weights > 0.0]) > 0.0
    if weights is not None and weighted:
        share, interval = weighted_interval(kept, weights[weights > 0.0], confidence)
    else:
        share = float(kept.mean())
        interval = exact_interval(int(kept.sum()), len(kept), confidence)
    return {
        "estimate": share,
        "low": interval.low,
        "high": interval.high,
        "rows": len(kept),
        "confidence": confidence,
        "method": WEIGHTED if weighted else EXACT,
    }
