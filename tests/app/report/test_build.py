"""What a report says is what the classifier, its certificate and its rows say."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from classifiers import certified
from commands import run
from data import corrupted, look_up, stacked
from optional_packages import optional
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import missratio as mr
from missratio.app.report import LabelledRows, Names, describe, sections
from missratio.app.report.measure import importance

pd = optional("pandas")
pl = optional("polars")

STEP = mr.StepMissingness([1.0, 1.0], 0.0, 0.7)
ENTRIES = mr.StepMissingness([1.0, 1.0], 0.0, 0.5, rowwise=False)


def two_samples(n=800, shift=1.5, seed=0):
    rng = np.random.default_rng(seed)
    return stacked(rng.normal(0, 1, (n, 2)), rng.normal(shift, 1, (n, 2)))


def classifier(estimator, **parameters):
    return certified(estimator, **{"delta": 0.05} | parameters)


def fitted(estimator, model=None, classes=(0,), n=800, **parameters):
    """A classifier of rows of which some classes lose values by φ, and the rows."""
    X, y = two_samples(n)
    if model is not None:
        models = dict.fromkeys(classes, model)
        X = corrupted(X, y, models, seed=1)
        if "deployment" not in parameters:
            parameters.setdefault("missingness", models)
    return classifier(estimator, **parameters).fit(X, y), X, y


def whole_rows():
    return fitted(mr.KLIEP(), STEP)


def as_observed(classes=(0,)):
    tree = DecisionTreeClassifier(max_depth=4, random_state=0)
    return fitted(tree, ENTRIES, classes, deployment="as-observed")


def weighted_pipeline():
    _, X, y = whole_rows()
    model = make_pipeline(StandardScaler(), LogisticRegression())
    frame = pl.DataFrame(X, schema=["age", "dose"], nan_to_null=True)
    return classifier(model, missingness={0: STEP}).fit(frame, y), frame, y


def reject_all():
    return fitted(mr.KLIEP(l2=0.1), n=60, alpha=0.01, on_infeasible="reject_all")


def calibrated():
    _, X, y = whole_rows()
    model = LogisticRegression().fit(*two_samples(seed=1))
    return classifier(model, missingness={0: STEP}).calibrate(X[y == 0]), X, y


def words_among_numbers():
    X, y = two_samples()
    frame = pd.DataFrame(X, columns=["age", "dose"])
    frame["ward"] = np.where(X[:, 0] > 0, "north", "south")
    encode = make_column_transformer(
        (OneHotEncoder(), ["ward"]), remainder="passthrough"
    )
    model = make_pipeline(encode, LogisticRegression())
    return classifier(model).fit(frame, y), frame, y


LOGISTIC = mr.LogisticMissingness(-1.0, [1.0, 1.0], rowwise=True)
CASES = {
    "complete": lambda: fitted(mr.KLIEP()),
    "whole rows": whole_rows,
    "single values": lambda: fitted(mr.KLIEP(), ENTRIES, (0, 1)),
    "models within the estimator": lambda: fitted(
        mr.KLIEP(missingness={0: STEP}), STEP, missingness=None
    ),
    "product of ratios": lambda: fitted(
        mr.NaiveBayesRatio(mr.KLIEP(basis="polynomial")), ENTRIES
    ),
    "as observed": as_observed,
    "weighted pipeline": weighted_pipeline,
    "reject all": reject_all,
    "calibrated": calibrated,
    "unbounded": lambda: fitted(mr.KLIEP(), LOGISTIC, n=2000),
    "words among numbers": words_among_numbers,
    "second label": lambda: fitted(
        mr.KLIEP(), STEP, (1,), controlled_class=1, random_state=None
    ),
}


def own_level(data):
    return data["curve"]["levels"][data["curve"]["own"]]


@pytest.mark.parametrize("name", CASES)
def test_a_report_agrees_with_its_certificate_and_its_rows(name):
    model, X, y = CASES[name]()
    report = mr.build_report(model, X, y, folds=2)
    data, certificate = report.data, model.certificate_
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert report.markdown().startswith("# Certified classifier")
    assert len(sections.document(data).parts) >= 5
    # At the classifier's own level the curve is its certificate.
    own = own_level(data)
    assert (own["alpha"], own["rule"]) == (model.alpha, certificate.rule)
    if certificate.certified:
        assert own["threshold"] == pytest.approx(model.threshold_, rel=1e-6)
    else:
        assert own["threshold"] is None
    for level in data["curve"]["levels"]:
        assert 0.0 <= level["low"] <= level["estimate"] <= level["high"] <= 1.0
        if level["threshold"] is None:
            assert level["high"] == 0.0
        else:
            assert level["error_bound"] <= level["alpha"] + 1e-9
    for profile in data["missingness"]["profiles"]:
        low, phi, high = (np.array(profile[k]) for k in ("low", "phi", "high"))
        assert ((low >= 0.0) & (low <= phi + 1e-6) & (phi <= high + 1e-6)).all()
    entry = data["missingness"]["classes"][0]
    assert entry["effective_rows"] <= entry["rows"]
    if isinstance(X, np.ndarray):
        labels = [int(entry["label"]) for entry in data["missingness"]["classes"]]
        for feature in data["missingness"]["features"]:
            j = int(feature["name"][1:])
            lost = [np.isnan(X[y == label, j]).sum() for label in labels]
            assert feature["missing"] == lost


def test_power_is_that_of_test_rows_where_there_are_some():
    fitted, X, y = whole_rows()
    X_test, y_test = two_samples(seed=9)
    data = mr.build_report(fitted, X, y, X_test=X_test, y_test=y_test).data
    said, own, (entry,) = fitted.predict(X_test), own_level(data), data["errors"]
    assert data["measured"] == "test"
    assert own["estimate"] == pytest.approx(mr.power(y_test, said))
    interval = mr.evaluation.power_interval(y_test, said)
    assert own["low"] == entry["found"]["low"] == pytest.approx(interval.low, rel=1e-6)
    assert entry["error"]["estimate"] == pytest.approx(mr.type_i_error(y_test, said))
    bounds = mr.evaluation.type_i_interval(y_test, said)
    assert entry["error"]["high"] == pytest.approx(bounds.high, rel=1e-6)


def test_cross_validated_power_is_close_to_that_of_fresh_rows():
    fitted, X, y = whole_rows()
    power = own_level(mr.build_report(fitted, X, y).data)["estimate"]
    fresh, labels = two_samples(20_000, seed=5)
    real = mr.power(labels, fitted.predict(fresh))
    assert power == pytest.approx(real, abs=0.08)


def test_power_of_rows_with_blanks_and_without_makes_up_the_whole():
    data = mr.build_report(*as_observed((0, 1)), folds=2).data
    found = data["errors"][0]["found"]
    parts = [(part["estimate"], part["rows"]) for part in found["parts"].values()]
    assert sum(n for _, n in parts) == found["rows"]
    whole = sum(power * n for power, n in parts) / found["rows"]
    assert whole == pytest.approx(found["estimate"], rel=1e-6)
    assert "Power with blanks" in {fact[0] for fact in sections.certificate(data).facts}
    assert titles(data, "next")[-1] == "If new rows will be complete"


def test_a_promise_for_complete_rows_says_what_becomes_of_the_others():
    fitted, X, y = whole_rows()
    data = mr.build_report(fitted, X, y, folds=0).data
    lost = 100.0 * np.isnan(X).any(axis=1).mean()
    said = f"always classified as class 0. {lost:.3g}% of the rows of this table have"
    assert said in data["words"]["blanks"]
    assert "Assume less" in titles(data, "next")
    # No rows were left out to measure the power on.
    assert "Power unknown" in titles(data)


def test_what_is_not_certified_says_how_many_rows_it_needs():
    fitted, X, y = reject_all()
    step = mr.build_report(fitted, X, y, folds=0).data["next"][0]
    needed = int(
        re.search(r"about ([\d,]+) class-0 rows", step["text"])[1].replace(",", "")
    )
    certificate = fitted.certificate_
    worth = certificate.effective_rows / certificate.rows
    assert needed > certificate.rows
    assert (1.0 - certificate.alpha) ** (needed * worth) <= certificate.delta


def titles(data, section="cautions"):
    return [entry["title"] for entry in data[section]]


def test_other_rows_than_the_certificates_are_refused():
    model, X, y = whole_rows()
    for wrong in (slice(None, None, -1), slice(10, None), slice(0, 500)):
        with pytest.raises(ValueError, match="not the rows"):
            mr.build_report(model, X[wrong], y[wrong])
    with pytest.raises(ValueError, match="go together"):
        mr.build_report(model, X, y, X_test=np.zeros((3, 2)))
    with pytest.raises(ValueError, match=r"labels \['7'\]"):
        mr.build_report(model, X, y, X_test=np.zeros((1, 2)), y_test=[7])


def test_looked_up_values_are_counted():
    rng, y = np.random.default_rng(0), np.repeat(["well", "ill"], [1200, 600])
    Z = rng.normal(1.5 * (y == "ill")[:, None], size=(1800, 2))
    lost = (y == "well") & (rng.uniform(size=1800) < 1 / (1 + np.exp(1 - Z[:, 0])))
    lost = lost[:, None] & [True, False]
    before = np.where(lost, np.nan, Z)
    X, inclusion = look_up(Z, lost, 120, rng)
    inclusion = inclusion.min(axis=1)
    model = classifier(mr.KLIEP(), controlled_class="well")
    model.fit(X, y, inclusion=inclusion)
    rows = LabelledRows.read(model, X, y, inclusion, before=before)
    names = Names(["dose", "age"], ["dose", "age"])
    data = describe(rows, title=None, names=names, folds=2).data
    (dose,) = (f for f in data["missingness"]["features"] if f["name"] == "dose")
    assert dose["looked_up"] == [120, 0]
    assert data["missingness"]["classes"][0]["drawn"] == 120
    assert data["missingness"]["profiles"] == []
    assert data["origin"]["seed"] == 0


@pytest.mark.parametrize("frame", [False, True], ids=["array", "dataframe"])
def test_shuffling_costs_power_where_a_column_decides(frame):
    """Each of two copies alone could be lost without harm; together they can't."""
    rng, y = np.random.default_rng(0), np.repeat([0, 1], 800)
    one = rng.normal(2.5 * y)
    X = np.column_stack([one, one, rng.normal(size=1600)])
    X = pd.DataFrame(X, columns=list("abc")) if frame else X
    clf = classifier(mr.KLIEP(l2=0.1)).fit(X, y)
    names = Names(["k=a", "k=b", "z"], ["k", "k", "z"])
    found = importance(LabelledRows.read(clf, X, y), names, 0.1)
    assert found["names"] == ["k", "z"]
    # Of the two features of k together there is no one direction.
    assert found["correlation"][0] != found["correlation"][0]
    assert found["values"][0] > 0.4
    assert abs(found["values"][1]) < 0.1
    assert abs(found["correlation"][1]) < 0.2


def test_blanks_of_categories_are_missing_values_of_their_column():
    X = np.array([[1.0, 0.0, 0.0], [np.nan, 1.0, 0.0], [2.0, 0.0, 1.0]])
    names = Names(["t", "w=east", "w=(blank)"], ["t", "w", "w"], frozenset([2]))
    assert list(names.members) == ["t", "w"]
    assert names.missing(X).tolist() == [[False, False], [True, False], [False, True]]


# What to do next: commands of a report run as they are printed.


TABLE, HOW = "my patients.csv", "--target state --controlled well --alpha 20%"
KINDS = {
    "as observed": (
        "--new-rows blanks --method trees",
        ["Label new rows", "Watch it", "If new rows will be complete"],
    ),
    "by φ": (
        "--missingness phi.toml --method kliep",
        ["Label new rows", "Watch it", "Assume less"],
    ),
    "look-ups": (
        "--queries plan.csv --method js",
        ["Label new rows", "Watch it", "More look-ups"],
    ),
}
PHI = """
[classes.well]
missing = "values"
kind = "logistic"
features.pulse = { intercept = -9.0, coef = 0.1 }
"""


@pytest.fixture
def pulses(tmp_path, monkeypatch):
    """Tables in which well patients lose high pulses; three pulses are a code."""
    monkeypatch.chdir(tmp_path)
    rng, n = np.random.default_rng(0), 700
    sick = np.arange(n) % 2 == 1
    pulse = rng.normal(np.where(sick, 100, 80), 10).round(2)
    lost = ~sick & (rng.uniform(size=n) < 1 / (1 + np.exp(9.0 - 0.1 * pulse)))
    sugar = pulse / 20 + rng.normal(size=n)
    pulse[[5, 7, 9]] = 999.0
    lines = [
        f"{'' if gone else p},{q:.2f},{'sick' if ill else 'well'}"
        for p, gone, q, ill in zip(pulse, lost, sugar, sick, strict=True)
    ]
    whole = [line for line in lines[:80] if line[0] != ","]
    tables = {TABLE: lines, "new.csv": lines[:80], "labelled.csv": whole}
    for name, chosen in tables.items():
        Path(name).write_text("\n".join(["pulse,sugar,state", *chosen]))
    Path("phi.toml").write_text(PHI)
    return pulse


@pytest.mark.parametrize("kind", KINDS)
def test_commands_run_as_they_are_printed(kind, pulses, tmp_path):
    options, titles = KINDS[kind]
    if kind == "look-ups":
        run(f"query '{TABLE}' {HOW} --budget 60 --out plan.csv")
        plan = pd.read_csv("plan.csv")
        plan["value"] = pulses[plan["line"] - 2]
        plan.to_csv("plan.csv", index=False)
    more = "--merge 'ill=sick' --drop sugar" if kind == "as observed" else ""
    printed = run(
        f"fit '{tmp_path / TABLE}' {HOW} {options} {more} --out m.skops"
    ).output
    data = json.loads(mr.load_model("m.skops").report)
    steps = {step["title"]: step["command"] for step in data["next"]}
    assert [title for title, command in steps.items() if command] == titles
    for command in filter(None, steps.values()):
        assert str(tmp_path) not in command
        run(command)
    # How the table was read is in the command.
    assert ("--merge ill=sick" in data["origin"]["command"]) == bool(more)
    # What fit warned of stands on the page.
    cautions = [each["text"] for each in data["cautions"]]
    assert any("999" in text for text in cautions)
    assert printed.count("Warning: ") <= len(cautions)
