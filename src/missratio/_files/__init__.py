"""Files: tables read alike, whatever they are for, and results written whole."""

from __future__ import annotations

from pathlib import Path

from missratio._files.delimited import CsvFile
from missratio._files.files import RegularFile, kind_of, write_whole, written_whole
from missratio._files.parquet import ParquetTable
from missratio._files.tables import TableFile
from missratio._files.workbooks import ExcelSheet
from missratio.exceptions import TableError

__all__ = ["TableFile", "open_table", "write_whole", "written_whole"]


def open_table(
    path: Path,
    *,
    encoding: str | None = None,
    sheet: str | None = None,
    fallback: str | None = None,
    preferred: str | None = None,
    header_row: int | None = None,
) -> TableFile:
    """Open a CSV, Parquet or Excel file, by its suffix.

    Parameters
    ----------
    path : Path
    encoding : str, optional
        Of a CSV file; by default UTF-8.
    sheet : str, optional
        Of a workbook; by default the first that is visible.
    fallback : str, optional
        Encoding of a CSV file that is not UTF-8, where none was told.
    preferred : str, optional
        Sheet to take if it is there, where none was told.
    header_row : int, optional
        The line of the header, from 1, where others come before it; by default the
        first that isn't blank.
    """
    file, kind = RegularFile.at(path), kind_of(path)
    table: TableFile
    if kind == "csv":
        table = CsvFile(file, encoding, fallback, header_row)
    elif kind == "excel":
        table = ExcelSheet(file, sheet, preferred, header_row)
    elif header_row is None:
        table = ParquetTable(file)
    else:
        raise TableError(
            f"{path} is a Parquet file, whose columns have names: leave out "
            "--header-row."
        )
    table.check_limits()
    return table
