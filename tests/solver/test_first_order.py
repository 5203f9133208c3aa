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


def test_how_it_ended_is_measured(curved):
    matrix, target = curved
    start, one = np.zeros((1, 4)), np.ones(4)
    out = lbfgs(log_sum(*curved), start, scale=one, max_iter=2)
    assert out.status[0] == Status.OUT_OF_ITERATIONS
    assert out.n_iter[0] == 2
    # A proof that there is no optimum ends the search.
    proven = log_sum(matrix, target, proof=lambda theta: bool(theta.any()))
    assert lbfgs(proven, start, scale=one).status[0] == Status.NO_OPTIMUM
    # A tolerance out of reach is taken for the finest that isn't.
    fine = lbfgs(log_sum(*curved), start, scale=one, tol=0.0)
    assert (fine.status[0] == Status.CONVERGED) == (fine.decrement[0] <= 1e-6)
    # The length reported is that of the point returned.
    early = lbfgs(log_sum(*curved), start, scale=2 * one, max_iter=3)
    gradient = log_sum(*curved)(early.theta, second_order=False).gradient
    assert early.decrement[0] == pytest.approx(np.abs(2 * gradient).max())
