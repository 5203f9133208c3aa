"""missratio fit, as a person would use it."""

import json
import re

import numpy as np
import pytest
from commands import run, write_csv

import missratio as mr
from missratio._files.files import RegularFile

OPTIONS = "--target state --controlled well --drop id"
AT_ONCE = "--compare-seconds 0"
BY_Y = "--target y --controlled 0"


def encoded(model, complete):
    """Complete patients as the model takes them."""
    values, ward, _ = complete
    levels = model.encoder.columns[2].levels
    return np.column_stack([values, ward == levels[1]]).astype(float)


def test_json_is_one_object_and_the_model_has_what_it_says(fit, patients):
    path, facts = fit("--method kliep")
    model = mr.load_model(path)
    assert facts["method"] == model.method == "kliep"
    assert facts["certificate"]["alpha"] == model.certificate.alpha == 0.2
    assert facts["columns"] == ["pulse", "sugar", "ward"]
    assert model.encoder.columns[2].levels is not None
    digest = RegularFile.at(patients).sha256()
    assert model.training.sha256 == facts["training_sha256"] == digest
    assert set(model.training.missing["well"]) == {"pulse", "sugar"}
    assert model.training.missing["sick"] == {}
    assert sum(model.training.rows.values()) == 3000


def test_what_is_done_is_no_output_and_quiet_is_quiet(patients):
    words = ["fit", patients, OPTIONS, AT_ONCE]
    words += ["--missingness", patients.with_name("phi.toml")]
    words += ["--out", patients.with_name("m.skops")]
    result = run(*words)
    assert ("Reading" in result.stdout, "Reading" in result.stderr) == (False, True)
    assert "of column 'pulse' missing, the table has" in result.stdout
    assert run(*words, "--force", "-q").output == ""


def test_methods_are_compared_and_the_best_is_taken(tmp_path):
    """The classes differ in spread alone: a line has no power, trees and bumps have."""
    rng = np.random.default_rng(0)
    out, n = tmp_path / "m.skops", 400
    X, y = rng.normal(size=(2 * n, 2)), np.repeat([0, 1], n)
    X[y == 1] *= 4.0
    path = write_csv(tmp_path / "t.csv", "a,b,y", np.column_stack([X, y]).tolist())
    words = ["fit", path, BY_Y, "--json --alpha 0.1", "--out", out]
    facts = json.loads(run(*words).stdout)
    model = mr.load_model(out)
    compared = {each["name"]: each for each in facts["comparison"]["candidates"]}
    bent = {"trees", "ulsif", "rulsif", "kernel-kliep", "kmm"}
    assert set(compared) >= bent | {"kliep", "js", "kliep-cv", "naive-bayes"}
    for name in bent:
        assert compared[name]["power"] > compared["kliep"]["power"] + 0.15
    best = max(compared, key=lambda name: compared[name]["power"])
    assert facts["method"] == model.method == best
    assert facts["why"].startswith(f"the best of {len(compared)} methods compared on")
    assert facts["comparison"]["budget"] == 20.0
    # The outcome of the comparison reaches the report.
    assert json.loads(model.report)["origin"]["method"].startswith(f"{best}, the best")
    found = model.classifier.predict(rng.normal(0, 4, (4000, 2))).mean()
    power = facts["power"]
    assert power["low"] - 0.05 < found < power["high"] + 0.05
    assert power["low"] < power["estimate"] < power["high"]


def test_what_was_found_is_said_in_a_sentence(fit, complete):
    path, facts = fit()
    power = facts["power"]
    low, found, high = (
        f"{100 * power[name]:.1f}" for name in ("low", "estimate", "high")
    )
    assert facts["finding"] == (
        f"Finds {found}% ({low} to {high}%) of 'sick' while at most 20% of 'well' are "
        "called 'sick'."
    )
    model = mr.load_model(path)
    # The report has the same number, and the same sentence.
    (entry,) = json.loads(model.report)["errors"]
    assert (entry["found"], entry["sentence"]) == (power, facts["finding"])
    above = model.decide(encoded(model, complete)[complete[2]]).codes.mean()
    assert power["estimate"] == pytest.approx(above, abs=0.06)


@pytest.mark.parametrize(
    "method",
    ["kliep", "js", "kliep-cv", "ulsif", "rulsif", "kernel-kliep", "kmm", "naive-bayes",
     "trees", "imputed-trees"],
)  # fmt: skip
def test_methods_bound_the_error(fit, patients, complete, method):
    # The other patients are new to the model.
    patients.write_text("\n".join(patients.read_text().splitlines()[:1201]))
    path, facts = fit("--method", method)
    model, sick = mr.load_model(path), complete[2]
    assert facts["method"] == method
    above = model.decide(encoded(model, complete)).codes
    assert above[~sick].mean() < 0.2
    assert above[sick].mean() > 0.1


MISTAKES = {
    "--target stat": (3, "Did you mean 'state'"),
    "--controlled wel": (3, "Did you mean 'well'? There are"),
    "--new-rows complete": (3, "'pulse' (", "nothing says why", "missratio query",
                            "--missingness learn"),
    "--missingness ignore --method logistic": (3, "complete"),
    "--missingness ignore --alpha 0.0001": (5, "--on-infeasible reject_all"),
    "--drop wards": (3, "Did you mean 'ward'"),
    "--drop wards,sugr": (3, "are not columns of", "Did you mean 'sugar'?"),
    "--versus well": (3, "is the controlled class itself"),
    "--sheet x --encoding cp9999": (3, "no encoding"),
}  # fmt: skip


@pytest.mark.parametrize("words", MISTAKES)
def test_what_does_not_fit_the_table_has_a_status_and_a_remedy(patients, words):
    status, *messages = MISTAKES[words]
    out, before = patients.with_name("m.skops"), patients.read_bytes()
    # Of an option that is given twice, the last counts.
    result = run("fit", patients, OPTIONS, "--out", out, words, status=status)
    for message in messages:
        assert message in " ".join(result.stderr.split())
    assert not out.exists()
    assert patients.read_bytes() == before


def test_a_phi_that_the_table_refutes_is_refused(fit, patients):
    phi, out = patients.with_name("wrong.toml"), patients.with_name("m.skops")
    right = patients.with_name("phi.toml").read_text()
    phi.write_text(right.replace("-9.0", "-7.5"))
    words = ["fit", patients, OPTIONS, AT_ONCE, "--missingness", phi, "--out", out]
    said = " ".join(run(*words, status=3).stderr.split())
    assert "contradicts φ of class 'well': φ expects 65% of column 'pulse'" in said
    assert "(missratio query, then fit with --queries)" in said
    assert "take --new-rows blanks" in said
    factor = re.search(r"take --odds-factor (\S+) or more", said)[1]
    assert not out.exists()
    fit("--missingness", phi, "--odds-factor", factor, "--on-infeasible reject_all")


def test_without_a_certificate_everything_is_controlled(fit):
    path, facts = fit("--on-infeasible reject_all", alpha=0.0001)
    assert not facts["certificate"]["certified"]
    assert facts["finding"].startswith("Finds no 'sick', as ")
    assert facts["certificate"]["threshold"] is None
    assert mr.load_model(path).classifier.threshold_ == np.inf
