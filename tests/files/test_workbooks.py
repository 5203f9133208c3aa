"""Workbooks are read as they look in a spreadsheet, or refused with what to do."""

import errno
import zipfile
from datetime import date, time

import pytest
from optional_packages import optional

from missratio._files import open_table
from missratio._files.workbooks import close_workbook
from missratio.exceptions import TableError

xlsxwriter = optional("xlsxwriter")


@pytest.fixture
def book(tmp_path):
    def write(*lines, name="t.xlsx"):
        path = tmp_path / name
        with xlsxwriter.Workbook(path) as made:
            sheet = made.add_worksheet("data")
            formats = {
                date: made.add_format({"num_format": "yyyy-mm-dd"}),
                time: made.add_format({"num_format": "hh:mm:ss"}),
            }
            for i, line in enumerate(lines):
                for j, cell in enumerate(line):
                    form = formats.get(type(cell))
                    if form is None:
                        sheet.write(i, j, cell)
                    else:
                        sheet.write_datetime(i, j, cell, form)
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


def test_an_empty_sheet_is_named(book):
    with pytest.raises(TableError, match="sheet 'data' is empty"):
        assert open_table(book()).names


@pytest.mark.parametrize("line", [2, 9])
def test_a_header_must_be_in_the_line_that_was_told(book, line):
    path = book(["title"], [], ["a", "y"], [1, 0])
    with pytest.raises(TableError, match=rf"no header in line {line}.*--header-row"):
        assert open_table(path, header_row=line).names
    assert open_table(path, header_row=3).names == ["a", "y"]


def test_a_workbook_packed_in_another_way_is_refused(book):
    path = book(["a", "y"], [1, 0])
    with zipfile.ZipFile(path) as packed:
        parts = {name: packed.read(name) for name in packed.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as packed:
        for name, content in parts.items():
            packed.writestr(name, content)
    with pytest.raises(TableError, match="packed in a way that workbooks aren't"):
        assert open_table(path).names


def test_gzip_is_for_csv_alone(book):
    path = book(["a", "y"], [1, 0])
    packed = path.with_name("t.xlsx.gz")
    path.rename(packed)
    with pytest.raises(TableError, match=r"t\.xlsx\.gz"):
        open_table(packed)


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"There is no folder .*nowhere either"):
        open_table(tmp_path / "nowhere" / "t.csv")


@pytest.fixture
def failing(tmp_path):
    """A workbook of xlsxwriter's whose writing ends in an error."""
    made = xlsxwriter.Workbook(tmp_path / "failing.xlsx")

    def fail_by(error):
        def store():
            raise error

        made._store_workbook = store
        return made

    yield fail_by
    # Or it would be tried again when it is forgotten.
    made._store_workbook = lambda: None
    made.close()


def test_a_full_disk_is_an_error_of_the_system(failing):
    full = OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(OSError, match="No space left") as caught:
        close_workbook(failing(full))
    assert caught.value is full


def test_other_errors_keep_their_names(failing):
    with pytest.raises(KeyError, match="sheet"):
        close_workbook(failing(KeyError("sheet")))
