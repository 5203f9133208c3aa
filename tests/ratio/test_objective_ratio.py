"""Ratios by f-divergences, and by objectives of one's own."""

import numpy as np
import pytest
from objectives import Hellinger, HellingerObjective
from sklearn.linear_model import LogisticRegression

import missratio as mr
from missratio.weights import inverse_probability_weights

ROWS = mr.StepMissingness([1.0, 1.0], 0.0, 0.6)
ENTRIES = mr.LogisticMissingness([-0.5, 0.0], [1.0, -1.0])


def logistic(**parameters):
    return LogisticRegression(
        C=np.inf, solver="newton-cholesky", tol=1e-12, max_iter=1000, **parameters
    )


@pytest.mark.parametrize(
    ("n1", "l2", "theirs", "atol"),
    [
        (300, 0.0, logistic(), 1e-7),
        # Unequal sizes are balanced.
        (90, 0.0, logistic(class_weight="balanced"), 1e-7),
        # Two means of 300 rows each, ½·0.1·θ²: C = 1/(0.1·300).
        (300, 0.1, LogisticRegression(C=1 / 30.0, tol=1e-10, max_iter=1000), 1e-5),
    ],
)
def test_js_is_class_balanced_logistic_regression(n1, l2, theirs, atol, two_normals):
    X, y = two_normals(300, 3, n1=n1)
    ours, theirs = mr.FDivergenceRatio("js", l2=l2).fit(X, y), theirs.fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_[0], atol=atol)
    assert ours.intercept_ == pytest.approx(theirs.intercept_[0], abs=atol)
    np.testing.assert_allclose(
        ours.decision_function(X), theirs.decision_function(X), atol=20 * atol
    )
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    # Plain logistic regression's intercept has the log odds of the classes in it.
    plain = logistic().fit(X, y)
    assert plain.intercept_[0] - ours.intercept_ == pytest.approx(
        np.log(n1 / 300), abs=0.1
    )


@pytest.mark.parametrize("normalize", ["hajek", "horvitz-thompson"])
def test_js_with_missing_rows_is_weighted_logistic_regression(normalize, two_normals):
    X, y = two_normals(400)
    X[y == 1] = mr.corrupt(X[y == 1], ROWS, 0)
    ours = mr.FDivergenceRatio("js", missingness={1: ROWS}, normalize=normalize)
    ours.fit(X, y)
    weight = np.ones(len(X))
    weight[y == 1] = inverse_probability_weights(X[y == 1], ROWS)
    if normalize == "hajek":
        weight[y == 1] *= 400 / weight[y == 1].sum()
    seen = weight > 0
    theirs = logistic().fit(X[seen], y[seen], weight[seen])
    np.testing.assert_allclose(ours.coef_, theirs.coef_[0], atol=1e-7)
    assert ours.intercept_ == pytest.approx(theirs.intercept_[0], abs=1e-7)


@pytest.mark.parametrize(
    "model", [None, ROWS, ENTRIES], ids=["none", "rows", "entries"]
)
@pytest.mark.parametrize("l2", [0.0, 0.2])
def test_kl_has_klieps_optimum(model, l2, two_normals):
    X, y = two_normals(400)
    given = {} if model is None else {"missingness": {1: model}}
    if model is not None:
        X[y == 1] = mr.corrupt(X[y == 1], model, 0)
    kl = mr.FDivergenceRatio("kl", l2=l2, **given).fit(X, y)
    kliep = mr.KLIEP(l2=l2, **given).fit(X, y)
    np.testing.assert_allclose(kl.coef_, kliep.coef_, atol=1e-7)
    assert kl.log_normalizer_ == pytest.approx(kliep.log_normalizer_, abs=1e-7)


def test_a_divergence_and_the_objective_of_the_same_distance_agree(two_normals):
    X, y = two_normals()
    divergence = mr.FDivergenceRatio(Hellinger()).fit(X, y)
    objective = mr.ObjectiveRatio(HellingerObjective()).fit(X, y)
    np.testing.assert_allclose(divergence.coef_, objective.coef_, atol=1e-7)
    assert divergence.intercept_ == pytest.approx(objective.intercept_, abs=1e-7)


@pytest.mark.parametrize(
    "estimator",
    [
        mr.FDivergenceRatio("kl"),
        mr.FDivergenceRatio("js"),
        mr.FDivergenceRatio(Hellinger()),
        mr.ObjectiveRatio(HellingerObjective()),
    ],
    ids=["kl", "js", "Hellinger", "objective"],
)
@pytest.mark.parametrize("model", [ROWS, ENTRIES], ids=["rows", "entries"])
def test_every_objective_is_consistent_under_missingness(estimator, model):
    rng = np.random.default_rng(0)
    X1, X0 = rng.normal(0.3, 1, (20_000, 2)), rng.normal(size=(20_000, 2))
    X1 = mr.corrupt(X1, model, 0)
    known = mr.density_ratio(X1, X0, estimator, missingness={1: model})
    ignored = mr.density_ratio(X1, X0, estimator, missingness="ignore")
    np.testing.assert_allclose(known.coef_, 0.3, atol=0.08)
    assert np.abs(ignored.coef_ - 0.3).max() > 0.12


@pytest.mark.parametrize("divergence", ["kl", "js", "pearson"])
def test_the_score_is_minus_the_objective(divergence, two_normals):
    X, y = two_normals(shift=0.1)
    X = np.tanh(X)
    ratio = mr.FDivergenceRatio(divergence).fit(X, y)
    assert ratio.score(X, y) == pytest.approx(-ratio.objective_value_)


def test_what_is_no_objective_is_refused(two_normals):
    with pytest.raises(TypeError, match=r"missratio\.objective\.Objective"):
        mr.ObjectiveRatio("kliep").fit(*two_normals())
