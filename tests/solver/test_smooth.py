"""Newton's method and L-BFGS: damped, batched, at ease with singular Hessians."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import make_spd_matrix

from missratio.solver import (
    Evaluation,
    Status,
    lbfgs,
    newton,
    quick_newton,
    whitening,
)


def problem(value, gradient, hessian, no_optimum=None):
    """A function of the solver from formulas of theta (n_problems, n_parameters)."""

    def evaluate(theta, *, second_order):
        evaluate.calls += 1
        evaluate.hessians += second_order
        flags = np.zeros(len(theta), dtype=bool)
        if no_optimum is not None:
            flags = no_optimum(theta)
        bend = hessian(theta) if second_order else None
        return Evaluation(value(theta), gradient(theta), bend, flags)

    evaluate.calls = evaluate.hessians = 0
    return evaluate


def one_dimensional(value, slope, curvature, no_optimum=None):
    return problem(
        lambda theta: value(theta[:, 0]),
        lambda theta: slope(theta),
        lambda theta: curvature(theta)[..., None],
        no_optimum,
    )


def root():
    """√(1 + x²): plain Newton from |x| > 1 goes x → −x³, further at every step."""
    return one_dimensional(
        lambda x: np.sqrt(1 + x**2),
        lambda x: x / np.sqrt(1 + x**2),
        lambda x: (1 + x**2) ** -1.5,
    )


def quadratic(matrix, target, no_optimum=None):
    return problem(
        lambda theta: (
            0.5 * np.einsum("bi,ij,bj->b", theta - target, matrix, theta - target)
        ),
        lambda theta: (theta - target) @ matrix,
        lambda theta: np.broadcast_to(matrix, (len(theta), *matrix.shape)).copy(),
        no_optimum,
    )


STARTS = np.array([[2.0], [-50.0], [0.5], [1.0]])


def test_it_converges_where_plain_newton_runs_away():
    one, solutions = np.ones(1), [newton(root(), STARTS)]
    solutions += [quick_newton(root(), start[None]) for start in STARTS]
    solutions += [lbfgs(root(), start[None], scale=one) for start in STARTS]
    for solution in solutions:
        assert (solution.status == Status.CONVERGED).all()
        np.testing.assert_allclose(solution.theta, 0.0, atol=1e-7)


@settings(max_examples=50)
@given(seed=st.integers(0, 2**32 - 1), d=st.integers(1, 6), log_scale=st.floats(-6, 6))
def test_a_quadratic_takes_one_step_in_any_scaling(seed, d, log_scale):
    rng = np.random.default_rng(seed)
    scale = 10.0 ** (log_scale * rng.uniform(-1, 1, d))
    factor = rng.normal(size=(d + 3, d)) * scale
    target = rng.normal(size=d) / scale
    evaluate = quadratic(factor.T @ factor, target)
    solution = newton(evaluate, np.zeros((2, d)), tol=1e-6)
    assert (solution.status == Status.CONVERGED).all()
    assert (solution.n_iter <= 2).all()
    np.testing.assert_allclose(
        solution.theta * scale, np.tile(target * scale, (2, 1)), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize(
    "approximate",
    [
        np.array([[2.4, 0.6], [0.6, 1.2]]),
        # Blind to the second parameter: its step there is far too long.
        np.array([[2.0, 0.0], [0.0, 0.0]]),
        # So steep that steps are tiny.
        1e4 * np.eye(2),
        # Of no convex function.
        np.array([[2.0, 3.0], [3.0, 1.0]]),
    ],
    ids=["near", "blind", "steep", "indefinite"],
)
def test_a_guess_of_the_hessian_serves_near_or_not(approximate):
    matrix, target = np.array([[2.0, 0.5], [0.5, 1.0]]), np.array([1.0, -2.0])
    start, evaluate = np.zeros((1, 2)), quadratic(matrix, target)
    solution = lbfgs(evaluate, start, scale=whitening(approximate))
    assert solution.status[0] == Status.CONVERGED
    assert solution.n_iter[0] < 30
    np.testing.assert_allclose(solution.theta[0], target, atol=1e-7)
    assert evaluate.hessians == 0
    assert not start.any()


def test_the_hessian_itself_takes_one_step(curved):
    solution = lbfgs(
        quadratic(*curved), np.zeros((1, 4)), scale=whitening(curved[0]), tol=1e-7
    )
    assert (solution.status[0], solution.n_iter[0]) == (Status.CONVERGED, 1)


# What comes out is measured.


def test_no_optimum_is_reported_as_soon_as_a_point_proves_it():
    falling = one_dimensional(
        lambda x: np.exp(-x),
        lambda x: -np.exp(-x),
        lambda x: np.exp(-x),
        lambda theta: theta[:, 0] > 3.0,
    )
    solution = newton(falling, np.zeros((1, 1)))
    assert solution.status[0] == Status.NO_OPTIMUM
    assert 3.0 < solution.theta[0, 0] <= 4.0


def test_running_out_of_iterations_is_reported():
    solution = newton(root(), np.array([[50.0], [0.0]]), max_iter=2)
    assert solution.status.tolist() == [Status.OUT_OF_ITERATIONS, Status.CONVERGED]
    assert solution.n_iter.tolist() == [2, 0]


def test_an_objective_that_never_falls_is_not_said_to_be_solved():
    # The gradient has the wrong sign, so that every step goes up.
    wrong = one_dimensional(lambda x: x**2, lambda x: -2 * x, lambda x: 2 + 0 * x)
    solution = newton(wrong, np.array([[1.0]]))
    assert solution.status[0] != Status.CONVERGED
    assert solution.theta[0, 0] == pytest.approx(1.0)


def test_a_step_into_nan_is_not_taken():
    # −log(1 − x) − log(1 + x) + 3x is NaN beyond its walls.
    def value(x):
        with np.errstate(invalid="ignore", divide="ignore"):
            return -np.log(1 - x) - np.log(1 + x) + 30 * x

    walls = one_dimensional(
        value,
        lambda x: 1 / (1 - x) - 1 / (1 + x) + 30,
        lambda x: (1 - x) ** -2.0 + (1 + x) ** -2.0,
    )
    solution = newton(walls, np.array([[0.0]]))
    assert solution.status[0] == Status.CONVERGED
    x = solution.theta[0, 0]
    assert 1 / (1 - x) - 1 / (1 + x) == pytest.approx(-30)


def test_the_decrement_is_that_of_the_point_returned():
    matrix, target = np.array([[2.0, 0.5], [0.5, 1.0]]), np.array([1.0, -2.0])
    solution = newton(quadratic(matrix, target), np.zeros((1, 2)), max_iter=0)
    gradient = solution.gradient[0]
    expected = np.sqrt(gradient @ np.linalg.solve(matrix, gradient))
    assert solution.decrement[0] == pytest.approx(expected)
    assert solution.status[0] == Status.OUT_OF_ITERATIONS
    np.testing.assert_allclose(solution.step[0], target)


# L-BFGS finds Newton's optimum without a Hessian.


@pytest.fixture
def curved():
    rng = np.random.default_rng(0)
    return make_spd_matrix(4, random_state=0), rng.normal(size=4)


def test_scaling_makes_up_for_badly_scaled_parameters(curved):
    matrix, target = curved
    scale = 10.0 ** np.array([-6, 0, 3, 6])
    skewed = quadratic(matrix / np.outer(scale, scale), target * scale)
    solution = lbfgs(skewed, np.zeros((1, 4)), scale=scale)
    assert solution.status[0] == Status.CONVERGED
    np.testing.assert_allclose(solution.theta[0] / scale, target, atol=1e-6)


def test_how_it_ended_is_measured(curved):
    matrix, target = curved
    start, one = np.zeros((1, 4)), np.ones(4)
    out = lbfgs(quadratic(*curved), start, scale=one, max_iter=2)
    assert out.status[0] == Status.OUT_OF_ITERATIONS
    assert out.n_iter[0] == 2
    # A proof that there is no optimum ends the search.
    proven = quadratic(matrix, target, lambda theta: theta.any(axis=1))
    assert lbfgs(proven, start, scale=one).status[0] == Status.NO_OPTIMUM
    # A tolerance out of reach is taken for the finest that isn't.
    fine = lbfgs(quadratic(*curved), start, scale=one, tol=0.0)
    assert fine.status[0] == Status.CONVERGED
    assert fine.decrement[0] <= 1e-7
    # A quadratic's decrement is what it lies above its least: half of its square.
    known = whitening(matrix)
    early = lbfgs(quadratic(*curved), start, scale=known, max_iter=0)
    assert early.decrement[0] ** 2 / 2 == pytest.approx(early.value[0])
