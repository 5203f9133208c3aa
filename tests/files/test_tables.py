"""Tables are read as they were meant, or refused, whoever made the file."""

import gzip
import json
import os
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from optional_packages import optional

from missratio._files import open_table
from missratio.app.tables import Wanted, read_labelled
from missratio.exceptions import TableError

xlsxwriter = optional("xlsxwriter")


@pytest.fixture
def read(tmp_path):
    """Write a CSV file, and read it as a labelled table."""

    def command(content, name="t.csv", **wanted):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_labelled(open_table(path), Wanted("y", **wanted))

    return command


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
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": values, "b": values, "y": [0, 1, 0, 1]}), path)
    parquet = read_labelled(open_table(path), Wanted("y", categorical=["b"]))
    assert csv.encoder.columns[1].levels == parquet.encoder.columns[1].levels
    batch = open_table(path).read(["a", "b"])
    assert not np.isnan(csv.encoder.encode(batch)).any()


def test_very_large_categories_are_texts(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"b": [1e300, 2.0, 1e300], "y": [0, 1, 1]}), path)
    table = read_labelled(open_table(path), Wanted("y", categorical=["b"]))
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


def workbook(path, cells):
    with xlsxwriter.Workbook(path) as book:
        sheet = book.add_worksheet()
        for (row, column), value in cells.items():
            sheet.write(row, column, value)
    return path


SMALL = {(0, 0): "a", (0, 1): "y", (1, 0): 1.5, (1, 1): 0, (2, 0): 2.5, (2, 1): 1}


def test_a_formula_without_a_result_is_said(tmp_path):
    path = tmp_path / "t.xlsx"
    with xlsxwriter.Workbook(path) as book:
        sheet = book.add_worksheet()
        for (row, column), value in SMALL.items():
            sheet.write(row, column, value)
        sheet.write(3, 1, 1)
        sheet.write_formula(3, 0, "=A2+A3", None, "")
    source = open_table(path)
    table = read_labelled(source, Wanted("y"))
    assert np.isnan(table.X[2, 0])
    assert "1 formula(s)" in table.notes[0]
    assert open_table(workbook(path, SMALL)).notes == []


def test_a_cell_far_away_is_refused(tmp_path):
    path = workbook(tmp_path / "t.xlsx", {**SMALL, (1_048_575, 16_383): 1})
    with pytest.raises(TableError, match=r"can't be read as a workbook.*far away"):
        read_labelled(open_table(path), Wanted("y"))


def test_a_workbook_that_unpacks_to_too_much_is_refused(tmp_path):
    path = workbook(tmp_path / "t.xlsx", SMALL)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/more.xml", bytes(2**28 + 1))
    assert path.stat().st_size < 10**6
    with pytest.raises(TableError, match="would unpack to"):
        read_labelled(open_table(path), Wanted("y"))


@pytest.mark.parametrize("name", ["t.xls", "t.xlsx", "t.xlsb", "t.ods"])
@pytest.mark.parametrize("content", [b"nothing", b"PK\x03\x04" + bytes(40)])
def test_what_is_no_workbook_is_refused(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(TableError, match=rf"{name} can't be read as a workbook"):
        read_labelled(open_table(path), Wanted("y"))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes here")
def test_pipes_are_refused(tmp_path):
    os.mkfifo(tmp_path / "t.csv")
    with pytest.raises(TableError, match="not a regular file"):
        open_table(tmp_path / "t.csv")


def test_numbers_of_plans_and_tables_are_read_alike(read, tmp_path):
    import missratio as mr

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


def test_labels_that_no_row_has_dont_count(tmp_path):
    codes = pa.array([0, 2] * 5, pa.int8())
    labels = pa.DictionaryArray.from_arrays(codes, ["p", "gone", "q"])
    path = tmp_path / "t.parquet"
    table = pa.table({"a": range(10), "y": labels})
    pq.write_table(table, path)
    read = read_labelled(open_table(path), Wanted("y"))
    assert read.counts == {"p": 5, "q": 5}


def test_an_option_to_drop_a_column_can_be_pasted(read):
    with pytest.raises(TableError, match=r"\(--drop 'blood sugar'\)"):
        read("blood sugar,a,y\n,1,p\n,2,q\n")
