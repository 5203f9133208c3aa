"""The classifier as scikit-learn sees it: labels, weights, routing, tables."""

import numpy as np
import pytest
from classifiers import Total, certified
from data import corrupted, stacked
from optional_packages import optional
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

import missratio as mr
from missratio import KLIEP, power, type_i_error

pd = optional("pandas")
pl = optional("polars")


@pytest.fixture
def table(two_normals):
    return two_normals(400, 2, shift=1.2)


def test_calibration_rows_are_of_the_controlled_class_and_not_fitted_on(table):
    X, y = table
    model = certified(Total(0)).fit(X, y)
    held = model.calibration_index_
    assert (y[held] == 0).all()
    assert len(held) == 200
    assert len(model.estimator_.X_) == 600
    seen = {tuple(row) for row in model.estimator_.X_}
    assert not any(tuple(row) in seen for row in X[held])


def test_the_threshold_is_the_binomial_rules_on_held_out_scores(table):
    X, y = table
    model = certified(Total(0)).fit(X, y)
    scores = np.sort(X[model.calibration_index_, 0])
    # 200 rows at 0.1 and 0.1: P(Bin(200, 0.1) ≤ 14) = 0.093, P(≤ 15) = 0.143.
    assert model.threshold_ == pytest.approx(scores[200 - 14 - 1], rel=1e-5)
    assert model.certificate_.rule == "binomial"


@pytest.mark.parametrize("controlled", [0, 1])
@pytest.mark.parametrize("labels", [(0, 1), (-1, 7), ("ill", "well"), (False, True)])
@pytest.mark.parametrize("estimator", [LogisticRegression(), KLIEP(), GaussianNB()])
@pytest.mark.parametrize("fitted_before", [False, True])
def test_any_label_can_be_controlled(
    table, controlled, labels, estimator, fitted_before
):
    X, y = table
    y = np.array(labels)[y]
    label = labels[controlled]
    model = certified(estimator, controlled_class=label)
    if fitted_before:
        before = estimator.fit(X, y).predict_proba(X)
        fresh = np.random.default_rng(1).normal(1.2 * controlled, 1.0, (400, 2))
        assert model.calibrate(fresh).estimator_ is estimator
        np.testing.assert_array_equal(estimator.predict_proba(X), before)
    else:
        model.fit(X, y)
    predicted = model.predict(X)
    assert set(model.classes_.tolist()) == set(labels)
    assert set(predicted.tolist()) == set(labels)
    assert type_i_error(y, predicted, controlled_class=label) < 0.15
    assert power(y, predicted, controlled_class=label) > 0.5
    assert model.certificate_.controlled_class == label


@pytest.mark.parametrize("controlled", [0, 1])
def test_predictions_and_decisions_agree_at_the_threshold_itself_too(table, controlled):
    X, y = table
    model = certified(controlled_class=controlled).fit(X, y)
    decision = model.decision_function(X)
    np.testing.assert_array_equal(model.predict(X), (decision > 0).astype(int))
    # The threshold lies above the score that it was chosen by, by a hair.
    at = X[np.isclose(model.score_samples(X), model.threshold_, 1e-5, 1e-5)]
    assert len(at) == 1
    assert model.predict(at).tolist() == [controlled]


def test_probabilities_are_scored_by_their_log_odds(table):
    X, y = table
    model = certified(GaussianNB()).fit(X, y)
    p = model.estimator_.predict_proba(X)
    np.testing.assert_allclose(model.score_samples(X), np.log(p[:, 1] / p[:, 0]))


def nulls(columns):
    return pl.DataFrame(columns).fill_nan(None)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, nulls])
@pytest.mark.parametrize("estimator", [LogisticRegression(), KLIEP()])
@pytest.mark.parametrize(
    "models", [None, {0: mr.StepMissingness([1.0, 0.0], 0.0, 0.5)}]
)
def test_dataframes_give_the_same_as_arrays(table, frame, estimator, models):
    X, y = table
    X = corrupted(X, y, models or {})
    named = frame({"first": X[:, 0], "second": X[:, 1]})
    plain = certified(estimator, missingness=models).fit(X, y)
    model = certified(estimator, missingness=models).fit(named, y)
    assert model.threshold_ == pytest.approx(plain.threshold_, rel=1e-9)
    assert model.certificate_.observed == plain.certificate_.observed
    np.testing.assert_array_equal(model.predict(named), plain.predict(X))
    assert model.feature_names_in_.tolist() == ["first", "second"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame({"second": X[:, 1], "first": X[:, 0]}))


def test_rows_as_observed_are_scored_with_what_they_miss():
    rng = np.random.default_rng(0)
    X, y = stacked(rng.normal(0, 1, (600, 2)), rng.normal(2, 1, (600, 2)))
    # Of the other class high values are lost: what is missing tells.
    X[(y == 1) & (rng.uniform(size=1200) < 0.6), 0] = np.nan
    X[(y == 0) & (rng.uniform(size=1200) < 0.1), 0] = np.nan
    trees = HistGradientBoostingClassifier(max_iter=20, random_state=0)
    model = certified(trees, deployment="as-observed").fit(X, y)
    missing = np.isnan(X[:, 0])
    assert (model.predict(X)[missing & (y == 1)] == 1).mean() > 0.5
    assert np.isfinite(model.score_samples(X)).all()
    assert model.certificate_.rule == "binomial"
    assert "as they are observed" in str(model.certificate_)


@pytest.mark.parametrize("frame", [np.asarray, pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("controlled", [0, 1, None])
def test_rows_with_missing_values_get_the_controlled_class(table, frame, controlled):
    X, y = table
    model = certified(controlled_class=controlled)
    model.fit(X if frame is np.asarray else frame({"a": X[:, 0], "b": X[:, 1]}), y)
    rows = np.array([[np.nan, 9.0], [np.nan, np.nan], [-9.0, np.nan]])
    if frame is not np.asarray:
        rows = frame({"a": [None, None, -9.0], "b": [9.0, float("nan"), None]})
    assert model.predict(rows).tolist() == [controlled or 0] * 3
    np.testing.assert_array_equal(model.score_samples(rows), [-np.inf] * 3)
    lowest = np.finfo(float).max * (1 if controlled else -1)
    np.testing.assert_array_equal(model.decision_function(rows), [lowest] * 3)


# What is fitted where no estimator is given.


PHI = mr.LogisticMissingness([-2.0] * 3, [0.5] * 3)
WHOLE = mr.StepMissingness([1.0, 0.0, 0.0], 0.0, 0.5)


@pytest.mark.parametrize(
    ("phi", "options", "first"),
    [
        (None, {}, "standardscaler"),
        (WHOLE, {"missingness": {"well": WHOLE}}, "standardscaler"),
        (PHI, {"missingness": {"well": PHI}}, "tiltedimputer"),
        (PHI, {"deployment": "as-observed"}, "simpleimputer"),
    ],
)
def test_it_is_a_penalised_logistic_fit_after_what_blanks_need(
    phi, options, first, tmp_path
):
    rng = np.random.default_rng(0)
    y = np.repeat(["well", "sick"], 700)
    # Columns of other sizes, which a penalty must not see.
    Z = (rng.normal(size=(1400, 3)) + 1.2 * (y == "sick")[:, None]) * [1.0, 100.0, 0.01]
    X, own = Z.copy(), Z[y == "well"] / [1.0, 100.0, 0.01]
    if phi is not None:
        X[y == "well"] = mr.corrupt(own, phi, random_state=0) * [1.0, 100.0, 0.01]
    if phi is PHI and "missingness" in options:
        scaled = mr.LogisticMissingness([-2.0] * 3, [0.5, 0.005, 50.0])
        options = {"missingness": {"well": scaled}}
    model = certified(None, controlled_class="well", **options).fit(X, y)
    assert model.estimator_.steps[0][0] == first
    assert model.estimator_.steps[-1][0] == "logisticregression"
    rows = X if options.get("deployment") else Z
    # Where entries are lost, a third of the calibration rows is complete.
    least = 0.25 if first == "tiltedimputer" else 0.5
    assert np.mean(model.predict(rows[y == "sick"]) == "sick") > least
    assert np.mean(model.predict(rows[y == "well"]) == "sick") < 0.13
    mr.save_model(model, tmp_path / "model.skops")
    again = mr.load_model(tmp_path / "model.skops")
    np.testing.assert_array_equal(again.predict(rows), model.predict(rows))
    assert model.get_params()["estimator"] is None


@pytest.mark.parametrize("models", [None, {0: PHI}])
def test_blanks_of_the_other_class_have_to_be_explained(two_normals, models):
    X, y = two_normals(300, 3)
    X[np.flatnonzero(y == 1)[:9], 0] = np.nan
    with pytest.raises(mr.exceptions.UnexplainedMissingError, match="class 1"):
        certified(None, missingness=models).fit(X, y)
