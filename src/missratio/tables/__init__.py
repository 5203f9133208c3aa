"""Tables in files: CSV, Parquet and Excel, read as numbers and written whole."""

from missratio.tables._cells import Cells
from missratio.tables._encoder import BLANK, Column, Encoder
from missratio.tables._files import (
    TableError,
    check_writable,
    kind_of,
    sha256,
    written_whole,
)
from missratio.tables._labelled import (
    LabelledTable,
    Wanted,
    check_names,
    read_labelled,
)
from missratio.tables._source import Source, open_table
from missratio.tables._survey import varies

__all__ = [
    "BLANK",
    "Cells",
    "Column",
    "Encoder",
    "LabelledTable",
    "Source",
    "TableError",
    "Wanted",
    "check_names",
    "check_writable",
    "kind_of",
    "open_table",
    "read_labelled",
    "sha256",
    "varies",
    "written_whole",
]
