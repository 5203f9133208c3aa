"""A page about a model, from the model alone."""

import json

import numpy as np
import pytest

import missratio as mr
from missratio.app.modelfile import save_model

OPTIONS = [
    "--target",
    "state",
    "--controlled",
    "well",
    "--alpha",
    "0.2",
    "--drop",
    "id",
]


@pytest.fixture
def model(patients, run):
    out = patients.with_name("m.skops")
    phi = patients.with_name("phi.toml")
    run("fit", patients, *OPTIONS, "--missingness", phi, "--method", "kliep", "--out",
        out)  # fmt: skip
    return out


@pytest.mark.needs("vl_convert")
@pytest.mark.parametrize("suffix", [".html", ".md", ".json"])
def test_the_page_names_columns_and_the_table(model, run, suffix):
    page = model.with_suffix(suffix)
    assert str(page) in run("report", model, "--out", page).stdout
    text = page.read_text(encoding="utf-8")
    for name in ("pulse", "sugar", "Predicting state in patients.csv", "20"):
        assert name in text


def test_the_model_file_is_all_that_it_takes(model, run, patients):
    patients.unlink()
    page = model.with_suffix(".json")
    run("report", model, "--out", page, "--quiet")
    data = json.loads(page.read_text(encoding="utf-8"))
    assert data["certificate"]["alpha"] == 0.2
    assert {"pulse", "sugar"} <= set(data["coefficients"]["names"])


def test_nothing_is_overwritten_without_force(model, run):
    page = model.with_suffix(".md")
    page.write_text("mine")
    run("report", model, "--out", page, status=1)
    assert page.read_text() == "mine"
    run("report", model, "--out", page, "--force")
    assert page.read_text() != "mine"


def test_a_suffix_may_be_in_capitals(model, run):
    page = model.with_suffix(".MD")
    run("report", model, "--out", page)
    assert page.read_text().startswith("#")


def test_other_suffixes_are_refused(model, run):
    result = run("report", model, "--out", model.with_suffix(".pdf"), status=2)
    assert ".html, .md, .json" in result.output


def test_a_classifier_from_python_has_no_report(tmp_path, run):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 2)), np.repeat([0, 1], 200)
    clf = mr.NeymanPearsonClassifier(mr.KLIEP(l2=0.1), alpha=0.2, random_state=0)
    save_model(clf.fit(X, y), tmp_path / "m.skops")
    result = run("report", tmp_path / "m.skops", "--out", tmp_path / "p.html", status=4)
    assert "build_report" in result.output
