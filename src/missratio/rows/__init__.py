"""Where rows come from, and what they weigh."""

from missratio.rows.classes import (
    ClassRows,
    Normalization,
    effective_size,
    warn_if_contradicted,
    warn_of_concentration,
)
from missratio.rows.labelled import (
    LabelledBlock,
    LabelledSource,
    as_source,
    check_label_types,
    refuse_source,
    survey,
)
from missratio.rows.parquet import ParquetSource, scan_parquet
from missratio.rows.source import (
    MemorySource,
    PartlyDrawn,
    RowBlock,
    WeightCheck,
    WeightSums,
    weighted_sums,
)
from missratio.rows.weighing import (
    PLAIN,
    ClassModel,
    Weighing,
    check_inclusion,
    check_missingness,
    class_model,
    only_columns,
    weighed_twice,
    weights_of_features,
)

__all__ = [
    "PLAIN",
    "ClassModel",
    "ClassRows",
    "LabelledBlock",
    "LabelledSource",
    "MemorySource",
    "Normalization",
    "ParquetSource",
    "PartlyDrawn",
    "RowBlock",
    "Weighing",
    "WeightCheck",
    "WeightSums",
    "as_source",
    "check_inclusion",
    "check_label_types",
    "check_missingness",
    "class_model",
    "effective_size",
    "only_columns",
    "refuse_source",
    "scan_parquet",
    "survey",
    "warn_if_contradicted",
    "warn_of_concentration",
    "weighed_twice",
    "weighted_sums",
    "weights_of_features",
]
