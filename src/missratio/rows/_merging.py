"""What blocks found, put together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from missratio._base.typing import BoolArray, FloatArray
from missratio.rows._source import concatenated
from missratio.rows._summary import WeightSums


def weights_or_ones(parts: Sequence[FloatArray | int]) -> FloatArray | int:
    """Merge weights of blocks; a number stands for so many ones."""
    if all(isinstance(part, int) for part in parts):
        return sum(part for part in parts if isinstance(part, int))
    shape = next(part.shape[:-1] for part in parts if not isinstance(part, int))
    arrays = [
        np.ones((*shape, part)) if isinstance(part, int) else part for part in parts
    ]
    merged: FloatArray = concatenated(arrays)
    return merged


def merge_sums(parts: Sequence[WeightSums]) -> WeightSums:
    """Merge blocks of which some may have one weight for all features."""
    widths = {part.count.shape[-1] for part in parts}
    if len(widths) > 1:
        parts = [part.spread(max(widths)) for part in parts]
    return WeightSums.merged(parts)


def first_found(
    parts: Sequence[tuple[BoolArray, FloatArray]],
) -> tuple[BoolArray, FloatArray]:
    """Where something was found, and the first of it."""
    found, values = parts[0]
    for also, others in parts[1:]:
        found, values = found | also, np.where(found, values, others)
    return found, values
