"""Tables as people have them: titles, labels missing, three classes, bad columns."""

import csv
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from python_calamine import CalamineWorkbook
from xlsxwriter import Workbook

import missratio as mr
from missratio.app.workflow.predict import reasons

BY_Y = "--target y --controlled 0 --alpha 0.2 --method kliep"
TITLE = [["Results, 2024"], ["by hand, checked"], []]


def rows(n=240, labels=(0, 1), seed=0):
    """Two numbers and a label, the second class further out."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % len(labels)
    X = rng.normal(y[:, None], 1.0, (n, 2)).round(3)
    return [[*X[i].tolist(), labels[y[i]]] for i in range(n)]


@pytest.fixture
def out(tmp_path):
    return tmp_path / "m.skops"


@pytest.fixture
def write(tmp_path):
    """A CSV file of two columns and labels, with others beside and lines above."""

    def table(lines, above=(), header=("a", "b", "y"), name="t.csv"):
        with (tmp_path / name).open("w", newline="") as stream:
            csv.writer(stream).writerows([*above, header, *lines])
        return tmp_path / name

    return table


@pytest.fixture
def fit_y(run, out):
    """Fit a table; the facts, or what was said where it is refused."""

    def command(path, *words, status=0, base=BY_Y):
        given = ["fit", path, base, "--json --force", "--out", out, *words]
        result = run(*given, status=status)
        if status:
            return " ".join(result.stderr.split())
        return json.loads(result.stdout)

    return command


# Header


def test_a_title_above_the_header_is_skipped(run, fit_y, write, out, tmp_path):
    titled, plain = write(rows(), TITLE), write(rows(), name="plain.csv")
    threshold = fit_y(titled, "--header-row 4")["certificate"]["threshold"]
    assert fit_y(plain)["certificate"]["threshold"] == threshold
    for table, option in ((titled, ["--header-row 4"]), (plain, [])):
        run("predict", out, table, "--out", tmp_path / f"{table.stem}-p.csv", *option)
    assert (tmp_path / "t-p.csv").read_text() == (tmp_path / "plain-p.csv").read_text()


def test_a_title_is_suspected_where_there_is_one_column(fit_y, write):
    said = fit_y(write(rows(), [["Results"], []]), status=3)
    assert "say in which line these are: --header-row 4." in said


def test_a_title_in_a_workbook_is_skipped(fit_y, tmp_path):
    path = tmp_path / "t.xlsx"
    with Workbook(path) as book:
        sheet = book.add_worksheet()
        for i, line in enumerate([["Results"], [], ["a", "b", "y"], *rows()]):
            sheet.write_row(i, 0, line)
    assert fit_y(path, "--header-row 3")["columns"] == ["a", "b"]


def test_lines_count_from_the_top_of_the_file(fit_y, write):
    lines = rows()
    lines[100][1] = "high"
    path = write(lines, TITLE)
    number = 1 + path.read_text().splitlines().index(",".join(map(str, lines[100])))
    said = fit_y(path, "--header-row 4", status=3)
    assert f"'high' in line {number} is the first" in said


@pytest.mark.parametrize(
    ("name", "line", "says"),
    [("t.csv", 3, "no header in line 3"), ("t.csv", 9999, "no header in line 9999"),
     ("t.parquet", 2, "leave out --header-row")],
)  # fmt: skip
def test_bad_header_rows_are_refused(fit_y, write, name, line, says):
    path = write(rows(), TITLE).with_name(name)
    if name == "t.parquet":
        pq.write_table(pa.table({"a": [1.0, 2.0], "y": [0, 1]}), path)
    assert says in fit_y(path, "--header-row", line, status=3)


# Labels


def test_one_class_against_the_rest(run, fit_y, write, out, tmp_path):
    path = write(rows(360, labels=("well", "flu", "cold")))
    base = BY_Y.replace("controlled 0", "controlled well")
    refused = fit_y(path, base=base, status=3)
    assert "must have two labels: got 'cold' (120 rows), 'flu' (120 rows)," in refused
    assert "--versus rest" in refused
    facts = fit_y(path, "--versus rest", base=base)
    assert facts["rows"] == {"rest": 240, "well": 120}
    assert mr.load_model(out).rest == ("cold", "flu")
    words = ["predict", out, path, "--json", "--out", tmp_path / "p.csv"]
    measured = json.loads(run(*words).stdout)["measured"]
    # Both other labels count as the rest, also where errors are measured.
    assert (measured["classes"]["rest"]["rows"], measured["unknown_labels"]) == (240, 0)
    run("watch", out, path)


def test_one_class_against_another(fit_y, write):
    path = write(rows(360, labels=(0, 1, 2)))
    assert fit_y(path, "--versus 2")["rows"] == {"0": 120, "2": 120}
    assert "controlled class itself" in fit_y(path, "--versus 0", status=3)
    assert "not a label" in fit_y(path, "--versus 7", status=3)


def test_a_label_may_be_called_rest(fit_y, write):
    path = write(rows(360, labels=("work", "rest", "sleep")))
    base = BY_Y.replace("controlled 0", "controlled work")
    facts = fit_y(path, "--versus rest", base=base)
    assert facts["rows"] == {"rest": 120, "work": 120}


def test_rows_without_a_label_are_refused_or_left_out(fit_y, write):
    lines = rows()
    lines[7][2] = lines[9][2] = ""
    path = write(lines)
    refused = fit_y(path, status=3)
    assert "2 row(s) have no label in 'y', the first is line 9" in refused
    assert "--skip-unlabelled" in refused
    facts = fit_y(path, "--skip-unlabelled")
    assert sum(facts["rows"].values()) == 238
    assert "2 row(s) without a label were left out." in facts["warnings"]
    path = write([[a, b, ""] for a, b, _ in rows()])
    assert "no row has a label" in fit_y(path, "--skip-unlabelled", status=3)


@pytest.mark.parametrize("written", ["1", "1.0"])
@pytest.mark.parametrize("asked", ["1", "1.0"])
def test_one_is_one_however_it_is_written(fit_y, write, written, asked):
    labels = (written.replace("1", "0", 1), written)
    base = BY_Y.replace("controlled 0", f"controlled {asked}")
    facts = fit_y(write(rows(labels=labels)), base=base)
    assert facts["certificate"]["controlled_class"] == 1


# Columns


def test_every_bad_column_is_in_one_message(fit_y, write):
    lines = [
        [a, b, f"P{i}", "", "n. a." if i == 5 else i, y]
        for i, (a, b, y) in enumerate(rows())
    ]
    path = write(lines, header=["a", "b", "name", "empty", "mixed", "y"])
    said = fit_y(path, status=3)
    assert "3 columns can't be used as they are" in said
    assert "'name' has 240 different texts" in said
    assert "'empty' has no value in any row" in said
    assert "'mixed' has 239 numbers and 1 cell(s) that are not: 'n. a.' in line 7" in (
        said
    )
    remedy = "--drop name --drop empty --drop mixed"
    assert said.endswith(f"To leave all of them out: {remedy}")
    fit_y(path, remedy)


def test_every_constant_column_is_in_one_message(fit_y, write):
    lines = [[i, 7, 8, i % 2] for i in range(40)]
    said = fit_y(write(lines, header=["a", "b", "c", "y"]), status=3)
    assert "column 'b' has one value only" in said
    assert "column 'c' has one value only" in said
    assert "--drop b --drop c" in said


@pytest.mark.parametrize(
    "words", ["--drop id,name", "--drop 'id, name'", "--drop id --drop name"]
)
def test_several_columns_are_left_out(run, fit_y, write, out, tmp_path, words):
    lines = [[f"P{i}", f"N{i}", *row] for i, row in enumerate(rows())]
    path = write(lines, header=["id", "name", "a", "b", "y"])
    fit_y(path, words)
    assert mr.load_model(out).dropped == ("id", "name")
    run("predict", out, path, "--keep id,name -q", "--out", tmp_path / "p.csv")
    header = (tmp_path / "p.csv").read_text().splitlines()[0]
    assert header.replace('"', "") == "id,name,label,score,reason"


def test_a_name_may_have_a_comma(fit_y, write, out):
    lines = [[f"P{i}", *row] for i, row in enumerate(rows())]
    fit_y(write(lines, header=["id, long", "a", "b", "y"]), "--drop 'id, long'")
    assert mr.load_model(out).dropped == ("id, long",)


def test_every_unknown_name_is_in_one_message(fit_y, write):
    said = fit_y(write(rows()), "--drop c,d", status=3)
    assert "--drop 'c', 'd' are not columns" in said


@pytest.mark.parametrize("alpha", ["20%", "20 %", "0.2", "0,2"])
def test_levels_may_be_percentages(fit_y, write, alpha):
    base = BY_Y.replace("--alpha 0.2", "--delta 10%")
    certificate = fit_y(write(rows()), "--alpha", alpha, base=base)["certificate"]
    assert (certificate["alpha"], certificate["delta"]) == (0.2, 0.1)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda b, y: b if y == 1 else "", "Class 0: feature(s) ['b'] are"),
        (lambda b, y: 1e-310 * b, "Feature(s) ['b'] have values of size"),
    ],
)
def test_what_an_estimator_refuses_names_file_class_and_column(
    fit_y, write, spoil, message
):
    path = write([[a, spoil(b, y), y] for a, b, y in rows()])
    said = fit_y(path, "--missingness ignore --method naive-bayes", status=3)
    assert f"{path}: {message}" in said


def test_warnings_of_an_estimator_name_options(fit_y, write):
    lines = [[a, b + 100 * y, y] for a, b, y in rows(n=600)]
    said = "Take --method kliep-cv, leave them out (--drop), or bring more denominator"
    warnings = fit_y(write(lines), "--method naive-bayes")["warnings"]
    assert any(said in warning for warning in warnings)


def test_long_labels_are_cut_in_messages(fit_y, write):
    said = fit_y(write(rows(labels=("0", "sick", "x" * 1000))), status=3)
    assert "x…" in said
    assert "x" * 100 not in said


# Predictions


NEW = (
    "pulse,sugar,ward,state\n90,5,east,well\n,5,east,well\n90,,south,sick\n200,9,,ill\n"
)


def test_predictions_say_why_a_row_has_no_score(
    patients_model, run, read_csv, tmp_path
):
    new = tmp_path / "new.csv"
    new.write_text(NEW)
    words = ["predict", patients_model, new, "--keep pulse --json", "--out"]
    for suffix in ("csv", "xlsx"):
        facts = json.loads(run(*words, tmp_path / f"p.{suffix}").stdout)
        assert facts["unscored"] == 3
        assert facts["measured"]["unknown_labels"] == 1
    with CalamineWorkbook.from_path(tmp_path / "p.xlsx") as book:
        header, *lines = book.get_sheet_by_name("predictions").to_python()
    assert header == ["pulse", "label", "score", "reason"]
    assert [line[3] for line in lines] == [
        "", "'pulse' is missing", "'sugar' is missing; 'south' of 'ward' is new",
        "'ward' is missing",
    ]  # fmt: skip
    for line, text in zip(lines, read_csv(tmp_path / "p.csv"), strict=True):
        assert line[1] == text["label"]
        assert str(line[2]) == "" == text["score"] or float(text["score"]) == (
            pytest.approx(line[2])
        )
    run(*words, tmp_path / "q.csv", "--drop state")


def test_a_complete_row_without_a_score_says_so_too(patients_model):
    model = mr.load_model(patients_model)
    table = pa.table({"pulse": [90.0, 90.0], "sugar": [5.0, 5.0], "ward": ["east"] * 2})
    X = model.encoder.encode(table)
    first, second = reasons(model.encoder, table, X, np.array([True, False]))
    assert "go missing too often" in first
    assert second is None
    X[1, 0] = 1e300
    _, second = reasons(model.encoder, table, X, np.array([True, True]))
    assert second == "its values are too large for a score"


def test_names_in_a_workbook_are_no_formulas(patients_model, run, tmp_path):
    new, out = tmp_path / "new.csv", tmp_path / "p.xlsx"
    new.write_text("id,pulse,sugar,ward\n=1+1,90,5,east\n")
    run("predict", patients_model, new, "--keep id -q", "--out", out)
    with CalamineWorkbook.from_path(out) as book:
        assert book.get_sheet_by_index(0).to_python()[1][0] == "=1+1"


def test_errors_are_measured_where_there_are_labels(
    patients_model, run, read_csv, day, tmp_path
):
    labelled, out = day(5), tmp_path / "p.csv"
    words = ["predict", patients_model, labelled, "--drop id --force", "--out", out]
    measured = json.loads(run(*words, "--json").stdout)["measured"]
    states = [row["state"] for row in read_csv(labelled)]
    pairs = list(zip(states, [row["label"] for row in read_csv(out)], strict=True))
    wrong, total = pairs.count(("well", "sick")), states.count("well")
    well, sick = (measured["classes"][name] for name in ("well", "sick"))
    assert (well["rows"], well["wrong"]["events"]) == (total, wrong)
    assert sick["found"]["events"] == pairs.count(("sick", "sick"))
    assert well["wrong"]["low"] < well["wrong"]["share"] < well["wrong"]["high"]
    said = " ".join(run(*words).stdout.split())
    assert f"{wrong} of {total} 'well' are called 'sick' (" in said
    assert "at most 20% was promised" in said


# Plans


def test_plans_give_the_line_of_the_file(run, fit_y, fill, write, tmp_path):
    """A title, a row of separators alone and a skipped row come before."""
    rng = np.random.default_rng(0)
    lines = rows(400)
    for line in lines:
        if line[2] == 0 and rng.uniform() < 0.3:
            line[0] = ""
    lines[3], lines[8][2] = ["", "", ""], ""
    path, plan = write(lines, TITLE), tmp_path / "plan.csv"
    common = "--header-row 4 --skip-unlabelled"
    words = ["query", path, "--target y --controlled 0 --per-feature 30 -q", common]
    run(*words, "--out", plan)
    text = path.read_text().splitlines()

    def answer(line):
        assert "row" not in line
        a, b, y = text[int(line["line"]) - 1].split(",")
        assert (a, y) == ("", "0")
        assert float(b) == float(line["known b"])
        return rng.normal()

    fill(plan, answer)
    words = [common, "--missingness learn", "--queries", plan]
    facts = fit_y(path, *words, "--on-infeasible reject_all")
    assert "30 looked-up values" in facts["missingness"]
    content = plan.read_text().splitlines()
    place = content[0].split(",").index("line")
    cells = content[1].split(",")
    cells[place] = "5"
    plan.write_text("\n".join([content[0], ",".join(cells), *content[2:]]))
    assert "line 5, feature 'a' isn't missing" in fit_y(path, *words, status=3)
