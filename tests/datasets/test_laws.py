"""A mixture's sample, density and tails are those of one law."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from missratio.datasets import GaussianMixture


def random_mixture(seed, k=3, d=2):
    rng = np.random.default_rng(seed)
    roots = rng.normal(size=(k, d, d))
    covariances = roots @ roots.transpose(0, 2, 1) + 0.1 * np.eye(d)
    return GaussianMixture(
        rng.dirichlet(np.ones(k)), rng.normal(size=(k, d)), covariances
    )


@pytest.mark.parametrize("seed", range(3))
def test_the_sample_has_the_moments_of_the_law(seed):
    law, n = random_mixture(seed), 200_000
    rows = law.sample(n, np.random.default_rng(seed))
    # Within the components, and between their means.
    apart = law.means - law.mean
    between = np.einsum("k,ki,kj->ij", law.weights, apart, apart)
    covariance = np.tensordot(law.weights, law.covariances, 1) + between
    error = np.sqrt(np.diag(covariance) / n)
    assert (np.abs(rows.mean(axis=0) - law.mean) < 4.5 * error).all()
    np.testing.assert_allclose(np.cov(rows.T), covariance, rtol=0.03, atol=0.03)


@settings(max_examples=20)
@given(st.integers(0, 10_000), st.integers(1, 4), st.integers(1, 4))
def test_the_density_is_the_weighted_sum_of_normal_ones(seed, k, d):
    law = random_mixture(seed, k, d)
    X = np.random.default_rng(seed).normal(size=(5, d))
    expected = sum(
        weight * multivariate_normal(mean, covariance).pdf(X)
        for weight, mean, covariance in zip(
            law.weights, law.means, law.covariances, strict=True
        )
    )
    np.testing.assert_allclose(np.exp(law.log_density(X)), expected, rtol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_a_tail_is_the_share_of_a_sample_beyond_the_cut(seed):
    law, n = random_mixture(seed, d=3), 200_000
    rng = np.random.default_rng(seed)
    rows = law.sample(n, rng)
    direction, cut = rng.normal(size=(6, 3)), rng.normal(size=6)
    share = (rows @ direction.T > cut).mean(axis=0)
    exact = law.tail(direction, cut)
    assert exact.shape == (6,)
    assert (np.abs(share - exact) < 4.5 * np.sqrt(0.25 / n)).all()


def test_directions_and_cuts_are_broadcast_and_may_be_zero_or_infinite():
    law = random_mixture(0)
    direction, cut = np.eye(2)[:, np.newaxis], np.linspace(-1, 1, 5)
    table = law.tail(direction, cut)
    assert table.shape == (2, 5)
    assert table[1, 3] == law.tail([0.0, 1.0], cut[3])
    # A score of zero is above what is below zero.
    cuts = [-1.0, 0.0, 1.0, -np.inf, np.inf]
    np.testing.assert_allclose(law.tail(np.zeros(2), cuts), [1, 0, 0, 1, 0])
    np.testing.assert_allclose(law.tail(np.ones(2), [-np.inf, np.inf]), [1, 0])


@pytest.mark.parametrize(
    ("weights", "means", "covariances", "message"),
    [
        ([0.5], [[0.0]], [[[1.0]]], "sum 1"),
        ([1.5, -0.5], [[0.0], [1.0]], [[[1.0]], [[1.0]]], "non-negative"),
        ([1.0], [0.0], [[[1.0]]], "shape"),
        ([1.0], [[np.nan]], [[[1.0]]], "finite"),
        ([1.0], [[0.0, 0.0]], [[[1.0]]], "shape"),
        ([1.0], [[0.0]], [[[0.0]]], "positive definite"),
        ([1.0], [[0.0, 0.0]], [[[1.0, 0.5], [0.0, 1.0]]], "symmetric"),
    ],
)
def test_what_is_no_mixture_is_refused(weights, means, covariances, message):
    with pytest.raises(ValueError, match=message):
        GaussianMixture(weights, means, covariances)


def test_rows_and_directions_of_another_width_are_refused():
    law = random_mixture(0)
    with pytest.raises(ValueError, match=r"shape \(n, 2\)"):
        law.log_density(np.zeros((3, 3)))
    with pytest.raises(ValueError, match="matmul"):
        law.tail(np.zeros(3), 0.0)
