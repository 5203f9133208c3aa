"""Regression-adjusted means: unbiased, less noisy, and Hájek's where nothing helps."""

import numpy as np
import pytest

from missratio import (
    KLIEP,
    FDivergenceRatio,
    FunctionMissingness,
    PolynomialBasis,
    StepMissingness,
    corrupt,
)
from missratio.ratio.adjusted import adjust
from missratio.ratio.problem import weighted_means
from missratio.rows import ClassRows, MemorySource, only_columns

PHI = FunctionMissingness(lambda z: 0.7 * (z > 0.2), rowwise=False, maximum=0.7)
BASIS = PolynomialBasis(2, interactions="all")


def correlated(n, seed, d=3, rho=0.8):
    rng = np.random.default_rng(seed)
    sigma = (1 - rho) * np.eye(d) + rho
    return rng.normal(size=(n, d)) @ np.linalg.cholesky(sigma).T + 0.5


def estimated_means(X, normalize, phi=PHI, sample_weight=None):
    basis = BASIS.fit(X)
    features = basis.transform(X)
    return means_of(X, features, basis.required_columns_, normalize, phi, sample_weight)


def means_of(X, features, required, normalize, phi, sample_weight=None):
    source = MemorySource.of(X, features, sample_weight=sample_weight)
    rows = ClassRows.of(source, 1, {1: phi}, normalize)
    rows = adjust(rows, required)
    return weighted_means(rows, rows.feature_sums(only_columns(required)))[0]


def test_means_stay_unbiased_and_lose_much_of_their_noise():
    truth = BASIS.fit_transform(correlated(400_000, 0)).mean(axis=0)
    errors = {"hajek": [], "regression": []}
    for seed in range(200):
        X = corrupt(correlated(400, seed + 1), PHI, seed)
        for normalize, found in errors.items():
            found.append(estimated_means(X, normalize) - truth)
    spread = {name: np.std(found, axis=0) for name, found in errors.items()}
    bias = np.abs(np.mean(errors["regression"], axis=0))
    assert (bias < 4 * spread["regression"] / np.sqrt(200)).all()
    products, singles = spread["regression"][6:], spread["regression"][:6:2]
    assert (products < 0.8 * spread["hajek"][6:]).all()
    assert (singles < 0.95 * spread["hajek"][:6:2]).all()


def test_independent_columns_leave_little_to_gain_and_nothing_to_lose():
    squares = {"hajek": 0.0, "regression": 0.0}
    truth = BASIS.fit_transform(correlated(400_000, 0, rho=0.0)).mean(axis=0)
    for seed in range(100):
        X = corrupt(correlated(400, seed + 1, rho=0.0), PHI, seed)
        for normalize in squares:
            error = estimated_means(X, normalize) - truth
            squares[normalize] += (error**2).sum()
    assert squares["regression"] < 1.1 * squares["hajek"]


def test_a_shift_of_the_columns_shifts_the_means():
    X = corrupt(correlated(300, 0), PHI, 0)
    away = FunctionMissingness(lambda z: 0.7 * (z > 7.2), rowwise=False, maximum=0.7)
    basis = PolynomialBasis(1)
    found = []
    for table, phi in ((X, PHI), (X + 7.0, away)):
        required = basis.fit(table).required_columns_
        found.append(means_of(table, table, required, "regression", phi))
    # But for the ridge, and for slopes that are those of other rows.
    np.testing.assert_allclose(found[1] - found[0], 7.0, atol=0.05)


def test_equal_sample_weights_change_nothing_and_others_count():
    X = corrupt(correlated(300, 0), PHI, 0)
    plain = estimated_means(X, "regression")
    twos = estimated_means(X, "regression", sample_weight=np.full(300, 2.0))
    np.testing.assert_allclose(twos, plain, atol=1e-12)
    half = np.repeat([1.0, 0.0], 150)
    np.testing.assert_allclose(
        estimated_means(X, "regression", sample_weight=half),
        estimated_means(X[:150], "regression"),
        atol=0.05,
    )


@pytest.mark.parametrize(
    "missingness",
    [None, {1: StepMissingness([1.0, 0.0, 0.0], 0.5, 0.6)}, "ignore", {0: PHI}],
    ids=["complete", "whole rows", "ignored", "the other class"],
)
def test_elsewhere_it_is_hajeks(missingness):
    Z1, Z0 = correlated(300, 0) + 0.3, correlated(300, 1)
    if isinstance(missingness, dict):
        ((label, phi),) = missingness.items()
        side = corrupt((Z0, Z1)[label], phi, 0)
        Z0, Z1 = (Z0, side) if label else (side, Z1)
    X, y = np.concatenate([Z1, Z0]), np.repeat([1, 0], 300)
    one, two = (
        KLIEP("linear", missingness, normalize, direction="forward", pairs=False)
        .fit(X, y)
        .coef_
        for normalize in ("regression", "hajek")
    )
    np.testing.assert_array_equal(one, two)


def test_coefficients_come_closer_to_the_truth():
    sigma = 0.2 * np.eye(3) + 0.8
    truth = np.linalg.solve(sigma, np.full(3, 0.4))
    squares = {"hajek": 0.0, "regression": 0.0}
    for seed in range(30):
        Z1, Z0 = correlated(500, 2 * seed) + 0.4, correlated(2000, 2 * seed + 1)
        X = np.concatenate([corrupt(Z1, PHI, seed), Z0])
        y = np.repeat([1, 0], [500, 2000])
        for normalize in squares:
            fitted = KLIEP(missingness={1: PHI}, normalize=normalize).fit(X, y)
            assert fitted.converged_
            squares[normalize] += ((fitted.coef_ - truth) ** 2).sum()
    assert squares["regression"] < 0.85 * squares["hajek"]


def test_features_of_many_columns_are_adjusted_by_their_own_weight():
    basis = PolynomialBasis(1, interactions=[(0, 1, 2)])
    Z1, Z0 = correlated(2000, 0) + 0.3, correlated(2000, 1)
    X = np.concatenate([corrupt(Z1, PHI, 0), Z0])
    y = np.repeat([1, 0], 2000)
    one, two = (
        KLIEP(basis, missingness={1: PHI}, normalize=normalize, l2=0.01).fit(X, y).coef_
        for normalize in ("regression", "hajek")
    )
    np.testing.assert_allclose(one, two, atol=0.5)


def test_objectives_that_need_rows_refuse_it():
    X, y = correlated(100, 0), np.repeat([0, 1], 50)
    with pytest.raises(ValueError, match="'regression' is for objectives in which"):
        FDivergenceRatio("js", normalize="regression").fit(X, y)
    assert FDivergenceRatio("kl", normalize="regression").fit(X, y).converged_
