"""missratio fit, as a person would use it."""

import csv
import json
import re

import numpy as np
import pytest

import missratio as mr
from missratio._files import RegularFile

OPTIONS = ["--target", "state", "--controlled", "well", "--drop", "id"]
AT_ONCE = ["--compare-seconds", "0"]


def test_json_is_one_object_and_the_model_has_what_it_says(fit, patients):
    path, facts = fit()
    model = mr.load_model(path)
    assert facts["method"] == model.method == "kliep"
    assert "complete rows" in facts["why"]
    assert facts["certificate"]["alpha"] == model.certificate.alpha == 0.2
    assert facts["columns"] == ["pulse", "sugar", "ward"]
    assert model.encoder.columns[2].levels is not None
    assert (
        model.training.sha256
        == RegularFile.at(patients).sha256()
        == facts["training_sha256"]
    )
    assert set(model.training.missing["well"]) == {"pulse", "sugar"}
    assert model.training.missing["sick"] == {}
    assert sum(model.training.rows.values()) == 3000


def test_the_certificate_is_shown(run, patients):
    out = patients.with_name("m.skops")
    phi = patients.with_name("phi.toml")
    words = ["fit", patients, *OPTIONS, "--missingness", phi, "--out", out, *AT_ONCE]
    result = run(*words)
    assert (
        "At most 5% of complete 'well' rows are classified as 'sick'" in result.stdout
    )
    assert "φ, the probability of being missing, is as " in result.stdout
    assert "Method: kliep, " in result.stdout
    assert "Reading" in result.stderr
    assert "Reading" not in result.stdout
    assert "of column 'pulse' missing, the table has" in result.stdout
    assert run(*words, "--force", "-q").output == ""


def test_methods_are_compared_and_the_best_is_taken(run, tmp_path):
    """The classes differ in spread alone: a line has no power, trees and bumps have."""
    rng = np.random.default_rng(0)
    path, out, n = tmp_path / "t.csv", tmp_path / "m.skops", 400
    X, y = rng.normal(size=(2 * n, 2)), np.repeat([0, 1], n)
    X[y == 1] *= 4.0
    table = np.column_stack([X, y])
    np.savetxt(path, table, "%g", ",", header="a,b,y", comments="")
    words = ["fit", path, "--target", "y", "--controlled", 0, "--out", out]
    facts = json.loads(run(*words, "--json", "--alpha", 0.1).stdout)
    model = mr.load_model(out)
    compared = {each["name"]: each for each in facts["comparison"]["candidates"]}
    bent = {"trees", "ulsif", "rulsif", "kernel-kliep", "kmm"}
    assert set(compared) >= bent | {"kliep", "js", "kliep-cv", "naive-bayes"}
    for name in bent:
        assert compared[name]["power"] > compared["kliep"]["power"] + 0.2
    best = max(compared, key=lambda name: compared[name]["power"])
    assert facts["method"] == model.method == best
    assert facts["why"].startswith("which finds ")
    assert "comes next with" in facts["why"]
    assert facts["comparison"]["budget"] == 60.0
    # The table stays with the model, and reaches its report.
    assert model.comparison.chosen == best
    shown = json.loads(model.report)["comparison"]
    assert [each["name"] for each in shown["candidates"]] == list(compared)
    assert shown["chosen"] == best
    fresh = rng.normal(0, 4, (4000, 2))
    found = model.classifier.predict(fresh).mean()
    power = facts["power"]
    assert power["low"] - 0.05 < found < power["high"] + 0.05
    assert power["low"] < power["estimate"] < power["high"]


def test_what_was_found_is_said_in_a_sentence(fit, complete):
    path, facts = fit()
    power = facts["power"]
    low, found, high = (
        f"{100 * power[name]:.0f}" for name in ("low", "estimate", "high")
    )
    assert facts["finding"] == (
        f"Finds {found}% of 'sick' ({low}–{high}%) while at most 20% of 'well' are "
        "called 'sick'."
    )
    model = mr.load_model(path)
    values, ward, sick = complete
    X = np.column_stack([values, ward == model.encoder.columns[2].levels[1]])
    above = model.decide(X[sick].astype(float)).codes.mean()
    assert power["estimate"] == pytest.approx(above, abs=0.06)


def test_standard_errors_are_for_ratios_alone(fit):
    path, facts = fit("--compare-seconds", "20", "--standard-errors")
    names = [each["name"] for each in facts["comparison"]["candidates"]]
    assert set(names) == {"kliep", "js", "kliep-cv", "naive-bayes"}
    assert mr.load_model(path).covariance is not None


def test_nothing_is_overwritten_without_force(fit, run, patients):
    path, _ = fit()
    before = path.read_bytes()
    phi = patients.with_name("phi.toml")
    arguments = ["fit", patients, *OPTIONS, "--missingness", phi, "--out", path]
    arguments += AT_ONCE
    assert "--force" in run(*arguments, status=1).stderr
    assert path.read_bytes() == before
    run(*arguments, "--force", "-q")


@pytest.mark.parametrize("name", ["patients.csv", "phi.toml"])
def test_inputs_are_never_overwritten(run, patients, name):
    before = patients.with_name(name).read_bytes()
    phi, out = patients.with_name("phi.toml"), patients.with_name(name)
    result = run(
        "fit", patients, *OPTIONS, "--missingness", phi, "--out", out, "--force",
        status=1,
    )  # fmt: skip
    assert "never overwritten" in result.stderr
    assert patients.with_name(name).read_bytes() == before


@pytest.mark.parametrize(
    "method",
    ["kliep", "js", "kliep-cv", "ulsif", "rulsif", "kernel-kliep", "kmm", "naive-bayes",
     "trees", "imputed-trees"],
)  # fmt: skip
def test_methods_bound_the_error(fit, complete, method):
    path, facts = fit("--method", method)
    model = mr.load_model(path)
    assert facts["method"] == method
    values, ward, sick = complete
    X = np.column_stack([values, ward == model.encoder.columns[2].levels[1]])
    above = model.decide(X.astype(float)).codes
    assert above[~sick].mean() < 0.2
    assert above[sick].mean() > 0.1


@pytest.mark.parametrize("method", ["js", "naive-bayes", "trees"])
def test_ignored_missingness_is_certified_as_observed(fit, method):
    _, facts = fit("--missingness", "ignore", "--method", method)
    assert facts["certificate"]["deployment"] == "as-observed"


def test_learned_missingness(run, fit, patients, complete):
    plan, answers = patients.with_name("plan.csv"), patients.with_name("answers.csv")
    asked = json.loads(
        run(
            "query", patients, "--target", "state", "--controlled", "well", "--id",
            "id", "--per-feature", 40, "--out", plan, "--json",
        ).stdout
    )  # fmt: skip
    assert asked["queries"] == 80
    with plan.open(newline="") as stream:
        lines = list(csv.DictReader(stream))
    for line in lines:
        row = int(line["line"]) - 2
        assert line["id"] == f"P{row:04}"
        assert "row" not in line
        line["value"] = complete[0][row, ["pulse", "sugar"].index(line["feature"])]
    with answers.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, lines[0])
        writer.writeheader()
        writer.writerows(lines)
    path, facts = fit("--queries", answers)
    assert facts["way"] == "both"
    assert "80 looked-up values" in facts["missingness"]
    assert facts["certificate"]["missingness_delta"] > 0
    phi = mr.load_model(path).classifier.missingness["well"]
    np.testing.assert_allclose(phi.coef * [10, 1, 1], [1.0, 0.0, 0.0], atol=0.6)
    assert phi.intercept[2] == -np.inf


def test_a_plan_of_another_table_is_refused(run, fit, patients):
    plan = patients.with_name("plan.csv")
    run("query", patients, "--target", "state", "--controlled", "well", "--drop",
        "id", "--drop", "sugar", "--out", plan)  # fmt: skip
    arguments = ["fit", patients, *OPTIONS, "--queries", plan]
    result = run(*arguments, "--out", patients.with_name("m.skops"), status=3)
    assert "made for another table" in result.stderr


MISTAKES = {
    "target": (["--target", "stat"], 3, "Did you mean 'state'"),
    "label": (["--controlled", "wel"], 3, "Did you mean 'well'? There are"),
    "nothing said": ([], 3, "'pulse' (", "nothing says why",
                     "missratio query", "--missingness learn"),
    "method": (["--missingness", "ignore", "--method", "tre"], 2, "'trees'"),
    "logistic": (["--missingness", "ignore", "--method", "logistic"], 3, "complete"),
    "seconds": (["--compare-seconds", "-1"], 2, "--compare-seconds must be"),
    "alpha": (["--missingness", "ignore", "--alpha", "2"], 2, "between 0 and 1"),
    "too strict": (["--missingness", "ignore", "--alpha", "0.0001"], 5,
                   "--on-infeasible reject_all"),
    "rule": (["--missingness", "ignore", "--rule", "bets"], 2, "must be one of"),
    "deployment": (["--deployment", "observed"], 2, "Did you mean 'as-observed'"),
    "both": (["--missingness", "ignore", "--queries", "x"], 2, "Leave out one"),
    "no plan": (["--queries", "absent.csv"], 1, "no plan absent.csv"),
    "no phi": (["--missingness", "absent.toml"], 1, "--example"),
    "drop": (["--drop", "wards"], 3, "Did you mean 'ward'"),
    "option": (["--alhpa", "0.1"], 2, "No such option"),
    "folder": (["--missingness", "ignore", "--out", "absent/m.skops"], 1, "no folder"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_have_a_status_and_a_remedy(run, patients, mistake, monkeypatch):
    monkeypatch.chdir(patients.parent)
    words, status, *messages = MISTAKES[mistake]
    before = patients.read_bytes()
    options = dict(zip(OPTIONS[::2], OPTIONS[1::2], strict=True))
    given = [*words]
    for name, value in {**options, "--out": "m.skops"}.items():
        if name not in words or name == "--drop":
            given += [name, value]
    result = run("fit", "patients.csv", *given, status=status)
    for message in messages:
        assert message in " ".join(result.stderr.split())
    assert not patients.with_name("m.skops").exists()
    assert patients.read_bytes() == before


def test_a_phi_that_the_table_refutes_is_refused(run, fit, patients):
    phi = patients.with_name("wrong.toml")
    right = patients.with_name("phi.toml").read_text()
    phi.write_text(right.replace("-9.0", "-7.5"))
    out = patients.with_name("m.skops")
    words = ["fit", patients, *OPTIONS, "--missingness", phi, "--out", out, *AT_ONCE]
    said = " ".join(run(*words, status=3).stderr.split())
    assert "contradicts φ of class 'well': φ expects 65% of column 'pulse'" in said
    assert "(missratio query, then fit with --queries)" in said
    assert "take --deployment as-observed" in said
    factor = re.search(r"take --odds-factor (\S+) or more", said)[1]
    assert not out.exists()
    options = ("--odds-factor", factor, "--on-infeasible", "reject_all")
    fit("--missingness", phi, *options)


def test_without_a_certificate_everything_is_controlled(fit):
    path, facts = fit("--on-infeasible", "reject_all", alpha=0.0001)
    assert not facts["certificate"]["certified"]
    assert facts["finding"].startswith("Finds no 'sick': no threshold could be cert")
    assert facts["certificate"]["threshold"] is None
    assert mr.load_model(path).classifier.threshold_ == np.inf


def test_missing_categories_may_be_a_level(run, patients):
    text = patients.read_text().replace(",east,", ",,", 20)
    patients.write_text(text)
    out = patients.with_name("m.skops")
    arguments = ["fit", patients, *OPTIONS, "--out", out]
    phi = patients.with_name("phi.toml")
    result = run(*arguments, "--missingness", phi, status=3)
    assert "missing values in 'ward'" in result.stderr
    run(*arguments, "--missingness", "ignore", "-q", *AT_ONCE)
    assert "" in mr.load_model(out).encoder.columns[2].levels


def test_many_columns_are_fitted_one_at_a_time(run, tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "wide.csv"
    X, y = rng.normal(size=(300, 1000)).round(2), np.arange(300) % 2
    header = ",".join([f"c{j}" for j in range(1000)] + ["y"])
    table = np.column_stack([X + 0.1 * y[:, None], y])
    np.savetxt(path, table, "%g", ",", header=header, comments="")
    result = run("fit", path, "--target", "y", "--controlled", 0, "--out",
                 tmp_path / "m.skops", "--alpha", 0.1, "--json", *AT_ONCE)  # fmt: skip
    assert json.loads(result.stdout)["method"] == "naive-bayes"


def test_constant_columns_are_refused(run, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b,y\n" + "".join(f"{i},7,{i % 2}\n" for i in range(40)))
    result = run("fit", path, "--target", "y", "--controlled", 0, "--out",
                 tmp_path / "m.skops", status=3)  # fmt: skip
    assert "'b' has one value only" in result.stderr


def test_three_labels_are_refused(run, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,y\n" + "".join(f"{i},{i % 3}\n" for i in range(40)))
    result = run("fit", path, "--target", "y", "--controlled", 0, "--out",
                 tmp_path / "m.skops", status=3)  # fmt: skip
    assert "must have two labels: got 0 (14 rows)" in result.stderr


def test_messages_name_columns_of_the_table(run, tmp_path):
    path = tmp_path / "t.csv"
    rng = np.random.default_rng(0)
    lines = [
        f"{rng.normal():.3f},{7 if i % 2 == 0 else rng.normal():.3f},{i % 2}"
        for i in range(800)
    ]
    path.write_text("\n".join(["age,height,y", *lines]))
    result = run("fit", path, "--target", "y", "--controlled", 0, "--out",
                 tmp_path / "m.skops", "--method", "kliep", status=3)  # fmt: skip
    assert "['height'] are constant" in result.stderr


def test_a_class_may_be_called_as_arrays_call_columns(run, tmp_path):
    path = tmp_path / "t.csv"
    rng = np.random.default_rng(0)
    lines = [
        f"{rng.normal():.3f},{7 if i % 2 == 0 else rng.normal():.3f},x{i % 2}"
        for i in range(800)
    ]
    path.write_text("\n".join(["age,{height}!r,y", *lines]))
    result = run("fit", path, "--target", "y", "--controlled", "x0", "--out",
                 tmp_path / "m.skops", "--method", "kliep", status=3)  # fmt: skip
    message = " ".join(result.stderr.split())
    assert "['{height}!r'] are constant over the observed rows of class 'x0'" in message
    assert "leave them out (--drop), or take --method kliep-cv" in message.lower()


def test_the_example_is_written(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run("fit", "--example")
    assert "[classes.well]" in (tmp_path / "missingness.toml").read_text()
    assert "exists" in run("fit", "--example", status=1).stderr


def test_a_certificate_for_another_population(run, tmp_path):
    rng = np.random.default_rng(0)

    def rows(n, shift):
        X = rng.normal(size=(n, 2)) + np.array([shift, 0.0])
        chance = 1 / (1 + np.exp(0.5 - 2 * X[:, 0] - X[:, 1]))
        return X, (rng.random(n) < chance).astype(int)

    (X, y), (target, _) = rows(3000, 0.0), rows(2000, 0.7)
    table, other, out = (tmp_path / name for name in ("t.csv", "o.csv", "m.skops"))
    np.savetxt(table, np.column_stack([X, y]), "%g", ",", header="a,b,y", comments="")
    np.savetxt(other, target, "%g", ",", header="a,b", comments="")
    words = ["fit", table, "--target", "y", "--controlled", 0, "--alpha", "10%",
             "--out", out, "--method", "logistic", "--target-table", other]  # fmt: skip
    facts = json.loads(run(*words, "--json").stdout)
    assert facts["certificate"]["target_rows"] == 2000
    fresh, labels = rows(20_000, 0.7)
    assert mr.load_model(out).classifier.predict(fresh)[labels == 0].mean() <= 0.1
    result = run(*words, "--deployment", "as-observed", "--force", status=2)
    assert "--target-table and --deployment as-observed" in result.stderr
    other.write_text("a,b\n1,\n")
    assert "Give complete rows" in run(*words, "--force", status=3).stderr
