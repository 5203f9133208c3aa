"""Tables that people fill in: CSV, Parquet and Excel files, written whole and read."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any
from uuid import uuid4

from missratio._hints import listed
from missratio.learning._plan_numbers import Mark, is_blank
from missratio.missingness.arrays import as_frame

Columns = dict[str, list[Any]]

SHEET = "queries"
HOW_TO_FILL_IN = (
    "From the top down, as far as you get, in the units of the table. Write 'not "
    "found' where a value can't be had."
)
_EXCEL_LINES = 1_048_576
_EXCEL_INTEGERS = 10**15
_PACKAGES = {
    "python_calamine": "python-calamine",
    "pyarrow.parquet": "pyarrow",
    "xlsxwriter": "xlsxwriter",
}


@dataclass(frozen=True)
class Lines:
    """The lines of a table that was read, blank ones left out.

    Parameters
    ----------
    columns : dict of str to list
    places : list of str
        Where each line is, for messages.
    marks : frozenset of {",", "."}
        The decimal mark that the kind of file lets expect, if any.
    """

    columns: Columns
    places: list[str]
    marks: frozenset[Mark] = frozenset()


@dataclass(frozen=True)
class _Sheet:
    """A header and lines, each with its number in the file."""

    header: Sequence[Any]
    lines: Sequence[Sequence[Any]]
    numbers: list[int]
    marks: frozenset[Mark] = frozenset()


def write_table(columns: Columns, path: str | Path, *, force: bool) -> None:
    """Write columns as a CSV, Parquet or Excel file, whole or not at all.

    A file that exists is left as it is unless `force` is true.
    """
    path = Path(path)
    write = _by_suffix(path, _WRITERS)
    if path.exists() and not force:
        raise FileExistsError(
            f"{path} exists, and may have answers in it. Choose another name, or "
            "force=True to overwrite it."
        )
    if not path.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {path.parent} to write into.")
    # Beside its destination, so that the last step is a rename within one file system.
    draft = path.with_name(f".{path.stem}-{uuid4().hex}{path.suffix}")
    try:
        write(columns, draft)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def read_table(source: Any, required: Sequence[str]) -> Lines:
    """Read a table with a header from a file or a dataframe.

    Spreadsheets' byte-order marks, separators and blank lines are seen through. Columns
    other than the required ones may be there or not, in any order.
    """
    frame, marks = as_frame(source), frozenset[Mark]()
    if frame is not None:
        columns = {str(name): frame[name].to_list() for name in frame.columns}
        places = [f"line {line} of the dataframe" for line in range(len(frame))]
    elif isinstance(source, str | Path):
        path = Path(source)
        sheet: _Sheet = _by_suffix(path, _READERS)(path)
        columns, marks = _as_columns(sheet, path), sheet.marks
        places = [f"{path.name}, line {number}" for number in sheet.numbers]
    else:
        raise TypeError(
            f"Answers are read from a path or a dataframe: got {type(source).__name__}."
        )
    _check_header(columns, required)
    kept = [
        line
        for line in range(len(places))
        if not all(is_blank(columns[name][line]) for name in required)
    ]
    return Lines(
        {name: [cells[line] for line in kept] for name, cells in columns.items()},
        [places[line] for line in kept],
        marks,
    )


def optional_module(name: str) -> Any:
    """Import a module of the extra `tables`, or say how to get it."""
    try:
        return import_module(name)
    except ImportError as error:
        package = _PACKAGES[name]
        raise ImportError(
            f"This kind of file needs {package}: install it, or missratio's extra "
            "with all of them, by pip install 'missratio[tables]'. CSV needs nothing."
        ) from error


def _by_suffix(
    path: Path, choices: dict[str, Callable[..., Any]]
) -> Callable[..., Any]:
    try:
        return choices[path.suffix.lower()]
    except KeyError:
        raise ValueError(
            f"The kind of a file is told by its suffix: got {path.name!r}. Choose one "
            f"of {listed(choices)}."
        ) from None


def _check_header(columns: Columns, required: Sequence[str]) -> None:
    absent = [name for name in required if name not in columns]
    if absent:
        raise ValueError(
            f"A plan has the columns {listed(required)}: {listed(absent)} not found "
            f"among {listed(columns)}. Keep the header as it was written."
        )


def _as_columns(sheet: _Sheet, path: Path) -> Columns:
    names = [str(name).strip() for name in sheet.header]
    doubled = sorted({name for name in names if name and names.count(name) > 1})
    if doubled:
        raise ValueError(f"{path.name} has several columns named {listed(doubled)}.")
    for line, number in zip(sheet.lines, sheet.numbers, strict=True):
        if not all(is_blank(cell) for cell in line[len(names) :]):
            raise ValueError(
                f"{path.name}, line {number}: {len(line)} cells for {len(names)} "
                "columns. Was a decimal comma taken for a separator? Write a point."
            )
    return {
        name: [line[place] if place < len(line) else None for line in sheet.lines]
        for place, name in enumerate(names)
        if name
    }


# CSV


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


def _read_csv(path: Path) -> _Sheet:
    text = _decode(path.read_bytes())
    # The separator is that of the header, whose names hold none of these.
    first = text.lstrip("\r\n").partition("\n")[0]
    separator = max(",;\t", key=first.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    lines, numbers = [], []
    for line in reader:
        if line:
            lines.append(line)
            numbers.append(reader.line_num)
    # Spreadsheets separate by semicolons where the comma is the decimal mark.
    marks: frozenset[Mark] = frozenset({","}) if separator == ";" else frozenset()
    return _with_header(path, lines, numbers, marks)


def _decode(content: bytes) -> str:
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return content.decode("utf-16")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        # What spreadsheets on Windows save by default. A name misread is caught later:
        # features must be those of X.
        return content.decode("cp1252", errors="replace")


def _with_header(
    path: Path,
    lines: list[Any],
    numbers: list[int],
    marks: frozenset[Mark] = frozenset(),
) -> _Sheet:
    if not lines:
        raise ValueError(f"{path.name} is empty: a plan has a header at least.")
    return _Sheet(lines[0], lines[1:], numbers[1:], marks)


# Parquet


def _write_parquet(columns: Columns, path: Path) -> None:
    parquet, arrow = optional_module("pyarrow.parquet"), import_module("pyarrow")
    parquet.write_table(
        arrow.table(columns), path, write_page_checksum=True, compression="zstd"
    )


def _read_parquet(path: Path) -> _Sheet:
    parquet = optional_module("pyarrow.parquet")
    table = parquet.read_table(path, page_checksum_verification=True)
    rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    return _Sheet(table.column_names, rows, list(range(1, len(rows) + 1)))


# Excel


def _write_excel(columns: Columns, path: Path) -> None:
    n_lines = len(next(iter(columns.values())))
    if n_lines >= _EXCEL_LINES:
        raise ValueError(
            f"An Excel sheet has {_EXCEL_LINES} lines, and the plan {n_lines + 1}: "
            "write it as CSV or Parquet."
        )
    book = optional_module("xlsxwriter").Workbook(path)
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
            if cell is None:
                sheet.write_blank(line, place, None, style)
            elif isinstance(cell, str | bool) or abs(cell) >= _EXCEL_INTEGERS:
                # As text: no name is taken for a formula, no long number rounded.
                sheet.write_string(line, place, str(cell), style)
            else:
                sheet.write_number(line, place, cell, style)
    sheet.freeze_panes(1, 0)
    book.close()


def _read_excel(path: Path) -> _Sheet:
    book = optional_module("python_calamine").CalamineWorkbook.from_path(path)
    name = SHEET if SHEET in book.sheet_names else book.sheet_names[0]
    lines = book.get_sheet_by_name(name).to_python(skip_empty_area=False)
    numbers = [n for n, line in enumerate(lines, 1) if any(cell != "" for cell in line)]
    return _with_header(path, [lines[number - 1] for number in numbers], numbers)


_WRITERS: dict[str, Callable[..., Any]] = {
    ".csv": _write_csv,
    ".parquet": _write_parquet,
    ".xlsx": _write_excel,
}
_READERS: dict[str, Callable[..., Any]] = {
    ".csv": _read_csv,
    ".tsv": _read_csv,
    ".txt": _read_csv,
    ".parquet": _read_parquet,
    ".xlsx": _read_excel,
    ".xls": _read_excel,
    ".ods": _read_excel,
}
