"""Tables in files: CSV, Parquet and Excel, read as numbers and written whole."""

from missratio.app.tables._cells import Cells
from missratio.app.tables._encoder import BLANK, Column, Encoder
from missratio.app.tables._files import (
    TableError,
    check_writable,
    kind_of,
    sha256,
    written_whole,
)
from missratio.app.tables._labelled import (
    LabelledTable,
    Wanted,
    check_names,
    read_labelled,
)
from missratio.app.tables._source import Source, open_table
from missratio.app.tables._survey import varies

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
