"""A pilot says where to begin, and changes nothing about where a fit ends."""

import numpy as np
import pytest

import missratio as mr
from missratio.solver import pilot


@pytest.fixture
def both_ways(monkeypatch):
    """Coefficients with a pilot, and without one."""

    def fit(estimator, X, y):
        quick = estimator.fit(X, y).coef_.copy()
        with monkeypatch.context() as patch:
            patch.setattr(pilot, "PILOT_ROWS", 10**9)
            return quick, estimator.fit(X, y).coef_

    return fit


def labelled(n_rows, n_columns, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n_rows) % 2
    X = rng.normal(size=(n_rows, n_columns))
    X[y == 1] += 0.5 / np.sqrt(n_columns)
    return X, y


@pytest.mark.parametrize("n_rows", [12_000, 130_000])
def test_hessians_from_few_rows_of_many_columns(both_ways, n_rows):
    """Those of a pilot, or of rows drawn: both are shrunk."""
    X, y = labelled(n_rows, 110)
    quick, plain = both_ways(mr.KLIEP(), X, y)
    np.testing.assert_allclose(quick, plain, atol=1e-7)


def test_l1(both_ways):
    X, y = labelled(60_000, 6)
    quick, plain = both_ways(mr.KLIEP(l1=0.05), X, y)
    np.testing.assert_allclose(quick, plain, atol=1e-6)


def test_l1_where_the_pilot_misleads(both_ways):
    """Nine in ten rows of class 0 lie far below: a pilot sees nothing else."""
    rng = np.random.default_rng(0)
    X0, X1 = rng.normal(-40.0, 0.1, (30_000, 1)), rng.normal(0.0, 1.0, (30_000, 1))
    X0[1::10] = rng.normal(0.0, 1.0, (3000, 1))
    X, y = np.concatenate([X0, X1]), np.repeat([0, 1], 30_000)
    quick, plain = both_ways(mr.KLIEP(l1=1e-6), X, y)
    np.testing.assert_allclose(quick, plain, atol=1e-6)


def test_columns_in_which_the_pilot_misleads(both_ways):
    """Class 0 is sorted in periods of twelve, and the pilot sees its lowest rows."""
    rng = np.random.default_rng(0)
    low = np.sort(rng.normal(size=(48_000, 2)), axis=0)
    X0 = low.reshape(12, 4000, 2).swapaxes(0, 1).reshape(-1, 2)
    phi = {1: mr.LogisticMissingness([-2.0, -2.0], [0.5, 0.5])}
    X1 = mr.corrupt(rng.normal(1.0, 1.0, (48_000, 2)), phi[1], 0)
    X, y = np.concatenate([X0, X1]), np.repeat([0, 1], 48_000)
    quick, plain = both_ways(mr.NaiveBayesRatio(missingness=phi), X, y)
    np.testing.assert_allclose(quick, plain, atol=1e-7)
