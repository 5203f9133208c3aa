"""What a report says: of what is kept, what isn't, and what is unknown."""

from dataclasses import replace

import numpy as np
import pytest
from forging import sound
from sklearn.linear_model import LogisticRegression

import missratio as mr
from missratio.app.report.words import (
    measured,
    number,
    percent,
    robustness,
    share,
    span,
)


@pytest.fixture(scope="module")
def grouped():
    """Promises to two groups."""
    rng = np.random.default_rng(0)
    y = np.arange(2400) % 2
    groups = np.array(["old", "young"])[rng.integers(0, 2, len(y))]
    X = rng.normal(size=(len(y), 2)) + 2.0 * y[:, None]
    fitted = mr.GroupedNeymanPearsonClassifier(
        LogisticRegression(), 0.1, group_alpha={"old": 0.08}, random_state=0
    )
    return fitted.fit(X, y, groups), X, y, groups


FOUND = {"estimate": 0.25, "low": 0.2, "high": 0.3}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (percent(None), "–"),
        (share(None), "–"),
        (span({"low": None, "high": 0.2}), "–"),
        (measured({"estimate": None, "low": None, "high": None}), "an unknown share"),
        (measured(FOUND), "25.0% (20.0 to 30.0%)"),
        (number(None), "–"),
        (number(142193), "142,193"),
        (number(15940.3), "15,940"),
        (number(0.00001234), "0.00001234"),
        (number(-3.25), "−3.25"),
    ],
)
def test_numbers_are_exact_and_have_no_powers_of_ten(words, said):
    assert words == said


@pytest.mark.parametrize(
    ("gamma", "part", "said"),
    [
        (np.inf, 0.0, "may be wrong by more than 1000 times."),
        (1.0, 0.0, "It has no slack: it needs φ to be exact."),
        (1.0, 0.01, "within φ's 99% band. Beyond that it has no slack."),
        (2.5, 0.0, "by a factor of up to Γ = 2.5, either way."),
        (None, 0.01, "it takes the worst weights within φ's 99% band."),
        (None, 0.0, "None"),
    ],
)
def test_how_wrong_phi_may_be(gamma, part, said):
    # Of a class that loses rows by a known φ.
    certificate = sound("φ").certificate_
    changed = replace(certificate, sensitivity=gamma, missingness_delta=part)
    assert said in str(robustness(changed))


def test_a_report_of_groups_measures_errors_in_groups(grouped):
    fitted, X, y, groups = grouped
    data = mr.build_report(fitted, X, y, groups=groups, folds=0).data
    assert {g["name"] for g in data["errors"]} == {"young", "old"}
    headline = data["words"]["headline"]
    assert "At most 8% of complete class-0 rows in group 'old'" in headline
    # Without refits errors are those of rows that the fit has seen: said.
    titles = [caution["title"] for caution in data["cautions"]]
    assert "Errors may be larger than measured" in titles
    assert data["measured"] == "held out"


def test_groups_go_with_promises_to_groups(grouped):
    fitted, X, y, groups = grouped
    alone = mr.NeymanPearsonClassifier(LogisticRegression(), random_state=0).fit(X, y)
    untold = {"groups": groups, "X_test": X[:9], "y_test": y[:9]}
    for model, options, message in (
        (fitted, {}, "give groups, one for each row"),
        (fitted, untold, "Test rows have groups, too"),
        (alone, {"groups": groups}, "no promises to groups: leave out groups"),
        (alone, {"feature_names": ["a"]}, "must name 2 columns, got 1 names"),
    ):
        with pytest.raises(ValueError, match=message):
            mr.build_report(model, X, y, **options)


def test_test_rows_of_groups_are_what_errors_are_measured_on(grouped):
    fitted, X, y, groups = grouped
    test = {"X_test": X[:400], "y_test": y[:400], "groups_test": groups[:400]}
    data = mr.build_report(fitted, X, y, groups=groups, **test).data
    assert data["measured"] == "test"
    (old,) = (g for g in data["errors"] if g["group"] == "old")
    mine = (groups == "old") & (np.arange(len(y)) < 400)
    called = fitted.predict(X, groups)
    assert old["found"]["estimate"] == pytest.approx(called[mine & (y == 1)].mean())
    assert old["error"]["estimate"] == pytest.approx(called[mine & (y == 0)].mean())
