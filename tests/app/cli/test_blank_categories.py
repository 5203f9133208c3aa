"""Categories with blanks: look-ups, a φ from the table, a φ from a file."""

import csv
import json

import numpy as np
import pytest

import missratio as mr

OPTIONS = ["--target", "state", "--controlled", "well", "--alpha", 0.2]
FIT = [*OPTIONS, "--method", "kliep", "--json"]
LOST = {"north": 0.1, "south": 0.3, "east": 0.5}
LEVELS = "{ north = 0.1, south = 0.3, east = 0.5 }"
PHI = f"""
[classes.well]
missing = "values"
kind = "logistic"
features.pulse = {{ intercept = -9.0, coef = 0.1 }}
features.ward.levels = {LEVELS}
[classes.sick]
missing = "values"
kind = "step"
features.ward.levels = {LEVELS}
"""


def draw(n, seed):
    """Complete rows: pulse, sugar, ward, state."""
    rng = np.random.default_rng(seed)
    sick = np.repeat([False, True], n)
    common = rng.normal(size=2 * n)
    pulse = 80 + 10 * (common + rng.normal(size=2 * n)) + 8 * sick
    sugar = 5 + common + rng.normal(size=2 * n)
    place = 0.8 * common + 0.5 * rng.normal(size=2 * n) + 0.6 * sick + 1
    ward = np.array(list(LOST))[np.clip(np.round(place), 0, 2).astype(int)]
    state = np.where(sick, "sick", "well")
    cells = [pulse.round(2), sugar.round(3), ward, state]
    return [list(row) for row in zip(*(c.tolist() for c in cells), strict=True)]


@pytest.fixture
def blank_wards(tmp_path):
    """A table whose wards are blank by their level, and what was there."""
    full, rng = draw(300, 0), np.random.default_rng(1)
    path = tmp_path / "t.csv"
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["pulse", "sugar", "ward", "state"])
        for pulse, sugar, ward, state in full:
            chance = 1 / (1 + np.exp(9 - pulse / 10)) * (state == "well")
            lost = rng.random() < chance
            writer.writerow(
                [
                    "" if lost else pulse,
                    sugar,
                    "" if rng.random() < LOST[ward] else ward,
                    state,
                ]
            )
    return path, full


def answered(run, path, full, *options):
    """A plan that somebody filled in."""
    plan = path.with_name("plan.csv")
    run("query", path, *OPTIONS, "--out", plan, "-q", *options)
    with plan.open(newline="") as stream:
        lines = list(csv.DictReader(stream))
    places = {"pulse": 0, "sugar": 1, "ward": 2}
    for line in lines:
        line["value"] = full[int(line["line"]) - 2][places[line["feature"]]]
    write(plan, lines)
    return plan, lines


def write(path, lines):
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, lines[0])
        writer.writeheader()
        writer.writerows(lines)


def test_looked_up_categories_are_data(run, blank_wards):
    path, full = blank_wards
    plan, lines = answered(run, path, full, "--budget", 120)
    assert {line["feature"] for line in lines} == {"pulse", "ward"}
    # A person sees levels, and writes them.
    assert {line["known ward"] for line in lines} <= {"", *LOST}
    out = path.with_name("m.skops")
    facts = json.loads(run("fit", path, *FIT, "--queries", plan, "--out", out).stdout)
    assert facts["way"] == "look-ups"
    assert facts["certificate"]["certified"]
    assert "assumes no model of φ" in facts["missingness"]


def test_a_category_that_the_table_does_not_have_is_refused(run, blank_wards):
    path, full = blank_wards
    plan, lines = answered(run, path, full, "--budget", 60)
    first = next(line for line in lines if line["feature"] == "ward")
    first["value"] = "nort"
    write(plan, lines)
    out = path.with_name("m.skops")
    result = run("fit", path, *FIT, "--queries", plan, "--out", out, status=3)
    assert "one of its categories" in result.stderr
    assert "Did you mean 'north'" in result.stderr


def test_a_file_may_say_how_often_each_level_is_missing(run, blank_wards):
    path, _ = blank_wards
    phi, out = path.with_name("phi.toml"), path.with_name("m.skops")
    phi.write_text(PHI)
    facts = json.loads(
        run("fit", path, *FIT, "--missingness", phi, "--out", out).stdout
    )
    assert facts["certificate"]["certified"]
    model = mr.load_model(out).classifier.missingness["well"]
    places = list(mr.load_model(out).encoder.indicators["ward"])
    levels = mr.load_model(out).encoder.columns[2].levels
    rows = np.zeros((3, 4))
    rows[[1, 2], places] = 1.0
    found = model.missing_probability(rows)[:, places[0]]
    np.testing.assert_allclose(found, [LOST[level] for level in levels])
    phi.write_text(PHI.replace(f"features.ward.levels = {LEVELS}\n[", "["))
    words = ["fit", path, *FIT, "--missingness", phi, "--out", out, "--force"]
    result = run(*words, status=3)
    assert "'ward', and its model says that none are" in result.stderr


def test_the_table_teaches_why_a_category_is_blank(run, blank_wards):
    path, _ = blank_wards
    out = path.with_name("m.skops")
    words = ["fit", path, *FIT, "--missingness", "learn", "--out", out]
    facts = json.loads(run(*words, "--on-infeasible", "reject_all").stdout)
    assert facts["way"] == "table"
    model = mr.load_model(out).classifier.missingness["well"]
    (block,) = model.blocks
    assert block.columns == tuple(mr.load_model(out).encoder.indicators["ward"])


def test_without_a_word_the_ways_are_shown(run, blank_wards):
    path, _ = blank_wards
    out = path.with_name("m.skops")
    result = run("fit", path, *FIT, "--out", out, status=3)
    assert "'ward'" in result.stderr
    assert "look up nothing" in result.stderr
