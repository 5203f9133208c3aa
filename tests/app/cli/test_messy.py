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

TREATED = ["--target", "y", "--controlled", "0", "--alpha", "0.2"]
AT_ONCE = ["--method", "kliep", "-q"]


def rows(n=240, labels=(0, 1), seed=0):
    """Two numbers and a label, the second class further out."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % len(labels)
    X = rng.normal(y[:, None], 1.0, (n, 2)).round(3)
    return [[*X[i].tolist(), labels[y[i]]] for i in range(n)]


def write(path, lines, above=()):
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerows([*above, ["a", "b", "y"], *lines])
    return path


@pytest.fixture
def out(tmp_path):
    return tmp_path / "m.skops"


# Header


TITLE = [["Results, 2024"], ["by hand, checked"], []]


def test_a_title_above_the_header_is_skipped(run, tmp_path, out):
    path = write(tmp_path / "t.csv", rows(), TITLE)
    run("fit", path, *TREATED, *AT_ONCE, "--header-row", 4, "--out", out)
    plain = write(tmp_path / "plain.csv", rows())
    run("fit", plain, *TREATED, *AT_ONCE, "--out", tmp_path / "other.skops")
    first, second = mr.load_model(out), mr.load_model(tmp_path / "other.skops")
    assert first.classifier.threshold_ == second.classifier.threshold_
    for table, options in ((path, ["--header-row", 4]), (plain, [])):
        run("predict", out, table, "--out", tmp_path / f"{table.stem}-p.csv", *options)
    assert (tmp_path / "t-p.csv").read_text() == (tmp_path / "plain-p.csv").read_text()


def test_a_title_is_suspected_where_there_is_one_column(run, tmp_path, out):
    path = write(tmp_path / "t.csv", rows(), [["Results"], []])
    result = run("fit", path, *TREATED, "--out", out, status=3)
    said = " ".join(result.stderr.split())
    assert "say in which line these are: --header-row 4." in said


def test_a_title_in_a_workbook_is_skipped(run, tmp_path, out):
    path = tmp_path / "t.xlsx"
    with Workbook(path) as book:
        sheet = book.add_worksheet()
        for i, line in enumerate([["Results"], [], ["a", "b", "y"], *rows()]):
            sheet.write_row(i, 0, line)
    run("fit", path, *TREATED, *AT_ONCE, "--header-row", 3, "--out", out)
    assert mr.load_model(out).encoder.names == ["a", "b"]


def test_lines_count_from_the_top_of_the_file(run, tmp_path, out):
    lines = rows()
    lines[100][1] = "high"
    path = write(tmp_path / "t.csv", lines, TITLE)
    result = run("fit", path, *TREATED, "--header-row", 4, "--out", out, status=3)
    number = 1 + path.read_text().splitlines().index(",".join(map(str, lines[100])))
    assert f"'high' in line {number} is the first" in result.stderr


@pytest.mark.parametrize(
    ("name", "line", "says"),
    [("t.csv", 3, "no header in line 3"), ("t.csv", 9999, "no header in line 9999"),
     ("t.csv", 0, "equal to 1"), ("t.parquet", 2, "leave out --header-row")],
)  # fmt: skip
def test_bad_header_rows_are_refused(run, tmp_path, out, name, line, says):
    path = write(tmp_path / "t.csv", rows(), TITLE)
    if name == "t.parquet":
        path = tmp_path / name
        pq.write_table(pa.table({"a": [1.0, 2.0], "y": [0, 1]}), path)
    status = 2 if line == 0 else 3
    result = run("fit", path, *TREATED, "--header-row", line, "--out", out,
                 status=status)  # fmt: skip
    assert says in result.stderr


# Labels


def test_one_class_against_the_rest(run, tmp_path, out):
    path = write(tmp_path / "t.csv", rows(360, labels=("well", "flu", "cold")))
    words = ["fit", path, "--target", "y", "--controlled", "well", "--alpha", "0.2",
             "--method", "kliep", "--out", out]  # fmt: skip
    refused = run(*words, status=3).stderr
    assert "'cold' (120 rows), 'flu' (120 rows), 'well' (120 rows)" in refused
    assert "--versus rest" in refused
    facts = json.loads(run(*words, "--versus", "rest", "--json").stdout)
    assert facts["rows"] == {"rest": 240, "well": 120}
    model = mr.load_model(out)
    assert model.rest == ("cold", "flu")
    done = json.loads(
        run("predict", out, path, "--out", tmp_path / "p.csv", "--json").stdout
    )
    # Both other labels count as the rest, also where errors are measured.
    assert done["measured"]["other"]["rows"] == 240
    assert done["measured"]["unknown_labels"] == 0
    assert run("watch", out, path, "--json").exit_code == 0


def test_one_class_against_another(run, tmp_path, out):
    path = write(tmp_path / "t.csv", rows(360, labels=(0, 1, 2)))
    words = ["fit", path, *TREATED, "--method", "kliep", "--out", out]
    facts = json.loads(run(*words, "--versus", "2", "--json").stdout)
    assert facts["rows"] == {"0": 120, "2": 120}
    for versus, says in (("0", "controlled class itself"), ("7", "not a label")):
        result = run(*words, "--versus", versus, "--force", status=3)
        assert says in " ".join(result.stderr.split())


def test_a_label_may_be_called_rest(run, tmp_path, out):
    path = write(tmp_path / "t.csv", rows(360, labels=("work", "rest", "sleep")))
    facts = json.loads(
        run("fit", path, "--target", "y", "--controlled", "work", "--versus", "rest",
            "--alpha", "0.2", "--method", "kliep", "--out", out, "--json").stdout
    )  # fmt: skip
    assert facts["rows"] == {"rest": 120, "work": 120}


def test_rows_without_a_label_are_refused_or_left_out(run, tmp_path, out):
    lines = rows()
    for i in (7, 9):
        lines[i][2] = ""
    path = write(tmp_path / "t.csv", lines)
    refused = run("fit", path, *TREATED, "--out", out, status=3).stderr
    assert "2 row(s) have no label in 'y', the first is line 9" in refused
    assert "--skip-unlabelled" in refused
    words = ["fit", path, *TREATED, "--method", "kliep", "--out", out]
    facts = json.loads(run(*words, "--skip-unlabelled", "--json").stdout)
    assert sum(facts["rows"].values()) == 238
    assert "2 row(s) without a label were left out." in facts["warnings"]


def test_a_table_without_any_label_is_refused(run, tmp_path, out):
    path = write(tmp_path / "t.csv", [[a, b, ""] for a, b, _ in rows()])
    result = run("fit", path, *TREATED, "--skip-unlabelled", "--out", out, status=3)
    assert "no row has a label" in result.stderr


@pytest.mark.parametrize("written", ["1", "1.0"])
@pytest.mark.parametrize("asked", ["1", "1.0"])
def test_one_is_one_however_it_is_written(run, tmp_path, out, written, asked):
    lines = [[a, b, f"{written if y else written.replace('1', '0', 1)}"]
             for a, b, y in rows()]  # fmt: skip
    path = write(tmp_path / "t.csv", lines)
    run("fit", path, "--target", "y", "--controlled", asked, "--alpha", "0.2",
        *AT_ONCE, "--out", out)  # fmt: skip
    assert mr.load_model(out).certificate.controlled_class == 1


# Columns


def test_every_bad_column_is_in_one_message(run, tmp_path, out):
    lines = rows()
    path = tmp_path / "t.csv"
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["a", "b", "name", "empty", "mixed", "y"])
        for i, (a, b, y) in enumerate(lines):
            writer.writerow([a, b, f"P{i}", "", "n. a." if i == 5 else i, y])
    said = run("fit", path, *TREATED, "--out", out, status=3).stderr
    said = " ".join(said.split())
    assert "3 columns can't be used as they are" in said
    assert "'name' has 240 different texts" in said
    assert "'empty' has no value in any row" in said
    assert "'mixed' has 239 numbers and 1 cell(s) that are not: 'n. a.' in line 7" in (
        said
    )
    remedy = "--drop name --drop empty --drop mixed"
    assert said.endswith(f"To leave all of them out: {remedy}")
    run("fit", path, *TREATED, *AT_ONCE, *remedy.split(), "--out", out)


def test_every_constant_column_is_in_one_message(run, tmp_path, out):
    path = tmp_path / "t.csv"
    path.write_text("a,b,c,y\n" + "".join(f"{i},7,8,{i % 2}\n" for i in range(40)))
    said = run("fit", path, *TREATED, "--out", out, status=3).stderr
    assert "column 'b' has one value only" in said
    assert "column 'c' has one value only" in said
    assert "--drop b --drop c" in said


@pytest.mark.parametrize("words", [["--drop", "id,name"], ["--drop", "id, name"],
                                   ["--drop", "id", "--drop", "name"]])  # fmt: skip
def test_several_columns_are_left_out(run, tmp_path, out, words):
    path = tmp_path / "t.csv"
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["id", "name", "a", "b", "y"])
        writer.writerows([f"P{i}", f"N{i}", *row] for i, row in enumerate(rows()))
    run("fit", path, *TREATED, *AT_ONCE, *words, "--out", out)
    assert mr.load_model(out).dropped == ("id", "name")
    run("predict", out, path, "--keep", "id,name", "--out", tmp_path / "p.csv", "-q")
    header = (tmp_path / "p.csv").read_text().splitlines()[0]
    assert header.replace('"', "") == "id,name,label,score,reason"


def test_a_name_may_have_a_comma(run, tmp_path, out):
    path = tmp_path / "t.csv"
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["id, long", "a", "b", "y"])
        writer.writerows([f"P{i}", *row] for i, row in enumerate(rows()))
    run("fit", path, *TREATED, *AT_ONCE, "--drop", "id, long", "--out", out)
    assert mr.load_model(out).dropped == ("id, long",)


def test_every_unknown_name_is_in_one_message(run, tmp_path, out):
    path = write(tmp_path / "t.csv", rows())
    result = run("fit", path, *TREATED, "--drop", "c,d", "--out", out, status=3)
    assert "--drop 'c', 'd' are not columns" in result.stderr


# Levels


@pytest.mark.parametrize("alpha", ["20%", "20 %", "0.2", "0,2"])
def test_levels_may_be_percentages(run, tmp_path, out, alpha):
    path = write(tmp_path / "t.csv", rows())
    run("fit", path, "--target", "y", "--controlled", "0", "--alpha", alpha, "--delta",
        "10%", *AT_ONCE, "--out", out)  # fmt: skip
    certificate = mr.load_model(out).certificate
    assert (certificate.alpha, certificate.delta) == (0.2, 0.1)


@pytest.mark.parametrize(
    ("alpha", "says"), [("5", "Did you mean 5%?"), ("a lot", "write 0.05 or 5%"),
                        ("500%", "between 0 and 1")],
)  # fmt: skip
def test_bad_levels_are_refused(run, tmp_path, out, alpha, says):
    path = write(tmp_path / "t.csv", rows())
    result = run("fit", path, "--target", "y", "--controlled", "0", "--alpha", alpha,
                 "--out", out, status=2)  # fmt: skip
    assert says in " ".join(result.stderr.replace("│", "").split())


# Predictions


NEW = (
    "pulse,sugar,ward,state\n90,5,east,well\n,5,east,well\n90,,south,sick\n200,9,,ill\n"
)


def test_predictions_say_why_a_row_has_no_score(fit, run, patients):
    path, _ = fit()
    new = patients.with_name("new.csv")
    new.write_text(NEW)
    for suffix in ("csv", "xlsx"):
        out = patients.with_name(f"p.{suffix}")
        facts = json.loads(run("predict", path, new, "--out", out, "--keep", "pulse",
                               "--json").stdout)  # fmt: skip
        assert facts["unscored"] == 3
    with CalamineWorkbook.from_path(patients.with_name("p.xlsx")) as book:
        header, *lines = book.get_sheet_by_name("predictions").to_python()
    assert header == ["pulse", "label", "score", "reason"]
    assert [line[3] for line in lines] == [
        "", "'pulse' is missing", "'sugar' is missing; 'south' of 'ward' is new",
        "'ward' is missing",
    ]  # fmt: skip
    with patients.with_name("p.csv").open(newline="") as stream:
        texts = list(csv.DictReader(stream))
    for line, text in zip(lines, texts, strict=True):
        assert line[1] == text["label"]
        assert str(line[2]) == "" == text["score"] or float(text["score"]) == (
            pytest.approx(line[2])
        )


def test_a_complete_row_without_a_score_says_so_too(fit):
    model = mr.load_model(fit()[0])
    table = pa.table({"pulse": [90.0, 90.0], "sugar": [5.0, 5.0], "ward": ["east"] * 2})
    X = model.encoder.encode(table)
    first, second = reasons(model.encoder, table, X, np.array([True, False]))
    assert "go missing too often" in first
    assert second is None
    X[1, 0] = 1e300
    _, second = reasons(model.encoder, table, X, np.array([True, True]))
    assert second == "its values are too large for a score"


def test_names_in_a_workbook_are_no_formulas(fit, run, patients):
    path, _ = fit()
    new, out = patients.with_name("new.csv"), patients.with_name("p.xlsx")
    new.write_text("id,pulse,sugar,ward\n=1+1,90,5,east\n")
    run("predict", path, new, "--keep", "id", "--out", out, "-q")
    with CalamineWorkbook.from_path(out) as book:
        assert book.get_sheet_by_index(0).to_python()[1][0] == "=1+1"


def test_errors_are_measured_where_there_are_labels(fit, run, day, tmp_path):
    path, _ = fit()
    labelled, out = day(5), tmp_path / "p.csv"
    facts = json.loads(run("predict", path, labelled, "--drop", "id", "--out", out,
                           "--json").stdout)  # fmt: skip
    with labelled.open(newline="") as stream:
        states = [row["state"] for row in csv.DictReader(stream)]
    with out.open(newline="") as stream:
        labels = [row["label"] for row in csv.DictReader(stream)]
    pairs = list(zip(states, labels, strict=True))
    measured = facts["measured"]
    assert measured["controlled"]["rows"] == states.count("well")
    assert measured["controlled"]["called_other"] == pairs.count(("well", "sick"))
    assert measured["other"]["called_other"] == pairs.count(("sick", "sick"))
    low, high = measured["controlled"]["low"], measured["controlled"]["high"]
    assert low < measured["controlled"]["share"] < high
    said = run("predict", path, labelled, "--drop", "id", "--out", out, "--force")
    wrong, total = pairs.count(("well", "sick")), states.count("well")
    words = " ".join(said.stdout.split())
    assert f"{wrong} of {total} 'well' are called 'sick' (" in words
    assert "at most 20% was promised" in words


def test_labels_that_are_unknown_are_counted(fit, run, patients):
    path, _ = fit()
    new, out = patients.with_name("new.csv"), patients.with_name("p.csv")
    new.write_text(NEW)
    facts = json.loads(run("predict", path, new, "--out", out, "--json").stdout)
    assert facts["measured"]["unknown_labels"] == 1
    run("predict", path, new, "--drop", "state", "--out", out, "--force", "--json")


# Plans


def test_plans_give_the_line_of_the_file(run, tmp_path, out):
    """A title, a row of separators alone and a skipped row come before."""
    rng = np.random.default_rng(0)
    lines = rows(400)
    for i, line in enumerate(lines):
        if line[2] == 0 and rng.uniform() < 0.3:
            line[0] = ""
        if i == 3:
            lines[i] = ["", "", ""]
        if i == 8:
            line[2] = ""
    path = write(tmp_path / "t.csv", lines, TITLE)
    plan = tmp_path / "plan.csv"
    common = ["--target", "y", "--controlled", "0", "--header-row", 4,
              "--skip-unlabelled"]  # fmt: skip
    run("query", path, *common, "--per-feature", 30, "--out", plan, "-q")
    text = path.read_text().splitlines()
    with plan.open(newline="") as stream:
        asked = list(csv.DictReader(stream))
    assert "row" not in asked[0]
    for line in asked:
        a, b, y = text[int(line["line"]) - 1].split(",")
        assert (a, y) == ("", "0")
        assert float(b) == float(line["known b"])
        line["value"] = rng.normal()
    with plan.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, asked[0])
        writer.writeheader()
        writer.writerows(asked)
    facts = json.loads(
        run("fit", path, *common, "--queries", plan, "--alpha", "20%", "--method",
            "kliep", "--missingness", "learn", "--out", out, "--json").stdout
    )  # fmt: skip
    assert "30 looked-up values" in facts["missingness"]
    asked[0]["line"] = 5
    with plan.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, asked[0])
        writer.writeheader()
        writer.writerows(asked)
    result = run("fit", path, *common, "--queries", plan, "--out", out, "--force",
                 status=3)  # fmt: skip
    assert "line 5, feature 'a' isn't missing" in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda b, y: b if y == "sick" else "", "Class 'well': feature(s) ['b'] are"),
        (lambda b, y: 1e-310 * b, "Feature(s) ['b'] have values of size"),
    ],
)
def test_what_an_estimator_refuses_names_file_class_and_column(
    run, tmp_path, out, spoil, message
):
    lines = [[a, spoil(b, y), y] for a, b, y in rows(labels=("well", "sick"))]
    path = write(tmp_path / "t.csv", lines)
    options = "--target y --controlled well --missingness ignore --method naive-bayes"
    result = run("fit", path, *options.split(), "--out", out, status=3)
    assert f"{path}: {message}" in result.stderr


def test_warnings_of_an_estimator_name_options(run, tmp_path, out):
    lines = [[a, b + 100 * (y == "sick"), y] for a, b, y in
             rows(n=600, labels=("well", "sick"))]  # fmt: skip
    path = write(tmp_path / "t.csv", lines)
    options = "--target y --controlled well --alpha 20% --method naive-bayes"
    result = run("fit", path, *options.split(), "--out", out)
    said = "Take --method kliep-cv, leave them out (--drop), or bring more denominator"
    assert said in result.output


def test_long_labels_are_cut_in_messages(run, tmp_path, out):
    path = write(tmp_path / "t.csv", rows(labels=("well", "sick", "x" * 1000)))
    options = ["--target", "y", "--controlled", "well"]
    result = run("fit", path, *options, "--out", out, status=3)
    assert "x…" in result.stderr
    assert "x" * 100 not in result.stderr
