"""Files: tables read alike, whatever they are for, and results written whole."""

from missratio._files.cells import (
    Cells,
    NotNumbersError,
    is_number,
    is_text,
    whole_numbers,
)
from missratio._files.kinds import RegularFile, kind_of
from missratio._files.tables import TableFile, open_table
from missratio._files.whole import check_writable, write_whole, written_whole

__all__ = [
    "Cells",
    "NotNumbersError",
    "RegularFile",
    "TableFile",
    "check_writable",
    "is_number",
    "is_text",
    "kind_of",
    "open_table",
    "whole_numbers",
    "write_whole",
    "written_whole",
]
