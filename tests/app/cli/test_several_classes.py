"""Bounds on several classes by command: fit, predict, report and watch."""

import csv
import json
import re

import numpy as np
import pytest
from threadpoolctl import threadpool_limits
from typer.testing import CliRunner

import missratio as mr
from missratio._files import open_table
from missratio.app.cli import app

CENTRES = {"sepsis": (0, 0), "flu": (3, 0.4), "cold": (1.6, 2.8)}
# Comparing methods takes a while, and is tested by itself.
QUICK = ("--compare-seconds", "0")
TWO = ("--alpha", "sepsis=15%", "--alpha", "flu=20%", *QUICK)


def write(path, n, seed, *, lose=False, moved=0.0):
    rng = np.random.default_rng(seed)
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["pulse", "sugar", "ward", "state"])
        for label, centre in CENTRES.items():
            X = rng.normal(centre, 1, (n, 2)).round(4)
            X[:, 0] += moved * (label == "sepsis")
            for row in X.tolist():
                ward = rng.choice(["east", "west"])
                lost = lose and rng.random() < 1 / (1 + np.exp(2.5 - 0.5 * row[0]))
                writer.writerow(["" if lost else row[0], row[1], ward, label])
    return path


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return write(tmp_path_factory.mktemp("several") / "table.csv", 700, 0)


@pytest.fixture(scope="module")
def fitted(table):
    """A model, and what the command said of it."""
    out = table.with_name("model.skops")
    words = ["fit", table, "--target", "state", *TWO, "--out", out]
    with threadpool_limits(1):
        said = CliRunner().invoke(app, [str(word) for word in words])
    assert said.exit_code == 0, said.output
    return out, said.stdout


def test_fit_says_what_becomes_of_each_class(fitted):
    _, said = fitted
    assert "while at most 15% are called another class (measured: " in said
    assert "At most 20% of complete 'flu' rows are classified as another" in said
    assert "Finds " in said
    assert "of 'cold'." in said


def test_facts_and_model_agree(run, table, tmp_path):
    path = tmp_path / "model.skops"
    words = ["fit", table, "--target", "state", *TWO, "--out", path, "--json"]
    facts = json.loads(run(*words).stdout)
    model = mr.load_model(path)
    assert [each["alpha"] for each in facts["certificate"]["classes"]] == [0.15, 0.2]
    assert model.certificate["flu"].alpha == 0.2
    assert facts["certificate"]["fallback"] == model.fallback == "sepsis"
    assert [entry["label"] for entry in facts["errors"]] == ["sepsis", "flu", "cold"]
    for entry in facts["errors"][:2]:
        assert entry["error"]["low"] <= entry["error"]["estimate"] <= entry["bound"]
    assert facts["method"] == "logistic"
    assert facts["rows"] == {"cold": 700, "flu": 700, "sepsis": 700}


def test_methods_are_compared_under_the_bounds(run, tmp_path):
    rng = np.random.default_rng(3)
    path, out = tmp_path / "rings.csv", tmp_path / "model.skops"
    lines = ["a,b,state"]
    for label, radius in (("inner", 0.5), ("middle", 2.5), ("outer", 5.0)):
        for angle in rng.uniform(0, 2 * np.pi, 400):
            x, y = radius * np.array([np.cos(angle), np.sin(angle)])
            x, y = x + rng.normal(0, 0.6), y + rng.normal(0, 0.6)
            lines.append(f"{x:.4f},{y:.4f},{label}")
    path.write_text("\n".join(lines))
    words = ["fit", path, "--target", "state", "--alpha", "inner=20%", "--alpha",
             "middle=30%", "--out", out, "--compare-seconds", "4"]  # fmt: skip
    said = run(*words).stdout
    # A line can't tell rings apart.
    found = re.search(r"Method: (\S+), which finds (\d+)% of 'outer' among", said)
    assert found, said
    assert found[1] != "logistic"
    assert int(found[2]) > 60
    model = mr.load_model(out)
    assert model.method == model.comparison.chosen == found[1]
    assert model.comparison.compared == ("outer",)
    named = {each.name: each for each in model.comparison.candidates}
    assert next(iter(named)) == "logistic"
    assert "Search" not in repr(model.classifier.estimator)
    page = tmp_path / "report.md"
    run("report", out, "--out", page)
    assert "## Methods compared" in page.read_text()
    assert "the share of outer that gets its own class" in page.read_text()


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".xlsx"])
def test_predictions_are_the_models_and_their_errors_are_measured(
    run, fitted, tmp_path, suffix
):
    pd = pytest.importorskip("pandas")
    path, _ = fitted
    fresh, out = write(tmp_path / "new.csv", 300, 1), tmp_path / f"predicted{suffix}"
    facts = json.loads(run("predict", path, fresh, "--out", out, "--json").stdout)
    frame = pd.read_csv(fresh)
    labels = pd.Series(open_table(out).read(["label"])["label"].to_pylist())
    assert (mr.load_model(path).predict(frame) == labels.to_numpy()).all()
    assert facts["labels"] == labels.value_counts().to_dict()
    for label, entry in facts["measured"]["classes"].items():
        own = frame["state"] == label
        assert entry["called"] == {
            name: int((labels[own] == name).sum()) for name in sorted(CENTRES)
        }
    assert facts["measured"]["classes"]["cold"]["wrong"] is None
    assert facts["measured"]["classes"]["flu"]["wrong"]["share"] < 0.25


def test_rows_without_a_score_get_the_fallback_and_a_reason(run, fitted, tmp_path):
    path, _ = fitted
    new, out = tmp_path / "new.csv", tmp_path / "out.csv"
    new.write_text("pulse,sugar,ward\n3,0.4,east\n,0.4,east\n3,0.4,north\n")
    said = run("predict", path, new, "--out", out).stdout
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert [row["label"] for row in rows] == ["flu", "sepsis", "sepsis"]
    assert rows[1]["reason"] == "'pulse' is missing"
    assert rows[2]["reason"] == "'north' of 'ward' is new"
    assert rows[1]["score_flu"] == ""
    assert float(rows[0]["score_flu"]) > float(rows[0]["score_sepsis"])
    assert "2 can't be scored" in said


def test_ordered_classes_with_missing_values(run, tmp_path):
    table, out = write(tmp_path / "t.csv", 1000, 2, lose=True), tmp_path / "m.skops"
    words = [
        "fit",
        table,
        "--target",
        "state",
        "--alpha",
        "sepsis=20%",
        "--alpha",
        "flu=30%",
        "--ordered",
        "sepsis, flu,cold",
        "--out",
        out,
        *QUICK,
    ]
    result = run(*words, status=3)
    assert "--missingness learn" in result.stderr
    assert "missratio query" not in result.stderr
    phi = tmp_path / "phi.toml"
    phi.write_text(
        "".join(
            f'[classes.{label}]\nmissing = "values"\nkind = "logistic"\n'
            "features.pulse = { intercept = -2.5, coef = 0.5 }\n"
            for label in CENTRES
        )
    )
    facts = json.loads(run(*words, "--missingness", phi, "--json").stdout)
    assert facts["method"] == "js"
    assert facts["certificate"]["order"] == ["sepsis", "flu", "cold"]
    said = run("predict", out, table, "--out", tmp_path / "p.csv").stdout
    assert "are called less severe" in said
    assert "the most severe class, which keeps the guarantee" in said


def test_no_room_is_said(run, table, tmp_path):
    out = tmp_path / "m.skops"
    words = ["fit", table, "--target", "state", "--alpha", "sepsis=5%", "--alpha",
             "flu=5%", "--out", out, *QUICK]  # fmt: skip
    result = run(*words, status=5)
    assert "leave no room: at least " in result.stderr
    assert not out.exists()


@pytest.mark.parametrize(
    ("words", "match"),
    [
        (["--alpha", "5%", "--alpha", "6%"], "was given 2 times"),
        (["--alpha", "flu=5%", "--alpha", "6%"], "takes LABEL=SHARE"),
        (["--alpha", "flu=5%", "--alpha", "flu=6%"], "names each once"),
        (["--alpha", "flu=many"], "is not a share"),
        (["--alpha", "flu=5"], "Did you mean 5%"),
        (
            [*TWO, "--controlled", "flu"],
            "LABEL=SHARE and --controlled don't go together",
        ),
        ([*TWO, "--versus", "rest"], "and --versus don't go together"),
        ([*TWO, "--queries", "plan.csv"], "in Python, fill look-ups in"),
        ([*TWO, "--standard-errors"], "and --standard-errors don't go"),
        ([*TWO, "--on-infeasible", "reject_all"], "given to several classes"),
        ([*TWO, "--calibration-size", "100"], "must be a share of the rows"),
        ([], "--alpha LABEL=SHARE for each of several"),
        (
            ["--controlled", "flu", "--ordered", "a,b"],
            "--ordered needs --alpha LABEL=SHARE",
        ),
    ],
)
def test_what_does_not_go_together_is_refused(run, table, tmp_path, words, match):
    out = tmp_path / "model.skops"
    result = run("fit", table, "--target", "state", "--out", out, *words, status=2)
    assert match in " ".join(result.stderr.replace("│", " ").split())
    assert not out.exists()


@pytest.mark.parametrize(
    ("words", "match"),
    [
        (["--alpha", "flue=5%"], "Did you mean 'flu'?"),
        ([*TWO, "--ordered", "sepsis,flu"], "each label once"),
        ([*TWO, "--ordered", "flu,cold,sepsis"], "--alpha flu=SHARE"),
    ],
)
def test_what_does_not_fit_the_table_is_refused(run, table, tmp_path, words, match):
    out = tmp_path / "model.skops"
    result = run("fit", table, "--target", "state", "--out", out, *words, status=3)
    assert re.search(match, result.stderr)
    assert not out.exists()


def test_two_labels_may_both_be_bounded(run, table, tmp_path):
    rows = [row for row in table.read_text().splitlines() if "cold" not in row]
    two, out = tmp_path / "two.csv", tmp_path / "m.skops"
    two.write_text("\n".join(rows))
    facts = json.loads(
        run("fit", two, "--target", "state", *TWO, "--out", out, "--json").stdout
    )
    assert all(entry["error"]["estimate"] < 0.2 for entry in facts["errors"])


@pytest.mark.parametrize("suffix", [".html", ".md", ".json"])
@pytest.mark.needs("vl_convert")
def test_the_report(run, fitted, tmp_path, suffix):
    path, _ = fitted
    out = tmp_path / f"report{suffix}"
    run("report", path, "--out", out)
    text = out.read_text()
    assert "sepsis" in text
    assert "What classes are called" in text or suffix == ".json"


def test_watch_has_a_monitor_for_each_bounded_class(run, fitted, tmp_path):
    path = tmp_path / "model.skops"
    path.write_bytes(fitted[0].read_bytes())
    first = write(tmp_path / "1.csv", 300, 5)
    second = write(tmp_path / "2.csv", 300, 6, moved=2.0)
    kept = json.loads(run("watch", path, first, "--json").stdout)
    assert not kept["alarm"]
    assert set(kept["classes"]) == {"sepsis", "flu"}
    assert kept["new_rows"] == 600
    assert kept["classes"]["flu"]["delta"] == 0.025
    figure = tmp_path / "watch.png"
    words = ["--figure", figure] if pytest.importorskip("matplotlib") else []
    result = run("watch", path, second, *words, status=6)
    assert "'sepsis': ALARM after row" in result.stdout
    assert "'flu': No sign that" in result.stdout
    assert figure.read_bytes()[:4] == b"\x89PNG"


def test_export_refuses_several_classes(run, fitted, tmp_path):
    path, _ = fitted
    result = run("export", path, "--onnx", tmp_path / "m.onnx", status=2)
    assert "several classes" in result.stderr
