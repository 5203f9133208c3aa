"""L-BFGS: Newton's optimum without a Hessian, and as honest."""

import numpy as np
import pytest
from sklearn.datasets import make_spd_matrix

from missratio.solver import Evaluation, Status, lbfgs, newton


def log_sum(matrix, target, proof=lambda theta: False):
    """log Σ exp(±a·(θ − target)): convex, with its minimum at the target."""

    def evaluate(theta, *, second_order):
        score = (theta - target) @ matrix
        tilt = np.tanh(score)
        hessian = None
        if second_order:
            inner = (1 - tilt**2)[:, :, None] * matrix.T
            hessian = matrix @ inner
        value = np.log1p(2 * np.sinh(score / 2) ** 2).sum(axis=1)
        return Evaluation(value, tilt @ matrix.T, hessian, np.array([proof(theta[0])]))

    return evaluate


@pytest.fixture
def curved():
    rng = np.random.default_rng(0)
    return make_spd_matrix(4, random_state=0), rng.normal(size=4)


def test_it_finds_the_optimum_that_newton_finds(curved):
    matrix, target = curved
    start = np.zeros((1, 4))
    first = lbfgs(log_sum(matrix, target), start, scale=np.ones(4))
    second = newton(log_sum(matrix, target), start)
    assert first.status[0] == second.status[0] == Status.CONVERGED
    np.testing.assert_allclose(first.theta[0], target, atol=1e-6)
    np.testing.assert_allclose(first.theta, second.theta, atol=1e-6)


def test_scaling_makes_up_for_badly_scaled_parameters(curved):
    matrix, target = curved
    scale = 10.0 ** np.array([-6, 0, 3, 6])
    skewed = log_sum(matrix / scale[:, None], target * scale)
    solution = lbfgs(skewed, np.zeros((1, 4)), scale=scale)
    assert solution.status[0] == Status.CONVERGED
    np.testing.assert_allclose(solution.theta[0] / scale, target, atol=1e-6)


def test_running_out_of_iterations_is_reported(curved):
    solution = lbfgs(log_sum(*curved), np.zeros((1, 4)), scale=np.ones(4), max_iter=2)
    assert solution.status[0] == Status.OUT_OF_ITERATIONS
    assert solution.n_iter[0] == 2


def test_a_proof_that_there_is_no_optimum_ends_the_search(curved):
    matrix, target = curved
    evaluate = log_sum(matrix, target, proof=lambda theta: bool(theta.any()))
    solution = lbfgs(evaluate, np.zeros((1, 4)), scale=np.ones(4))
    assert solution.status[0] == Status.NO_OPTIMUM


def test_a_tolerance_out_of_reach_is_taken_for_the_finest_that_is_not(curved):
    solution = lbfgs(log_sum(*curved), np.zeros((1, 4)), scale=np.ones(4), tol=0.0)
    assert (solution.status[0] == Status.CONVERGED) == (solution.decrement[0] <= 1e-6)


def test_the_length_reported_is_that_of_the_point_returned(curved):
    evaluate = log_sum(*curved)
    solution = lbfgs(evaluate, np.zeros((1, 4)), scale=np.full(4, 2.0), max_iter=3)
    gradient = evaluate(solution.theta, second_order=False).gradient
    assert solution.decrement[0] == pytest.approx(np.abs(2 * gradient).max())
