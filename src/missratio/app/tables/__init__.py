"""Labelled tables as numbers: which columns are numbers, and which categories."""

from missratio.app.tables.columns import (
    BLANK,
    Encoder,
    TableColumn,
    as_arrow,
    check_names,
    column_names,
    drop_option,
    flat,
    named_columns,
    refused,
)
from missratio.app.tables.labelled import (
    REST,
    LabelledTable,
    Wanted,
    find_label,
    read_labelled,
    two_classes,
    varies,
)
from missratio.app.tables.passes import (
    EncodedSource,
    Spared,
    Survey,
    label_values,
    row_groups,
    survey_columns,
)

__all__ = [
    "BLANK",
    "REST",
    "EncodedSource",
    "Encoder",
    "LabelledTable",
    "Spared",
    "Survey",
    "TableColumn",
    "Wanted",
    "as_arrow",
    "check_names",
    "column_names",
    "drop_option",
    "find_label",
    "flat",
    "label_values",
    "named_columns",
    "read_labelled",
    "refused",
    "row_groups",
    "survey_columns",
    "two_classes",
    "varies",
]
