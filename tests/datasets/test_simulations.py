"""Experiments know their ratio and the power that no test exceeds; samples fit."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import multivariate_normal

from missratio.datasets import GaussianMixture, Simulation, simulations

LINEAR = {
    "msd_5dim": simulations.msd_5dim(),
    "naive_bayes": simulations.naive_bayes(0.5),
    "misspecification, rho=0": simulations.misspecification(0.0),
}
CURVED = {
    "np_mixture": simulations.np_mixture(),
    "diff_variance": simulations.diff_variance(),
    "misspecification": simulations.misspecification(0.25),
}
ALL = LINEAR | CURVED
every = pytest.mark.parametrize("simulation", ALL.values(), ids=ALL)


@every
def test_the_ratio_is_that_of_the_densities_and_turns_class_0_into_class_1(simulation):
    rng = np.random.default_rng(1)
    Z = simulation.denominator.sample(200_000, rng)
    log_ratio = simulation.log_ratio(Z)
    X = Z[:100]
    one, zero = simulation.numerator, simulation.denominator
    expected = one.log_density(X) - zero.log_density(X)
    np.testing.assert_allclose(log_ratio[:100], expected, atol=1e-12)
    moved = np.exp(log_ratio)[:, None] * Z
    gap = np.abs(moved.mean(axis=0) - simulation.numerator.mean)
    assert (gap < 4.5 * moved.std(axis=0) / np.sqrt(len(Z))).all()


@every
@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.3])
def test_the_oracle_has_its_level_and_its_power_on_fresh_rows(simulation, alpha):
    n = 200_000
    X, y = simulation.draw(n, n, np.random.default_rng(2))
    above = simulation.log_ratio(X) > simulation.oracle_threshold(alpha)
    for share, expected in (
        (above[y == 0].mean(), alpha),
        (above[y == 1].mean(), simulation.oracle_power(alpha)),
    ):
        error = np.sqrt(expected * (1 - expected) / n)
        assert abs(share - expected) < 4.5 * error + 1e-3


def test_no_linear_test_beats_the_oracle():
    simulation = simulations.np_mixture()
    best = simulation.oracle_power(0.1)
    for angle in np.linspace(0, 2 * np.pi, 60):
        direction = np.array([np.cos(angle), np.sin(angle)])
        error = partial(simulation.denominator.tail, direction)
        cut = brentq(lambda c, error=error: error(c) - 0.1, -20, 20)
        assert simulation.numerator.tail(direction, cut) < best + 3e-4


def test_the_true_parameter_of_the_first_figure():
    np.testing.assert_allclose(simulations.msd_5dim().coef, -0.1)
    assert simulations.msd_5dim().intercept == pytest.approx(0.025)
    assert simulations.np_mixture().coef is None
    assert simulations.np_mixture().intercept is None
    law = simulations.naive_bayes()
    swapped = Simulation("swapped", law.denominator, law.numerator, {})
    np.testing.assert_array_equal(swapped.coef, -law.coef)


def phi_at(simulation, *rows):
    return simulation.missingness[1].missing_probability(rows).tolist()


def test_class_1_alone_loses_values_and_where_the_published_curves_say():
    assert all(set(simulation.missingness) == {1} for simulation in ALL.values())
    assert phi_at(simulations.msd_5dim(), [0.1] * 5, [-0.1] * 5) == [0.5, 0.0]
    assert phi_at(simulations.np_mixture(), [9.0, 2.1], [9.0, 1.9]) == [0.9, 0.0]
    by_entry = phi_at(simulations.naive_bayes(), [1.0, 1.0], [-1.0, -1.0])
    assert by_entry == [[0.8, 0.0], [0.0, 0.8]]
    corners = [1.0, -1.0], [-1.0, 1.0]
    assert phi_at(simulations.diff_variance(), *corners) == [0.0, 0.8]
    assert phi_at(simulations.misspecification(), *corners) == [0.0, 0.8]


ONE, LAW = [[[1.0]]], simulations.np_mixture()


@pytest.mark.parametrize(
    ("call", "given", "message"),
    [
        (simulations.naive_bayes, [1.0], "correlation"),
        (simulations.misspecification, [-0.1], "share"),
        (LAW.oracle_power, [0.0], "alpha"),
        *(
            (LAW.sample, [n], "n_samples")
            for n in (-1, 2.5, (1, 2, 3), (3, -1), "many")
        ),
        (GaussianMixture, ([0.5], [[0.0]], ONE), "sum 1"),
        (GaussianMixture, ([1.5, -0.5], [[0.0], [1.0]], [*ONE, *ONE]), "non-negative"),
        (GaussianMixture, ([1.0], [0.0], ONE), "shape"),
        (GaussianMixture, ([1.0], [[np.nan]], ONE), "finite"),
        (GaussianMixture, ([1.0], [[0.0, 0.0]], ONE), "shape"),
        (GaussianMixture, ([1.0], [[0.0]], [[[0.0]]]), "positive definite"),
        (
            GaussianMixture,
            ([1.0], [[0.0, 0.0]], [[[1.0, 0.5], [0.0, 1.0]]]),
            "symmetric",
        ),
        (LAW.numerator.log_density, [np.zeros((3, 3))], r"shape \(n, 2\)"),
        (LAW.numerator.tail, (np.zeros(3), 0.0), "matmul"),
    ],
)
def test_what_is_no_parameter_no_law_and_no_row_is_refused(call, given, message):
    with pytest.raises(ValueError, match=message):
        call(*given)


@every
def test_only_class_1_loses_values_and_the_others_are_as_drawn(simulation):
    sample = simulation.sample(400, random_state=0)
    lost = np.isnan(sample.data)
    assert lost.any()
    assert not lost[sample.target == 0].any()
    np.testing.assert_array_equal(sample.data[~lost], sample.complete[~lost])
    assert sample.data.shape == (400, simulation.n_features)


def test_a_seed_gives_the_same_sample_of_shuffled_classes():
    make = simulations.np_mixture().sample
    first, again, other = (make(50, random_state=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.data, again.data)
    assert not np.array_equal(first.complete, other.complete)
    assert make(101, random_state=0).target.sum() == 51
    target = make((30, 70), random_state=0).target
    assert target.sum() == 70
    assert 0 < target[:30].sum() < 30
    for rng in (np.random.default_rng(0), np.random.RandomState(0)):
        first, second = (make(20, random_state=rng) for _ in "12")
        assert not np.array_equal(first.complete, second.complete)


# A mixture's sample, density and tails are those of one law.


def random_mixture(seed, k=3, d=2):
    rng = np.random.default_rng(seed)
    roots = rng.normal(size=(k, d, d))
    covariances = roots @ roots.transpose(0, 2, 1) + 0.1 * np.eye(d)
    return GaussianMixture(
        rng.dirichlet(np.ones(k)), rng.normal(size=(k, d)), covariances
    )


@settings(max_examples=20)
@given(st.integers(0, 10_000), st.integers(1, 4), st.integers(1, 4))
def test_the_density_is_the_weighted_sum_of_normal_ones(seed, k, d):
    law = random_mixture(seed, k, d)
    X = np.random.default_rng(seed).normal(size=(5, d))
    parts = zip(law.weights, law.means, law.covariances, strict=True)
    expected = sum(w * multivariate_normal(*each).pdf(X) for w, *each in parts)
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
