"""Mixture proportions: the optimum's conditions, and what the gap promises."""

import numpy as np
import pytest

from missratio.solver import Status, least_on_simplex, mixture_proportions


def random_mixture(seed, n=300, k=20):
    rng = np.random.default_rng(seed)
    weights = rng.exponential(size=n)
    return rng.exponential(size=(n, k)) ** 3, weights / weights.sum()


@pytest.mark.parametrize("seed", range(4))
def test_no_component_pulls_at_the_optimum(seed):
    likelihood, weights = random_mixture(seed)
    found = mixture_proportions(likelihood, weights, tol=1e-10)
    assert found.status == Status.CONVERGED
    assert found.point.sum() == pytest.approx(1.0)
    assert (found.point >= 0.0).all()
    pull = likelihood.T @ (weights / (likelihood @ found.point)) - 1.0
    assert pull.max() <= 1e-10
    np.testing.assert_allclose(pull[found.point > 1e-6], 0.0, atol=1e-8)


def test_expectation_maximisation_finds_the_same():
    likelihood, weights = random_mixture(7)
    found = mixture_proportions(likelihood, weights, tol=1e-10)
    slow = np.full(likelihood.shape[1], 1.0 / likelihood.shape[1])
    for _ in range(20_000):
        slow *= likelihood.T @ (weights / (likelihood @ slow))
    value = weights @ np.log(likelihood @ found.point)
    assert value == pytest.approx(weights @ np.log(likelihood @ slow), abs=1e-6)
    assert value >= weights @ np.log(likelihood @ slow) - 1e-10


def test_the_gap_bounds_what_is_left_to_gain():
    likelihood, weights = random_mixture(3)
    best = mixture_proportions(likelihood, weights, tol=1e-12).point
    early = mixture_proportions(likelihood, weights, max_iter=2)
    assert early.status == Status.OUT_OF_ITERATIONS
    gained = weights @ np.log((likelihood @ best) / (likelihood @ early.point))
    assert 0.0 <= gained <= early.gap


@pytest.mark.parametrize("seed", range(5))
def test_the_least_form_on_a_simplex_meets_its_conditions(seed):
    rng = np.random.default_rng(seed)
    rows, normal = rng.normal(size=(60, 40)) + 0.5, rng.uniform(0.1, 2.0, 40)
    form = rows.T @ rows
    found = least_on_simplex(form, normal)
    assert found.status == Status.CONVERGED
    assert normal @ found.point == pytest.approx(1.0)
    assert (found.point >= 0.0).all()
    # No move towards a corner a⁻¹e lowers the form, which is convex.
    pull = form @ found.point - (found.point @ form @ found.point) * normal
    assert (pull >= -1e-9 * np.abs(form).max()).all()
    np.testing.assert_allclose(pull[found.point > 0.0], 0.0, atol=1e-8)


def test_a_form_without_a_unique_least_point_is_solved():
    found = least_on_simplex(np.ones((3, 3)), np.ones(3))
    assert found.status == Status.CONVERGED
    assert found.point.sum() == pytest.approx(1.0)
