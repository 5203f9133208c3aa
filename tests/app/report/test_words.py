"""The certificate in words: what is kept, what isn't, and what is unknown."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import missratio as mr
from missratio.app.report import _groups_words
from missratio.app.report._cautions import _on_power
from missratio.app.report._classes_build import _room_words
from missratio.app.report._classes_page import _promises, _trade_offs
from missratio.app.report._groups_words import group_words
from missratio.app.report._markdown import _coefficients, _thousand, missing_part
from missratio.app.report._next import _other_level, _other_method, _power_at
from missratio.app.report._sensitivity import _words
from missratio.app.report._summary import compared_words, complete_case_words
from missratio.app.report._words import measured, percent, robustness, share, span
from missratio.classifier import TradeOff

UNKNOWN = {"estimate": None, "low": None, "high": None}


@pytest.fixture(scope="module")
def certificate():
    """Of a class that loses rows by a known φ."""
    rng = np.random.default_rng(0)
    phi = mr.StepMissingness([1.0, 1.0], 0.0, 0.5)
    X = np.concatenate([rng.normal(0, 1, (600, 2)), rng.normal(1.5, 1, (300, 2))])
    y = np.repeat(["well", "ill"], [600, 300])
    X[:600] = mr.corrupt(X[:600], phi, 0)
    fitted = mr.NeymanPearsonClassifier(
        mr.KLIEP(), alpha=0.1, missingness={"well": phi}, controlled_class="well",
        random_state=0,
    )  # fmt: skip
    return fitted.fit(X, y).certificate_


@pytest.fixture(scope="module")
def grouped():
    """A promise to each of two groups, and one about precision."""
    rng = np.random.default_rng(0)
    y = np.arange(2400) % 2
    groups = np.array(["old", "young"])[rng.integers(0, 2, len(y))]
    X = rng.normal(size=(len(y), 2)) + 2.0 * y[:, None]
    fitted = mr.GroupedNeymanPearsonClassifier(
        LogisticRegression(), alpha=0.1, threshold="shared", precision=0.6,
        prevalence=0.3, group_alpha={"old": 0.08}, random_state=0,
    )  # fmt: skip
    return fitted.fit(X, y, groups), X, y, groups


@pytest.mark.parametrize("words", [percent(None), share(None), span(None, 0.2)])
def test_what_is_unknown_is_a_dash(words):
    assert words == "–"


@pytest.mark.parametrize(
    ("gamma", "part", "said"),
    [
        (np.inf, 0.0, "wrong by more than a factor of 1000 before it fails (Γ > 1000)"),
        (1.0, 0.0, "It has no slack: it needs φ to be exact."),
        (1.0, 0.01, "within φ's 99% band. Beyond that it has no slack."),
        (2.5, 0.0, "by a factor of Γ = 2.5, either way, before it fails"),
        (None, 0.01, "it takes the worst weights within φ's 99% band."),
    ],
)
def test_how_wrong_phi_may_be(certificate, gamma, part, said):
    changed = replace(certificate, sensitivity=gamma, missingness_delta=part)
    assert said in robustness(changed)


def test_nothing_is_said_of_phi_where_nothing_is_known(certificate):
    nothing = replace(certificate, sensitivity=None, missingness_delta=0.0)
    assert robustness(nothing) is None


def test_promises_about_precision_are_in_the_headline(grouped):
    headline = group_words(grouped[0].certificate_)["headline"]
    assert "at most 8% of complete class-0 rows in group 'old'" in headline
    assert (
        "at least 60% of the rows classified as class 1 are of that class" in headline
    )


def test_where_no_promise_is_kept_the_headline_says_so(grouped):
    certificate = grouped[0].certificate_
    lost = tuple(replace(p, threshold=np.inf) for p in certificate.promises)
    words = group_words(replace(certificate, promises=lost))
    assert words["headline"].startswith("No threshold could be certified for any group")


def test_a_report_of_groups_measures_errors_and_leaves_precision_to_its_promise(
    grouped,
):
    fitted, X, y, groups = grouped
    data = mr.build_report(fitted, X, y, groups=groups, folds=0).data
    assert [g["name"] for g in data["groups"]] == [
        _groups_words.group_name(p)
        for p in fitted.certificate_.promises
        if p.kind == "error"
    ]
    # Without refits errors are those of rows that the fit has seen: said.
    titles = [caution["title"] for caution in data["cautions"]]
    assert "Errors may be larger than measured" in titles
    assert data["measured"]["source"] == "held out"


def test_groups_go_with_promises_to_groups(grouped):
    fitted, X, y, groups = grouped
    with pytest.raises(ValueError, match="give groups, one for each row"):
        mr.build_report(fitted, X, y)
    with pytest.raises(ValueError, match="Test rows have groups, too"):
        mr.build_report(fitted, X, y, groups=groups, X_test=X[:9], y_test=y[:9])
    alone = mr.NeymanPearsonClassifier(LogisticRegression(), random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="no promises to groups: leave out groups"):
        mr.build_report(alone, X, y, groups=groups)
    with pytest.raises(ValueError, match="must name 2 columns, got 1 names"):
        mr.build_report(alone, X, y, feature_names=["a"])


def test_test_rows_of_groups_are_what_errors_are_measured_on(grouped):
    fitted, X, y, groups = grouped
    report = mr.build_report(
        fitted, X, y, groups=groups, X_test=X[:400], y_test=y[:400],
        groups_test=groups[:400],
    )  # fmt: skip
    assert report.data["measured"]["source"] == "test"
    (old,) = (g for g in report.data["groups"] if g["group"] == "old")
    mine = (groups == "old") & (np.arange(len(y)) < 400)
    called = fitted.predict(X)
    assert old["power"]["estimate"] == pytest.approx(called[mine & (y == 1)].mean())
    assert old["error"]["estimate"] == pytest.approx(called[mine & (y == 0)].mean())


def test_a_share_that_was_not_measured_is_unknown():
    assert measured(UNKNOWN) == "an unknown share"
    known = {"estimate": 0.25, "low": 0.2, "high": 0.3}
    assert measured(known) == "25.0% (20.0 to 30.0%)"


def flat_curve(power):
    return {
        "own": 1,
        "alpha": [0.05, 0.1, 0.2],
        "estimated_error": [0.04, 0.08, 0.16],
        "power": power,
    }


def test_without_rows_of_the_other_class_nothing_is_said_of_power():
    curve = flat_curve([None, None, None])
    data = {
        "curve": curve,
        "type_i": {"estimate": 0.08},
        "certificate": {"alpha": 0.1},
        "comparison": None,
    }
    assert _power_at(data, 0.1) is None
    assert _thousand(data) == []
    assert _other_level(data) == []
    ((title, text),) = _on_power(curve)
    assert title == "Power unknown"
    assert "No row of the other class was left to measure it on" in text


def test_a_level_twice_as_loose_is_told_with_what_it_gives():
    data = {"curve": flat_curve([0.3, 0.5, 0.8]), "certificate": {"alpha": 0.1}}
    ((_, text),) = _other_level(data)
    assert "At α = 20% the power would be about 80.0% instead of 50.0%" in text


def test_a_method_compared_with_none_that_worked_has_no_next():
    candidates = [{"name": "js", "power": 0.5}, {"name": "trees", "power": None}]
    data = {"comparison": {"chosen": "js", "candidates": candidates}}
    assert _other_method(data) == []
    candidates[1]["power"] = 0.25
    ((_, text),) = _other_method(data)
    assert (
        "js did best of those compared; the next, trees, had a power of 25.0%" in text
    )


def test_columns_that_the_fit_had_no_data_on_are_named():
    found = {
        "names": ["age"], "values": [1.0], "low": None, "high": None,
        "no_data": ["dose", "*x*"], "doubt": "",
    }  # fmt: skip
    assert any(
        part.startswith("The fit had no data on these: dose, ")
        for part in _coefficients(found)
    )
    assert _coefficients(None) == []


@pytest.mark.parametrize("robust", [None, "φ may be wrong by a factor of 2."])
def test_a_promise_is_followed_by_how_wrong_phi_may_be(robust):
    promise = {
        "title": "Class a",
        "sentence": "At most 10% are lost.",
        "facts": [{"name": "α", "value": "10%", "note": ""}],
        "robustness": robust,
    }
    parts = _promises({"promises": [promise]})
    assert parts[:2] == ["## Class a", "At most 10% are lost."]
    assert parts[3:] == ([] if robust is None else [robust])


@pytest.mark.parametrize(
    ("certifiable", "said"),
    [
        # Both could be half of what is asked.
        ([[0.05, 0.05], [0.3, 0.01]], "down to 5% and 5%"),
        ([[0.1, 0.1]], "There is room for 10% of 'a' and 10% of 'b' to be wrong."),
        # One could keep its bound if the other's were 0.3.
        ([[0.3, 0.1]], "at least 0.3 for one of them (0.3 for 'a')"),
        ([[0.2, 0.3]], "leave no room; or 0.3 and 0.3 for both."),
    ],
)
def test_what_two_classes_leave_each_other(certifiable, said):
    found = np.array(certifiable)
    text = _room_words(TradeOff(("a", "b"), (0.1, 0.1), found / 2.0, found))
    assert said in text
    has_room = bool((found <= 0.1).all(axis=1).any())
    assert ("The certificate was reached" in text) == (not has_room)


def test_one_bounded_class_trades_with_none():
    assert _trade_offs([]) == []


def test_what_is_left_out_of_a_table_is_counted(report):
    missingness = report.data["missingness"]
    assert "7 more columns are left out." in missing_part(
        {**missingness, "left_out": 7}
    )
    assert not any("left out" in part for part in missing_part(missingness))
    fewer = {**missingness["patterns"], "left_out": 1200}
    parts = missing_part({**missingness, "patterns": fewer})
    assert "1,200 rarer patterns are left out." in parts
    parts = missing_part({**missingness, "patterns": None})
    assert "### Missing together" not in parts


def test_complete_cases_that_certify_nothing_claim_nothing():
    case = {"kept_share": 0.04, "refitted": True, "certified": False}
    kept, outcome = complete_case_words({"complete_case": case})
    assert "uses the 4% of rows that are complete" in kept
    assert outcome == "It finds too few of them to certify any threshold."


def test_why_methods_were_not_compared_is_told():
    words = compared_words({"note": "there are 3 rows"})
    assert words == "Methods were not compared: there are 3 rows."


@pytest.mark.parametrize(
    ("gamma", "said"),
    [
        (np.inf, "No odds factor up to 1000 undoes the certificate."),
        (1.0, "the certificate has no slack, it needs φ to be exact."),
        (3.0, "Γ = 3."),
    ],
)
def test_the_odds_factor_that_undoes_the_certificate(gamma, said):
    tilted = SimpleNamespace(tipping=(-np.inf, np.inf), amount=np.array([-2.0, 2.0]))
    curve = SimpleNamespace(tipping_factor=gamma, controlled=tilted, other=None)
    text = " ".join(_words(curve, "well"))
    assert said in text
    assert "survives missing values of class well that lie up to 2 standard" in text
