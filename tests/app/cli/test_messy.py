"""Tables as people have them: titles, labels missing, three classes, bad columns."""

import csv
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import read_csv, run
from python_calamine import CalamineWorkbook

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
def fit_y(out):
    """Fit a table; the facts, or what was said where it is refused."""

    def command(path, *words, status=0, base=BY_Y):
        given = ["fit", path, base, "--json --force", "--out", out, *words]
        result = run(*given, status=status)
        if status:
            return " ".join(result.stderr.split())
        return json.loads(result.stdout)

    return command


# Header


def test_a_title_above_the_header_is_skipped(fit_y, write, out, tmp_path):
    titled, plain = write(rows(), TITLE), write(rows(), name="plain.csv")
    threshold = fit_y(titled, "--header-row 4")["certificate"]["threshold"]
    assert fit_y(plain)["certificate"]["threshold"] == threshold
    for table, option in ((titled, ["--header-row 4"]), (plain, [])):
        run("predict", out, table, "--out", tmp_path / f"{table.stem}-p.csv", *option)
    assert (tmp_path / "t-p.csv").read_text() == (tmp_path / "plain-p.csv").read_text()


def test_a_title_is_suspected_where_there_is_one_column(fit_y, write):
    said = fit_y(write(rows(), [["Results"], []]), status=3)
    assert "say in which line these are: --header-row 4." in said


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


def test_one_class_against_the_rest(fit_y, write, out, tmp_path):
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


def test_spellings_are_refused_in_labels_and_noted_in_categories(tmp_path):
    """'Well' is never among the sick in silence."""
    states = ["well", "sick"] * 150 + ["Well", "Sick"]
    wards = ["North", "A+", "A-"] * 100 + ["Nroth", "North"]
    lines = [
        f"{i % 7 + (s[1:] == 'ick')},{w},{s}"
        for i, (s, w) in enumerate(zip(states, wards, strict=True))
    ]
    path, model = tmp_path / "t.csv", tmp_path / "m.skops"
    path.write_text("\n".join(["a,ward,state", *lines]))
    words = "--target state --controlled well --versus rest --alpha 20% --method js"
    merge = "--merge Sick=sick --merge Well=well"
    plain = words.replace(" --method js", "")
    plan = tmp_path / "plan.csv"
    for command, given, out in (("fit", words, model), ("query", plain, plan)):
        said = run(command, path, given, "--out", out, status=3).stderr
        assert f"add {merge}; if not" in said
    said = run("fit", path, words, merge, "--out", model).stdout
    assert "'Nroth' in 1 rows, and 'North' in 101. If they are the same, say" in said
    assert "A+" not in said


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


def test_what_an_estimator_refuses_names_file_class_and_column(fit_y, write):
    path = write([[a, b if y == 1 else "", y] for a, b, y in rows()])
    said = fit_y(path, "--missingness ignore --method naive-bayes", status=3)
    assert f"{path}: Class 0: feature(s) ['b'] are" in said


# Predictions


NEW = (
    "pulse,sugar,ward,state\n90,5,east,well\n,5,east,well\n90,,south,sick\n200,9,,ill\n"
)


def test_predictions_say_why_a_row_has_no_score(patients_model, tmp_path):
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
    # Of a model that takes blanks, they are no reason.
    table = pa.table({"pulse": [None], "sugar": [5.0], "ward": ["south"]})
    X = model.encoder.encode(table)
    (why,) = reasons(model.encoder, table, X, np.array([True]), blanks=True)
    assert why == "'south' of 'ward' is new"
