"""Penalties: boxes around the means, units of standard errors, invariance."""

import numpy as np
import pytest
from data import equicorrelated, stacked
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
    X, y = table
    fitted = ratio(l1=strength, penalty_weights=units).fit(X, y)
    assert fitted.converged_
    assert fitted.predict_ratio(X[y == 0]).mean() == pytest.approx(1.0)
    mismatch = tilted_mismatch(fitted, X, y)
    box = strength * fitted.standard_error_
    assert (np.abs(mismatch) <= box * (1 + 1e-6)).all()
    active = fitted.coef_ != 0.0
    np.testing.assert_allclose(
        mismatch[active], (-np.sign(fitted.coef_) * box)[active], rtol=1e-5
    )


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
    X, y = stacked(rng.normal(size=(80, 3)), rng.normal(0.4, 1, (120, 3)))
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


def test_naive_bayes_chooses_one_strength_for_all_columns(table):
    search = mr.KLIEPCV(missingness={1: ENTRIES}, normalize="hajek", random_state=0)
    naive = mr.NaiveBayesRatio(search).fit(*table)
    assert naive.converged_
    assert np.abs(naive.coef_).max() < 2.0


# Means adjusted by regression: unbiased, less noisy, and Hájek's where none helps.


PHI = mr.FunctionMissingness(lambda z: 0.7 * (z > 0.2), rowwise=False, maximum=0.7)
BASIS = mr.PolynomialBasis(2, interactions=[(0, 1), (0, 2), (1, 2), (0, 1, 2)])


def correlated(n, seed, rho=0.8):
    return equicorrelated(np.random.default_rng(seed), n, 3, rho) + 0.5


def estimated_means(X, normalize, phi=PHI, sample_weight=None):
    required = BASIS.fit(X).required_columns_
    source = MemorySource.of(X, BASIS.transform(X), sample_weight=sample_weight)
    rows = adjust(ClassRows.of(source, 1, {1: phi}, normalize), required)
    return weighted_means(rows, rows.feature_sums(only_columns(required)))[0]


@pytest.mark.parametrize("rho", [0.8, 0.0])
def test_means_stay_unbiased_and_lose_much_of_their_noise(rho):
    truth = BASIS.fit_transform(correlated(400_000, 0, rho)).mean(axis=0)
    errors = {"hajek": [], "regression": []}
    for seed in range(200):
        X = mr.corrupt(correlated(400, seed + 1, rho), PHI, seed)
        for normalize, found in errors.items():
            found.append(estimated_means(X, normalize) - truth)
    hajek, ours = (np.std(found, axis=0) for found in errors.values())
    bias = np.abs(np.mean(errors["regression"], axis=0))
    assert (bias < 4 * ours / np.sqrt(200)).all()
    if rho == 0.0:
        # Where columns tell nothing of one another, nothing is lost.
        assert (ours**2).sum() < 1.1 * (hajek**2).sum()
        return
    assert (ours[:6:2] < 0.95 * hajek[:6:2]).all()
    assert (ours[6:9] < 0.8 * hajek[6:9]).all()


def test_a_shift_shifts_the_means_and_equal_sample_weights_change_nothing():
    X = mr.corrupt(correlated(300, 0), PHI, 0)
    away = mr.FunctionMissingness(lambda z: 0.7 * (z > 7.2), rowwise=False, maximum=0.7)
    plain = estimated_means(X, "regression")
    # But for the ridge, and for slopes that are those of other rows.
    shifted = estimated_means(X + 7.0, "regression", away)
    np.testing.assert_allclose((shifted - plain)[:6:2], 7.0, atol=0.05)
    twos = estimated_means(X, "regression", sample_weight=np.full(300, 2.0))
    np.testing.assert_allclose(twos, plain, atol=1e-12)
    half = np.repeat([1.0, 0.0], 150)
    np.testing.assert_allclose(
        estimated_means(X, "regression", sample_weight=half)[:6],
        estimated_means(X[:150], "regression")[:6],
        atol=0.05,
    )


@pytest.mark.parametrize(
    "missingness",
    [None, {1: mr.StepMissingness([1.0, 0.0, 0.0], 0.5, 0.6)}, "ignore", {0: PHI}],
    ids=["complete", "whole rows", "ignored", "the other class"],
)
def test_elsewhere_it_is_hajeks(missingness):
    Z1, Z0 = correlated(300, 0) + 0.3, correlated(300, 1)
    if isinstance(missingness, dict):
        ((label, phi),) = missingness.items()
        side = mr.corrupt((Z0, Z1)[label], phi, 0)
        Z0, Z1 = (Z0, side) if label else (side, Z1)
    X, y = np.concatenate([Z1, Z0]), np.repeat([1, 0], 300)
    options = {"missingness": missingness, "direction": "forward", "pairs": False}
    one, two = (
        mr.KLIEP(normalize=normalize, **options).fit(X, y).coef_
        for normalize in ("regression", "hajek")
    )
    np.testing.assert_array_equal(one, two)


def test_objectives_that_need_rows_refuse_it():
    X, y = correlated(100, 0), np.repeat([0, 1], 50)
    with pytest.raises(ValueError, match="'regression' is for objectives in which"):
        mr.FDivergenceRatio("js", normalize="regression").fit(X, y)
    assert mr.FDivergenceRatio("kl", normalize="regression").fit(X, y).converged_
