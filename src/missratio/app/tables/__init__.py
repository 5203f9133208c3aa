"""Labelled tables as numbers: which columns are numbers, and which categories."""

from missratio.app.tables._encoder import BLANK, Encoder, TableColumn
from missratio.app.tables._frames import as_arrow, column_names
from missratio.app.tables._labelled import (
    LabelledTable,
    Wanted,
    check_names,
    read_labelled,
)
from missratio.app.tables._missing import varies

__all__ = [
    "BLANK",
    "Encoder",
    "LabelledTable",
    "TableColumn",
    "Wanted",
    "as_arrow",
    "check_names",
    "column_names",
    "read_labelled",
    "varies",
]
