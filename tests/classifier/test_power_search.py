"""The candidate with the most power is taken, and the certificate stays valid."""

import itertools

import numpy as np
import pytest
from classifiers import Total
from data import stacked
from scipy.stats import binom, norm
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures
from sklearn.utils import shuffle

import missratio as mr
from missratio.classifier import PowerSearch, measured_power

ALPHA, DELTA = 0.1, 0.1


class Refuses(Total):
    def fit(self, X, y, sample_weight=None):
        raise ValueError("No optimum. Bring other rows.")


def two_columns(n=600, seed=0):
    """The second column tells the classes apart better than the first."""
    rng = np.random.default_rng(seed)
    Z0, Z1 = rng.normal(size=(n, 2)), rng.normal([0.5, 2.0], 1.0, (n, 2))
    return stacked(Z0, Z1)


def test_power_is_the_share_above_the_threshold_that_alpha_of_the_rest_is_above():
    scores = np.array([0.0, 1.0, 2.0, 3.0, 2.5, 0.5, 3.5, -np.inf])
    is_other = np.array([False] * 4 + [True] * 4)
    ones = np.ones(8)
    assert measured_power(scores, is_other, ones, 0.25)[0] == 0.5
    assert measured_power(scores, is_other, ones, 0.24)[0] == 0.25
    # A row of weight 3 counts as three rows, in either class.
    heavy = np.array([3.0, 1, 1, 1, 1, 1, 3, 1])
    times = np.repeat(np.arange(8), heavy.astype(int))
    for alpha in (0.1, 0.2, 0.4):
        weighted = measured_power(scores, is_other, heavy, alpha)[0]
        repeated = measured_power(scores[times], is_other[times], ones[times], alpha)
        assert weighted == pytest.approx(repeated[0])
    for none in (~is_other, is_other):
        assert measured_power(scores, is_other, none * 1.0, 0.1) == (None, None)


def test_the_candidate_with_most_power_is_taken():
    X, y = two_columns()
    search = PowerSearch({"weak": Total(0), "strong": Total(1)}, ALPHA).fit(X, y)
    comparison = search.comparison_
    assert comparison.chosen == "strong"
    assert search.estimator_.column == 1
    truth = {name: norm.sf(norm.isf(ALPHA) - m) for name, m in
             (("weak", 0.5), ("strong", 2.0))}  # fmt: skip
    for each in comparison.candidates:
        assert each.power == pytest.approx(truth[each.name], abs=0.1)
        assert 0.0 < each.standard_error < 0.03
    assert [each.name for each in comparison.ranked] == ["strong", "weak"]


def test_missing_rows_are_weighted_back():
    """Complete cases would favour a column that is good only where little is lost."""
    rng = np.random.default_rng(0)
    n = 4000
    # Rows of class 1 with a large first value are lost, those that the first column
    # finds. Among all rows it has more power than the second.
    Z0, Z1 = rng.normal(size=(n, 2)), rng.normal([1.5, 1.2], 1.0, (n, 2))
    phi = mr.LogisticMissingness(-4.0, [2.5, 0.0], rowwise=True)
    X, y = stacked(Z0, mr.corrupt(Z1, phi, rng))
    candidates = {"first": Total(0), "second": Total(1)}
    for found, models in (("first", {1: phi}), ("second", None)):
        search = PowerSearch(candidates, ALPHA, missingness=models, random_state=0)
        assert search.fit(X, y).comparison_.chosen == found


@pytest.mark.parametrize(
    ("candidates", "alpha", "labels", "match"),
    [
        ({}, 0.1, [0, 1], "no candidates"),
        ({"a": Total()}, 0.1, ["a", "b"], "labels 0 and 1"),
        ({"a": Total()}, {0: 0.1}, ["a", "b"], "labels 0 and 1"),
        # None can be measured: the first is fitted, and raises.
        ({"refuses": Refuses()}, 0.1, [0, 1], "No optimum"),
    ],
)
def test_bad_input_is_refused(candidates, alpha, labels, match):
    X, y = two_columns()
    with pytest.raises(ValueError, match=match):
        PowerSearch(candidates, alpha).fit(X, np.array(labels)[y])


@pytest.mark.parametrize("alpha", [ALPHA, {0: 0.3}])
def test_a_candidate_that_fails_says_why_and_another_is_taken(alpha):
    X, y = two_columns()
    three = {"refuses": Refuses(), "column": Total(1), "again": Total(1)}
    search = PowerSearch(three, alpha).fit(X, y)
    failed, taken, again = search.comparison_.candidates
    # Of equal ones the first is taken.
    assert again.power == taken.power
    assert failed.power is None
    assert failed.note == "it can't be fitted: No optimum"
    assert search.comparison_.chosen == taken.name == "column"


def test_time_cuts_candidates_but_not_the_first(monkeypatch):
    X, y = two_columns()
    clock = itertools.count(step=1.0)
    monkeypatch.setattr("time.process_time", lambda: next(clock))
    names = {name: Total(1) for name in "abcd"}
    comparison = PowerSearch(names, seconds=4.0).fit(X, y).comparison_
    first, *others = comparison.candidates
    assert first.power is not None
    assert {each.power for each in others} == {None}
    assert others[-1].note == "there was no time left for it"
    assert comparison.budget == 4.0


def true_error(X, y, seed, candidates, *, peeks):
    """P(score > threshold) in class 0, for the candidate taken."""
    taken = PowerSearch(candidates, ALPHA, random_state=seed, cv=2)
    if not peeks:
        clf = mr.NeymanPearsonClassifier(taken, ALPHA, DELTA, random_state=seed)
        return norm.sf(clf.fit(X, y).threshold_)
    # Broken: each candidate is calibrated, and the one that then finds most is taken.
    fits = [
        mr.NeymanPearsonClassifier(each, ALPHA, DELTA, random_state=seed).fit(X, y)
        for each in candidates.values()
    ]
    best = max(fits, key=lambda clf: clf.predict(X[y == 1]).mean())
    return norm.sf(best.threshold_)


def violations(times, *, peeks, d=6):
    """In how many of some tables the true error is above α."""
    count = 0
    candidates = {str(j): Total(j) for j in range(d)}
    for seed in range(times):
        rng = np.random.default_rng(seed)
        X, y = stacked(rng.normal(size=(120, d)), rng.normal(0.5, 1, (40, d)))
        count += true_error(X, y, seed, candidates, peeks=peeks) > ALPHA
    return count


@pytest.mark.filterwarnings("ignore::missratio.classifier.NoPowerWarning")
@pytest.mark.parametrize(
    ("times", "broken"),
    [(30, 60), pytest.param(400, 100, marks=pytest.mark.validity)],
)
def test_the_certificate_holds_whichever_is_taken(times, broken):
    assert violations(times, peeks=False) <= binom.ppf(0.999, times, DELTA)
    # Choosing by calibration rows is caught.
    assert violations(broken, peeks=True) > binom.ppf(0.999, broken, DELTA)


def test_too_few_complete_rows_tell_nothing_apart():
    """Of 300 controlled rows 20 are complete: at 5% one of them is above."""
    X, y = two_columns()
    lost = np.flatnonzero(y == 0)[20:]
    X[lost, 0] = np.nan
    weak_first = {"weak": Total(0), "strong": Total(1)}
    search = PowerSearch(weak_first, 0.05, random_state=0).fit(X, y)
    comparison = search.comparison_
    assert comparison.chosen == "weak"
    assert not comparison.ranked
    assert "20 complete rows of the controlled class are worth 20" in comparison.note
    assert "takes 60 or more" in comparison.note
    # At a level that so many rows can tell, they are compared.
    search = PowerSearch(weak_first, 0.2, random_state=0).fit(X, y)
    assert search.comparison_.note == ""
    assert len(search.comparison_.ranked) == 2


# Bounds on several classes


def rings(n=300, seed=0):
    """Three rings, which no line tells apart."""
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0, 2 * np.pi, 3 * n)
    radius = np.repeat([0.5, 2.5, 5.0], n) + rng.normal(0, 0.7, 3 * n)
    X = radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return X, np.repeat(["inner", "middle", "outer"], n)


def search(candidates, alpha, **kwargs):
    return PowerSearch(candidates, alpha, random_state=0, **kwargs)


@pytest.mark.parametrize("order", [None, ["inner", "middle", "outer"]])
def test_the_candidate_that_bends_is_taken_for_rings(order):
    alpha = {"inner": 0.2, "middle": 0.2}
    positions = None if order is None else [0, 1, 2]
    curve = make_pipeline(PolynomialFeatures(2), LogisticRegression(max_iter=500))
    lines_and_curves = {"line": LogisticRegression(), "curve": curve}
    found = search(lines_and_curves, {0: 0.2, 1: 0.2}, order=positions)
    X, y = rings(450)
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


@pytest.mark.parametrize(
    ("cv", "folds"), [(3, 3), (KFold(4), 4), (ShuffleSplit(2, random_state=0), 2)]
)
def test_rows_are_left_out_as_any_splitter_says(two_normals, cv, folds):
    X, y = two_normals(300, 2, shift=1.5)
    X, y = shuffle(X, y, random_state=0)
    search = PowerSearch({"line": mr.KLIEP()}, 0.1, cv=cv, random_state=0).fit(X, y)
    assert search.comparison_.folds == folds
    assert 0.4 < search.comparison_.candidates[0].power < 0.95


def test_units_are_left_out_together(two_normals):
    X, y = two_normals(300, 2, shift=1.5)
    units, seen = np.arange(600) // 3, []

    class Told(LogisticRegression):
        def fit(self, X, y):
            seen.append(set(X[:, 0].tolist()))
            return super().fit(X, y)

    PowerSearch({"line": Told()}, 0.1, random_state=0).fit(X, y, groups=units)
    for kept in seen[:-1]:
        inside = np.array([value in kept for value in X[:, 0]]).reshape(-1, 3)
        assert (inside.all(axis=1) | ~inside.any(axis=1)).all()
