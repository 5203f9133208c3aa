"""Files: tables read alike, whatever they are for, and results written whole."""

from missratio._files.cells import (
    Cells,
    NotNumbersError,
    is_number,
    is_text,
    whole_numbers,
)
from missratio._files.kinds import RegularFile, kind_of
from missratio._files.row_groups import ParquetFile, RowGroup, find_files, in_order
from missratio._files.tables import TableFile, open_table
from missratio._files.whole import check_writable, write_whole, written_whole

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
