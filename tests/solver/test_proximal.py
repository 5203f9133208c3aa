"""The proximal Newton method: known optima, optimality conditions, honest statuses."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp, softmax

from missratio.solver import (
    Evaluation,
    Status,
    least_on_simplex,
    mixture_proportions,
    newton,
    proximal_newton,
)


def tilted(features, mean):
    """log mean exp(fᵀθ) − meanᵀθ: KLIEP with a single class-1 mean."""

    def evaluate(theta, *, second_order):
        score = features @ theta[0]
        mass = softmax(score)
        tilted_mean = mass @ features
        centred = features - tilted_mean
        value = logsumexp(score) - np.log(len(score)) - mean @ theta[0]
        hessian = (centred.T * mass) @ centred
        return Evaluation(
            np.array([value]),
            (tilted_mean - mean)[None],
            hessian[None] if second_order else None,
            np.zeros(1, dtype=bool),
        )

    return evaluate


def draw_tilted(seed, n=60, d=5):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, d)) @ rng.normal(size=(d, d))
    return tilted(features, softmax(rng.normal(size=n)) @ features)


@given(seed=st.integers(0, 10_000), strength=st.floats(1e-3, 1.0))
@settings(max_examples=30)
def test_it_ends_where_the_conditions_of_an_optimum_hold(seed, strength):
    """They are enough, as the function is convex."""
    evaluate = draw_tilted(seed)
    l1 = strength * np.array([0.0, 0.25, 0.5, 0.75, 1.0])
    solution = proximal_newton(evaluate, np.zeros((1, 5)), l1)
    assert solution.status[0] == Status.CONVERGED
    theta, slope = solution.theta[0], solution.gradient[0]
    np.testing.assert_array_equal(
        slope, evaluate(theta[None], second_order=False).gradient[0]
    )
    assert (np.abs(slope) <= l1 + 1e-7).all()
    at_bound = slope + l1 * np.sign(theta)
    np.testing.assert_allclose(at_bound[theta != 0.0], 0.0, atol=1e-7)


def test_without_a_penalty_it_is_newtons_method():
    evaluate = draw_tilted(0)
    plain = newton(evaluate, np.zeros((1, 5)))
    solution = proximal_newton(evaluate, np.zeros((1, 5)), np.zeros(5))
    np.testing.assert_allclose(solution.theta, plain.theta, atol=1e-7)
    assert solution.n_iter[0] <= plain.n_iter[0] + 1


def test_begun_at_the_optimum_it_takes_no_step():
    evaluate, start = draw_tilted(1), np.zeros((1, 5))
    slope = np.abs(evaluate(start, second_order=False).gradient[0])
    cold = proximal_newton(evaluate, start, np.full(5, 0.05))
    # Zero is the optimum under a penalty above every slope.
    for begin, l1 in ((start, slope), (cold.theta, np.full(5, 0.05))):
        solution = proximal_newton(evaluate, begin, l1)
        assert solution.status[0] == Status.CONVERGED
        assert solution.n_iter[0] == 0
        np.testing.assert_array_equal(solution.theta, begin)


def test_steps_out_and_unbounded_functions_are_reported():
    out = proximal_newton(
        draw_tilted(4), np.zeros((1, 5)), np.full(5, 0.01), max_iter=1
    )
    assert out.status[0] == Status.OUT_OF_ITERATIONS
    assert out.decrement[0] > 1e-8

    def falls(theta, *, second_order):
        proof = theta[:, 0] > 10.0
        hessian = np.ones((1, 1, 1)) if second_order else None
        return Evaluation(-theta[:, 0], -np.ones((1, 1)), hessian, proof)

    endless = proximal_newton(falls, np.zeros((1, 1)), np.array([0.5]))
    assert endless.status[0] == Status.NO_OPTIMUM


def test_a_hessian_that_rounding_made_negative_is_no_optimum():
    def falls(theta, *, second_order):
        hessian = np.full((1, 1, 1), -1e-17) if second_order else None
        proof = np.zeros(1, dtype=bool)
        return Evaluation(-4.0 * theta[:, 0], np.full((1, 1), -4.0), hessian, proof)

    solution = proximal_newton(falls, np.ones((1, 1)), np.array([1e-6]))
    assert solution.status[0] != Status.CONVERGED


# Mixture proportions: the optimum's conditions, and what the gap promises.


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
