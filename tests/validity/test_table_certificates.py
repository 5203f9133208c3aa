"""Certificates under a φ that the table taught by itself, where it teaches little."""

import warnings

import numpy as np
import pytest
from scipy.stats import binomtest

import missratio as mr

pytestmark = pytest.mark.validity

ALPHA = DELTA = 0.1
FRESH = 20_000
# Fresh rows tell an error to about 0.002.
TOLERANCE = 2.0 * np.sqrt(ALPHA * (1.0 - ALPHA) / FRESH)


def outcome(seed, rho, n=3000, d=4, intercept=-1.2, slope=1.0):
    """Error and power of one certificate; class 0 loses values of its first column."""
    rng = np.random.default_rng(seed)
    root = np.linalg.cholesky(np.full((d, d), rho) + (1 - rho) * np.eye(d))
    X0 = rng.normal(size=(n, d)) @ root.T
    X1 = rng.normal(size=(1000, d)) @ root.T + 1.0
    log_odds = intercept + slope * X0[:, 0]
    X0[rng.uniform(size=n) < 1 / (1 + np.exp(-log_odds)), 0] = np.nan
    fresh = rng.normal(size=(FRESH, d)) @ root.T
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = mr.NeymanPearsonClassifier(
            mr.KLIEP(), ALPHA, DELTA, missingness={0: mr.learn_missingness(X0)},
            random_state=seed, on_infeasible="reject_all",
        ).fit(np.concatenate([X0, X1]), np.repeat([0, 1], [n, len(X1)]))  # fmt: skip
    return tuple((model.predict(rows) == 1).mean() for rows in (fresh, fresh + 1.0))


def check(outcomes):
    broken = sum(error > ALPHA + TOLERANCE for error, _ in outcomes)
    assert binomtest(broken, len(outcomes), DELTA, "greater").pvalue > 0.01


@pytest.mark.parametrize("rho", [0.0, 0.1, 0.2, 0.3, 0.5])
def test_weak_instruments_break_no_certificate(rho):
    outcomes = [outcome(seed, rho) for seed in range(40)]
    check(outcomes)
    if rho == 0.5:
        assert np.mean([power for _, power in outcomes]) > 0.29


def test_columns_that_say_nothing_of_phi_break_no_certificate():
    check([outcome(seed, 0.0, d=3, intercept=-0.5, slope=0.6) for seed in range(40)])


@pytest.mark.parametrize("rho", [0.0, 0.1, 0.2, 0.3, 0.5])
def test_nor_do_they_in_large_tables(rho):
    check([outcome(seed, rho, n=20_000) for seed in range(12)])
