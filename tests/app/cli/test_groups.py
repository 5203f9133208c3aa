"""Promises to groups by command: fit, predict, report and watch."""

import json
import re

import numpy as np
import pytest
from commands import read_csv, run, write_csv

SIZES = {"old": 0.35, "young": 0.65}
FIT = "--target state --controlled well --method js"
GROUPS = f"{FIT} --groups age"
HEADER = "pulse,sugar,age,state"


def draw(n, seed, *, sizes=SIZES, moved=0.0):
    rng = np.random.default_rng(seed)
    ill = rng.random(n) < 0.5
    age = rng.choice(list(sizes), n, p=list(sizes.values()))
    X = rng.normal(size=(n, 2)) + 1.6 * ill[:, None]
    X[:, 0] += np.where(age == "old", 0.9 + moved * ~ill, 0.0)
    return zip(*X.round(4).T.tolist(), age, np.where(ill, "ill", "well"), strict=True)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("groups") / "table.csv"
    return write_csv(path, HEADER, draw(2400, 0))


@pytest.fixture(scope="module")
def fitted(table):
    """A model, and what the command said of it."""
    out = table.with_name("model.skops")
    words = f"{GROUPS} --alpha 10% --group-alpha old=15%"
    return out, run("fit", table, words, "--out", out).stdout


def test_fit_says_what_each_group_gets(fitted):
    said = fitted[1]
    assert "Group 'old': finds " in said
    assert "at most 15% of 'well' are called 'ill' (measured: " in said
    assert "at most 10% of 'well' are called 'ill' (measured: " in said
    assert "All of this holds together" in said


def test_predictions_keep_the_promise_to_each_group(fitted, tmp_path):
    new = write_csv(tmp_path / "new.csv", HEADER, draw(20_000, 1))
    words = ["predict", fitted[0], new, "--force", "--out", tmp_path / "p.csv"]
    measured = json.loads(run(*words, "--json").stdout)["measured"]["groups"]
    for group, level in (("old", 0.15), ("young", 0.1)):
        assert measured[group]["classes"]["well"]["wrong"]["share"] <= level
        assert measured[group]["classes"]["ill"]["found"]["share"] > 0.3
    said = run(*words).stdout
    assert "- group 'old': " in said
    assert "at most 15% was promised" in said


def test_a_row_of_an_unknown_group_gets_the_controlled_class(fitted, tmp_path):
    new, out = tmp_path / "new.csv", tmp_path / "out.csv"
    new.write_text("pulse,sugar,age\n9,9,ancient\n9,9,\n9,9,young\n,9,ancient\n")
    said = run("predict", fitted[0], new, "--out", out).stdout
    assert "3 are of groups without a threshold" in said
    rows = read_csv(out)
    assert [row["label"] for row in rows] == ["well", "well", "ill", "well"]
    assert rows[0]["reason"] == "group 'ancient' of 'age' is new, and has no threshold"
    assert rows[1]["reason"].startswith("'age' is missing")
    assert rows[2]["reason"] == ""
    assert rows[3]["reason"].startswith("'pulse' is missing; group 'ancient'")


def test_predictions_need_the_column_of_groups(fitted, tmp_path):
    new = tmp_path / "new.csv"
    new.write_text("pulse,sugar\n9,9\n-9,-9\n")
    said = run("predict", fitted[0], new, "--out", tmp_path / "p.csv", status=3).stderr
    assert "has no column 'age': each group has a threshold of its own" in said


def test_a_group_with_too_few_rows_names_the_remedies(tmp_path):
    sizes = {"old": 0.497, "young": 0.497, "80-99": 0.006}
    table = write_csv(tmp_path / "t.csv", HEADER, draw(1600, 3, sizes=sizes))
    words = ["fit", table, GROUPS, "--alpha 10%", "--out", tmp_path / "m.skops"]
    said = run(*words, status=5).stderr
    assert "Group '80-99'" in said
    assert "merge the group with another, or take --on-infeasible reject_all" in said
    said = run(*words, "--on-infeasible reject_all").stdout
    assert re.search(r"Group '80-99': finds no 'ill', as \d+ calibration rows", said)


def test_watch_has_a_monitor_for_each_group(fitted, tmp_path):
    kept = write_csv(tmp_path / "kept.csv", HEADER, draw(1500, 7))
    words = ("watch", fitted[0], "--state", tmp_path / "state.json")
    groups = json.loads(run(*words, kept, "--json").stdout)["groups"]
    assert sorted(groups) == ["old", "young"]
    assert groups["old"]["alpha"] == 0.15
    broken = write_csv(tmp_path / "broken.csv", HEADER, draw(1500, 8, moved=2.0))
    said = run(*words, broken, status=6).stdout
    assert re.search(r"Group 'old': ALARM after row \d+", said)
    assert "Group 'young': No sign" in said


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ("--groups aeg", "'age'"),
        ("--groups state", "that is the target"),
        ("--groups age --group-alpha odl=5%", "Did you mean 'old'?"),
    ],
)
def test_what_does_not_fit_the_table_is_refused(table, tmp_path, options, match):
    words = ["fit", table, FIT, options, "--out", tmp_path / "m.skops"]
    assert match in run(*words, status=3).stderr
