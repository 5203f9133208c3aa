"""What was found in a class's rows: how many they count for, and how unevenly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.exceptions import Message
from missratio.rows._class import ClassRows
from missratio.rows._source import MemorySource
from missratio.rows._summary import WeightSums, weighted_sums
from missratio.weights import SampleSize, warn_if_concentrated, worst_case_sample_size


def effective_size(rows: ClassRows, sums: WeightSums) -> SampleSize:
    """The effective size, of the feature with the least where they differ."""
    kish = sums.kish
    worst = int(kish.argmin())
    observed = int(sums.count[worst])
    if not rows.weighing.corrects:
        largest = 1.0 - observed / rows.n_rows
    elif rows.weighing.maximum is not None:
        largest = rows.weighing.maximum
    else:
        largest = max(0.0, 1.0 - 1.0 / sums.largest[worst])
    worst_case = worst_case_sample_size(rows.n_rows, largest)
    if not rows.weighing.corrects:
        worst_case = float(observed)
    return SampleSize(rows.n_rows, observed, float(kish[worst]), worst_case)


def warn_of_concentration(
    rows: ClassRows,
    sums: WeightSums,
    required: BoolArray | IntArray | None,
    names: Callable[[], Any],
    stacklevel: int,
) -> None:
    """Warn where a few rows carry the weight, once, for the worst feature.

    The sums tell where that can be; only there the weights are looked at again.
    """
    worst = int(np.argmax(sums.squares / sums.total**2 * sums.count))
    few = max(1, sums.count[worst] // 20)
    # The most that so many rows can weigh together, given the largest, and Σw².
    most = min(few * sums.largest[worst], np.sqrt(few * sums.squares[worst]))
    if most < sums.total[worst] / 2.0:
        return
    if not isinstance(rows.source, MemorySource):
        # Those of the rows drawn into memory tell as much.
        warn_of_concentration(rows.every(1), sums, required, names, stacklevel + 1)
        return
    about = Message("Class {label!r}", label=rows.label)
    if required is None:
        weights = rows.whole_row_weights()
    else:
        weights = rows.all_weights(required[[worst]])
        if rows.weighing.by_entry:
            about = Message(
                "Class {label!r}, feature {columns}",
                label=rows.label,
                columns=(worst,),
                names=(str(names()[worst]),),
            )
    if weights is not None:
        warn_if_concentrated(weights, about, stacklevel=stacklevel + 1)


def single_sums(weights: FloatArray | None, rows: ClassRows) -> WeightSums:
    """The sums of whole rows' weights, without features."""
    empty = np.empty((rows.n_rows, 0))
    return weighted_sums(empty, weights, rows.source.weights)
