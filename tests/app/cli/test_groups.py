"""Promises to groups by command: fit, predict, report and watch."""

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

SIZES = {"old": 0.35, "young": 0.65}
FIT = ("--target", "state", "--controlled", "well", "--groups", "age", "--method", "js")


def draw(n, seed, *, sizes=SIZES, moved=0.0):
    rng = np.random.default_rng(seed)
    ill = rng.random(n) < 0.5
    age = rng.choice(list(sizes), n, p=list(sizes.values()))
    X = rng.normal(size=(n, 2)) + 1.6 * ill[:, None]
    X[:, 0] += np.where(age == "old", 0.9 + moved * ~ill, 0.0)
    return X.round(4), age, np.where(ill, "ill", "well")


def write(path, n, seed, **how):
    X, age, state = draw(n, seed, **how)
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["pulse", "sugar", "age", "state"])
        writer.writerows(
            [*row, a, s]
            for row, a, s in zip(X.tolist(), age, state.tolist(), strict=True)
        )
    return path


def read(path):
    return list(csv.DictReader(path.read_text().splitlines()))


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return write(tmp_path_factory.mktemp("groups") / "table.csv", 2400, 0)


@pytest.fixture(scope="module")
def fitted(table):
    """A model, and what the command said of it."""
    out = table.with_name("model.skops")
    words = ["fit", table, *FIT, "--alpha", "10%", "--group-alpha", "old=15%"]
    with threadpool_limits(1):
        said = CliRunner().invoke(app, [str(word) for word in [*words, "--out", out]])
    assert said.exit_code == 0, said.output
    return out, said.stdout


def test_fit_says_what_each_group_gets(fitted):
    _, said = fitted
    assert "Group 'old': finds " in said
    assert "at most 15% of 'well' are called 'ill' (measured: " in said
    assert "at most 10% of 'well' are called 'ill' (measured: " in said
    assert "All of this holds together" in said


def test_facts_and_model_agree(run, table, tmp_path):
    path = tmp_path / "model.skops"
    result = run("fit", table, *FIT, "--alpha", "10%", "--out", path, "--json")
    facts = json.loads(result.stdout)
    model = mr.load_model(path)
    assert facts["columns"] == ["pulse", "sugar"]
    assert [entry["group"] for entry in facts["errors"]] == ["old", "young"]
    promised = facts["certificate"]["promises"]
    assert [each["delta"] for each in promised] == [0.025, 0.025]
    assert {
        e["group"]: e["threshold"] for e in promised
    } == model.certificate.thresholds
    frame = open_table(table).read(["pulse", "sugar", "age"])
    labels = model.predict(frame)
    direct = model.classifier.predict(model.encode(frame), frame["age"].to_pylist())
    assert (labels == direct).all()


def test_predictions_keep_the_promise_to_each_group(run, fitted, tmp_path):
    new = write(tmp_path / "new.csv", 20_000, 1)
    out = tmp_path / "predictions.csv"
    found = json.loads(run("predict", fitted[0], new, "--out", out, "--json").stdout)
    for group, level in (("old", 0.15), ("young", 0.1)):
        shares = found["measured"]["groups"][group]
        assert shares["controlled"]["share"] <= level
        assert shares["other"]["share"] > 0.3
    said = run("predict", fitted[0], new, "--out", out, "--force").stdout
    assert "- group 'old': " in said
    assert "at most 15% was promised" in said


def test_a_row_of_an_unknown_group_gets_the_controlled_class(run, fitted, tmp_path):
    new, out = tmp_path / "new.csv", tmp_path / "out.csv"
    new.write_text("pulse,sugar,age\n9,9,ancient\n9,9,\n9,9,young\n,9,ancient\n")
    said = run("predict", fitted[0], new, "--out", out).stdout
    assert "3 are of groups without a threshold" in said
    rows = read(out)
    assert [row["label"] for row in rows] == ["well", "well", "ill", "well"]
    assert rows[0]["reason"] == "group 'ancient' of 'age' is new, and has no threshold"
    assert rows[1]["reason"].startswith("'age' is missing")
    assert rows[2]["reason"] == ""
    assert rows[3]["reason"].startswith("'pulse' is missing; group 'ancient'")


def test_predictions_need_the_column_of_groups(run, fitted, tmp_path):
    new = tmp_path / "new.csv"
    new.write_text("pulse,sugar\n1,2\n")
    out = tmp_path / "p.csv"
    said = run("predict", fitted[0], new, "--out", out, status=3).stderr
    assert "has no column 'age': each group has a threshold of its own" in said


def test_a_shared_threshold_needs_no_groups_to_predict(run, table, tmp_path):
    path, new, out = (tmp_path / x for x in ("m.skops", "new.csv", "p.csv"))
    options = ("--alpha", "10%", "--shared-threshold", "--group-alpha", "old=12%")
    said = run("fit", table, *FIT, *options, "--out", path).stdout
    assert "All rows: finds" in said
    new.write_text("pulse,sugar\n9,9\n-9,-9\n")
    run("predict", path, new, "--out", out)
    assert [row["label"] for row in read(out)] == ["ill", "well"]


def test_a_group_with_too_few_rows_names_the_remedies(run, tmp_path):
    sizes = {"old": 0.497, "young": 0.497, "80-99": 0.006}
    table = write(tmp_path / "t.csv", 1600, 3, sizes=sizes)
    words = ("fit", table, *FIT, "--alpha", "10%", "--out", tmp_path / "m.skops")
    said = run(*words, status=5).stderr
    assert "Group '80-99': alpha=0.1 for class 'well' can't be certified" in said
    assert "merge the group with another, or take --on-infeasible reject_all" in said
    said = run(*words, "--on-infeasible", "reject_all").stdout
    assert re.search(r"Group '80-99': finds no 'ill', as \d+ calibration rows", said)
    page = tmp_path / "report.md"
    run("report", tmp_path / "m.skops", "--out", page)
    # The hyphen is no markup, and is marked as such once.
    assert r"| 80\-99 | at most 10% | no |" in page.read_text()
    assert "Some groups get nothing" in page.read_text()


@pytest.mark.needs("vl_convert")
def test_the_page_has_a_table_of_what_each_group_gets(run, fitted, tmp_path):
    page = tmp_path / "report.html"
    run("report", fitted[0], "--out", page)
    text = page.read_text()
    assert "What each group gets" in text
    assert '<th scope="row">old</th>' in text
    assert 'id="figure-errors"' in text


def test_missing_values_by_a_written_phi(run, tmp_path):
    table, rng = write(tmp_path / "t.csv", 4000, 4), np.random.default_rng(5)
    rows = [line.split(",") for line in table.read_text().splitlines()]
    for row in rows[1:]:
        lost = rng.random() < 1 / (1 + np.exp(2.0 - float(row[0])))
        row[0] = "" if lost and row[3] == "well" else row[0]
    with table.open("w", newline="") as stream:
        csv.writer(stream).writerows(rows)
    (tmp_path / "phi.toml").write_text(
        '[classes.well]\nmissing = "values"\nkind = "logistic"\n'
        "features.pulse = { intercept = -2.0, coef = 1.0 }\n"
    )
    phi, out = tmp_path / "phi.toml", tmp_path / "m.skops"
    said = run(
        "fit", table, *FIT, "--alpha", "20%", "--missingness", phi, "--out", out,
        "--json",
    )  # fmt: skip
    assert all(entry["certified"] for entry in json.loads(said.stdout)["errors"])
    new = write(tmp_path / "new.csv", 20_000, 6)
    predictions = tmp_path / "p.csv"
    found = json.loads(run("predict", out, new, "--out", predictions, "--json").stdout)
    for shares in found["measured"]["groups"].values():
        assert shares["controlled"]["share"] <= 0.2


@pytest.mark.needs("matplotlib")
def test_watch_has_a_monitor_for_each_group(run, fitted, tmp_path):
    state, figure = tmp_path / "state.json", tmp_path / "watch.png"
    kept = write(tmp_path / "kept.csv", 1500, 7)
    words = ("watch", fitted[0], "--state", state, "--figure", figure)
    found = json.loads(run(*words, kept, "--json").stdout)
    assert sorted(found["groups"]) == ["old", "young"]
    assert found["groups"]["old"]["alpha"] == 0.15
    broken = write(tmp_path / "broken.csv", 1500, 8, moved=2.0)
    said = run(*words, broken, status=6).stdout
    assert re.search(r"Group 'old': ALARM after row \d+", said)
    assert "Group 'young': No sign" in said


@pytest.mark.parametrize(
    ("options", "status", "match"),
    [
        (("--group-alpha", "old=5%"), 2, "--group-alpha needs --groups: say which"),
        (("--shared-threshold",), 2, "--shared-threshold needs --groups"),
        (("--groups", "aeg"), 3, "'age'"),
        (("--groups", "state"), 3, "that is the target"),
        (("--groups", "age", "--group-alpha", "odl=5%"), 3, "Did you mean 'old'?"),
        (("--groups", "age", "--group-alpha", "5%"), 2, "takes GROUP=SHARE"),
        (("--groups", "age", "--group-alpha", "old=500%"), 2, "--group-alpha old must"),
        (
            ("--groups", "age", "--shared-threshold"),
            2,
            "it makes a promise to the groups",
        ),
        (("--groups", "age", "--standard-errors"), 2, "--groups and --standard-errors"),
    ],
)
def test_what_does_not_go_together_is_refused(run, table, tmp_path, options, status,
                                              match):  # fmt: skip
    words = (
        "fit",
        table,
        "--target",
        "state",
        "--controlled",
        "well",
        "--method",
        "js",
    )
    result = run(*words, "--out", tmp_path / "m.skops", *options, status=status)
    assert match in result.stderr


def test_rows_without_a_group_are_refused_by_line(run, table, tmp_path):
    path = tmp_path / "t.csv"
    lines = table.read_text().splitlines()
    cells = lines[3].split(",")
    lines[3] = ",".join([*cells[:2], "", cells[3]])
    path.write_text("\n".join(lines))
    said = run("fit", path, *FIT, "--out", tmp_path / "m.skops", status=3).stderr
    assert "1 row(s) have no group in 'age', the first is line 4" in said
