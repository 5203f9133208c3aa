"""Workbooks are read as they look in a spreadsheet, or refused with what to do."""

import errno
import io
import zipfile
from contextlib import closing
from datetime import date, time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from optional_packages import optional

from missratio._files import open_table, written_whole
from missratio._files.parquet import find_row_groups
from missratio._files.workbooks import SheetWriter
from missratio.exceptions import TableError, UnreadableFileError

xlsxwriter = optional("xlsxwriter")


@pytest.fixture
def book(tmp_path):
    def write(*lines):
        path = tmp_path / "t.xlsx"
        with xlsxwriter.Workbook(path) as made:
            sheet = made.add_worksheet("data")
            looks = ((date, "yyyy-mm-dd"), (time, "hh:mm:ss"))
            formats = {kind: made.add_format({"num_format": x}) for kind, x in looks}
            for i, line in enumerate(lines):
                for j, cell in enumerate(line):
                    sheet.write(i, j, cell, formats.get(type(cell)))
        return path

    return write


def column(path, name, **how):
    (batch,) = open_table(path, **how).batches([name])
    return batch.column(0).to_pylist()


def test_in_a_column_with_texts_cells_are_written_as_they_look(book):
    path = book(
        ["a", "y"], ["none", 1], [3, 1], [2.5, 0], [date(2024, 2, 29), 0],
        [time(13, 45), 1], ["", 0],
    )  # fmt: skip
    assert column(path, "a") == ["none", "3", "2.5", "2024-02-29", "13:45:00", ""]
    assert column(path, "y") == [1.0, 1.0, 0.0, 0.0, 1.0, 0.0]


def test_no_module_of_the_folder_is_run(book, tmp_path, monkeypatch):
    path, ran = book(["a", "y"], [1, 0]), tmp_path / "ran"
    for name in ("json", "datetime", "python_calamine"):
        (tmp_path / f"{name}.py").write_text(f"open({str(ran)!r}, 'w')")
    monkeypatch.chdir(tmp_path)
    assert open_table(path).names == ["a", "y"]
    assert not ran.exists()


def test_an_empty_sheet_is_named(book):
    with pytest.raises(TableError, match="sheet 'data' is empty"):
        assert open_table(book()).names


@pytest.mark.parametrize("line", [2, 9])
def test_a_header_must_be_in_the_line_that_was_told(book, line):
    path = book(["title"], [], ["a", "y"], [1, 0])
    with pytest.raises(TableError, match=rf"no header in line {line}.*--header-row"):
        assert open_table(path, header_row=line).names
    assert open_table(path, header_row=3).names == ["a", "y"]


def test_gzip_is_for_csv_alone_and_a_folder_that_is_not_there_is_named(tmp_path):
    (tmp_path / "t.xlsx.gz").write_bytes(b"PK")
    with pytest.raises(TableError, match=r"t\.xlsx\.gz"):
        open_table(tmp_path / "t.xlsx.gz")
    with pytest.raises(FileNotFoundError, match=r"There is no folder .*nowhere either"):
        open_table(tmp_path / "nowhere" / "t.csv")


def test_names_and_texts_are_no_formulas(tmp_path):
    cells = ["=1+1", "{=1}", "https://example.org", "@x", "\t=1"]
    with closing(SheetWriter(tmp_path / "t.xlsx", "data", cells)) as sheet:
        sheet.write([[cell] for cell in cells])
    table = open_table(tmp_path / "t.xlsx")
    assert table.names == [cell.strip() for cell in cells]
    with zipfile.ZipFile(tmp_path / "t.xlsx") as archive:
        parts = [archive.read(name) for name in archive.namelist()]
    assert not any(b"<f>" in part or b"<hyperlink" in part for part in parts)
    assert any(b">1980-01-01T00:00:00Z<" in part for part in parts)


@pytest.mark.parametrize(
    "step", ["pathlib.Path.write_bytes", "xlsxwriter.packager.Packager._create_package"]
)
def test_a_full_disk_is_the_systems_own_error_and_leaves_nothing(
    tmp_path, monkeypatch, step
):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(step, full)
    path = tmp_path / "t.xlsx"
    with (
        pytest.raises(OSError, match="No space left"),
        written_whole(path, force=True) as draft,
        closing(SheetWriter(draft, "data", ["a"], fits=True)) as sheet,
    ):
        sheet.write([["x"] * 1000])
    assert list(tmp_path.iterdir()) == []


# Parquet files: sound ones are read by both doors, and forged ones are refused.


def by_row_groups(path, columns):
    _, groups = find_row_groups(path)
    return [list(group.batches(columns, 700)) for group in groups]


DOORS = [
    lambda path, columns: open_table(path).read(columns),
    lambda path, columns: list(open_table(path).batches(columns)),
    by_row_groups,
]


def varint(number):
    number <<= 1
    data = bytearray()
    while number > 127:
        data.append(number & 127 | 128)
        number >>= 7
    return bytes([*data, number])


def written(compression, **columns):
    buffer = io.BytesIO()
    pq.write_table(
        pa.table(columns), buffer, use_dictionary=False, compression=compression,
        write_statistics=False, store_schema=False,
    )  # fmt: skip
    return bytearray(buffer.getvalue())


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("count", [500, 999, 1001, 9000])
@pytest.mark.parametrize("names", ["a", "ab"])
def test_a_page_with_another_number_of_values_is_refused(tmp_path, door, count, names):
    content = written("none", **{name: np.arange(1000.0) for name in names})
    place = content.index(varint(1000))
    content[place : place + 2] = varint(count)[:2]
    path = tmp_path / "t.parquet"
    path.write_bytes(content)
    with pytest.raises((TableError, UnreadableFileError), match=r"t\.parquet"):
        door(path, list(names))


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("packed", [False, True])
def test_a_page_that_claims_a_gigabyte_is_refused_and_has_none(tmp_path, door, packed):
    resource = pytest.importorskip("resource")
    content = written("snappy", a=np.arange(100.0))
    column = pq.ParquetFile(io.BytesIO(content)).metadata.row_group(0).column(0)
    start = column.data_page_offset
    claimed = varint(2**30)
    assert content[start : start + 3] == b"\x15\x00\x15"
    # Its size unpacked is the header's second field, and that in the file the third.
    begin = start + 3
    if packed:
        begin = content.index(b"\x15", begin) + 1
    end = content.index(b"\x2c" if packed else b"\x15", begin)
    longer = len(claimed) - (end - begin)
    content[begin:end] = claimed
    # The footer knows of the longer header, so that nothing else is wrong.
    size = column.total_compressed_size
    footer = content.rindex(varint(size), 0, len(content) - 8)
    for place in (footer, content.rindex(varint(size), 0, footer)):
        content[place : place + len(varint(size))] = varint(size + longer)
    path = tmp_path / "t.parquet"
    path.write_bytes(content)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises((TableError, UnreadableFileError), match=r"t\.parquet"):
        door(path, ["a"])
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000
