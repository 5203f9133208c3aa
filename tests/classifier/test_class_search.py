"""Which estimator serves bounds on several classes, by rows left out in turn."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

import missratio as mr
from missratio.classifier import ClassSearch


def rings(n=300, seed=0):
    """Three rings, which no line tells apart."""
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0, 2 * np.pi, 3 * n)
    radius = np.repeat([0.5, 2.5, 5.0], n) + rng.normal(0, 0.7, 3 * n)
    X = radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return X, np.repeat(["inner", "middle", "outer"], n)


def blobs(n=300, seed=0):
    rng = np.random.default_rng(seed)
    centres = np.array([[0, 0], [3, 0.4], [1.6, 2.8]])
    X = np.concatenate([rng.normal(c, 1, (n, 2)) for c in centres])
    return X, np.repeat(["a", "b", "c"], n)


def lines_and_curves():
    curve = make_pipeline(PolynomialFeatures(2), LogisticRegression(max_iter=500))
    return {"line": LogisticRegression(), "curve": curve}


def ratios():
    return {"js": mr.FDivergenceRatio("js"), "kliep": mr.KLIEP()}


def search(candidates, alpha, **kwargs):
    return ClassSearch(candidates, alpha, random_state=0, **kwargs)


@pytest.mark.parametrize("order", [None, ["inner", "middle", "outer"]])
def test_the_candidate_that_bends_is_taken_for_rings(order):
    alpha = {"inner": 0.2, "middle": 0.2}
    positions = None if order is None else [0, 1, 2]
    found = search(lines_and_curves(), {0: 0.2, 1: 0.2}, order=positions)
    X, y = rings()
    clf = mr.MulticlassNeymanPearsonClassifier(
        found, alpha, delta=0.2, order=order, random_state=0
    ).fit(X, y)
    comparison = clf.scores_.estimators[0].comparison_
    assert comparison.chosen == "curve"
    assert comparison.compared == (("2",) if order is None else ("0", "1", "2"))
    named = {each.name: each for each in comparison.candidates}
    assert named["curve"].power > 0.7
    # With an order there is always room: it is a matter of power then.
    assert ("no room" in named["line"].note) == (order is None)
    assert comparison.ranked[0].name == "curve"
    X_new, y_new = rings(seed=1)
    assert np.mean(clf.predict(X_new) == y_new) > 0.7


def test_what_it_measures_is_what_the_classifier_reaches():
    X, y = blobs(800)
    found = search({"line": LogisticRegression()}, {0: 0.15, 1: 0.2})
    clf = mr.MulticlassNeymanPearsonClassifier(
        found, {"a": 0.15, "b": 0.2}, random_state=0
    ).fit(X, y)
    each = clf.scores_.estimators[0].comparison_.candidates[0]
    X_new, y_new = blobs(5000, seed=1)
    reached = np.mean(clf.predict(X_new[y_new == "c"]) == "c")
    assert abs(each.power - reached) < 5 * each.standard_error + 0.05


def test_its_scores_are_the_winners():
    X, y = blobs()
    codes = np.unique(y, return_inverse=True)[1]
    found = search({"line": LogisticRegression()}, {0: 0.1}).fit(X, codes)
    alone = LogisticRegression().fit(X, codes).predict_log_proba(X)
    np.testing.assert_allclose(found.decision_function(X), alone, atol=1e-6)
    assert (found.predict(X) == alone.argmax(axis=1)).all()
    two = codes < 2
    pair = search({"line": LogisticRegression()}, {0: 0.1}).fit(X[two], codes[two])
    assert pair.decision_function(X).shape == (len(X),)


def test_time_and_failures_are_said():
    class Broken(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            raise ValueError("It never works. Really.")

    X, y = blobs(60)
    codes = np.unique(y, return_inverse=True)[1]
    given = {"broken": Broken(), "line": LogisticRegression()}
    found = search(given, {0: 0.3}).fit(X, codes).comparison_
    assert found.chosen == "line"
    assert found.candidates[0].note == "it can't be fitted: It never works"
    late = search({"line": LogisticRegression(), "again": LogisticRegression()},
                  {0: 0.3}, seconds=1e-9).fit(X, codes).comparison_  # fmt: skip
    assert late.chosen == "line"
    assert late.candidates[1].note == "there was no time left for it"


def test_missing_values_are_weighted():
    X, y = blobs(700)
    rng = np.random.default_rng(2)
    lost = rng.random(len(X)) < 1 / (1 + np.exp(2.0 - 0.7 * X[:, 0]))
    X[lost, 0] = np.nan
    phi = mr.LogisticMissingness([-2.0, -40.0], [0.7, 0.0])
    clf = mr.MulticlassNeymanPearsonClassifier(
        search(ratios(), {0: 0.2}), {"a": 0.2}, delta=0.1,
        missingness=dict.fromkeys("abc", phi), random_state=0,
    ).fit(X, y)  # fmt: skip
    named = clf.scores_.estimators[0].comparison_.candidates
    assert all(each.power is not None for each in named), named


def test_what_is_not_sound_is_refused():
    X, y = blobs(30)
    with pytest.raises(ValueError, match="must hold the labels 0 and 1"):
        search(ratios(), {0: 0.1}).fit(X, y)
    with pytest.raises(ValueError, match="no candidates"):
        search({}, {0: 0.1}).fit(X, np.unique(y, return_inverse=True)[1])
