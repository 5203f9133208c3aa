"""Plans pass through files unharmed, and files through spreadsheets."""

import csv
import sys
from pathlib import Path

import numpy as np
import pytest

import missratio as mr

SUFFIXES = [".csv", ".xlsx"]
NAMES = ["Temp. °C", "=SUM(A1)", "a, b; c"]


@pytest.fixture
def problem():
    """A table, its labels, and the values that are missing in it."""
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    full = rng.normal(size=(40, 3)).round(3)
    X = full.copy()
    X[rng.random(X.shape) < 0.5] = np.nan
    labels = np.array(["no", "yes"])[rng.integers(2, size=40)]
    return pd.DataFrame(X, columns=NAMES), labels, full


@pytest.fixture
def filled(problem):
    """A plan, and the lines of its table with every other value filled in."""
    X, y, full = problem
    plan = mr.plan_queries(X, y, per_feature=4, random_state=0)
    frame = plan.to_frame()
    frame["value"] = full[plan.rows, plan.columns]
    frame.loc[1::2, "value"] = np.nan
    return plan, frame


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_plan_survives_its_file(problem, filled, suffix, tmp_path):
    X, y, full = problem
    plan, frame = filled
    revealed = mr.QueryPlan.read(frame, X, y)
    assert revealed.answered.sum() == 12
    found = ~np.isnan(revealed.table)
    np.testing.assert_array_equal(revealed.table[found], full[found])
    plan.write(tmp_path / f"plan{suffix}")
    blank = mr.QueryPlan.read(tmp_path / f"plan{suffix}", X, y)
    assert blank.answered.sum() == 0
    np.testing.assert_array_equal(blank.asked, revealed.asked)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_file_is_overwritten_only_by_force(filled, suffix, tmp_path):
    plan, _ = filled
    path = tmp_path / f"plan{suffix}"
    path.write_text("answers")
    with pytest.raises(FileExistsError, match="exists"):
        plan.write(path)
    assert path.read_text() == "answers"
    plan.write(path, force=True)
    assert path.read_bytes() != b"answers"


def test_a_folder_or_a_kind_of_file_that_is_not_there(filled, tmp_path):
    plan, _ = filled
    with pytest.raises(FileNotFoundError, match="no folder"):
        plan.write(tmp_path / "nowhere" / "plan.csv")
    with pytest.raises(ValueError, match=r"'plan\.doc'. Choose one of '\.csv'"):
        plan.write(tmp_path / "plan.doc")
    with pytest.raises(TypeError, match="a path or a dataframe: got int"):
        mr.QueryPlan.read(3, np.zeros((2, 2)))


def test_what_excel_needs_is_named(filled, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "xlsxwriter", None)
    with pytest.raises(ImportError, match=r"needs xlsxwriter.*missratio\[tables\]"):
        filled[0].write(tmp_path / "plan.xlsx")
    assert not list(tmp_path.iterdir())


def lines_of(frame):
    """A frame as the text of its cells, header first."""
    cells = frame.astype(object).where(frame.notna(), "").to_numpy().tolist()
    return [list(frame.columns), *([str(cell) for cell in line] for line in cells)]


def save(path, lines, separator=",", encoding="utf-8", newline="\r\n"):
    with Path(path).open("w", newline="", encoding=encoding) as file:
        csv.writer(file, delimiter=separator, lineterminator=newline).writerows(lines)
    return path


def decimal_commas(lines):
    place = lines[0].index("value")
    changed = ([*x[:place], x[place].replace(".", ","), *x[place + 1 :]] for x in lines)
    return [lines[0], *list(changed)[1:]]


BLANK = [""] * 6
CHANGES = {
    "nothing": list,
    "decimal commas": decimal_commas,
    "notes": lambda x: [
        [*x[0], "notes", ""],
        *([*line, f"looked up, {k}", ""] for k, line in enumerate(x[1:])),
    ],
    "blank lines": lambda x: [*x[:3], BLANK, *x[3:], BLANK, BLANK, []],
    "NA for blanks": lambda x: [[cell or "NA" for cell in line] for line in x],
    "another order": lambda x: [x[0], *x[:0:-1]],
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(
    ("separator", "encoding"),
    [(",", "utf-8"), (";", "utf-8-sig"), ("\t", "utf-16"), (";", "cp1252")],
)
def test_what_spreadsheets_do_to_a_file_changes_no_answer(
    problem, filled, change, separator, encoding, tmp_path
):
    X, y, _ = problem
    _, frame = filled
    lines = CHANGES[change](lines_of(frame))
    path = save(tmp_path / "plan.csv", lines, separator, encoding)
    one, other = (mr.QueryPlan.read(each, X, y) for each in (path, frame))
    np.testing.assert_array_equal(one.table, other.table)
    np.testing.assert_array_equal(one.asked, other.asked)


def test_text_beyond_ascii_is_marked_for_spreadsheets(problem, tmp_path):
    X, y, _ = problem
    for names, marked in [(NAMES, True), (["a", "b", "c"], False)]:
        plan = mr.plan_queries(X.set_axis(names, axis=1), y, per_feature=1)
        plan.write(tmp_path / "plan.csv", force=True)
        content = (tmp_path / "plan.csv").read_bytes()
        assert content.startswith(b"\xef\xbb\xbf") == marked


def test_formulas_are_marked_in_csv_and_read_back(problem, tmp_path):
    X, y, _ = problem
    ids = np.array([f"@{k}" for k in range(len(X))])
    plan = mr.plan_queries(X, y, per_feature=2, ids=ids, random_state=0)
    path = tmp_path / "plan.csv"
    plan.write(path)
    text = path.read_text(encoding="utf-8-sig")
    assert "'=SUM(A1)" in text
    assert ",'@" in text
    mr.QueryPlan.read(path, X, y)


def test_a_header_must_be_there(problem, filled, tmp_path):
    X, y, _ = problem
    _, frame = filled
    with pytest.raises(ValueError, match="'value' not found among 'draw', 'row'"):
        mr.QueryPlan.read(frame.rename(columns={"value": "answer"}), X, y)
    (tmp_path / "plan.csv").write_text("\n\n")
    with pytest.raises(ValueError, match="is empty"):
        mr.QueryPlan.read(tmp_path / "plan.csv", X, y)
    lines = [[*line, line[0]] for line in lines_of(frame)]
    with pytest.raises(ValueError, match="several columns named 'draw'"):
        mr.QueryPlan.read(save(tmp_path / "plan.csv", lines), X, y)
