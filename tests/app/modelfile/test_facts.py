"""A model of which one fact was changed alone is refused, and the reason is that fact.

Models are changed after they were loaded, so that every check is reached.
"""

import copy
import json

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sound_models import MAKERS, forged, sound

import missratio as mr
from missratio.app.modelfile import ModelFileError
from missratio.app.modelfile.checks import check_model, header_of
from missratio.app.tables import TableColumn


def refused(model, match):
    with pytest.raises(ModelFileError, match=match):
        check_model(model, {})


@pytest.mark.parametrize("kind", MAKERS)
def test_what_was_not_changed_is_sound(kind):
    model = sound(kind)
    check_model(model, json.loads(json.dumps(header_of(model))))


WRONG_TYPES = {
    "alpha": "x", "delta": None, "rule": 5, "deployment": None, "rows": 2.5,
    "observed": "7", "effective_rows": "x", "threshold": None, "estimated_error": "0",
    "error_bound": None, "certified": 1, "assumptions": [], "missingness_delta": "0",
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG_TYPES)
def test_a_figure_of_another_type_is_refused(name):
    refused(
        forged("two", f"certificate_.{name}", WRONG_TYPES[name]),
        f"its certificate's {name} is",
    )


@pytest.mark.parametrize(
    ("kind", "path", "value"),
    [
        ("two", "certificate_.estimated_error", 0),
        ("table", "comparison.candidates.0.power", 0.0),
        ("table", "comparison.candidates.0.power", 1.0),
        ("table", "training.missing.0", {"p": 120, "q": 1}),
        ("table", "encoder.columns.0.levels", None),
        ("table", "report", None),
        ("table", "covariance", None),
    ],
)
def test_what_a_model_may_be_is_sound(kind, path, value):
    model = forged(kind, path, value)
    check_model(model, json.loads(json.dumps(header_of(model))))


TWO = [
    ("certificate_", None, "it has no certificate"),
    ("certificate_.threshold", np.nan, "its threshold is NaN"),
    ("certificate_.deployment", "as-observed", "for another threshold"),
    ("certificate_.controlled_class", 7, "is for another class"),
    ("certificate_.delta", 0.06, "for another threshold"),
    ("certificate_.alpha", 0.31, "for another threshold"),
    ("certificate_.certified", False, "threshold without a certificate"),
    ("certificate_.rows", lambda n: n + 1, "for other rows"),
    ("certificate_.observed", lambda n: n + 1, "for other rows"),
    ("alpha", 0.31, "for another threshold"),
    ("delta", 0.06, "for another threshold"),
    ("threshold_", lambda t: t + 0.1, "for another threshold"),
    ("classes_", [0, 1], "its classes"),
    ("classes_", np.array([0, 1, 2]), "its classes"),
    ("calibration_", None, "it has no calibration"),
    ("calibration_.rule", "auto", "its rule is of another type"),
    ("calibration_.sample", 5, "its calibration rows"),
    ("calibration_.sample.values", lambda x: x + 1.0, "for another threshold"),
    ("calibration_.trust.delta", "1", "its weights"),
    ("calibration_.trust.cap", "1", "its weights"),
    ("calibration_.trust.odds_factor", "1", "its weights"),
    ("calibration_.trust.model", 5, "its missingness is of another type"),
    ("missingness", {0: "φ"}, "its missingness is of another type"),
    ("n_features_in_", 0, "its number of columns"),
    ("n_features_in_", "2", "its number of columns"),
    ("n_features_in_", 10**6 + 1, "its number of columns"),
]
TABLE = [
    ("classifier", LogisticRegression(), "its classifier is of another type"),
    ("encoder", None, "its columns are of another type"),
    ("encoder.cells", None, "its cells are of another type"),
    ("encoder.columns", ("p", "q"), "a column is of another type"),
    ("encoder.columns", (TableColumn(1), TableColumn("q")), "a column is of another"),
    ("encoder.columns", (TableColumn("p"),) * 2, "columns are doubled"),
    ("encoder.columns", (TableColumn("p"),), "other columns than its classifier"),
    (
        "encoder.columns",
        (TableColumn("p", ("u", "v")), TableColumn("q")),
        "its columns are out of order",
    ),
    (
        "encoder.columns",
        (TableColumn("p"), TableColumn("q", ("u", "u"))),
        "column 'q' has no levels",
    ),
    (
        "encoder.columns",
        (TableColumn("p"), TableColumn("q", ("u", 1))),
        "column 'q' has no levels",
    ),
    ("target", 5, "its target is unknown"),
    ("method", None, "its method is unknown"),
    ("report", 5, "its report is no text"),
    ("dropped", [], "leaves out aren't names"),
    ("dropped", (5,), "leaves out aren't names"),
    ("rest", ["b"], "takes together aren't texts"),
    ("rest", (5,), "takes together aren't texts"),
    ("covariance", np.eye(2), "its covariance is of another size"),
    ("covariance", np.full((3, 3), np.nan), "its covariance is of another size"),
    ("comparison", 5, "its comparison of methods is for another"),
    ("comparison.candidates", (5,), "its comparison of methods is for another"),
    ("comparison.chosen", "trees", "its comparison of methods is for another"),
    ("training", None, "its training data is unknown"),
    ("training.file", 5, "its training file is unknown"),
    ("training.sha256", 5, "its training file is unknown"),
    ("training.sha256", "0" * 63, "its training file is unknown"),
    ("training.rows", {0: 120}, "its training data has other classes"),
    ("training.missing", {0: {}}, "its training data has other classes"),
]
SEVERAL = [
    ("certificate_", None, "it has no certificate"),
    ("classes_", [0, 1, 2], "its classes"),
    ("classes_", np.array([[0, 1, 2]]), "its classes"),
    ("classes_", np.array([0, 1, 1]), "its classes"),
    ("classes_", np.array([0]), "its classes"),
    ("delta", 0.06, "is for another classifier"),
    ("certificate_.order", (0, 1, 2), "is for another classifier"),
    ("certificate_.fallback", 7, "is for another classifier"),
    ("certificate_.certificates", list, "is for other classes"),
    ("certificate_.certificates", lambda c: c[:1], "is for other classes"),
    ("certificate_.certificates", lambda c: (*c, c[0]), "is for other classes"),
    ("alpha", 0.3, "is for other classes"),
    ("alpha", {0: 0.4}, "is for other classes"),
    ("calibrations_", list, "its calibrations are for other classes"),
    ("calibrations_", lambda c: {0: c[0]}, "its calibrations are for other classes"),
    ("decision_", None, "its decision is of another type"),
    ("decision_.bounded", (0, True), "its decision is for other classes"),
    ("decision_.bounded", (0, 3), "its decision is for other classes"),
    ("decision_.bounded", (1, 0), "its decision is for other classes"),
    ("decision_.fallback", 3, "its decision is for other classes"),
    ("decision_.fallback", 2, "its decision is for other classes"),
    ("decision_.offsets", lambda x: x.astype(np.float32), "its offsets aren't numbers"),
    ("decision_.offsets", list, "its offsets aren't numbers"),
    ("decision_.thresholds", list, "its thresholds aren't numbers"),
    ("decision_.thresholds", lambda x: x.astype("f4"), "its thresholds aren't numbers"),
    ("decision_.thresholds", lambda x: x[:2], "its thresholds aren't numbers"),
    ("decision_.thresholds", lambda x: x + 1.0, "is for another threshold"),
    ("trade_offs_", (5,), "a trade-off is of another type"),
    ("scores_", None, "it has no scores"),
    ("scores_.n_classes", 4, "its scores are for other classes"),
    ("scores_.reference", 3, "its scores are for other classes"),
    ("scores_.estimators", lambda e: e * 2, "its scores are for other classes"),
    ("caps_", None, "its caps are of another type"),
    ("caps_", lambda _: {1: sound("capped").caps_[1]}, "caps are for other weights"),
    ("caps_", lambda _: {2: sound("capped").caps_[1]}, "caps are for other classes"),
]
GROUPS = [
    ("certificate_", None, "it has no certificate"),
    ("classes_", [0, 1], "its classes"),
    ("classes_", np.array([0, 1, 2]), "its classes"),
    ("certificate_.promises", list, "its promises are of another type"),
    ("certificate_.certificates", list, "its promises are of another type"),
    ("calibrations_", list, "its promises are of another type"),
    ("groups_", tuple, "its promises are of another type"),
    ("controlled_class", 7, "is for another classifier"),
    ("delta", 0.1, "is for another classifier"),
    ("threshold", "shared", "is for another classifier"),
    ("prevalence", 0.5, "is for another classifier"),
    ("certificate_.promises", (), "its promises are for other groups"),
    ("certificate_.certificates", lambda c: c[:1], "promises are for other groups"),
    ("calibrations_", lambda c: c[:1], "its promises are for other groups"),
    ("groups_", ["a"], "its promises are for other groups"),
    ("groups_", ["b", "a"], "its promises are for other groups"),
    ("group_alpha", {"a": 0.1}, "is for another promise"),
    ("alpha", 0.1, "is for another promise"),
    ("cap_", lambda _: sound("capped").caps_[1], "its caps are for other weights"),
]


PROMISE = "certificate_.certificates.0"
FACTS = {
    "two": TWO,
    "table": [
        *TABLE,
        ("training.rows.0", 119.0, "its numbers of rows"),
        ("training.rows.0", 0, "its numbers of rows"),
        ("training.rows.0", 1, "is for more rows than there are"),
        ("training.missing.0", {"z": 1}, "columns are missing that it doesn't have"),
        ("training.missing.0", {"p": 121}, "more is missing than there is"),
        ("training.missing.0", {"p": 0}, "more is missing than there is"),
        ("training.missing.0", {"p": 1.0}, "more is missing than there is"),
        ("comparison.candidates.0.name", 5, "a compared method has no power"),
        ("comparison.candidates.0.note", 5, "a compared method has no power"),
        ("comparison.candidates.0.power", 1.1, "a compared method has no power"),
        ("comparison.candidates.0.power", -0.1, "a compared method has no power"),
    ],
    "several": [
        *SEVERAL,
        (f"{PROMISE}.certified", False, "is for another promise"),
        (f"{PROMISE}.other_class", (1,), "is for another promise"),
        (f"{PROMISE}.alpha", 0.41, "is for another promise"),
        (f"{PROMISE}.error_bound", 0.41, "is for another promise"),
        (f"{PROMISE}.delta", 0.05, "is for another promise"),
        (f"{PROMISE}.threshold", lambda t: t + 1.0, "is for another threshold"),
        (f"{PROMISE}.threshold", lambda t: t - 1.0, "is for another threshold"),
        ("calibrations_.0.trust.cap", 2.0, "its caps are for other weights"),
        ("calibrations_.0.trust.model", 5, "its missingness is of another type"),
        ("trade_offs_.0.labels", (0, 7), "its trade-offs aren't numbers"),
        ("trade_offs_.0.errors", list, "its trade-offs aren't numbers"),
        ("trade_offs_.0.errors", lambda x: x * np.nan, "trade-offs aren't numbers"),
        ("trade_offs_.0.certifiable", lambda x: x[1:], "trade-offs aren't numbers"),
    ],
    "classes": [
        ("training.rows.0", 1, "is for more rows than there are"),
        ("classifier", lambda _: sound("two"), "its classifier is of another type"),
    ],
    "ratios": [
        ("scores_.classes", (1, 1), "its scores are for other classes"),
        ("scores_.estimators", lambda e: e[:1], "its scores are for other classes"),
    ],
    "ordered": [
        ("decision_", lambda _: sound("several").decision_, "decision is of another"),
        ("decision_.order", (0, 2, 1), "its decision has another order"),
        ("decision_.order", (0, 1), "its decision has another order"),
        ("order", [0, 2, 1], "is for another classifier"),
        (f"{PROMISE}.other_class", (2, 1), "is for another promise"),
    ],
    "capped": [
        ("caps_", {}, "its caps are for other weights"),
        ("caps_.1.cap", 9.0, "its caps are for other weights"),
        ("caps_.1.model", None, "its caps are for other weights"),
    ],
    "groups": [
        *GROUPS,
        ("certificate_.promises.0", 5, "no sound model"),
        ("certificate_.promises.0.group", "b", "its promises are for other groups"),
        ("certificate_.promises.0.kind", "other", "its promises are for other groups"),
        ("certificate_.promises.0.bound", 0.1, "is for another promise"),
        ("certificate_.promises.0.threshold", np.nan, "is for another threshold"),
        ("certificate_.promises.0.threshold", np.inf, "is for another threshold"),
        (f"{PROMISE}.controlled_class", 1, "is for another promise"),
        (f"{PROMISE}.alpha", 0.1, "is for another promise"),
        (f"{PROMISE}.delta", 0.05, "is for another promise"),
        (f"{PROMISE}.error_bound", 0.1, "is for another promise"),
        (f"{PROMISE}.threshold", -9.0, "is for another threshold"),
        ("calibrations_.0.sample.values", lambda x: x + 1.0, "for another threshold"),
        ("calibrations_.0.trust.cap", 2.0, "its caps are for other weights"),
    ],
    "grouped table": [
        ("group_column", "where", "its column of groups is unknown"),
        ("rest", (5,), "takes together aren't texts"),
    ],
    "shared": [
        ("certificate_.promises.0.threshold", -9.0, "is for another threshold"),
        ("certificate_.promises.0.threshold", np.nan, "is for another threshold"),
    ],
    "tuned": [("calibration_.rule.training", 5, "its calibration rows")],
}


@pytest.mark.parametrize(
    ("kind", "path", "value", "match"),
    [
        pytest.param(kind, *each, id=f"{kind} {each[0]} {place}")
        for kind, facts in FACTS.items()
        for place, each in enumerate(facts)
    ],
)
def test_a_fact_that_was_changed_alone_is_refused(kind, path, value, match):
    refused(forged(kind, path, value), match)


@pytest.mark.parametrize("name", ["alpha", "delta"])
@pytest.mark.parametrize("level", [0.0, 1.0, 1.5, -0.1])
def test_levels_that_are_none_are_refused_though_they_agree(name, level):
    model = forged("two", f"certificate_.{name}", level)
    setattr(model, name, level)
    refused(model, f"{name} must lie strictly between 0 and 1")


def test_a_model_of_one_column_is_sound():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 1)), np.repeat([0, 1], 200)
    X[200:] += 1.0
    model = mr.NeymanPearsonClassifier(mr.KLIEP(), alpha=0.3, random_state=0).fit(X, y)
    check_model(model, json.loads(json.dumps(header_of(model))))


def without_scores(model):
    """Of a class whose scores are NaN."""
    names = {"score_samples": 1, "class_scores": 3}

    class Silent(type(model)):
        pass

    for name, width in names.items():
        scores = np.full((3, width), np.nan).squeeze()
        setattr(Silent, name, lambda self, X, scores=scores: scores)
    new = copy.copy(model)
    new.__class__ = Silent
    return new


@pytest.mark.parametrize("kind", ["two", "several", "groups"])
def test_a_model_that_gives_no_scores_is_refused(kind):
    refused(without_scores(sound(kind)), "it gives no scores")


def test_a_row_above_the_cap_of_its_class_may_have_no_scores():
    model = without_scores(sound("capped"))
    check_model(model, json.loads(json.dumps(header_of(model))))


def test_a_model_of_another_class_is_refused():
    refused(LogisticRegression(), "it is no classifier")
