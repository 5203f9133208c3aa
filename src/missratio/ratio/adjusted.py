"""Means of columns that were looked up by lot, from predictions by the others.

Where a value was looked up with a known probability, the other columns of all rows
predict it, and the rows looked up correct the prediction (`looked_up_terms`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from missratio._base.blocks import inverse_where_positive
from missratio._base.typing import BoolArray, FloatArray
from missratio.missingness import joint_weight, looked_up_terms
from missratio.rows import ClassRows, only_columns


def adjust(rows: ClassRows, required: BoolArray) -> ClassRows:
    """Add to a class's rows the terms whose means estimate E f.

    Only where single entries were looked up, and for all normalisations but Horvitz and
    Thompson's. `required` are the columns that each feature needs.
    """
    by_lot = rows.weighing.by_design and rows.weighing.by_entry
    if not by_lot or rows.normalize == "horvitz-thompson":
        return rows
    rows.feature_sums(only_columns(required))
    block = rows.source.every(1).block()
    weights = rows.weights()
    assert weights is not None
    inclusion = inverse_where_positive(weights)
    adjusted = np.empty(block.features.shape)
    _, numbers = np.unique(required, axis=0, return_inverse=True)
    for number in range(int(numbers.max()) + 1):
        # Features that need the same columns.
        group = np.flatnonzero(numbers == number)
        columns = np.flatnonzero(required[group[0]])
        seen = np.asarray((weights[:, columns] > 0.0).all(axis=1, keepdims=True))
        features = np.where(seen, block.features[:, group], np.nan)
        if len(columns) > 1:
            groups = None if rows.groups is None else rows.groups[columns]
            weight = joint_weight(weights[:, columns], groups)
            adjusted[:, group] = _hajek_terms(features, weight, block.sample_weight)
            continue
        column = int(columns[0])
        others = np.delete(block.rows, column, axis=1)
        try:
            adjusted[:, group] = looked_up_terms(
                features, inclusion[:, column], others, block.sample_weight
            )
        except ValueError as error:
            name = column if rows.names is None else rows.names[column]
            raise ValueError(
                f"Class {rows.label!r}, column {name!r}: {error}"
            ) from error
    return replace(rows, adjusted=adjusted)


def _hajek_terms(
    features: FloatArray, weight: FloatArray, own: FloatArray | None
) -> FloatArray:
    """Terms whose mean is ΣWf/ΣW, and whose spread is that of this estimate."""
    own = np.ones(len(weight)) if own is None else own
    seen = weight > 0.0
    mean = np.average(features[seen], axis=0, weights=(own * weight)[seen])
    scale = own.sum() / float((own * weight).sum())
    terms = np.broadcast_to(mean, features.shape).copy()
    terms[seen] += scale * weight[seen, None] * (features[seen] - mean)
    return terms
