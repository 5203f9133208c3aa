"""Errors of the two kinds and their exact intervals."""

import numpy as np
import pytest
from classifiers import certified
from data import corrupted
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, norm
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import missratio as mr
from missratio import error_scorer, power, type_i_error, type_ii_error
from missratio.evaluation import (
    exact_interval,
    power_interval,
    type_i_interval,
    weighted_share,
)
from missratio.weights import complete_row_weights

TRUTH = np.repeat([0, 1], [10, 5])
MEASURES = (type_i_error, type_ii_error, power)
PREDICTED = np.array([0] * 7 + [1] * 3 + [1] * 4 + [0])


def test_errors_are_shares_of_their_own_class_whatever_the_labels():
    names = np.array(["no", "yes"])
    for truth, predicted, labels in (
        (TRUTH, PREDICTED, [0, 1]),
        (names[TRUTH], names[PREDICTED], names),
    ):
        errors = (pytest.approx(0.3), pytest.approx(0.2))
        for controlled, (first, second) in zip(
            labels, (errors, errors[::-1]), strict=True
        ):
            options = {"controlled_class": controlled}
            assert type_i_error(truth, predicted, **options) == first
            assert type_ii_error(truth, predicted, **options) == second
    assert power(TRUTH, PREDICTED) == pytest.approx(0.8)


@given(st.integers(1, 500), st.data(), st.sampled_from([0.8, 0.95, 0.99]))
def test_intervals_are_scipys_exact_ones(n_rows, data, confidence):
    n_events = data.draw(st.integers(0, n_rows))
    expected = binomtest(n_events, n_rows).proportion_ci(confidence, method="exact")
    found = exact_interval(n_events, n_rows, confidence)
    assert found.low == pytest.approx(expected.low, abs=1e-9)
    assert found.high == pytest.approx(expected.high, abs=1e-9)


def test_intervals_are_of_the_errors_own_class():
    assert type_i_interval(TRUTH, PREDICTED) == exact_interval(3, 10)
    assert power_interval(TRUTH, PREDICTED, confidence=0.9) == exact_interval(4, 5, 0.9)
    assert type_i_interval(TRUTH, PREDICTED, controlled_class=1) == exact_interval(1, 5)


@pytest.mark.parametrize("controlled", ["well", "sick"])
def test_scorers_take_the_controlled_class_from_the_classifier(two_normals, controlled):
    X, y = two_normals(300, 2, shift=1.5)
    y = np.array(["well", "sick"])[y]
    model = certified(LogisticRegression(), controlled_class=controlled, delta=0.05)
    model = make_pipeline(StandardScaler(), model).fit(X, y)
    for kind, metric, sign in zip(
        ("type_i_error", "type_ii_error", "power"), MEASURES, (-1, -1, 1), strict=True
    ):
        expected = sign * metric(y, model.predict(X), controlled_class=controlled)
        assert error_scorer(kind)(model, X, y) == expected
        assert error_scorer(kind, controlled)(model, X, y) == expected
    plain = LogisticRegression().fit(X, y)
    power = error_scorer("power", "sick")(plain, X, y)
    assert error_scorer("power")(plain, X, y) == power


def test_scorers_weight_rows_that_lost_values_or_refuse_them(two_normals):
    phi = mr.StepMissingness([1.0, 0.0], 1.0, 0.7)
    X, y = two_normals(20_000, 2, shift=1.5)
    lost = corrupted(X, y, {1: phi})
    clf = certified(mr.KLIEP(), missingness={1: phi}, delta=0.05).fit(lost, y)
    scorer = mr.error_scorer("power")
    truth = scorer(clf, X, y)
    assert scorer(clf, lost, y) == pytest.approx(truth, abs=0.03)
    # The share of the rows at hand is another matter.
    assert mr.power(y, clf.predict(lost)) < truth - 0.2
    weights = clf.row_weights(lost, y)
    assert mr.power(y, clf.predict(lost), sample_weight=weights) == scorer(clf, lost, y)
    # A class that was brought complete counts as it is, as it does by itself.
    models = {0: phi, 1: phi}
    both = certified(mr.KLIEP(), missingness=models).fit(corrupted(X, y, models), y)
    assert both.row_weights(X[y == 0], y[y == 0]) is None
    assert (both.row_weights(lost, y)[y == 0] == 1.0).all()
    plain = mr.NeymanPearsonClassifier(mr.KLIEP(), 0.1, random_state=0).fit(X, y)
    assert plain.row_weights(X, y) is None
    with pytest.raises(ValueError, match="no missingness model"):
        scorer(plain, lost, y)


@pytest.mark.parametrize("function", [type_i_error, power, type_i_interval])
def test_equal_weights_are_none_and_zero_leaves_a_row_out(function):
    weights = np.full(15, 2.5)
    plain = function(TRUTH, PREDICTED)
    assert function(TRUTH, PREDICTED, sample_weight=weights) == pytest.approx(plain)
    rows = np.r_[0:3, 8:13]
    weights[:] = 0.0
    weights[rows] = 1.0
    found = function(TRUTH, PREDICTED, sample_weight=weights)
    assert found == pytest.approx(function(TRUTH[rows], PREDICTED[rows]))
    with pytest.raises(ValueError, match="finite and not negative"):
        function(TRUTH, PREDICTED, sample_weight=-weights)
    with pytest.raises(ValueError, match="with a positive weight"):
        function(TRUTH, PREDICTED, sample_weight=0 * weights)


@given(st.lists(st.booleans(), min_size=2, max_size=60), st.floats(0.1, 9.0))
def test_nearly_equal_weights_nearly_give_the_exact_interval(events, weight):
    weights = np.full(len(events), weight)
    weights[0] *= 1.0 + 1e-12
    share, interval = weighted_share(np.array(events), weights)
    assert share == pytest.approx(np.mean(events))
    assert interval == pytest.approx(exact_interval(sum(events), len(events)), abs=1e-6)


@pytest.mark.parametrize("first", [True, False])
def test_a_row_with_all_the_weight_decides_alone(first):
    events = np.array([first, not first, not first])
    share, interval = weighted_share(events, np.array([1.0, 1e-300, 1e-300]))
    assert share == pytest.approx(float(first))
    assert 0.0 <= interval.low < interval.high - 0.9 <= 0.1


# At 5000 repeats the binomial error is 0.003.
@pytest.mark.parametrize(
    ("repeats", "seed", "least"),
    [(200, 0, 0.9), pytest.param(5000, 1, 0.94, marks=pytest.mark.validity)],
)
def test_weighted_intervals_hold_as_often_as_they_say(repeats, seed, least):
    """In settings drawn at random."""
    rng = np.random.default_rng(seed)
    held = []
    for _ in range(repeats):
        n, cut = int(rng.integers(100, 2000)), rng.uniform(0.0, 1.5)
        slope = rng.uniform(-1.0, 1.0)
        phi = mr.LogisticMissingness(-slope + rng.uniform(-1, 0), [slope])
        X = mr.corrupt(rng.normal(size=(n, 1)), phi, rng)
        wrong, weights = (X[:, 0] > cut).astype(int), complete_row_weights(X, phi)
        interval = type_i_interval(np.zeros(n), wrong, sample_weight=weights)
        held.append(interval.low <= norm.sf(cut) <= interval.high)
    assert np.mean(held) > least


@pytest.mark.parametrize(
    ("functions", "arguments", "match"),
    [
        ([exact_interval], (-1, 5), "n_events"),
        ([exact_interval], (6, 5), "n_events"),
        ([exact_interval], (0, 0), "n_events"),
        ([exact_interval], (3, 10, 1.5), "confidence"),
        ([exact_interval], (3, 10, -0.1), "confidence"),
        ([error_scorer], ("accuracy",), "type_ii_error"),
        ([type_i_error, type_i_interval], ([1, 1], [0, 1]), "no row of the controlled"),
        ([type_ii_error, power, power_interval], ([0, 0], [0, 1]), "no row of the oth"),
        ([power], ([0, 1], [0, 1, 1]), "inconsistent"),
        (MEASURES, (["well", "sick"], ["well"] * 2), r"class=0 .*'sick', 'well'"),
        (MEASURES, ([0, None, 1], [0, 1, 1]), r"needs a label: .* row 1 \(1 such\)"),
        (MEASURES, ([0, np.nan, 1], [0, 1, 1]), "Every row needs a label"),
    ],
)
def test_what_can_not_be_measured_is_refused(functions, arguments, match):
    for function in functions:
        with pytest.raises(ValueError, match=match):
            function(*arguments)
