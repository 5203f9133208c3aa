"""Mixture proportions: the optimum's conditions, and what the gap promises."""

import numpy as np
import pytest

from missratio.solver import (
    Status,
    least_on_simplex,
    mixture_proportions,
    quadratic_program,
)


def random_mixture(seed, n=300, k=20):
    rng = np.random.default_rng(seed)
    weights = rng.exponential(size=n)
    return rng.exponential(size=(n, k)) ** 3, weights / weights.sum()


@pytest.mark.parametrize("seed", range(4))
def test_no_component_pulls_at_the_optimum(seed):
    likelihood, weights = random_mixture(seed)
    found = mixture_proportions(likelihood, weights, tol=1e-10)
    assert found.status == Status.CONVERGED
    assert found.proportions.sum() == pytest.approx(1.0)
    assert (found.proportions >= 0.0).all()
    pull = likelihood.T @ (weights / (likelihood @ found.proportions)) - 1.0
    assert pull.max() <= 1e-10
    np.testing.assert_allclose(pull[found.proportions > 1e-6], 0.0, atol=1e-8)


def test_expectation_maximisation_finds_the_same():
    likelihood, weights = random_mixture(7)
    found = mixture_proportions(likelihood, weights, tol=1e-10)
    slow = np.full(likelihood.shape[1], 1.0 / likelihood.shape[1])
    for _ in range(20_000):
        slow *= likelihood.T @ (weights / (likelihood @ slow))
    value = weights @ np.log(likelihood @ found.proportions)
    assert value == pytest.approx(weights @ np.log(likelihood @ slow), abs=1e-6)
    assert value >= weights @ np.log(likelihood @ slow) - 1e-10


def test_the_gap_bounds_what_is_left_to_gain():
    likelihood, weights = random_mixture(3)
    best = mixture_proportions(likelihood, weights, tol=1e-12).proportions
    early = mixture_proportions(likelihood, weights, max_iter=2)
    assert early.status == Status.OUT_OF_ITERATIONS
    gained = weights @ np.log((likelihood @ best) / (likelihood @ early.proportions))
    assert 0.0 <= gained <= early.gap


def test_a_quadratic_programme_whose_optimum_is_known():
    pytest.importorskip("clarabel")
    # The point of the simplex nearest to (3, 1, 0), then one with x₀ ≤ ¼.
    target, ones = np.array([3.0, 1.0, 0.0]), np.ones(3)
    found = quadratic_program(np.eye(3), target, (ones, 1.0))
    np.testing.assert_allclose(found.x, [1.0, 0.0, 0.0], atol=1e-6)
    held = quadratic_program(
        np.eye(3), target, (ones, 1.0), (np.eye(3)[:1], np.array([0.25]))
    )
    np.testing.assert_allclose(held.x, [0.25, 0.75, 0.0], atol=1e-6)
    assert held.status == Status.CONVERGED


@pytest.mark.parametrize("seed", range(5))
def test_least_squares_on_the_simplex_are_the_quadratic_programme(seed):
    pytest.importorskip("clarabel")
    rng = np.random.default_rng(seed)
    rows, normal = rng.normal(size=(60, 40)) + 0.5, rng.uniform(0.1, 2.0, 40)
    form = rows.T @ rows
    found = least_on_simplex(form, normal)
    expected = quadratic_program(form, np.zeros(40), (normal, 1.0))
    assert found.status == Status.CONVERGED
    assert normal @ found.x == pytest.approx(1.0)
    assert (found.x >= 0.0).all()
    value, best = (x @ form @ x for x in (found.x, expected.x))
    assert value == pytest.approx(best, rel=1e-6)
    # No move towards a corner a⁻¹e lowers the form.
    pull = form @ found.x - value * normal
    assert (pull >= -1e-9 * np.abs(form).max()).all()
    np.testing.assert_allclose(pull[found.x > 0.0], 0.0, atol=1e-8)


def test_a_form_without_a_unique_least_point_is_solved():
    found = least_on_simplex(np.ones((3, 3)), np.ones(3))
    assert found.status == Status.CONVERGED
    assert found.x.sum() == pytest.approx(1.0)
