"""Penalties: boxes around the means, units of standard errors, invariance."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import missratio as mr
from missratio.exceptions import NoFiniteOptimumWarning
from missratio.ratio.fit import mean_covariance
from missratio.ratio.means import adjust
from missratio.ratio.problem import weighted_means
from missratio.rows import ClassRows, MemorySource, only_columns
from missratio.weights import inverse_probability_weights

ENTRIES = mr.LogisticMissingness([-0.5, 0.0, 0.5], [1.0, -1.0, 0.5])
ROWS = mr.StepMissingness([1.0, 1.0, 0.0], 0.0, 0.6)
PRODUCTS = mr.PolynomialBasis(2, interactions="all")


@pytest.fixture
def table(two_normals):
    """Two classes of three columns, of which class 1 loses single values."""
    X, y = two_normals(300, 3, n1=500)
    X[y == 1] = mr.corrupt(X[y == 1], ENTRIES, 0)
    return X, y


def ratio(**parameters):
    return mr.KLIEP(PRODUCTS, missingness={1: ENTRIES}, **parameters)


def tilted_mismatch(fitted, X, y):
    """Tilted class-0 mean less weighted class-1 mean, from scratch."""
    features = fitted.basis_.transform(X)
    below = features[y == 0]
    tilt = np.exp(fitted.predict_log_ratio(X[y == 0]))
    weights = inverse_probability_weights(X[y == 1], ENTRIES)
    required = fitted.basis_.required_columns_
    own = np.array([weights[:, need].prod(axis=1) for need in required]).T
    above = np.where(own > 0.0, features[y == 1], 0.0)
    return (tilt @ below) / tilt.sum() - (own * above).sum(axis=0) / own.sum(axis=0)


# Boxes.


@pytest.mark.parametrize("units", ["standard-error", "covariance"])
@pytest.mark.parametrize("strength", [0.1, 0.5, 2.0])
def test_l1_matches_every_mean_to_so_many_standard_errors(table, units, strength):
    fitted = ratio(l1=strength, penalty_weights=units).fit(*table)
    assert fitted.converged_
    mismatch = tilted_mismatch(fitted, *table)
    box = strength * fitted.standard_error_
    assert (np.abs(mismatch) <= box * (1 + 1e-6)).all()
    active = fitted.coef_ != 0.0
    np.testing.assert_allclose(
        mismatch[active], (-np.sign(fitted.coef_) * box)[active], rtol=1e-5
    )


def test_the_ratio_is_normalised_under_an_l1_penalty(table):
    X, y = table
    fitted = ratio(l1=0.5, penalty_weights="standard-error").fit(X, y)
    assert fitted.predict_ratio(X[y == 0]).mean() == pytest.approx(1.0)


def test_l1_at_which_a_coefficient_appears_is_its_mismatch_at_zero(table):
    X, y = table
    none = ratio(l1=1e4, penalty_weights="standard-error").fit(X, y)
    needed = (np.abs(tilted_mismatch(none, X, y)) / none.standard_error_).max()
    for factor, expected in ((1.001, 0), (0.999, 1)):
        fitted = ratio(l1=factor * needed, penalty_weights="standard-error").fit(X, y)
        assert np.count_nonzero(fitted.coef_) == expected


# Units.


@given(exponents=st.lists(st.floats(-3, 3), min_size=3, max_size=3))
@settings(max_examples=15)
@pytest.mark.parametrize("units", ["standard-error", "covariance"])
def test_the_scale_of_a_column_does_not_matter(units, exponents):
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(80, 3)), rng.normal(0.4, 1, (120, 3))])
    y = np.repeat([0, 1], [80, 120])
    scale = 10.0 ** np.array(exponents)
    ridge = mr.KLIEP(PRODUCTS, l2=30.0, penalty_weights=units)
    sparse = mr.KLIEP(PRODUCTS, l1=0.7, penalty_weights=units)
    for estimator in (ridge, sparse):
        plain = estimator.fit(X, y).predict_log_ratio(X)
        scaled = estimator.fit(X * scale, y).predict_log_ratio(X * scale)
        np.testing.assert_allclose(scaled, plain, atol=1e-5)


def test_under_the_covariance_no_linear_map_of_the_columns_matters(two_normals):
    X, y = two_normals(2000, 3)
    mixed = X @ np.array([[1.0, 2.0, 0.0], [0.0, 1.0, -3.0], [0.5, 0.0, 1.0]])
    estimator = mr.KLIEP(l2=300.0, penalty_weights="covariance")
    plain = estimator.fit(X, y).predict_log_ratio(X)
    turned = estimator.fit(mixed, y).predict_log_ratio(mixed)
    # But for the one row that is reckoned with besides.
    np.testing.assert_allclose(turned, plain, atol=2e-3)


HALF = mr.FunctionMissingness(lambda z: 0.6 * (z > 0), rowwise=False, maximum=0.6)


@pytest.mark.parametrize("normalize", ["hajek", "horvitz-thompson", "regression"])
@pytest.mark.parametrize("phi", [HALF, ROWS, None], ids=["entries", "rows", "none"])
def test_standard_errors_are_those_of_repeated_samples(normalize, phi):
    rng = np.random.default_rng(0)
    basis = mr.PolynomialBasis(1, interactions=[(0, 1)]).fit(np.zeros((1, 3)))
    means, covariances = [], []
    for seed in range(400):
        Z = rng.normal(0.5, 1, (300, 3))
        X = Z if phi is None else mr.corrupt(Z, phi, seed)
        required = basis.required_columns_
        source = MemorySource.of(X, basis.transform(X))
        rows = adjust(ClassRows.of(source, 1, {1: phi}, normalize), required)
        sums = rows.feature_sums(only_columns(required))
        mean = weighted_means(rows, sums)[0]
        means.append(mean)
        covariances.append(mean_covariance(rows, required)[1])
    expected, found = np.cov(means, rowvar=False), np.mean(covariances, axis=0)
    scale = np.sqrt(np.diagonal(expected))
    np.testing.assert_allclose(
        found / np.outer(scale, scale), expected / np.outer(scale, scale), atol=0.15
    )


def test_what_is_observed_less_is_held_back_more(two_normals):
    X, y = two_normals(1000, 2, shift=0.5)
    phi = mr.LogisticMissingness([-10.0, 2.0], [0.0, 1.0])
    X[y == 1] = mr.corrupt(X[y == 1], phi, 0)
    fitted = mr.KLIEP(missingness={1: phi}, l2=200.0, penalty_weights="standard-error")
    fitted.fit(X, y)
    assert fitted.standard_error_[1] > 2 * fitted.standard_error_[0]
    assert 0.0 < fitted.coef_[1] < 0.8 * fitted.coef_[0]


@pytest.mark.parametrize("units", ["standard-error", "covariance"])
@pytest.mark.parametrize("penalty", [{"l2": 10.0}, {"l1": 0.5}, {"l1": 0.5, "l2": 1.0}])
def test_features_constant_in_a_class_get_finite_coefficients(
    two_normals, units, penalty
):
    X, y = two_normals(100, 4)
    X[y == 1, 1] = 0.0
    X[y == 0, 2] = 0.0
    X[:, 3] = 5.0
    fitted = mr.KLIEP(penalty_weights=units, **penalty).fit(X, y)
    assert fitted.converged_
    assert np.abs(fitted.coef_).max() < 10.0
    np.testing.assert_allclose(fitted.coef_[2:], 0.0, atol=1e-6)


# Optima that don't exist, and what is refused.


def test_a_box_that_misses_the_hull_has_no_optimum(two_normals):
    X, y = two_normals(50, 2)
    X[y == 1] += 10.0
    with pytest.warns(NoFiniteOptimumWarning):
        assert not mr.KLIEP(l1=0.5).fit(X, y).converged_
    assert mr.KLIEP(l1=20.0).fit(X, y).converged_


PENALISED = [
    mr.KLIEP(l1=0.1),
    mr.KLIEP(l2=20.0, penalty_weights="covariance"),
    mr.KLIEP(l1=0.5, penalty_weights="standard-error"),
]


@pytest.mark.parametrize("estimator", PENALISED, ids=str)
def test_naive_bayes_takes_every_penalty_column_by_column(table, estimator):
    X, y = table
    naive = mr.NaiveBayesRatio(estimator, missingness={1: ENTRIES}).fit(X, y)
    for j in range(3):
        phi = mr.LogisticMissingness([-0.5, 0.0, 0.5][j], [1.0, -1.0, 0.5][j])
        one = mr.KLIEP(**{**estimator.get_params(), "missingness": {1: phi}})
        one.fit(X[:, [j]], y)
        assert naive.coef_[j] == pytest.approx(one.coef_[0], abs=1e-7)


def test_naive_bayes_chooses_one_strength_for_all_columns(table):
    search = mr.KLIEPCV(missingness={1: ENTRIES}, normalize="hajek", random_state=0)
    naive = mr.NaiveBayesRatio(search).fit(*table)
    assert naive.converged_
    assert np.abs(naive.coef_).max() < 2.0
