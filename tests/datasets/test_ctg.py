"""Cardiotocograms: the sheet's footer counts in the published variant only."""

import io
import sys
import zipfile

import numpy as np
import pytest

from missratio.datasets import load_ctg

FEATURES = ["LB", "AC", "FM", "UC", "ASTV", "MSTV", "ALTV", "MLTV", "Mean", "Variance"]


def workbook(rows, sheet="Raw Data"):
    """A workbook with one sheet, of the least that a reader takes for one."""
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006/relationships"

    def cell(value, place):
        if value == "":
            return ""
        if isinstance(value, str):
            return f'<c r="{place}" t="inlineStr"><is><t>{value}</t></is></c>'
        return f'<c r="{place}"><v>{value}</v></c>'

    lines = "".join(
        f'<row r="{i + 1}">'
        + "".join(cell(value, f"{chr(65 + j)}{i + 1}") for j, value in enumerate(row))
        + "</row>"
        for i, row in enumerate(rows)
    )
    parts = {
        "_rels/.rels": f'<Relationships xmlns="{package}"><Relationship Id="rId1" '
        f'Type="{office}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{office}"><sheets>'
        f'<sheet name="{sheet}" sheetId="1" r:id="rId1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}"><Relationship '
        f'Id="rId1" Type="{office}/worksheet" Target="worksheets/sheet1.xml"/>'
        "</Relationships>",
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{main}"><sheetData>{lines}'
        "</sheetData></worksheet>",
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return buffer.getvalue()


@pytest.fixture
def made_up(tmp_path):
    """Write a sheet in the manner of the publisher's and say where it is."""

    def write(labels=(2.0, 1.0, 3.0), header=(*FEATURES, "NSP"), sheet="Raw Data"):
        data = [[*np.arange(10.0) + 10 * i, label] for i, label in enumerate(labels)]
        footer = ["", "", 564.0, 23.0, 87.0, 7.0, 91.0, 50.7, "", "", ""]
        rows = [list(header), [""] * 11, *data, [""] * 11, [""] * 11, footer]
        (tmp_path / "CTG.xls").write_bytes(workbook(rows, sheet))
        return {"data_home": tmp_path, "verify": False}

    return write


def test_labels_say_the_class_and_the_footer_is_dropped(made_up):
    data, target = load_ctg(return_X_y=True, **made_up())
    np.testing.assert_array_equal(target, [0, 1, 0])
    np.testing.assert_array_equal(data, np.arange(30.0).reshape(3, 10))


def test_the_published_variant_counts_the_footer_as_class_0(made_up):
    data, target = load_ctg(variant="published", return_X_y=True, **made_up())
    np.testing.assert_array_equal(target, [0, 1, 0, 0, 0, 0])
    assert np.isnan(data[3:5]).all()
    np.testing.assert_array_equal(np.isnan(data[5]), [1, 1, 0, 0, 0, 0, 0, 0, 1, 1])


def test_a_bunch_is_as_of_scikit_learn(made_up):
    table = load_ctg(**made_up())
    assert table.feature_names == FEATURES
    assert list(table.target_names) == ["suspect or pathologic", "normal"]
    assert table.frame is None
    assert table.filename.endswith("CTG.xls")
    assert table.DESCR.startswith("Cardiotocograms\n")


def test_a_frame_has_names_and_the_target(made_up):
    pandas = pytest.importorskip("pandas")
    table = load_ctg(as_frame=True, **made_up())
    assert isinstance(table.data, pandas.DataFrame)
    assert list(table.frame.columns) == [*FEATURES, "target"]
    data, target = load_ctg(as_frame=True, return_X_y=True, **made_up())
    assert list(data.columns) == FEATURES
    assert target.name == "target"


def test_without_pandas_a_frame_is_refused_and_arrays_are_not(made_up, monkeypatch):
    where = made_up()
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="as_frame=False"):
        load_ctg(as_frame=True, **where)
    assert load_ctg(**where).data.shape == (3, 10)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"sheet": "Data"}, "sheet 'Raw Data'"),
        ({"header": [*FEATURES, "NPS"]}, "column.*'NSP'"),
        ({"labels": (1.0, 4.0)}, r"among 1\.0, 2\.0, 3\.0: got '4\.0'"),
        ({"labels": ()}, "no row with a label"),
    ],
)
def test_what_is_not_that_table_is_refused(made_up, changed, message):
    with pytest.raises(ValueError, match=message):
        load_ctg(**made_up(**changed))


def test_what_is_no_workbook_is_refused(tmp_path):
    (tmp_path / "CTG.xls").write_bytes(b"damaged")
    with pytest.raises(ValueError, match="SHA-256"):
        load_ctg(data_home=tmp_path)
    with pytest.raises(ValueError, match="workbook"):
        load_ctg(data_home=tmp_path, verify=False)


def test_an_unknown_variant_is_refused_with_the_choices():
    with pytest.raises(ValueError, match="'corrected', 'published'"):
        load_ctg(variant="text")


@pytest.mark.data
@pytest.mark.parametrize(
    ("variant", "rows", "missing"), [("corrected", 471, 0), ("published", 474, 24)]
)
def test_the_publishers_file_has_the_rows_that_it_should(
    data_folder, variant, rows, missing
):
    data, target = load_ctg(variant=variant, return_X_y=True, data_home=data_folder)
    assert data.shape == (1655 + rows, 10)
    assert np.bincount(target).tolist() == [rows, 1655]
    assert np.isnan(data).sum() == missing
