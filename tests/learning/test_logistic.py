"""Batches of logistic regressions: derivatives, optima, and Firth's penalty."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from missratio.learning.evidence import LogisticBatch
from missratio.solver import Status


def batch_of(n_problems=3, width=3, n_rows=60, seed=0, penalised=True, weighted=True):
    """Problems that are not separated, with masses from one half to three."""
    rng = np.random.default_rng(seed)
    design = rng.normal(size=(n_problems, width, n_rows))
    design[:, 0] = 1.0
    score = 0.7 * design[:, 1:].sum(axis=1) - 0.5
    outcome = (rng.uniform(size=score.shape) < expit(score)).astype(float)
    mass = rng.uniform(0.5, 3.0, score.shape) if weighted else np.ones(score.shape)
    return LogisticBatch(design, outcome, mass, penalised)


def fisher_scoring(x, y, penalised):
    """Firth's fit by modified scores (Heinze and Schemper 2002), of one problem."""
    theta = np.zeros(len(x))
    for _ in range(200):
        p = expit(theta @ x)
        w = p * (1.0 - p)
        inverse = np.linalg.inv((x * w) @ x.T)
        leverage = w * np.einsum("pk,pq,qk->k", x, inverse, x)
        score = x @ (y - p + penalised * leverage * (0.5 - p))
        step = inverse @ score
        theta = theta + step / max(1.0, np.abs(step).max())
    return theta


@pytest.mark.parametrize("penalised", [False, True])
@pytest.mark.parametrize("width", [1, 2, 4])
def test_gradient_and_hessian_are_those_of_the_value(width, penalised):
    batch = batch_of(width=width, penalised=penalised)
    theta = np.random.default_rng(1).normal(0.0, 0.5, batch.design.shape[:2])
    here = batch(theta, second_order=True)
    step = 1e-5
    for k in range(width):
        move = step * np.eye(width)[k]
        above = batch(theta + move, second_order=False)
        below = batch(theta - move, second_order=False)
        slope = (above.value - below.value) / (2 * step)
        bend = (above.gradient - below.gradient) / (2 * step)
        assert here.gradient[:, k] == pytest.approx(slope, rel=1e-6, abs=1e-6)
        assert here.hessian[:, k] == pytest.approx(bend, rel=1e-6, abs=1e-6)


def test_the_value_is_the_log_likelihood_less_jeffreyss_prior():
    batch = batch_of(n_problems=1)
    theta = np.array([[0.3, -0.2, 0.9]])
    x, y, mass = batch.design[0], batch.outcome[0], batch.mass[0]
    p = expit(theta[0] @ x)
    likelihood = (mass * np.where(y == 1.0, np.log(p), np.log1p(-p))).sum()
    information = (x * mass * p * (1 - p)) @ x.T
    prior = 0.5 * np.linalg.slogdet(information)[1]
    value = batch(theta, second_order=False).value
    assert value[0] == pytest.approx(-likelihood - prior)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("penalised", [False, True])
def test_the_optimum_is_that_of_fisher_scoring(seed, penalised):
    batch = batch_of(seed=seed, penalised=penalised, weighted=False)
    solution = batch.solve()
    assert (solution.status == Status.CONVERGED).all()
    for x, y, theta in zip(batch.design, batch.outcome, solution.theta, strict=True):
        expected = fisher_scoring(x, y, penalised)
        assert theta == pytest.approx(expected, rel=1e-5, abs=1e-6)


def test_without_a_penalty_the_optimum_is_scikit_learns():
    batch = batch_of(penalised=False)
    for theta, x, y, mass in zip(
        batch.solve().theta, batch.design, batch.outcome, batch.mass, strict=True
    ):
        model = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000)
        model.fit(x[1:].T, y, sample_weight=mass)
        assert theta[0] == pytest.approx(model.intercept_[0], abs=1e-5)
        assert theta[1:] == pytest.approx(model.coef_[0], abs=1e-5)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 2**32), st.booleans())
def test_no_other_point_is_better(seed, penalised):
    batch = batch_of(1, 2, 25, seed, penalised)
    theta = batch.solve().theta
    if not penalised and batch.solve().status[0] == Status.NO_OPTIMUM:
        return
    found = minimize(
        lambda t: batch(t[None], second_order=False).value[0],
        theta[0] + 0.5,
        method="Nelder-Mead",
    )
    assert batch(theta, second_order=False).value[0] <= found.fun + 1e-7


@pytest.mark.parametrize("penalised", [False, True])
def test_all_problems_of_a_batch_are_solved_as_one_at_a_time(penalised):
    batch = batch_of(5, penalised=penalised)
    together = batch.solve().theta
    for i in range(5):
        one = slice(i, i + 1)
        alone = LogisticBatch(
            batch.design[one], batch.outcome[one], batch.mass[one], penalised
        )
        assert together[one] == pytest.approx(alone.solve().theta, abs=1e-6)


@pytest.mark.parametrize("penalised", [False, True])
def test_a_row_of_no_mass_and_a_row_of_mass_two(penalised):
    whole = batch_of(2, weighted=False, penalised=penalised)
    padded = LogisticBatch(
        np.concatenate([whole.design, np.zeros((2, 3, 7))], axis=2),
        np.pad(whole.outcome, ((0, 0), (0, 7))),
        np.pad(whole.mass, ((0, 0), (0, 7))),
        penalised,
    )
    assert padded.solve().theta == pytest.approx(whole.solve().theta, abs=1e-6)
    doubled = LogisticBatch(
        np.concatenate([whole.design] * 2, axis=2),
        np.tile(whole.outcome, 2),
        np.tile(whole.mass, 2),
        penalised,
    )
    heavy = LogisticBatch(whole.design, whole.outcome, 2 * whole.mass, penalised)
    assert doubled.solve().theta == pytest.approx(heavy.solve().theta, abs=1e-6)


def separated(penalised):
    z = np.linspace(-1.0, 1.0, 40)
    return LogisticBatch(
        np.stack([np.ones(40), z])[None],
        (z > 0.4).astype(float)[None],
        np.ones((1, 40)),
        penalised,
    )


def test_separation_is_found_out_by_maximum_likelihood():
    assert separated(penalised=False).solve().status[0] == Status.NO_OPTIMUM


def test_separation_has_a_finite_optimum_under_firths_penalty():
    batch = separated(penalised=True)
    solution = batch.solve()
    assert solution.status[0] == Status.CONVERGED
    expected = fisher_scoring(batch.design[0], batch.outcome[0], penalised=True)
    assert solution.theta[0] == pytest.approx(expected, rel=1e-4)
    assert solution.theta[0, 1] > 0.0


@pytest.mark.parametrize("make", [batch_of, lambda: separated(penalised=True)])
def test_with_the_intercept_set_anew_as_many_events_are_expected_as_there_were(make):
    batch = make()
    theta = batch.solve().theta
    corrected = batch.solve_intercept(theta)
    assert (corrected[:, 1:] == theta[:, 1:]).all()
    p = expit(np.einsum("gp,gpk->gk", corrected, batch.design))
    events = (batch.mass * batch.outcome).sum(axis=1)
    assert (batch.mass * p).sum(axis=1) == pytest.approx(events, rel=1e-4)


def test_firth_takes_the_bias_of_the_slope_away():
    # 12 events among 112: the estimator of maximum likelihood is too steep.
    rng = np.random.default_rng(0)
    z = np.concatenate(
        [rng.normal(1.0, 1.0, (1500, 12)), rng.normal(size=(1500, 100))], axis=1
    )
    design = np.stack([np.ones_like(z), z], axis=1)
    outcome = np.zeros_like(z)
    outcome[:, :12] = 1.0
    slopes = {}
    for penalised in (False, True):
        solution = LogisticBatch(design, outcome, np.ones_like(z), penalised).solve()
        slopes[penalised] = solution.theta[:, 1]
    error = slopes[True].std() / np.sqrt(1500)
    assert abs(slopes[True].mean() - 1.0) < 4 * error
    assert slopes[False].mean() - 1.0 > 5 * error
