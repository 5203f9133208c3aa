"""Categories with blanks: look-ups, a φ from the table, a φ from a file."""

import json

import numpy as np
import pytest
from commands import fill_in, run, write_csv

import missratio as mr

OPTIONS = "--target state --controlled well --alpha 0.2"
FIT = f"{OPTIONS} --method kliep --json"
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
    return list(zip(*(c.tolist() for c in cells), strict=True))


@pytest.fixture
def blank_wards(tmp_path):
    """A table whose wards are blank by their level, and what was there."""
    full, rng = draw(300, 0), np.random.default_rng(1)
    rows = []
    for pulse, sugar, ward, state in full:
        chance = 1 / (1 + np.exp(9 - pulse / 10)) * (state == "well")
        lost = rng.random() < chance
        blank = rng.random() < LOST[ward]
        rows.append(["" if lost else pulse, sugar, "" if blank else ward, state])
    return write_csv(tmp_path / "t.csv", "pulse,sugar,ward,state", rows), full


@pytest.fixture
def fitted(blank_wards):
    """Fit the table, and give the model and the facts, or what was said."""

    def fit(*words, status=0):
        path, out = blank_wards[0], blank_wards[0].with_name("m.skops")
        result = run("fit", path, FIT, "--force", "--out", out, *words, status=status)
        if status:
            return result.stderr
        return mr.load_model(out), json.loads(result.stdout)

    return fit


@pytest.fixture
def answered(blank_wards):
    """A plan that somebody filled in, but for what is told to be otherwise."""

    def plan(options, **otherwise):
        path, full = blank_wards
        plan = path.with_name("plan.csv")
        run("query", path, OPTIONS, "-q", options, "--out", plan)
        places = {"pulse": 0, "sugar": 1, "ward": 2}

        def value(line):
            truth = full[int(line["line"]) - 2][places[line["feature"]]]
            return otherwise.get(line["feature"], truth)

        return plan, fill_in(plan, value)

    return plan


def test_looked_up_categories_are_data(answered, fitted):
    plan, lines = answered("--budget 120")
    assert {line["feature"] for line in lines} == {"pulse", "ward"}
    _, facts = fitted("--queries", plan)
    assert facts["way"] == "look-ups"
    assert facts["certificate"]["certified"]
    assert "assumes no model of φ" in facts["missingness"]


def test_a_category_that_the_table_does_not_have_is_refused(answered, fitted):
    plan, _ = answered("--budget 60", ward="nort")
    said = fitted("--queries", plan, status=3)
    assert "one of its categories" in said
    assert "Did you mean 'north'" in said


def test_a_file_may_say_how_often_each_level_is_missing(blank_wards, fitted):
    phi = blank_wards[0].with_name("phi.toml")
    phi.write_text(PHI)
    fit, facts = fitted("--missingness", phi)
    assert facts["certificate"]["certified"]
    assert f"φ is as {phi} says" in facts["certificate"]["assumptions"]
    places, levels = fit.encoder.indicators["ward"], fit.encoder.columns[2].levels
    rows = np.zeros((3, 4))
    rows[[1, 2], list(places)] = 1.0
    model = fit.classifier.missingness["well"]
    found = model.missing_probability(rows)[:, places[0]]
    np.testing.assert_allclose(found, [LOST[level] for level in levels])
    phi.write_text(PHI.replace(f"features.ward.levels = {LEVELS}\n[", "["))
    said = fitted("--missingness", phi, status=3)
    assert "'ward', and" in said
    assert "phi.toml says that none are" in said


def test_the_table_teaches_why_a_category_is_blank(fitted):
    model, facts = fitted("--missingness learn --on-infeasible reject_all")
    assert facts["way"] == "table"
    (block,) = model.classifier.missingness["well"].blocks
    assert block.columns == tuple(model.encoder.indicators["ward"])
