"""missratio watch where only some rows get a label, drawn with known probabilities."""

import csv
import json

import numpy as np
import pyarrow as pa
import pytest

import missratio as mr


@pytest.fixture
def audited(day):
    """Labelled rows of a day: each flagged row is looked at, and few of the others."""

    def make(model, seed, moved=0.0, *, few=0.2, blank=True):
        path = day(seed, moved)
        rows = list(csv.DictReader(path.read_text().splitlines()))
        frame = {
            name: [float(row[name]) for row in rows] for name in ("pulse", "sugar")
        }
        frame = pa.table({**frame, "ward": [row["ward"] for row in rows]})
        flagged = mr.load_model(model).predict(frame) == "sick"
        chance = np.where(flagged, 1.0, few)
        seen = np.random.default_rng([seed, 1]).random(len(rows)) < chance
        with path.open("w", newline="") as stream:
            writer = csv.DictWriter(stream, [*rows[0], "chance"])
            writer.writeheader()
            for row, there, share in zip(rows, seen, chance, strict=True):
                if there or blank:
                    state = row["state"] if there else ""
                    writer.writerow({**row, "state": state, "chance": share})
        return path

    return make


def without_chances(table):
    """The same table, without the column of probabilities."""
    path = table.with_name("without.csv")
    rows = list(csv.DictReader(table.read_text().splitlines()))
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0])[:-1], extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    return path


def test_labels_drawn_by_what_the_model_says_are_weighted(run, fit, audited):
    model, _ = fit()
    table = audited(model, 5)
    said = run("watch", model, without_chances(table), status=3).stderr
    assert "have no label in 'state'" in said
    assert "--inclusion" in said
    said = run("watch", model, table, status=3).stderr
    assert "doesn't know: 'chance'" in said
    assert "by --inclusion" in said
    words = ("watch", model, "--inclusion", "chance", "--json")
    said = run(*words, table, status=2).stderr
    assert "needs --least-inclusion the first time" in said
    kept = json.loads(run(*words, table, "--least-inclusion", "20%").stdout)
    assert not kept["alarm"]
    assert kept["error"] < 0.2
    # The state knows the least probability; nothing below it is taken.
    later = audited(model, 6, few=0.1)
    assert "below the least of the design, 0.2" in run(*words, later, status=3).stderr
    said = run(*words, later, "--least-inclusion", "10%", status=3).stderr
    assert "was begun with --least-inclusion 0.2" in said
    broken = audited(model, 7, moved=15.0, blank=False)
    assert json.loads(run(*words, broken, status=6).stdout)["alarm"]


def test_labels_taken_as_they_come_would_raise_a_false_alarm(run, fit, audited):
    model, _ = fit()
    table = without_chances(audited(model, 5, blank=False))
    assert json.loads(run("watch", model, table, "--json", status=6).stdout)["alarm"]


@pytest.mark.parametrize(
    ("options", "status", "match"),
    [
        (("--inclusion", "chanse", "--least-inclusion", "0.2"), 3, "'chance'"),
        (("--least-inclusion", "0.2"), 2, "name the column"),
        (("--inclusion", "chance", "--least-inclusion", "0"), 2, "above 0"),
    ],
)
def test_what_is_no_probability_is_refused(
    run, fit, audited, options, status, match
):  # fmt: skip
    model, _ = fit()
    table = audited(model, 5)
    assert match in run("watch", model, table, *options, status=status).stderr


@pytest.mark.parametrize("column", ["id", "ward", "sugar"])
def test_a_column_without_probabilities_is_refused(run, fit, audited, column):
    model, _ = fit()
    table = without_chances(audited(model, 5))
    words = ("watch", model, table, "--inclusion", column, "--least-inclusion", "20%")
    assert "must hold a probability above 0" in run(*words, status=3).stderr
