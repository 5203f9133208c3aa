"""Newton's steps without a matrix: the same optimum, and honest where there is none."""

import numpy as np
import pytest
from sklearn.datasets import make_spd_matrix

from missratio.solver import Evaluation
from missratio.solver._truncated import conjugate_gradients, truncated_newton

PLAIN = np.asarray


def bowl(matrix, target):
    """½(θ − target)ᵀA(θ − target) + Σ(θ − target)⁴/4."""

    def evaluate(theta, *, second_order):
        gap = theta[0] - target
        value = np.array([gap @ matrix @ gap / 2 + (gap**4).sum() / 4])
        gradient = (matrix @ gap + gap**3)[None]
        return Evaluation(value, gradient, None, np.zeros(1, dtype=bool))

    def hessian_at(theta):
        return lambda vector: matrix @ vector + 3 * (theta - target) ** 2 * vector

    return evaluate, hessian_at


def solved(evaluate, hessian_at, start, tol=1e-9, max_iter=100):
    return truncated_newton(
        evaluate,
        hessian_at,
        start,
        PLAIN,
        is_small=lambda gradient: np.abs(gradient).max() <= tol,
        max_iter=max_iter,
    )


@pytest.fixture
def quartic():
    return make_spd_matrix(30, random_state=0), np.random.default_rng(0).normal(size=30)


def test_it_finds_the_optimum(quartic):
    theta, end, n_iter = solved(*bowl(*quartic), np.zeros(30))
    np.testing.assert_allclose(theta, quartic[1], atol=1e-7)
    assert np.abs(end.gradient).max() <= 1e-9
    assert 0 < n_iter < 40


def test_products_in_single_precision_cost_no_digits(quartic):
    evaluate, hessian_at = bowl(*quartic)

    def rough_at(theta):
        return lambda vector: hessian_at(theta)(vector).astype(np.float32)

    theta, _, _ = solved(evaluate, rough_at, np.zeros(30))
    np.testing.assert_allclose(theta, quartic[1], atol=1e-7)


def test_it_ends_where_its_steps_are_used_up(quartic):
    _, end, n_iter = solved(*bowl(*quartic), np.zeros(30), max_iter=1)
    assert n_iter == 1
    assert np.abs(end.gradient).max() > 1e-9


def test_steps_that_lead_nowhere_end_it(quartic):
    evaluate, _ = bowl(*quartic)
    # Products that are far too small make steps far too long.
    start = np.ones(30)
    theta, _, n_iter = solved(evaluate, lambda theta: lambda v: 1e-20 * v, start)
    assert n_iter == 0
    np.testing.assert_array_equal(theta, start)


def test_where_the_hessian_bends_down_it_follows_the_gradient(quartic):
    evaluate, _ = bowl(*quartic)
    _, end, n_iter = solved(evaluate, lambda theta: np.negative, np.ones(30))
    assert n_iter > 0
    assert end.value < 0.01 * evaluate(np.ones((1, 30)), second_order=False).value


def test_conjugate_gradients_solve_a_system_to_what_is_asked():
    matrix, target = make_spd_matrix(40, random_state=1), np.ones(40)
    for left in (0.3, 1e-6):
        found = conjugate_gradients(lambda v: matrix @ v, target, PLAIN, left)
        rest = target - matrix @ found
        assert np.linalg.norm(rest) <= left * np.linalg.norm(target)
