"""The paper's five-dimensional example in short; the long suite is in validity."""

import numpy as np
import pytest

from missratio import KLIEP, StepMissingness, corrupt
from missratio.ratio import fit_batch

PHI = StepMissingness(np.ones(5), 0.0, 0.5)


def mean_squared_distance(estimator, n, runs=200):
    rng = np.random.default_rng(n)
    X1, X0 = rng.normal(size=(runs, n, 5)), rng.normal(0.1, 1, (runs, n, 5))
    X1 = corrupt(X1.reshape(-1, 5), PHI, rng).reshape(X1.shape)
    fits = fit_batch(estimator, X1, X0)
    assert fits.converged.all()
    return ((fits.coef + 0.1) ** 2).sum(axis=1).mean()


def test_m_klieps_distance_falls_like_one_over_n():
    sizes = [200, 400, 800, 1600]
    known = KLIEP(missingness={1: PHI})
    distances = [mean_squared_distance(known, n) for n in sizes]
    slope, _ = np.polyfit(np.log(sizes), np.log(distances), 1)
    assert slope == pytest.approx(-1.0, abs=0.12)


def test_complete_cases_distance_stays_near_eight_hundredths():
    ignoring = KLIEP(missingness="ignore")
    for n in (1600, 3200):
        assert mean_squared_distance(ignoring, n) == pytest.approx(0.08, abs=0.01)
