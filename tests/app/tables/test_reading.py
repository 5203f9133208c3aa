"""Tables as people have them are read, or refused with where and what to do."""

import gzip

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from optional_packages import optional

from missratio._files import open_table
from missratio.app.tables import Wanted, read_labelled
from missratio.exceptions import TableError

xlsxwriter = optional("xlsxwriter")


def read(path, encoding=None, sheet=None, **wanted):
    source = open_table(path, encoding=encoding, sheet=sheet)
    return read_labelled(source, Wanted("y", **wanted))


@pytest.fixture
def csv(tmp_path):
    def write(content, name="table.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def same(X, expected):
    np.testing.assert_array_equal(X, np.array(expected, dtype=float))


NAN = np.nan


@pytest.mark.parametrize("blank", ["", " ", "NA", "NaN", "nan", "null", "NULL", "n/a"])
def test_blank_cells_are_missing(csv, blank):
    table = read(csv(f"a,b,y\n1,{blank},0\n{blank},2,1\n3,4,1\n"))
    same(table.X, [[1, NAN], [NAN, 2], [3, 4]])


def test_what_is_told_to_be_missing_is(csv):
    table = read(csv("a,b,y\n1,-999.0,0\n?,-999,1\n"), missing_values=["-999", "?"],
                 drop=["b"])  # fmt: skip
    same(table.X, [[1], [NAN]])
    table = read(csv("a,b,y\n1,-999.0,0\n2,-999,1\n3,4,1"), missing_values=["-999"])
    same(table.X, [[1, NAN], [2, NAN], [3, 4]])


def test_byte_order_mark_and_blank_lines_are_seen_through(csv):
    table = read(csv(b"\xef\xbb\xbf\r\n\r\na,b,y\r\n1,2,0\r\n\r\n,,\r\n3,4,1\r\n"))
    same(table.X, [[1, 2], [3, 4]])
    assert table.encoder.names == ["a", "b"]
    assert table.n_blank == 1
    assert table.rows.tolist() == [0, 2]


def test_blank_row_is_left_out_where_a_blank_is_a_category(csv):
    path = csv("a,b,y\n1,red,0\n2,,1\n,,\n3,blue,1\n")
    table = read(path, blank_level=True)
    assert table.n_blank == 1
    assert table.encoder.columns[1].levels == ("blue", "red", "")


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_other_separators_and_decimal_commas(csv, separator):
    text = "a,b,y\n1.5,2,0\n2.25,3,1\n".replace(",", separator).replace(".", ",")
    same(read(csv(text)).X, [[1.5, 2], [2.25, 3]])


def test_utf16_is_told_by_its_mark(csv):
    table = read(csv("ä,y\nrot,0\nblau,1\n".encode("utf-16")))
    assert table.encoder.encoded_names == ["ä=rot"]


def test_other_encodings_are_told(csv):
    path = csv("ä,y\nrötlich,0\nblau,1\n".encode("cp1252"))
    assert read(path, encoding="cp1252").encoder.encoded_names == ["ä=rötlich"]
    with pytest.raises(TableError, match=r"line 1, has a byte 0xe4 .* --encoding"):
        read(path)
    with pytest.raises(TableError, match="no encoding 'cp9999'"):
        read(path, encoding="cp9999")


def test_bytes_that_are_not_utf8_are_found_deep_in_a_file(csv):
    rows = b"".join(b"%d,x,0\n" % i for i in range(20_000))
    path = csv(b"a,b,y\n" + rows + b"1,caf\xe9,1\n")
    with pytest.raises(TableError, match="line 20002, has a byte 0xe9"):
        read(path)


def test_compressed_csv(csv):
    path = csv(gzip.compress(b"a,y\n1,0\n2,1\n"), "table.csv.gz")
    same(read(path).X, [[1], [2]])
    with pytest.raises(TableError, match="damaged"):
        read(csv(gzip.compress(b"a,y\n1,0\n" * 9000)[:-20], "cut.csv.gz"))


def test_quoted_cells_hold_separators_and_line_breaks(csv):
    table = read(csv('a,b,y\n1,"x,\ny",0\n2,"z",1\n'))
    assert table.encoder.columns[1].levels == ("x,\ny", "z")


def test_labels_are_whole_numbers_or_texts(csv):
    assert read(csv("a,y\n1,0\n2,1\n")).y.tolist() == [0, 1]
    assert read(csv("a,y\n1,no\n2,yes\n")).y.tolist() == ["no", "yes"]
    assert read(csv("a,y\n1, 2\n2,10\n")).counts == {2: 1, 10: 1}


REFUSED = {
    "": "is empty, 0 bytes",
    "\n \n": "blank lines only",
    "a,b,y\n": "a header and no rows",
    "a,a,y\n1,2,0\n": "several columns named 'a'",
    "a,,y\n1,2,0\n": "number 2 of 3 have no name",
    "a,b,y\n1,2,0\n1,2,0,4\n": "line 3: 4 cell.* for 3 columns",
    "a,b,y\n1,2,0\n\n1,2\n": "line 4: 2 cell.* for 3 columns",
    "a,b,y\n1,2,0\nx,2,0\n3,2,1\n": "2 numbers and 1 cell.* 'x' in line 3 .* --missing",
    "a,b,y\n1,,0\n2,,1\n": "'b' has no value in any row.*--drop b",
    "a,b,y\n1,u,0\n2,u,1\n": "'b' is 'u' in every row",
    "a,b,y\n1,2,0\n2,3,\n": "1 row.* no label in 'y', the first is line 3",
    "a,b,Y\n1,2,0\n": "--target 'y' is not a column .* Did you mean 'Y'",
    "y\n1\n": "no column but the target",
    "PAR1....": "is no text but a Parquet file",
    "PK\x03\x04..": "a zip archive or an Excel file",
    "a\0b": "bytes that are not text",
}


@pytest.mark.parametrize("content", REFUSED, ids=REFUSED.values())
def test_what_cannot_be_used_is_refused_and_left_as_it_was(csv, content):
    path = csv(content)
    with pytest.raises(TableError, match=REFUSED[content]):
        read(path)
    assert path.read_bytes() == content.encode()


def test_names_and_dates_are_not_categories(csv):
    rows = "\n".join(f"{i},P{i},{i % 2}" for i in range(200))
    with pytest.raises(TableError, match=r"200 different texts, .*--drop id"):
        read(csv(f"a,id,y\n{rows}\n"))


def test_infinite_numbers_are_refused(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": [1.0, np.inf], "y": [0, 1]}), path)
    with pytest.raises(TableError, match="'a' must be finite: got inf in row 2"):
        read(path)


def test_folders_and_absent_files_are_refused(tmp_path, csv):
    with pytest.raises(TableError, match="is a folder"):
        open_table(tmp_path)
    csv("a,y\n1,0\n", "patients.csv")
    with pytest.raises(FileNotFoundError, match=r"Did you mean .*patients\.csv"):
        open_table(tmp_path / "patiens.csv")
    with pytest.raises(TableError, match="suffix must say its kind"):
        open_table(csv("x", "table.docx"))


def test_ten_thousand_columns_are_read(csv):
    names = ",".join(f"c{j}" for j in range(10_000))
    cells = ",".join(["1.5"] * 10_000)
    table = read(csv(f"{names},y\n{cells},0\n{cells},1\n"))
    assert table.X.shape == (2, 10_000)


def test_parquet_types_are_read(tmp_path):
    path = tmp_path / "t.parquet"
    columns = {
        "whole": pa.array([1, None, 3]),
        "single": pa.array([1.5, None, 2.5], pa.float32()),
        "flag": pa.array([True, False, None]),
        "colour": pa.array(["red", None, "blue"]).dictionary_encode(),
        "y": pa.array(["a", "b", "b"], pa.large_string()),
    }
    pq.write_table(pa.table(columns), path)
    table = read(path)
    same(table.X, [[1, 1.5, 1, 1], [NAN, NAN, 0, NAN], [3, 2.5, NAN, 0]])
    assert table.encoder.encoded_names == ["whole", "single", "flag", "colour=red"]
    assert table.missing_counts("b") == dict.fromkeys(table.encoder.names, 1)


def test_dates_and_lists_are_refused(tmp_path):
    path = tmp_path / "t.parquet"
    day = pa.array([0, 1], pa.date32())
    pq.write_table(pa.table({"day": day, "y": [0, 1]}), path)
    with pytest.raises(TableError, match=r"type date32.*--drop day"):
        read(path)


def test_damaged_parquet_is_refused(tmp_path):
    path = tmp_path / "t.parquet"
    table = pa.table({"a": np.arange(10_000.0), "y": np.arange(10_000) % 2})
    pq.write_table(table, path, write_page_checksum=True)
    content = bytearray(path.read_bytes())
    content[2000] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(TableError, match="can't be read as a Parquet file"):
        read(path)
    path.write_bytes(content[:1000])
    with pytest.raises(TableError, match="can't be read as a Parquet file"):
        read(path)


def test_workbooks_are_read_by_sheet(tmp_path):
    path = tmp_path / "t.xlsx"
    with xlsxwriter.Workbook(path) as book:
        book.add_worksheet("notes").write(0, 0, "nothing here")
        sheet = book.add_worksheet("data")
        for i, row in enumerate([["a", "b", "y"], [1.5, "red", 1], ["", "blue", 0]]):
            sheet.write_row(2 + i, 1, row)
    table = read(path, sheet="data")
    same(table.X, [[1.5, 1], [NAN, 0]])
    assert table.y.tolist() == [1, 0]
    with pytest.raises(TableError, match="no sheet 'dta'"):
        read(path, sheet="dta")
    with pytest.raises(TableError, match="--target 'y' is not a column"):
        read(path)
    path.write_bytes(b"no workbook")
    with pytest.raises(TableError, match="can't be read as a workbook"):
        read(path)
