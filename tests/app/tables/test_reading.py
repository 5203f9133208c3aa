"""Tables as people have them are read as they were meant, or refused."""

import gzip
import os
import zipfile
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from data import read_table, write_table
from optional_packages import optional

from missratio._files import open_table
from missratio.app.tables.labelled import read_labelled
from missratio.exceptions import TableError

xlsxwriter = optional("xlsxwriter")


@pytest.fixture
def read(tmp_path):
    """Write a file, and read it as a labelled table."""

    def command(content, name="t.csv", **how):
        return read_table(write_table(tmp_path / name, content), **how)

    return command


def same(X, expected):
    np.testing.assert_array_equal(X, np.array(expected, dtype=float))


NAN = np.nan


def test_byte_order_mark_and_blank_lines_are_seen_through(read):
    table = read(b"\xef\xbb\xbf\r\n\r\na,b,y\r\n1,2,0\r\n\r\n,,\r\n3,4,1\r\n")
    same(table.X, [[1, 2], [3, 4]])
    assert table.encoder.names == ["a", "b"]
    assert table.rows.tolist() == [0, 2]


def test_other_encodings_are_told(read):
    content = "ä,y\nrötlich,0\nblau,1\n".encode("cp1252")
    assert read(content, encoding="cp1252").encoder.encoded_names == ["ä=rötlich"]
    with pytest.raises(TableError, match=r"line 1, has a byte 0xe4 .* --encoding"):
        read(content)
    for unknown in ("cp9999", "hex", "rot13"):
        with pytest.raises(TableError, match=f"no encoding '{unknown}'"):
            read(content, encoding=unknown)


BLANKS = ["", " ", "NA", "NaN", "nan", "null", "NULL", "n/a"]
# What a table says, and the matrix that is meant.
MEANT = {
    **{
        f"a,b,y\n1,{x},0\n{x},2,1\n3,4,1\n": [[1, NAN], [NAN, 2], [3, 4]]
        for x in BLANKS
    },
    **{
        f"a{s}b{s}y\n1,5{s}2{s}0\n2,25{s}3{s}1\n": [[1.5, 2], [2.25, 3]] for s in ";\t|"
    },
    "sep=;\r\na;b;y\r\n1,5;2;p\r\n2,5;3;q\r\n": [[1.5, 2], [2.5, 3]],
    # Grouped for certain; decimal points in the column itself.
    "a;b;y\n3,5;1.234.567;0\n2,5;1.234,5;1\n": [[3.5, 1234567], [2.5, 1234.5]],
    "a|b|y\n3,5|1.234|0\n2,5|0.5|1\n": [[3.5, 1.234], [2.5, 0.5]],
    "a;y\n1.234;0\n2.34;1\n": [[1.234], [2.34]],
    "a,y\n1.234,0\n2.345,1\n": [[1.234], [2.345]],
    'a,y\n"1,234.5",0\n"2,5",1\n': [[1234.5], [2.5]],
    "a;b;y\n12,5 %;12%;0\n;-7 %;1\n7 %;;1": [[0.125, 0.12], [NAN, -0.07], [0.07, NAN]],
    # Floats hold some whole numbers beyond 2**53.
    f"a,y\n{2**60},0\n1e20,1\n": [[2**60], [1e20]],
}


@pytest.mark.parametrize("content", MEANT)
def test_numbers_and_blanks_are_read_as_they_were_meant(read, content):
    same(read(content).X, MEANT[content])


def test_what_is_told_to_be_missing_is(read):
    content = "a,b,y\n1,-999.0,0\n?,-999,1\n3,4,1\n5,6,0"
    table = read(content, missing_values=["-999", "?"])
    same(table.X, [[1, NAN], [NAN, NAN], [3, 4], [5, 6]])


def test_blank_row_is_left_out_where_a_blank_is_a_category(read):
    table = read("a,b,y\n1,red,0\n2,,1\n,,\n3,blue,1\n", blank_level=True)
    assert table.rows.tolist() == [0, 1, 3]
    assert table.encoder.columns[1].levels == ("blue", "red", "")
    # Such a row alone makes no level of a blank, and lines keep their numbers.
    table = read("a,b,y\n1,red,0\n,,\n3,blue,1\n", blank_level=True)
    assert not table.has_blank_level
    with pytest.raises(TableError, match="'x' in line 4 is the first"):
        read("a,b,y\n1,red,0\n,,\nx,blue,1\n4,red,0\n5,red,1\n")


LABELS = {
    "a,y\n1,0\n2,1\n": {0: 1, 1: 1},
    "a,y\n1,no\n2,yes\n": {"no": 1, "yes": 1},
    "a,y\n1, 2\n2,10\n": {2: 1, 10: 1},
    "a,y\n1,1\n2,1.0\n3,2\n": {1: 2, 2: 1},
    # A leading zero makes a label of its own.
    "a,y\n1,1\n2,01\n3,01\n4,2\n": {"01": 2, "1": 1, "2": 1},
    # Marks inside of cells, and line breaks in quoted ones, are text.
    'a,b,y\n1,5" pipe,p\n2,5" pipe,q\n3,"a\nb, c",p\n': {"p": 2, "q": 1},
    "ä,y\nrot,p\nblau,q\n".encode("utf-16"): {"p": 1, "q": 1},
}


@pytest.mark.parametrize("content", LABELS)
def test_labels_are_whole_numbers_or_texts(read, content):
    assert read(content).counts == LABELS[content]


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
    "PAR1\0..": r"bytes that are not text.*end in \.parquet",
    "a,y\n" + "x" * 200_000 + ",0\n": "cell of more than 131,072",
    "a,y\n" + "x" * 2000 + ",0\nu,1\n": "texts of more than 1000 characters",
    "a,y\n1,0\n2," + "x" * 101 + "\n": "--target y has a label of 101 characters",
    "a" * 1001 + ",y\n1,0\n": r"name has 1,001 characters.*another line",
    "a," * 10_000 + "y\n": "has 10,001 columns, and a table may have 10,000",
    "id,y\n9007199254740993,0\n9007199254740995,1\n": (
        "9007199254740993 would be rounded to 9007199254740992.*--drop"
    ),
    "a,y\n2024-01-31,0\n2024-02-29,1\n": "'a' holds dates.*an age.*--drop a",
    "a,y\n31.1.24,0\n,0\n29.2.24,1\n": "'a' holds dates",
    "a,y\n12%,0\n13,1\n5,1\n": "2 numbers and 1 cell.* '12%' in line 2",
    "a;b;y\n3,5;1.234;0\n2,5;2.500;1\n": r"'b' has numbers in doubt: '1\.234' could be",
    "a;y\n1.234;0\n2.345;1\n": "in doubt",
    'a,y\n"1,234",0\n"5,678",1\n': r"'1,234' could be 1\.234 or 1234",
    "blood sugar,a,y\n,1,p\n,2,q\n": r"\(--drop 'blood sugar'\)",
    "a,id,y\n" + "".join(f"{i},P{i},{i % 2}\n" for i in range(200)): (
        "200 different texts, .*--drop id"
    ),
}


@pytest.mark.parametrize("content", REFUSED, ids=REFUSED.values())
def test_what_cannot_be_used_is_refused_and_left_as_it_was(read, tmp_path, content):
    with pytest.raises(TableError, match=REFUSED[content]):
        read(content)
    assert (tmp_path / "t.csv").read_bytes() == content.encode()


def test_folders_and_absent_files_are_refused(read, tmp_path):
    with pytest.raises(TableError, match="is a folder"):
        open_table(tmp_path)
    write_table(tmp_path / "patients.csv", "a,y\n1,0\n")
    with pytest.raises(FileNotFoundError, match=r"Did you mean .*patients\.csv"):
        open_table(tmp_path / "patiens.csv")
    with pytest.raises(TableError, match="suffix must say its kind"):
        open_table(write_table(tmp_path / "t.docx", "x"))


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pa.array([1.0, np.inf]), "'a' must be finite: got inf in row 2"),
        (pa.array([0, 1], pa.date32()), r"'a' holds dates.*--drop a"),
        (pa.array([0, 1], pa.timestamp("s")), r"'a' holds dates.*--drop a"),
        (pa.array([0, 1], pa.time32("s")), r"type time32.*--drop a"),
        (pa.array([2**64 - 1, 2**64 - 2], pa.uint64()), "8446744073709551615 would be"),
        (pa.array([10**40, 10**40 + 1], pa.decimal256(50)), "would be rounded"),
        (pa.array([Decimal(f"{10**40}.25")] * 2, pa.decimal256(50, 2)), "be rounded"),
        (pa.array([[1.0], [2.0]]), r"type list<.*--drop a"),
        (pa.array([b"\xff", b"a"]), r"type binary.*--drop a"),
    ],
)
def test_columns_of_parquet_that_are_no_numbers_are_refused(read, column, message):
    with pytest.raises(TableError, match=message):
        read({"a": column, "y": [0, 1]}, "t.parquet")


def test_texts_that_are_not_utf8_are_refused_with_the_file(tmp_path, read):
    buffers = pa.array(["ab", "cd"]).buffers()
    broken = pa.StringArray.from_buffers(2, buffers[1], pa.py_buffer(b"\xff\xfe\xfdx"))
    with pytest.raises(TableError, match=r"t\.parquet can't be read.*UTF8"):
        read({"a": broken, "y": [0, 1]}, "t.parquet")
    with pytest.raises(TableError, match=r"t\.parquet can't be read.*UTF8"):
        list(open_table(tmp_path / "t.parquet").batches(["a"]))


def test_categories_take_no_more_columns_than_a_table_has(read):
    header = [f"c{j}" for j in range(1000)]
    rows = [",".join([f"v{i % 20}"] * 1000 + [str(i % 2)]) for i in range(40)]
    with pytest.raises(TableError, match="take 19,000 columns of numbers"):
        read("\n".join([",".join([*header, "y"]), *rows]))


@pytest.mark.parametrize("content", ["a,y\nx", "", "a,y\n1,0\n"])
def test_a_packed_line_without_an_end_takes_little_memory(tmp_path, content):
    path = tmp_path / "t.csv.gz"
    with gzip.open(path, "wb") as file:
        file.write(content.encode() + b"1" * 2**25)
    with pytest.raises(TableError, match=r"line of more than|cell of more than"):
        read_table(path)


def test_parquet_types_are_read(read):
    columns = {
        "whole": pa.array([1, None, 3]),
        "single": pa.array([1.5, None, 2.5], pa.float32()),
        "flag": pa.array([True, False, None]),
        "colour": pa.array(["red", None, "blue"]).dictionary_encode(),
        "y": pa.array(["a", "b", "b"], pa.large_string()),
    }
    table = read(columns, "t.parquet")
    same(table.X, [[1, 1.5, 1, 1], [NAN, NAN, 0, NAN], [3, 2.5, NAN, 0]])
    assert table.encoder.encoded_names == ["whole", "single", "flag", "colour=red"]
    assert table.missing["b"] == dict.fromkeys(table.encoder.names, 1)


def test_workbooks_are_read_by_sheet(tmp_path):
    lines = [[], [], ["", *"aby"], ["", 1.5, "red", 1], ["", 2, "blue", 0]]
    sheets = {"notes": [["nothing here"]], "data": lines}
    path = write_table(tmp_path / "t.xlsx", sheets)
    table = read_table(path, sheet="data")
    same(table.X, [[1.5, 1], [2, 0]])
    assert table.y.tolist() == [1, 0]
    with pytest.raises(TableError, match="no sheet 'dta'"):
        read_table(path, sheet="dta")
    with pytest.raises(TableError, match=r"'y' is not a column.*another: 'data'"):
        read_table(path)
    with pytest.raises(TableError, match=r"a header and no rows.*another: 'data'"):
        open_table(path).read(["nothing here"])


def test_a_header_may_be_long(read):
    names = [f"column number {j} with a long name" for j in range(5000)]
    header = ",".join([*names, "y"])
    assert len(header) > 2**17
    lines = [",".join([value] * 5000) for value in ("1.5", "2.5")]
    table = read(f"{header}\n{lines[0]},0\n{lines[1]},1\n", drop=names[1:])
    assert table.encoder.names == [names[0]]


@pytest.mark.parametrize("line", ['1,"u,p', '1,u,"p', '"1,u,p'])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_quotation_mark_left_open_loses_no_rows(read, line, encoding):
    rows = [f"{i},u,{'pq'[i % 2]}" for i in range(50)]
    content = "\n".join(["a,b,y", *rows[:9], line, *rows]) + "\n"
    with pytest.raises(TableError, match=r"t\.csv, line 11: a quotation mark"):
        read(content.encode(encoding))


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet"])
def test_a_file_replaced_while_it_is_read_is_noticed(tmp_path, name):
    def write(name, columns):
        content = ",".join(columns).encode() + b"\n1,2,0\n3,4,1\n"
        if name.endswith("parquet"):
            content = {column: [1, 2] for column in columns}
        elif name.endswith("gz"):
            content = gzip.compress(content)
        return write_table(tmp_path / name, content)

    source = open_table(write(name, "aby"))
    assert source.names == ["a", "b", "y"]
    write(f"new-{name}", "bay").replace(tmp_path / name)
    with pytest.raises(TableError, match="was changed or replaced while it was read"):
        read_labelled(source, "y")


def test_categories_are_the_same_in_every_kind_of_file(tmp_path, read):
    values = [1.0, 2.0, 10.0, 2.5]
    text = "".join(f"{v},{v},{i % 2}\n" for i, v in enumerate(values))
    csv = read(f"a,b,y\n{text}", categorical=["b"])
    columns = {"a": values, "b": values, "y": [0, 1, 0, 1]}
    parquet = read(columns, "t.parquet", categorical=["b"])
    assert csv.encoder.columns[1].levels == parquet.encoder.columns[1].levels
    batch = open_table(tmp_path / "t.parquet").read(["a", "b"])
    assert not np.isnan(csv.encoder.encode(batch)).any()


def test_what_may_not_be_meant_is_said(read):
    values = [f"{i / 10}" for i in range(40)]
    values[3] = values[7] = "-999"
    rows = "".join(
        f"{v},{v if i < 15 else 'x'},{i % 2}\n" for i, v in enumerate(values)
    )
    notes = list(map(str, read(f"a,b,y\n{rows}").notes))
    assert any("'a' is -999 in 2 rows" in note and "--missing-value" in note
               for note in notes)  # fmt: skip
    assert any("'b' is taken for one of categories: 25 of its 40" in n for n in notes)
    assert len(notes) == 2
    assert read(f"a,b,y\n{rows}", missing_values=["-999"], drop=["b"]).notes == []


def test_numbers_that_may_stand_for_nothing_are_said_with_the_reason(read):
    rows = [[i % 60, i % 50, i % 2, i % 2] for i in range(600)]
    for i in range(0, 600, 3):
        rows[i][0], rows[i][1] = 99, -1
    rows[1][2] = rows[2][2] = -1
    text = "\n".join(",".join(map(str, row)) for row in rows)
    first, second = sorted(map(str, read(f"a,b,c,y\n{text}\n").notes))
    assert "'a' is 99 in 200 rows, 10 times as often as any other value." in first
    assert "'b' is -1 in 200 rows, and nowhere else below 0." in second


SMALL = [["a", "y"], [1.5, 0], [2.5, 1]]


def test_a_formula_without_a_result_or_with_an_error_is_said(tmp_path):
    path = tmp_path / "t.xlsx"
    with xlsxwriter.Workbook(path) as book:
        sheet = book.add_worksheet()
        for number, line in enumerate(SMALL):
            sheet.write_row(number, 0, line)
        sheet.write(3, 1, 1)
        sheet.write_formula(3, 0, "=A2+A3", None, "")
        sheet.write_row(4, 0, ["", 1])
        sheet.write_formula(4, 0, "=A2/0", None, "#DIV/0!")
    table = read_table(path)
    assert np.isnan(table.X[2:, 0]).all()
    assert "2 formula(s)" in str(table.notes[0])
    assert read_table(write_table(path, SMALL)).notes == []


def test_a_cell_far_away_is_refused(tmp_path):
    path = tmp_path / "t.xlsx"
    with xlsxwriter.Workbook(path) as book:
        sheet = book.add_worksheet()
        sheet.write_row(0, 0, ["a", "y"])
        sheet.write(1_048_575, 16_383, 1)
    with pytest.raises(TableError, match=r"can't be read as a workbook.*far away"):
        read_table(path)


def test_a_workbook_that_unpacks_to_too_much_is_refused(tmp_path):
    path = write_table(tmp_path / "t.xlsx", SMALL)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/more.xml", bytes(2**28 + 1))
    assert path.stat().st_size < 10**6
    with pytest.raises(TableError, match="would unpack to"):
        read_table(path)


ENDLESS = np.random.default_rng(0).integers(97, 123, 2**21, np.uint8).tobytes()


@pytest.mark.parametrize(
    ("much", "why"),
    [
        (b"x" * 10**7, "from few"),
        (b"x" * 40_000, "a cell has"),
        (ENDLESS, "an endless text"),
    ],
    ids=["packed", "long", "endless"],
)
def test_a_cell_that_unpacks_to_too_much_is_refused(tmp_path, much, why):
    lines = [["a", "y"], ["MUCH", 0], ["u", 1]]
    packed = zipfile.ZipFile(write_table(tmp_path / "s.xlsx", lines))
    with zipfile.ZipFile(tmp_path / "t.xlsx", "w", zipfile.ZIP_DEFLATED) as archive:
        for name in packed.namelist():
            content = packed.read(name).replace(b">MUCH<", b">" + much + b"<")
            archive.writestr(name, content)
    with pytest.raises(TableError, match=why):
        read_table(tmp_path / "t.xlsx")


def test_a_hidden_sheet_is_read_by_its_name_alone(tmp_path):
    path = tmp_path / "t.xlsx"
    with xlsxwriter.Workbook(path) as book:
        for name, factor in (("old", 100.0), ("data", 1.0), ("more", 10.0)):
            sheet = book.add_worksheet(name)
            for number, (a, y) in enumerate(SMALL):
                sheet.write_row(number, 0, [a if a == "a" else factor * a, y])
        book.get_worksheet_by_name("data").activate()
        book.get_worksheet_by_name("data").set_first_sheet()
        book.get_worksheet_by_name("old").hide()
    table = read_table(path)
    same(table.X, [[1.5], [2.5]])
    assert "3 sheets, and 'data' is read" in str(table.notes[0])
    table = read_table(path, sheet="old")
    same(table.X, [[150], [250]])
    assert table.notes == []


@pytest.mark.parametrize("name", ["t.xls", "t.xlsx", "t.xlsb", "t.ods"])
@pytest.mark.parametrize("content", [b"nothing", b"PK\x03\x04" + bytes(40)])
def test_what_is_no_workbook_is_refused(read, name, content):
    with pytest.raises(TableError, match=rf"{name} can't be read as a workbook"):
        read(content, name)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes here")
def test_pipes_are_refused(tmp_path):
    os.mkfifo(tmp_path / "t.csv")
    with pytest.raises(TableError, match="not a regular file"):
        open_table(tmp_path / "t.csv")


@pytest.mark.parametrize("name", ["__index_level_0__", "Unnamed: 0"])
def test_row_numbers_of_pandas_are_no_feature(read, name):
    lines = "".join(f"{i},{i % 3},{'pq'[i % 2]}\n" for i in range(9))
    with pytest.raises(TableError, match=r"row numbers.*\(--drop (__|'Unnamed: 0')"):
        read(f"{name},a,y\n{lines}")
    assert read(f"{name},a,y\n{lines}", drop=[name]).X.shape == (9, 1)
