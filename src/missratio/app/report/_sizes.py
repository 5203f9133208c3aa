"""Weights, and what they leave of each class's sample."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from missratio._base.typing import FloatArray
from missratio.app.report._rows import LabelledRows
from missratio.weights import (
    WeightConcentrationWarning,
    sample_size,
    warn_if_concentrated,
)

BINS = 24
HEAVIEST_SHARE = 0.05


def weights_by_class(rows: LabelledRows) -> list[dict[str, Any]]:
    """How each class's rows are weighted where complete rows are meant.

    Returns
    -------
    list of dict
        For each class: rows, complete ones, Kish's effective number, the heaviest
        weight, the share of the total on the heaviest twentieth, and a histogram.
    """
    return [
        {"label": label, **_describe(rows.masses(label), str(label))}
        for label in rows.labels
    ]


def _describe(weights: FloatArray, label: str) -> dict[str, Any]:
    positive = weights[weights > 0.0]
    size = sample_size(weights)
    few = max(1, int(HEAVIEST_SHARE * len(positive)))
    heaviest = np.sort(positive)[::-1][:few].sum() if len(positive) else 0.0
    message = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", WeightConcentrationWarning)
        warn_if_concentrated(weights, f"Class {label}")
    if caught:
        message = str(caught[0].message)
    return {
        "rows": size.rows,
        "observed": size.observed,
        "kish": size.kish,
        "largest": positive.max(initial=0.0),
        "heaviest_share": heaviest / max(positive.sum(), np.finfo(float).tiny),
        "concentrated": message,
        "histogram": _histogram(positive),
    }


def _histogram(weights: FloatArray) -> dict[str, Any] | None:
    """Rows by weight, on a logarithmic scale; None where all weigh the same."""
    if not len(weights) or not weights.min() < weights.max():
        return None
    edges = np.geomspace(weights.min(), weights.max(), BINS + 1)
    counts, _ = np.histogram(np.clip(weights, edges[0], edges[-1]), edges)
    return {"edges": edges, "rows": counts}
