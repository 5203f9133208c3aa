"""Tables as people have them are read as they were meant, or refused."""

import gzip
import json
import os
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from makers import read_table, write_table
from optional_packages import optional

import missratio as mr
from missratio._files import open_table
from missratio.app.tables import Wanted, read_labelled
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


@pytest.mark.parametrize("blank", ["", " ", "NA", "NaN", "nan", "null", "NULL", "n/a"])
def test_blank_cells_are_missing(read, blank):
    table = read(f"a,b,y\n1,{blank},0\n{blank},2,1\n3,4,1\n")
    same(table.X, [[1, NAN], [NAN, 2], [3, 4]])


def test_what_is_told_to_be_missing_is(read):
    table = read("a,b,y\n1,-999.0,0\n?,-999,1\n", missing_values=["-999", "?"],
                 drop=["b"])  # fmt: skip
    same(table.X, [[1], [NAN]])
    table = read("a,b,y\n1,-999.0,0\n2,-999,1\n3,4,1", missing_values=["-999"])
    same(table.X, [[1, NAN], [2, NAN], [3, 4]])


def test_byte_order_mark_and_blank_lines_are_seen_through(read):
    table = read(b"\xef\xbb\xbf\r\n\r\na,b,y\r\n1,2,0\r\n\r\n,,\r\n3,4,1\r\n")
    same(table.X, [[1, 2], [3, 4]])
    assert table.encoder.names == ["a", "b"]
    assert table.rows.tolist() == [0, 2]


def test_blank_row_is_left_out_where_a_blank_is_a_category(read):
    table = read("a,b,y\n1,red,0\n2,,1\n,,\n3,blue,1\n", blank_level=True)
    assert table.rows.tolist() == [0, 1, 3]
    assert table.encoder.columns[1].levels == ("blue", "red", "")


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_other_separators_and_decimal_commas(read, separator):
    text = "a,b,y\n1.5,2,0\n2.25,3,1\n".replace(",", separator).replace(".", ",")
    same(read(text).X, [[1.5, 2], [2.25, 3]])


def test_utf16_is_told_by_its_mark(read):
    table = read("ä,y\nrot,0\nblau,1\n".encode("utf-16"))
    assert table.encoder.encoded_names == ["ä=rot"]


def test_other_encodings_are_told(read):
    content = "ä,y\nrötlich,0\nblau,1\n".encode("cp1252")
    assert read(content, encoding="cp1252").encoder.encoded_names == ["ä=rötlich"]
    with pytest.raises(TableError, match=r"line 1, has a byte 0xe4 .* --encoding"):
        read(content)
    with pytest.raises(TableError, match="no encoding 'cp9999'"):
        read(content, encoding="cp9999")


def test_bytes_that_are_not_utf8_are_found_deep_in_a_file(read):
    rows = b"".join(b"%d,x,0\n" % i for i in range(20_000))
    with pytest.raises(TableError, match="line 20002, has a byte 0xe9"):
        read(b"a,b,y\n" + rows + b"1,caf\xe9,1\n")


def test_compressed_csv(read):
    same(read(gzip.compress(b"a,y\n1,0\n2,1\n"), "t.csv.gz").X, [[1], [2]])
    with pytest.raises(TableError, match="damaged"):
        read(gzip.compress(b"a,y\n1,0\n" * 9000)[:-20], "cut.csv.gz")


def test_quoted_cells_hold_separators_and_line_breaks(read):
    table = read('a,b,y\n1,"x,\ny",0\n2,"z",1\n')
    assert table.encoder.columns[1].levels == ("x,\ny", "z")


def test_labels_are_whole_numbers_or_texts(read):
    assert read("a,y\n1,0\n2,1\n").y.tolist() == [0, 1]
    assert read("a,y\n1,no\n2,yes\n").y.tolist() == ["no", "yes"]
    assert read("a,y\n1, 2\n2,10\n").counts == {2: 1, 10: 1}


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
def test_what_cannot_be_used_is_refused_and_left_as_it_was(read, tmp_path, content):
    with pytest.raises(TableError, match=REFUSED[content]):
        read(content)
    assert (tmp_path / "t.csv").read_bytes() == content.encode()


def test_names_and_dates_are_not_categories(read):
    rows = "\n".join(f"{i},P{i},{i % 2}" for i in range(200))
    with pytest.raises(TableError, match=r"200 different texts, .*--drop id"):
        read(f"a,id,y\n{rows}\n")


def test_infinite_numbers_are_refused(read):
    with pytest.raises(TableError, match="'a' must be finite: got inf in row 2"):
        read({"a": [1.0, np.inf], "y": [0, 1]}, "t.parquet")


def test_folders_and_absent_files_are_refused(read, tmp_path):
    with pytest.raises(TableError, match="is a folder"):
        open_table(tmp_path)
    write_table(tmp_path / "patients.csv", "a,y\n1,0\n")
    with pytest.raises(FileNotFoundError, match=r"Did you mean .*patients\.csv"):
        open_table(tmp_path / "patiens.csv")
    with pytest.raises(TableError, match="suffix must say its kind"):
        open_table(write_table(tmp_path / "t.docx", "x"))


def test_ten_thousand_columns_are_read(read):
    names = ",".join(f"c{j}" for j in range(10_000))
    cells = ",".join(["1.5"] * 10_000)
    table = read(f"{names},y\n{cells},0\n{cells},1\n")
    assert table.X.shape == (2, 10_000)


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


def test_dates_are_refused(read):
    day = pa.array([0, 1], pa.date32())
    with pytest.raises(TableError, match=r"type date32.*--drop day"):
        read({"day": day, "y": [0, 1]}, "t.parquet")


def test_damaged_parquet_is_refused(tmp_path):
    path = tmp_path / "t.parquet"
    table = pa.table({"a": np.arange(10_000.0), "y": np.arange(10_000) % 2})
    pq.write_table(table, path, write_page_checksum=True)
    content = bytearray(path.read_bytes())
    content[2000] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(TableError, match="can't be read as a Parquet file"):
        read_table(path)
    path.write_bytes(content[:1000])
    with pytest.raises(TableError, match="can't be read as a Parquet file"):
        read_table(path)


def test_workbooks_are_read_by_sheet(tmp_path):
    path = tmp_path / "t.xlsx"
    with xlsxwriter.Workbook(path) as book:
        book.add_worksheet("notes").write(0, 0, "nothing here")
        sheet = book.add_worksheet("data")
        for i, row in enumerate([["a", "b", "y"], [1.5, "red", 1], ["", "blue", 0]]):
            sheet.write_row(2 + i, 1, row)
    table = read_table(path, sheet="data")
    same(table.X, [[1.5, 1], [NAN, 0]])
    assert table.y.tolist() == [1, 0]
    with pytest.raises(TableError, match="no sheet 'dta'"):
        read_table(path, sheet="dta")
    with pytest.raises(TableError, match="--target 'y' is not a column"):
        read_table(path)


def test_labels_with_leading_zeros_are_labels_of_their_own(read):
    table = read("a,y\n1,1\n2,01\n3,01\n4,2\n")
    assert table.counts == {"1": 1, "01": 2, "2": 1}
    assert read("a,y\n1,1\n2,1.0\n3,2\n").counts == {1: 2, 2: 1}


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_thousands_are_never_taken_for_decimals(read, separator):
    def lines(*rows):
        return "\n".join(separator.join(row) for row in [("a", "b", "y"), *rows])

    # Decimal commas elsewhere: a point may group thousands.
    with pytest.raises(
        TableError, match=r"'b' has numbers in doubt: '1\.234' could be"
    ):
        read(lines(("3,5", "1.234", "0"), ("2,5", "2.500", "1")))
    # Grouped for certain.
    table = read(lines(("3,5", "1.234.567", "0"), ("2,5", "1.234,5", "1")))
    assert table.X.tolist() == [[3.5, 1234567.0], [2.5, 1234.5]]
    # Decimal points in the column itself.
    table = read(lines(("3,5", "1.234", "0"), ("2,5", "0.5", "1")))
    assert table.X[:, 1].tolist() == [1.234, 0.5]


def test_semicolons_alone_leave_points_in_doubt(read):
    with pytest.raises(TableError, match="in doubt"):
        read("a;y\n1.234;0\n2.345;1\n")
    assert read("a;y\n1.234;0\n2.34;1\n").X[:, 0].tolist() == [1.234, 2.34]
    assert read("a,y\n1.234,0\n2.345,1\n").X[:, 0].tolist() == [1.234, 2.345]


def test_commas_that_may_group_thousands_are_in_doubt(read):
    with pytest.raises(TableError, match=r"'1,234' could be 1\.234 or 1234"):
        read('a,y\n"1,234",0\n"5,678",1\n')
    assert read('a,y\n"1,234.5",0\n"2,5",1\n').X[:, 0].tolist() == [1234.5, 2.5]


def test_a_header_may_be_long(read):
    names = [f"column number {j} with a long name" for j in range(5000)]
    header = ",".join([*names, "y"])
    assert len(header) > 2**17
    cells = ",".join(["1.5"] * 5000)
    table = read(f"{header}\n{cells},0\n{cells},1\n", drop=names[1:])
    assert table.encoder.names == [names[0]]


@pytest.mark.parametrize("line", ['1,"u,p', '1,u,"p', '"1,u,p'])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_quotation_mark_left_open_loses_no_rows(read, line, encoding):
    rows = [f"{i},u,{'pq'[i % 2]}" for i in range(50)]
    content = "\n".join(["a,b,y", *rows[:9], line, *rows]) + "\n"
    with pytest.raises(TableError, match=r"t\.csv, line 11: a quotation mark"):
        read(content.encode(encoding))


def test_a_line_for_excel_is_no_header(read):
    table = read("sep=;\r\na;b;y\r\n1,5;2;p\r\n2,5;3;q\r\n")
    assert table.encoder.names == ["a", "b"]
    np.testing.assert_array_equal(table.X, [[1.5, 2], [2.5, 3]])


def test_quotation_marks_inside_of_cells_are_texts(read):
    rows = "".join(f'{i},5" pipe,{"pq"[i % 2]}\n' for i in range(9))
    table = read(f'a,b,y\n{rows}10,"a\nb",p\n')
    assert table.counts == {"p": 6, "q": 4}


def test_a_long_cell_is_refused_without_a_traceback(read):
    with pytest.raises(TableError, match=r"t\.csv can't be read as a CSV table: field"):
        read("a,y\n" + "x" * 200_000 + ",0\n")


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet"])
def test_a_file_replaced_while_it_is_read_is_noticed(tmp_path, name):
    path = tmp_path / name

    def write(target, columns):
        text = ",".join(columns) + "\n1,2,0\n3,4,1\n"
        if name.endswith("parquet"):
            pq.write_table(pa.table({column: [1, 2] for column in columns}), target)
        else:
            opener = gzip.open if name.endswith("gz") else open
            with opener(target, "wt") as stream:
                stream.write(text)

    write(path, ["a", "b", "y"])
    source = open_table(path)
    if not name.endswith("parquet"):
        assert source.names == ["a", "b", "y"]
    write(tmp_path / f"new-{name}", ["b", "a", "y"])
    (tmp_path / f"new-{name}").replace(path)
    with pytest.raises(TableError, match="was changed or replaced while it was read"):
        read_labelled(source, Wanted("y"))


def test_categories_are_the_same_in_every_kind_of_file(tmp_path, read):
    values = [1.0, 2.0, 10.0, 2.5]
    text = "".join(f"{v},{v},{i % 2}\n" for i, v in enumerate(values))
    csv = read(f"a,b,y\n{text}", categorical=["b"])
    columns = {"a": values, "b": values, "y": [0, 1, 0, 1]}
    parquet = read(columns, "t.parquet", categorical=["b"])
    assert csv.encoder.columns[1].levels == parquet.encoder.columns[1].levels
    batch = open_table(tmp_path / "t.parquet").read(["a", "b"])
    assert not np.isnan(csv.encoder.encode(batch)).any()


def test_very_large_categories_are_texts(read):
    columns = {"b": [1e300, 2.0, 1e300], "y": [0, 1, 1]}
    table = read(columns, "t.parquet", categorical=["b"])
    assert table.encoder.columns[0].levels == ("1e+300", "2")


def test_what_may_not_be_meant_is_said(read):
    values = [f"{i / 10}" for i in range(40)]
    values[3] = values[7] = "-999"
    rows = "".join(
        f"{v},{v if i < 15 else 'x'},{i % 2}\n" for i, v in enumerate(values)
    )
    notes = read(f"a,b,y\n{rows}").notes
    assert any("'a' is -999 in 2 rows" in note and "--missing-value" in note
               for note in notes)  # fmt: skip
    assert any("'b' is taken for one of categories: 25 of its 40" in n for n in notes)
    assert len(notes) == 2
    assert read(f"a,b,y\n{rows}", missing_values=["-999"], drop=["b"]).notes == []


SMALL = [["a", "y"], [1.5, 0], [2.5, 1]]


def test_a_formula_without_a_result_is_said(tmp_path):
    path = tmp_path / "t.xlsx"
    with xlsxwriter.Workbook(path) as book:
        sheet = book.add_worksheet()
        for number, line in enumerate(SMALL):
            sheet.write_row(number, 0, line)
        sheet.write(3, 1, 1)
        sheet.write_formula(3, 0, "=A2+A3", None, "")
    source = open_table(path)
    table = read_labelled(source, Wanted("y"))
    assert np.isnan(table.X[2, 0])
    assert "1 formula(s)" in table.notes[0]
    assert open_table(write_table(path, SMALL)).notes == []


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


def test_numbers_of_plans_and_tables_are_read_alike(read, tmp_path):
    typed = ["1.234,5", "2,5", "3 000,25", "\u22124,5"]
    rows = "".join(f"{t};{i % 2}\n" for i, t in enumerate(typed))
    table = read(f"a;y\n{rows}")
    X = np.full((4, 1), np.nan)
    plan = mr.plan_queries(X, per_feature=4, random_state=0)
    lines = ["draw;row;feature;value;key"]
    frame = plan.to_frame("pyarrow").to_pylist()
    lines += [
        f"{r['draw']};{r['row']};{r['feature']};{typed[r['row']]};{r['key']}"
        for r in frame
    ]
    path = tmp_path / "plan.csv"
    path.write_text("\n".join(lines), encoding="utf-8")
    revealed = mr.QueryPlan.read(path, X)
    np.testing.assert_array_equal(revealed.table, table.X)
    assert json.dumps(table.X[:, 0].tolist()) == "[1234.5, 2.5, 3000.25, -4.5]"


@pytest.mark.parametrize("name", ["__index_level_0__", "Unnamed: 0"])
def test_row_numbers_of_pandas_are_no_feature(read, name):
    lines = "".join(f"{i},{i % 3},{'pq'[i % 2]}\n" for i in range(9))
    with pytest.raises(TableError, match=r"row numbers.*\(--drop (__|'Unnamed: 0')"):
        read(f"{name},a,y\n{lines}")
    assert read(f"{name},a,y\n{lines}", drop=[name]).X.shape == (9, 1)


def test_labels_that_no_row_has_dont_count(read):
    codes = pa.array([0, 2] * 5, pa.int8())
    labels = pa.DictionaryArray.from_arrays(codes, ["p", "gone", "q"])
    table = read({"a": range(10), "y": labels}, "t.parquet")
    assert table.counts == {"p": 5, "q": 5}


def test_an_option_to_drop_a_column_can_be_pasted(read):
    with pytest.raises(TableError, match=r"\(--drop 'blood sugar'\)"):
        read("blood sugar,a,y\n,1,p\n,2,q\n")
