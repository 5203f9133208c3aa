"""Labelled tables as numbers: which columns are numbers, and which categories."""

from missratio.app.tables._classes import REST, find_label, two_classes
from missratio.app.tables._columns import (
    check_names,
    drop_option,
    named_columns,
    refused,
)
from missratio.app.tables._encoder import BLANK, Encoder, TableColumn, flat
from missratio.app.tables._frames import as_arrow, column_names
from missratio.app.tables._labelled import LabelledTable, Wanted, read_labelled
from missratio.app.tables._large import EncodedSource, Spared, row_groups
from missratio.app.tables._missing import varies
from missratio.app.tables._survey import Survey, label_values, survey_columns

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
