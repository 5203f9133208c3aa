"""Record batches to CSV, Parquet and Excel files."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from missratio._files import kind_of
from missratio._files.workbooks import EXCEL_LINES, close_workbook, write_cell
from missratio.exceptions import TableError


class BatchWriter:
    """Record batches to a file, which is opened by the first.

    Parameters
    ----------
    path : Path
        Ends in .csv, .parquet or .xlsx.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._kind = path, kind_of(path)
        self._writer: Any = None

    def __enter__(self) -> BatchWriter:
        return self

    def __exit__(self, *_: object) -> None:
        if self._writer is not None:
            self._writer.close()

    def write(self, batch: Any) -> None:
        """Add a record batch."""
        if self._writer is None:
            self._writer = self._open(batch.schema)
        self._writer.write_batch(batch)

    def _open(self, schema: Any) -> Any:
        if self._kind == "csv":
            from pyarrow import csv

            options = csv.WriteOptions(quoting_style="needed")
            return csv.CSVWriter(self._path, schema, write_options=options)
        if self._kind == "excel":
            return _ExcelWriter(self._path, schema.names)
        from pyarrow import parquet

        return parquet.ParquetWriter(
            self._path, schema, compression="zstd", write_page_checksum=True
        )


class _ExcelWriter:
    """Rows to one sheet, of which only the current row is in memory."""

    def __init__(self, path: Path, names: list[str]) -> None:
        try:
            xlsxwriter = import_module("xlsxwriter")
        except ImportError as error:
            raise ModuleNotFoundError(
                "Excel files need xlsxwriter: pip install 'missratio[tables]'. CSV and "
                "Parquet need nothing more."
            ) from error
        self._book = xlsxwriter.Workbook(str(path), {"constant_memory": True})
        self._sheet = self._book.add_worksheet("predictions")
        bold = self._book.add_format({"bold": True})
        for place, name in enumerate(names):
            self._sheet.write_string(0, place, name, bold)
        self._sheet.freeze_panes(1, 0)
        self._line = 1

    def write_batch(self, batch: Any) -> None:
        if self._line + len(batch) > EXCEL_LINES:
            raise TableError(
                f"An Excel sheet has {EXCEL_LINES:,} lines, and there are more "
                "predictions: write them as .csv or .parquet."
            )
        columns = [column.to_pylist() for column in batch.columns]
        for cells in zip(*columns, strict=True):
            for place, cell in enumerate(cells):
                write_cell(self._sheet, self._line, place, cell)
            self._line += 1

    def close(self) -> None:
        close_workbook(self._book)
