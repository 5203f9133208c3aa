"""Where rows come from, and what they weigh."""

from missratio.rows._class import ClassRows, Normalization
from missratio.rows._cluster import of_files
from missratio.rows._contradiction import warn_if_contradicted
from missratio.rows._found import effective_size, single_sums, warn_of_concentration
from missratio.rows._labelled import (
    LabelledBlock,
    LabelledSource,
    as_source,
    check_label_types,
    refuse_source,
)
from missratio.rows._merging import merge_sums
from missratio.rows._parquet import ParquetSource, scan_parquet
from missratio.rows._partitions import by_partition
from missratio.rows._refusals import weighed_twice
from missratio.rows._source import (
    MemorySource,
    RowBlock,
    Source,
    block_count,
)
from missratio.rows._streamed import PartlyDrawn, class_rows, survey, with_features
from missratio.rows._summary import WeightCheck, WeightSums, weighted_sums
from missratio.rows._weighing import (
    ClassModel,
    KnownWeights,
    ModelWeighing,
    Unweighted,
    Weighing,
    as_weighing,
    check_inclusion,
    check_missingness,
    class_model,
    joint_weight,
    only_columns,
    weights_of_features,
)

__all__ = [
    "ClassModel",
    "ClassRows",
    "KnownWeights",
    "LabelledBlock",
    "LabelledSource",
    "MemorySource",
    "ModelWeighing",
    "Normalization",
    "ParquetSource",
    "PartlyDrawn",
    "RowBlock",
    "Source",
    "Unweighted",
    "Weighing",
    "WeightCheck",
    "WeightSums",
    "as_source",
    "as_weighing",
    "block_count",
    "by_partition",
    "check_inclusion",
    "check_label_types",
    "check_missingness",
    "class_model",
    "class_rows",
    "effective_size",
    "joint_weight",
    "merge_sums",
    "of_files",
    "only_columns",
    "refuse_source",
    "scan_parquet",
    "single_sums",
    "survey",
    "warn_if_contradicted",
    "warn_of_concentration",
    "weighed_twice",
    "weighted_sums",
    "weights_of_features",
    "with_features",
]
