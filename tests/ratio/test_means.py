"""Means adjusted by regression: unbiased, less noisy, and Hájek's where none helps."""

import numpy as np
import pytest

import missratio as mr
from missratio.ratio.means import adjust
from missratio.ratio.problem import weighted_means
from missratio.rows import ClassRows, MemorySource, only_columns

PHI = mr.FunctionMissingness(lambda z: 0.7 * (z > 0.2), rowwise=False, maximum=0.7)
BASIS = mr.PolynomialBasis(2, interactions=[(0, 1), (0, 2), (1, 2), (0, 1, 2)])


def correlated(n, seed, rho=0.8):
    rng = np.random.default_rng(seed)
    sigma = (1 - rho) * np.eye(3) + rho
    return rng.normal(size=(n, 3)) @ np.linalg.cholesky(sigma).T + 0.5


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
