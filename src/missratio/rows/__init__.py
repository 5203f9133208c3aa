"""Where rows come from, and what they weigh."""

from missratio.rows._class import ClassRows, Normalization, single_sums
from missratio.rows._source import BLOCK_ELEMENTS, MemorySource, RowBlock, Source
from missratio.rows._summary import WeightCheck, WeightSums, weighted_sums
from missratio.rows._weighing import (
    ClassModel,
    KnownWeights,
    Unweighted,
    Weighing,
    as_weighing,
    check_inclusion,
    check_missingness,
    class_model,
    only_columns,
    weights_of_features,
)

__all__ = [
    "BLOCK_ELEMENTS",
    "ClassModel",
    "ClassRows",
    "KnownWeights",
    "MemorySource",
    "Normalization",
    "RowBlock",
    "Source",
    "Unweighted",
    "Weighing",
    "WeightCheck",
    "WeightSums",
    "as_weighing",
    "check_inclusion",
    "check_missingness",
    "class_model",
    "only_columns",
    "single_sums",
    "weighted_sums",
    "weights_of_features",
]
