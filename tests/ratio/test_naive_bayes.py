"""The naive-Bayes ratio is the product of one-column fits."""

import numpy as np
import pytest
from data import corrupted

import missratio as mr
from missratio.weights import inverse_probability_weights

ROWS = mr.StepMissingness([1.0, 1.0, 0.0], 0.0, 0.6)
INTERCEPT, COEF = np.array([-0.5, 0.0, -1.0]), np.array([1.0, -1.0, 0.5])
ENTRIES = mr.LogisticMissingness(INTERCEPT, COEF)


@pytest.fixture
def table(two_normals):
    X, y = two_normals(300, 3)
    return X + np.array([0.0, 1.0, -2.0]), y


@pytest.mark.parametrize(
    "estimator",
    [
        mr.KLIEP(),
        mr.KLIEP(l2=0.1),
        mr.KLIEP(l1=0.1),
        mr.KLIEP(l2=20.0, penalty_weights="covariance"),
        mr.KLIEP(l1=0.5, penalty_weights="standard-error"),
        mr.KLIEP(normalize="horvitz-thompson"),
        mr.KLIEP(basis="polynomial"),
        mr.KLIEP(basis=mr.PolynomialBasis(degree=3), l2=[0.1, 0.2, 0.3]),
        mr.KLIEP(basis=mr.GaussianBasis(5, random_state=0), l2=0.01),
        mr.FDivergenceRatio("js"),
        mr.FDivergenceRatio("kl"),
        mr.FDivergenceRatio("js", basis="polynomial", l2=0.01),
    ],
    ids=str,
)
@pytest.mark.parametrize("missing", [False, True])
def test_it_equals_separate_fits_of_the_columns(estimator, missing, table):
    X, y = table
    models = None
    if missing:
        models = {0: ENTRIES, 1: ENTRIES}
        X = corrupted(X, y, models)
    naive = mr.NaiveBayesRatio(estimator, missingness=models).fit(X, y)
    points = np.random.default_rng(0).normal(size=(20, 3))
    log_ratio = np.zeros(20)
    for j in range(3):
        own = mr.LogisticMissingness(INTERCEPT[j], COEF[j])
        given = {0: own, 1: own} if missing else None
        one = mr.density_ratio(
            X[y == 1][:, [j]], X[y == 0][:, [j]], estimator, missingness=given
        )
        # Columns of a Gaussian basis draw their centres from the order of rows.
        if not isinstance(estimator.basis, mr.GaussianBasis):
            assert naive.column_log_normalizer_[j] == pytest.approx(
                one.log_normalizer_, abs=1e-7
            )
        log_ratio += one.predict_log_ratio(points[:, [j]])
    if isinstance(estimator.basis, mr.GaussianBasis):
        same_order = np.argsort(-y, kind="stable")
        naive.fit(X[same_order], y[same_order])
    np.testing.assert_allclose(naive.predict_log_ratio(points), log_ratio, atol=1e-6)
    assert naive.converged_
    assert naive.intercept_ == -naive.log_normalizer_


@pytest.mark.parametrize("model", [ROWS, ENTRIES, "ignore"], ids=str)
def test_each_column_is_fitted_to_its_observed_entries_by_their_weights(model, table):
    X, y = table
    X[y == 1] = mr.corrupt(X[y == 1], ROWS if model is ROWS else ENTRIES, 0)
    missingness = model if model == "ignore" else {1: model}
    naive = mr.NaiveBayesRatio(mr.KLIEP(missingness=missingness)).fit(X, y)
    weights = np.ones(X.shape)
    own = inverse_probability_weights(X[y == 1], model)
    weights[y == 1] = own[:, None] if own.ndim == 1 else own
    for j in range(3):
        seen = weights[:, j] > 0
        one = mr.KLIEP().fit(X[seen][:, [j]], y[seen], weights[seen, j])
        assert naive.coef_[j] == pytest.approx(one.coef_[0], abs=1e-7)
    assert np.isnan(naive.predict_log_ratio([[np.nan, 0.0, 0.0]])).all()


def test_independent_columns_make_it_the_joint_fit_in_the_limit():
    rng = np.random.default_rng(0)
    X1, X0 = rng.normal(0.3, 1, (50_000, 2)), rng.normal(size=(50_000, 2))
    naive = mr.density_ratio(X1, X0, mr.NaiveBayesRatio())
    joint = mr.density_ratio(X1, X0, mr.KLIEP())
    np.testing.assert_allclose(naive.coef_, joint.coef_, atol=0.02)
    assert naive.log_normalizer_ == pytest.approx(joint.log_normalizer_, abs=0.02)


def test_the_score_is_the_sum_of_the_columns_scores(table):
    X, y = table
    naive = mr.NaiveBayesRatio().fit(X, y)
    total = sum(mr.KLIEP().fit(X[:, [j]], y).score(X[:, [j]], y) for j in range(3))
    assert naive.score(X, y) == pytest.approx(total)


# Bad input.


@pytest.mark.parametrize(
    "estimator", ["kliep", mr.KLIEP, mr.NaiveBayesRatio()], ids=str
)
def test_the_estimator_must_be_a_joint_one(estimator, table):
    with pytest.raises(TypeError, match="KLIEP, FDivergenceRatio or ObjectiveRatio"):
        mr.NaiveBayesRatio(estimator).fit(*table)


@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.parametrize("missingness", ["ignore", "model"])
def test_a_column_that_is_never_observed_is_refused(label, missingness, table):
    X, y = table
    X[y == label, 2] = np.nan
    given = "ignore" if missingness == "ignore" else {label: ENTRIES}
    with pytest.raises(ValueError, match="never observed"):
        mr.NaiveBayesRatio(missingness=given).fit(X, y)
