"""What missratio fit does about missing values, by what it is given."""

import csv
import json
import re
import shlex

import numpy as np
import pytest

import missratio as mr

FIT = ["--target", "state", "--controlled", "ill", "--alpha", 0.15, "--drop", "id"]
ASK = ["--target", "state", "--controlled", "ill", "--alpha", 0.15, "--id", "id"]
COLUMNS = ["a", "b", "c", "d", "e"]


def draw(n, rng):
    """Rows whose columns tell of each other, and which of them are ill."""
    ill = np.arange(n) < n // 3
    common = rng.normal(size=(n, 1))
    values = 0.7 * common + rng.normal(size=(n, 5)) + 1.2 * ~ill[:, None]
    return values.round(4), ill


def write(path, values, ill):
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["id", *COLUMNS, "state"])
        for i, row in enumerate(values.tolist()):
            cells = ["" if np.isnan(cell) else cell for cell in row]
            writer.writerow([f"R{i}", *cells, "ill" if ill[i] else "fit"])


@pytest.fixture
def truth():
    return draw(900, np.random.default_rng(7))


@pytest.fixture
def table(tmp_path, truth):
    """Four of five columns go missing where they are high, in both classes."""
    values, ill = truth
    phi = mr.LogisticMissingness(
        [-1.5, -1.5, -1.5, -1.5, -np.inf], [1.0, 1.0, 1.0, 1.0, 0.0]
    )
    path = tmp_path / "table.csv"
    write(path, mr.corrupt(values, phi, np.random.default_rng(8)), ill)
    return path


@pytest.fixture
def answer(truth):
    """Fill a plan in, from the top down, as far as it is said."""

    def fill(plan, *, until=None, lost=()):
        with plan.open(newline="") as stream:
            lines = list(csv.DictReader(stream))
        for line in lines[:until]:
            row = int(line["line"]) - 2
            value = truth[0][row, COLUMNS.index(line["feature"])]
            line["value"] = "not found" if row in lost else value
        with plan.open("w", newline="") as stream:
            writer = csv.DictWriter(stream, lines[0])
            writer.writeheader()
            writer.writerows(lines)
        return lines

    return fill


@pytest.fixture
def fit(run, table):
    def command(*options, status=0):
        out = table.with_name("model.skops")
        result = run(
            "fit", table, *FIT, "--out", out, "--force", "--json",
            "--compare-seconds", 0, *options, status=status,
        )  # fmt: skip
        return out, json.loads(result.stdout) if status == 0 else result.stderr

    return command


@pytest.fixture
def rows_plan(run, table):
    """A budget spent by the tool."""
    plan = table.with_name("plan.csv")
    result = run("query", table, *ASK, "--budget", 320, "--out", plan, "--json")
    return plan, json.loads(result.stdout)


def test_a_budget_of_look_ups_ends_in_a_certificate(fit, rows_plan, answer):
    plan, asked = rows_plan
    assert asked["queries"] <= 320
    assert asked["rows"] > 40
    assert asked["single"] > 40
    assert [line["power"] for line in asked["power"]][-1] > 0.2
    answer(plan)
    path, facts = fit("--queries", plan)
    assert facts["way"] == "look-ups"
    assert "no model of φ" in facts["missingness"]
    assert f"{asked['single']} single values of 'fit'" in facts["missingness"]
    certificate = facts["certificate"]
    assert certificate["certified"]
    assert certificate["rule"] == "look-ups"
    assert certificate["looked_up"] > 0
    assert certificate["missingness_delta"] == 0
    fresh, ill = draw(20_000, np.random.default_rng(9))
    above = mr.load_model(path).decide(fresh).codes
    assert above[ill].mean() < 0.15
    assert above[~ill].mean() > 0.2


def test_rows_not_found_are_counted(fit, rows_plan, answer):
    plan, _ = rows_plan
    with plan.open(newline="") as stream:
        first = next(r for r in csv.DictReader(stream) if r["class"] == "ill")
    answer(plan, lost={int(first["line"]) - 2})
    _, facts = fit("--queries", plan)
    assert "(1 of them not found)" in facts["missingness"]


def test_a_plan_without_answers_for_the_controlled_class_is_refused(fit, rows_plan):
    _, told = fit("--queries", rows_plan[0], status=3)
    assert "Nothing of the controlled class 'ill' is filled in" in told
    assert "--missingness learn" in told


def test_single_values_are_data_for_the_score(run, fit, table, answer):
    plan = table.with_name("cells.csv")
    run("query", table, *ASK, "--budget", 320, "--goal", "ratio", "--out", plan, "-q")
    answer(plan)
    path, facts = fit("--queries", plan, "--on-infeasible", "reject_all")
    # Four lossy columns: few rows of 'ill' are completed, so that φ certifies.
    assert facts["way"] == "both"
    assert "Look-ups are data: 160 single values of 'fit'" in facts["missingness"]
    assert "φ of 'ill' is learned from 160 looked-up values" in facts["missingness"]
    assert facts["certificate"]["missingness_delta"] > 0
    assert set(mr.load_model(path).classifier.missingness) == {"ill"}


def test_single_values_of_one_column_are_rows(run, tmp_path, truth, answer):
    values, ill = truth
    phi = mr.LogisticMissingness([-0.5] + 4 * [-np.inf], [1.0] + 4 * [0.0])
    table, plan = tmp_path / "table.csv", tmp_path / "plan.csv"
    write(table, mr.corrupt(values, phi, np.random.default_rng(8)), ill)
    run("query", table, *ASK, "--per-feature", 60, "--out", plan, "-q")
    answer(plan)
    out = tmp_path / "model.skops"
    result = run(
        "fit", table, *FIT, "--queries", plan, "--method", "kliep", "--out", out,
        "--json",
    )  # fmt: skip
    facts = json.loads(result.stdout)
    assert facts["way"] == "look-ups"
    assert facts["certificate"]["rule"] == "look-ups"
    assert "60 single values of 'fit' were looked up" in facts["missingness"]


def test_a_column_that_nobody_looked_up_is_learned(run, fit, table, answer):
    plan = table.with_name("cells.csv")
    run("query", table, *ASK, "--budget", 320, "--goal", "ratio", "--out", plan, "-q")
    with plan.open(newline="") as stream:
        kept = [
            line
            for line in csv.DictReader(stream)
            if not (line["class"] == "fit" and line["feature"] == "b")
        ]
    with plan.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, kept[0])
        writer.writeheader()
        writer.writerows(kept)
    answer(plan)
    path, facts = fit("--queries", plan, "--on-infeasible", "reject_all")
    assert "as no value of 'b' was looked up" in facts["missingness"]
    assert set(mr.load_model(path).classifier.missingness) == {"ill", "fit"}


def test_the_table_teaches_phi_and_look_ups_add_to_it(fit, rows_plan, answer):
    options = ("--missingness", "learn", "--on-infeasible", "reject_all")
    path, facts = fit(*options)
    assert facts["way"] == "table"
    assert "learned from the table" in facts["missingness"]
    alone = mr.load_model(path).classifier.missingness
    assert set(alone) == {"ill", "fit"}
    answer(rows_plan[0])
    path, facts = fit(*options, "--queries", rows_plan[0])
    assert facts["way"] == "both"
    both = mr.load_model(path).classifier.missingness
    errors = [phi["ill"].standard_errors[:4, 1].mean() for phi in (alone, both)]
    assert errors[1] < errors[0]


def test_given_nothing_the_ways_are_shown_and_their_commands_run(
    run, fit, table, monkeypatch
):
    monkeypatch.chdir(table.parent)
    _, told = fit(status=3)
    head, *ways = told[told.index("Error") :].strip().splitlines()
    assert "nothing says why. These ways are open:" in head
    assert "'a' (" in head
    options = ["--missingness learn", "--missingness FILE", "--missingness ignore"]
    assert [any(option in way for way in ways) for option in options] == [True] * 3
    look_up = [way for way in ways if way.startswith("- look up ") and "power" in way]
    assert look_up
    assert all("no assumption about φ" in way for way in look_up)
    command = re.search("missratio (query .*plan.csv), then", look_up[0])
    run(*shlex.split(command[1]))


def test_without_missing_values_nothing_is_asked(run, tmp_path, truth):
    path = tmp_path / "whole.csv"
    write(path, *truth)
    result = run("fit", path, *FIT, "--method", "kliep", "--out", tmp_path / "m.skops")
    assert "No value is missing." in result.stdout


MISTAKES = {
    "goal": (["--budget", 9, "--goal", "ratios"], "Did you mean 'ratio'"),
    "goal alone": (["--goal", "ratio"], "--goal needs --budget"),
    "two sizes": (["--budget", 9, "--per-feature", 9], "both say how many"),
    "rows": (["--budget", 9, "--rows"], "--budget and --rows don't"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_plan_that_contradicts_itself_is_refused(run, table, mistake):
    options, told = MISTAKES[mistake]
    plan = table.with_name("plan.csv")
    result = run("query", table, *ASK, *options, "--out", plan, status=2)
    assert told in result.stderr
    assert not plan.exists()


def test_the_report_says_what_was_looked_up(run, fit, rows_plan, answer, table):
    answer(rows_plan[0])
    path, facts = fit("--queries", rows_plan[0])
    page = table.with_name("report.json")
    run("report", path, "--out", page, "-q")
    data = json.loads(page.read_text(encoding="utf-8"))
    assert data["sensitivity"] is None
    assert data["certificate"]["looked_up"] == facts["certificate"]["looked_up"]
    ill = data["missingness"]["classes"][0]
    assert (ill["label"], ill["kind"]) == ("ill", "looked-up")
    # What was looked up is still shown as what was missing.
    missing = {f["name"]: f["missing"][0] for f in data["missingness"]["features"]}
    assert {k: v for k, v in missing.items() if v} == facts["missing"]["ill"]
    listed = data["missingness"]["patterns"]["listed"]
    left_out = data["missingness"]["patterns"]["left_out"]
    assert left_out or sum(entry["rows"][0] for entry in listed) == 300
    text = table.with_name("report.md")
    run("report", path, "--out", text, "-q")
    words = text.read_text(encoding="utf-8")
    assert "Looked up" in words
    assert "What if φ is wrong?" not in words


def test_the_report_shows_the_tipping_point_of_phi(run, fit, table):
    path, _ = fit("--missingness", "learn", "--on-infeasible", "reject_all")
    page, text = table.with_name("report.json"), table.with_name("report.md")
    run("report", path, "--out", page, "-q")
    run("report", path, "--out", text, "-q")
    data = json.loads(page.read_text(encoding="utf-8"))
    assert data["missingness"]["classes"][0]["checks"]
    assert data["certificate"]["certified"]
    assert data["sensitivity"]["tipping_factor"] > 1.0
    assert "Tipping point" in text.read_text(encoding="utf-8")
