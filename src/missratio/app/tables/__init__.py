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

__all__ = [
    "BLANK",
    "REST",
    "Encoder",
    "LabelledTable",
    "TableColumn",
    "Wanted",
    "as_arrow",
    "check_names",
    "column_names",
    "drop_option",
    "find_label",
    "flat",
    "named_columns",
    "read_labelled",
    "refused",
    "two_classes",
    "varies",
]
