"""Tables that people fill in: CSV, Parquet and Excel files, or dataframes."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from missratio._base.hints import listed
from missratio._base.reading import as_frame
from missratio._files import TableFile, open_table, written_whole
from missratio._files.delimited import ragged
from missratio._files.numbers import Mark, is_blank, with_formula, without_formula
from missratio._files.workbooks import EXCEL_LINES, close_workbook, write_cell
from missratio.exceptions import DestinationError, Message, Remedy, TableError

Columns = dict[str, list[Any]]

SHEET = "queries"
HOW_TO_FILL_IN = (
    "From the top down, as far as you get, in the units of the table. Write 'not "
    "found' where a value can't be had."
)
_PACKAGES = {"pyarrow.parquet": "pyarrow", "xlsxwriter": "xlsxwriter"}


@dataclass(frozen=True)
class Lines:
    """The lines of a table that was read, blank ones left out.

    Parameters
    ----------
    columns : dict of str to list
    places : list of str
        Where each line is, for messages.
    marks : frozenset of {",", "."}
        The decimal marks of the file, for columns that don't settle it themselves.
    """

    columns: Columns
    places: list[str]
    marks: frozenset[Mark] = frozenset()


def write_table(
    columns: Columns, path: str | Path, *, force: bool, escape_formulas: bool
) -> None:
    """Write columns as a CSV, Parquet or Excel file, whole or not at all.

    A file that exists is left as it is unless `force` is true.
    """
    path = Path(path)
    if escape_formulas and path.suffix.lower() == ".csv":
        columns = {name: _escaped(cells) for name, cells in columns.items()}
    write = _WRITERS.get(path.suffix.lower())
    if write is None:
        raise ValueError(
            f"The kind of a file is told by its suffix: got {path.name!r}. Choose one "
            f"of {listed(_WRITERS)}."
        )
    if path.is_file() and not force:
        raise DestinationError(
            Message(
                "{file} exists, and may have answers in it.",
                facts={"file": path},
                remedies=("choose another name", Remedy.OVERWRITE),
            )
        )
    with written_whole(path, force=force) as draft:
        write(columns, draft)


def _escaped(cells: list[Any]) -> list[Any]:
    return [without_formula(each) if isinstance(each, str) else each for each in cells]


def read_table(source: Any, required: Sequence[str]) -> Lines:
    """Read a table with a header from a file or a dataframe.

    Columns other than the required ones may be there or not, in any order.
    """
    frame = as_frame(source)
    if frame is not None:
        columns = {str(name): frame[name].to_list() for name in frame.columns}
        places = [f"line {line} of the dataframe" for line in range(len(frame))]
        lines = Lines(columns, places)
    elif isinstance(source, str | Path):
        # Spreadsheets on Windows save in an encoding of their own. A name misread is
        # noticed later: features must be those of X.
        table = open_table(Path(source), fallback="cp1252", preferred=SHEET)
        lines = _from_file(table)
    else:
        raise TypeError(
            f"Answers are read from a path or a dataframe: got {type(source).__name__}."
        )
    _check_header(lines.columns, required)
    kept = [
        line
        for line in range(len(lines.places))
        if not all(is_blank(lines.columns[name][line]) for name in required)
    ]
    return Lines(
        {name: [cells[line] for line in kept] for name, cells in lines.columns.items()},
        [lines.places[line] for line in kept],
        lines.marks,
    )


def _from_file(table: TableFile) -> Lines:
    """All lines of a file. Cells that are absent from the end of a line are blank."""
    table.check_doubled()
    names, numbers, lines = table.names, [], []
    for number, line in table.lines():
        if not all(is_blank(cell) for cell in line[len(names) :]):
            raise ragged(table.file, number, len(line), len(names))
        numbers.append(number)
        lines.append(line)
    return Lines(
        {
            name: [_cell(line[place]) if place < len(line) else None for line in lines]
            for place, name in enumerate(names)
            if name
        },
        [f"{table.path.name}, line {number}" for number in numbers],
        frozenset(table.marks),
    )


def _cell(cell: Any) -> Any:
    return with_formula(cell) if isinstance(cell, str) else cell


def _check_header(columns: Columns, required: Sequence[str]) -> None:
    absent = [name for name in required if name not in columns]
    if absent:
        raise TableError(
            f"A plan has the columns {listed(required)}: {listed(absent)} not found "
            f"among {listed(columns)}. Keep the header as it was written."
        )


def _optional_module(name: str) -> Any:
    """Import a module of the extra `tables`, or say how to get it."""
    try:
        return import_module(name)
    except ImportError as error:
        package = _PACKAGES[name]
        raise ImportError(
            f"This kind of file needs {package}: install it, or missratio's extra "
            "with all of them, by pip install 'missratio[tables]'. CSV needs nothing."
        ) from error


def _write_csv(columns: Columns, path: Path) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(columns)
    writer.writerows(
        ["" if cell is None else cell for cell in row]
        for row in zip(*columns.values(), strict=True)
    )
    # Excel takes a file without the mark for one in the system's old encoding; other
    # readers are better off without it, so only text that needs it gets it.
    content = text.getvalue()
    encoding = "utf-8" if content.isascii() else "utf-8-sig"
    path.write_bytes(content.encode(encoding))


def _write_parquet(columns: Columns, path: Path) -> None:
    parquet, arrow = _optional_module("pyarrow.parquet"), import_module("pyarrow")
    parquet.write_table(
        arrow.table(columns), path, write_page_checksum=True, compression="zstd"
    )


def _write_excel(columns: Columns, path: Path) -> None:
    n_lines = len(next(iter(columns.values())))
    if n_lines >= EXCEL_LINES:
        raise ValueError(
            f"An Excel sheet has {EXCEL_LINES} lines, and the plan {n_lines + 1}: "
            "write it as CSV or Parquet."
        )
    book = _optional_module("xlsxwriter").Workbook(path)
    sheet = book.add_worksheet(SHEET)
    bold = book.add_format({"bold": True})
    to_fill_in = book.add_format({"bg_color": "#FFF8DC"})
    for place, (name, cells) in enumerate(columns.items()):
        width = max(len(str(cell)) for cell in [name, *cells])
        sheet.set_column(place, place, min(width + 2, 40))
        sheet.write_string(0, place, name, bold)
        style = to_fill_in if name == "value" else None
        if name == "value":
            sheet.write_comment(0, place, HOW_TO_FILL_IN)
        for line, cell in enumerate(cells, start=1):
            write_cell(sheet, line, place, cell, style)
    sheet.freeze_panes(1, 0)
    close_workbook(book)


_WRITERS: dict[str, Callable[[Columns, Path], None]] = {
    ".csv": _write_csv,
    ".parquet": _write_parquet,
    ".xlsx": _write_excel,
}
