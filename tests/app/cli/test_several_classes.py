"""Bounds on several classes by command: fit, predict, report and watch."""

import json
import re

import numpy as np
import pytest
from commands import read_csv, run, write_csv

import missratio as mr
from missratio._files import open_table

CENTRES = {"sepsis": (0, 0), "flu": (3, 0.4), "cold": (1.6, 2.8)}
# Comparing methods takes a while, and is tested by itself.
BASE = "--target state --compare-seconds 0"
TWO = "--alpha sepsis=15% --alpha flu=20%"
HEADER = "pulse,sugar,ward,state"


def draw(n, seed, *, lose=False, moved=0.0):
    rng = np.random.default_rng(seed)
    for label, centre in CENTRES.items():
        X = rng.normal(centre, 1, (n, 2)).round(4)
        X[:, 0] += moved * (label == "sepsis")
        for pulse, sugar in X.tolist():
            ward = rng.choice(["east", "west"])
            lost = lose and rng.random() < 1 / (1 + np.exp(2.5 - 0.5 * pulse))
            yield "" if lost else pulse, sugar, ward, label


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("several") / "table.csv"
    return write_csv(path, HEADER, draw(700, 0))


@pytest.fixture(scope="module")
def fitted(table):
    """A model, what the command said of it, and its facts."""
    out = table.with_name("model.skops")
    words = ["fit", table, BASE, TWO, "--force", "--out", out]
    facts = json.loads(run(*words, "--json").stdout)
    return out, run(*words).stdout, facts


def test_fit_says_what_becomes_of_each_class(fitted):
    said = fitted[1]
    assert "while at most 15% of 'sepsis' are called another class (measured: " in said
    assert "At most 20% of complete 'flu' rows are classified as" in said
    assert "Finds " in said
    assert "of 'cold'." in said


def test_methods_are_compared_under_the_bounds(tmp_path):
    rng, out = np.random.default_rng(3), tmp_path / "model.skops"
    rows = []
    for label, radius in (("inner", 0.5), ("middle", 2.5), ("outer", 5.0)):
        for angle in rng.uniform(0, 2 * np.pi, 400):
            x, y = radius * np.array([np.cos(angle), np.sin(angle)])
            rows.append([x + rng.normal(0, 0.6), y + rng.normal(0, 0.6), label])
    path = write_csv(tmp_path / "rings.csv", "a,b,state", rows)
    words = "--target state --alpha inner=20% --alpha middle=30% --compare-seconds 4"
    said = run("fit", path, words, "--out", out).stdout
    # A line can't tell rings apart.
    found = re.search(r"Method: (\S+), the best .* under the bounds: \S+ (\d+)%", said)
    assert found, said
    assert found[1] != "logistic"
    assert int(found[2]) > 60
    model = mr.load_model(out)
    assert model.method == found[1]
    assert "Search" not in repr(model.classifier.estimator)
    page = tmp_path / "report.md"
    run("report", out, "--out", page)
    assert "methods compared on" in page.read_text()


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".xlsx"])
def test_predictions_are_the_models_and_their_errors_are_measured(
    fitted, tmp_path, suffix
):
    pd = pytest.importorskip("pandas")
    fresh = write_csv(tmp_path / "new.csv", HEADER, draw(300, 1))
    out = tmp_path / f"predicted{suffix}"
    facts = json.loads(run("predict", fitted[0], fresh, "--json", "--out", out).stdout)
    frame = pd.read_csv(fresh)
    labels = pd.Series(open_table(out).read(["label"])["label"].to_pylist())
    assert (mr.load_model(fitted[0]).predict(frame) == labels.to_numpy()).all()
    assert facts["labels"] == labels.value_counts().to_dict()
    for label, entry in facts["measured"]["classes"].items():
        mine = frame["state"] == label
        assert entry["called"] == {
            name: int((labels[mine] == name).sum()) for name in sorted(CENTRES)
        }
    assert facts["measured"]["classes"]["cold"]["wrong"] is None
    assert facts["measured"]["classes"]["flu"]["wrong"]["share"] < 0.25


def test_rows_without_a_score_get_the_fallback_and_a_reason(fitted, tmp_path):
    new, out = tmp_path / "new.csv", tmp_path / "out.csv"
    new.write_text("pulse,sugar,ward\n3,0.4,east\n,0.4,east\n3,0.4,north\n")
    said = run("predict", fitted[0], new, "--out", out).stdout
    rows = read_csv(out)
    assert [row["label"] for row in rows] == ["flu", "sepsis", "sepsis"]
    assert rows[1]["reason"] == "'pulse' is missing"
    assert rows[2]["reason"] == "'north' of 'ward' is new"
    assert rows[1]["score_flu"] == ""
    assert float(rows[0]["score_flu"]) > float(rows[0]["score_sepsis"])
    assert "2 can't be scored" in said


def test_ordered_classes_with_missing_values(tmp_path):
    table = write_csv(tmp_path / "t.csv", HEADER, draw(1000, 2, lose=True))
    phi, out = tmp_path / "phi.toml", tmp_path / "m.skops"
    bounds = "--alpha sepsis=20% --alpha flu=30% --ordered 'sepsis, flu,cold'"
    words = ["fit", table, BASE, bounds, "--out", out]
    result = run(*words, "--new-rows complete", status=3)
    assert "--missingness learn" in result.stderr
    assert "missratio query" not in result.stderr
    sections = [
        f'[classes.{label}]\nmissing = "values"\nkind = "logistic"\n'
        "features.pulse = { intercept = -2.5, coef = 0.5 }\n"
        for label in CENTRES
    ]
    phi.write_text("".join(sections))
    facts = json.loads(run(*words, "--missingness", phi, "--json").stdout)
    assert facts["method"] == "js"
    assert facts["certificate"]["order"] == ["sepsis", "flu", "cold"]
    said = run("predict", out, table, "--out", tmp_path / "p.csv").stdout
    assert "are called less severe" in said
    assert "the most severe class, which keeps the guarantee" in said


@pytest.mark.parametrize(
    ("words", "status", "match"),
    [
        ("--alpha sepsis=5% --alpha flu=5%", 5, "leaves no room"),
        ("--alpha flue=5%", 3, "Did you mean 'flu'?"),
        (f"{TWO} --ordered sepsis,flu", 3, "each class once"),
        (f"{TWO} --ordered flu,cold,sepsis", 3, "a bound for each class but the last"),
    ],
)
def test_what_does_not_fit_the_table_is_refused(table, tmp_path, words, status, match):
    out = tmp_path / "model.skops"
    result = run("fit", table, BASE, words, "--out", out, status=status)
    assert match in result.stderr
    assert not out.exists()


def test_watch_has_a_monitor_for_each_bounded_class(fitted, tmp_path):
    first = write_csv(tmp_path / "1.csv", HEADER, draw(300, 5))
    second = write_csv(tmp_path / "2.csv", HEADER, draw(300, 6, moved=2.0))
    words = ["watch", fitted[0], "--state", tmp_path / "state.json"]
    kept = json.loads(run(*words, first, "--json").stdout)
    assert not kept["alarm"]
    assert set(kept["classes"]) == {"sepsis", "flu"}
    assert kept["new_rows"] == 600
    assert kept["classes"]["flu"]["delta"] == 0.025
    result = run(*words, second, status=6)
    assert "'sepsis': ALARM after row" in result.stdout
    assert "'flu': No sign that" in result.stdout
