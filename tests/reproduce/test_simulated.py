"""Batches of simulated runs give what fits one by one give."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import missratio as mr
from missratio.datasets import simulations
from missratio.reproduce import EXPERIMENTS, Conditions
from missratio.reproduce._boundary import boundary
from missratio.reproduce._simulated import (
    METHODS,
    Draws,
    certified_excess,
    certified_power,
)

POWERS = ["np_power", "naive_bayes", "diff_variance", "misspecification"]


def draws(name, n_rows=500, n_runs=3, **kwargs):
    generators = [np.random.default_rng(seed) for seed in range(n_runs)]
    simulation = getattr(simulations, name)(**kwargs)
    naive = name == "naive_bayes"
    return Draws.draw(simulation, n_rows, generators, naive_bayes=naive)


def table(drawn, run):
    X = np.concatenate([drawn.numerator[run], drawn.denominator[run]])
    n_rows = len(drawn.numerator[run])
    return X, np.repeat([1, 0], n_rows)


@pytest.mark.parametrize("method", ["M-KLIEP", "CC-KLIEP"])
@pytest.mark.parametrize("name", ["np_mixture", "naive_bayes"])
def test_a_run_is_fitted_as_by_the_estimators(name, method):
    drawn = draws(name)
    phi = drawn.simulation.missingness if method == "M-KLIEP" else "ignore"
    estimator = mr.KLIEP(missingness=phi, normalize="horvitz-thompson")
    if name == "naive_bayes":
        estimator = mr.NaiveBayesRatio(estimator)
    coef = METHODS[method](drawn).coef
    for run in range(3):
        fitted = estimator.fit(*table(drawn, run))
        np.testing.assert_allclose(coef[run], fitted.coef_, rtol=1e-6)


def test_class_1_loses_rows_as_often_as_phi_says():
    drawn = draws("np_mixture", n_rows=2000)
    lost = np.isnan(drawn.numerator).all(axis=2)
    assert lost.mean() == pytest.approx(
        0.9 * (drawn.complete[..., 1] > 2).mean(), abs=0.01
    )
    assert not lost[drawn.complete[..., 1] < 2].any()


@pytest.mark.parametrize("method", ["M-KLIEP", "True ratio"])
def test_power_is_that_on_fresh_points(method):
    drawn = draws("np_mixture")
    score = METHODS[method](drawn)
    fresh = drawn.simulation.numerator.sample(200_000, np.random.default_rng(9))
    excesses = certified_excess(score)
    for power, excess in zip(certified_power(score), excesses, strict=True):
        assert power == pytest.approx((excess(fresh) > 0).mean(), abs=5e-3)


def test_linear_scores_are_the_estimators_but_for_a_constant():
    drawn = draws("np_mixture", n_runs=1)
    phi = drawn.simulation.missingness
    estimator = mr.KLIEP(missingness=phi, normalize="horvitz-thompson")
    expected = estimator.fit(*table(drawn, 0)).predict_log_ratio(drawn.calibration[0])
    scores = METHODS["M-KLIEP"](drawn).calibration_scores()[0]
    assert np.ptp(scores - expected) < 1e-6


@pytest.mark.parametrize("method", ["True ratio", "M-KLIEP", "CC-KLIEP"])
def test_boundaries_are_where_scores_meet_their_thresholds(method):
    drawn = draws("np_mixture", n_runs=2)
    heights = np.array([-2.0, 0.0, 2.0, 6.0])
    excesses = certified_excess(METHODS[method](drawn))
    for x1, excess in zip(boundary(drawn, method, heights), excesses, strict=True):
        points = np.stack([x1, heights], axis=1)
        np.testing.assert_allclose(excess(points), 0.0, atol=1e-9)


@pytest.mark.parametrize("name", POWERS)
def test_the_true_ratio_is_the_most_powerful(name):
    experiment = EXPERIMENTS[name]
    point = experiment.x[-1]
    values = experiment.procedure.measure(
        [point], range(40), experiment.methods, Conditions()
    )
    means = {method: own.mean() for method, own in values.items()}
    assert means["True ratio"] > means["M-KLIEP"] > means["CC-KLIEP"]


def test_m_kliep_comes_nearer_the_true_parameter():
    experiment = EXPERIMENTS["msd_5dim"]
    values = experiment.procedure.measure(
        [1500.0], range(10), experiment.methods, Conditions()
    )
    assert values["M-KLIEP"].mean() < 0.02 < 0.06 < values["CC-KLIEP"].mean()


def test_a_joint_fit_knows_what_naive_bayes_does_not():
    drawn = draws("naive_bayes", n_rows=1000, n_runs=5, rho=0.9)
    joint, product = (
        certified_power(METHODS[m](drawn)) for m in ("Joint M-KLIEP", "M-KLIEP")
    )
    assert joint.mean() > product.mean() + 0.2
    assert joint.mean() < drawn.simulation.oracle_power(0.1) + 0.01


def test_weighted_trees_have_power_and_no_more_than_the_oracle():
    drawn = draws("diff_variance", n_rows=300, n_runs=2)
    with threadpool_limits(1):
        power = certified_power(METHODS["Weighted trees"](drawn))
    oracle = drawn.simulation.oracle_power(0.1)
    assert (power > 0.5 * oracle).all()
    assert (power < oracle + 0.05).all()


def test_products_find_a_quadratic_ratio():
    drawn = draws("diff_variance", n_rows=1000, n_runs=10)
    methods = ("True ratio", "Joint M-KLIEP with products", "M-KLIEP")
    truth, products, linear = (
        certified_power(METHODS[m](drawn)).mean() for m in methods
    )
    assert linear < products < truth + 0.005
