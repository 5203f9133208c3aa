"""Files: tables read alike, whatever they are for, and results written whole."""

from missratio._files.cells import (
    Cells,
    NotNumbersError,
    is_number,
    is_text,
    whole_numbers,
)
from missratio._files.files import (
    RegularFile,
    check_writable,
    kind_of,
    write_whole,
    written_whole,
)
from missratio._files.parquet import ParquetFile, RowGroup, find_files, in_order
from missratio._files.tables import TableFile, open_table

__all__ = [
    "Cells",
    "NotNumbersError",
    "ParquetFile",
    "RegularFile",
    "RowGroup",
    "TableFile",
    "check_writable",
    "find_files",
    "in_order",
    "is_number",
    "is_text",
    "kind_of",
    "open_table",
    "whole_numbers",
    "write_whole",
    "written_whole",
]
