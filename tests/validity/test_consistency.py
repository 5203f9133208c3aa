"""Consistency on the paper's five-dimensional example (its Figure 1).

p1 = N(0, I), p0 = N(0.1·1, I), so that the true parameter is −0.1·1; class 1 loses
whole rows.
"""

import numpy as np
import pytest

from missratio import KLIEP, FunctionMissingness, StepMissingness, corrupt
from missratio.ratio import fit_batch

pytestmark = pytest.mark.validity

TRUTH = np.full(5, -0.1)
MODELS = {
    "step": StepMissingness(np.ones(5), 0.0, 0.5),
    "steep step": StepMissingness(np.ones(5), 0.0, 0.8),
    "logistic": FunctionMissingness(
        lambda X: 0.8 / (1 + np.exp(-X.sum(axis=1))), maximum=0.8
    ),
}
SIZES = [100, 200, 400, 800, 1500, 12_800]


def squared_distances(estimator, model, n, runs, seed):
    """‖θ̂ − θ‖² in every run."""
    rng = np.random.default_rng([seed, n])
    X1, X0 = rng.normal(size=(runs, n, 5)), rng.normal(0.1, 1, (runs, n, 5))
    X1 = corrupt(X1.reshape(-1, 5), model, rng).reshape(X1.shape)
    fits = fit_batch(estimator, X1, X0)
    assert fits.converged.all()
    return ((fits.coef - TRUTH) ** 2).sum(axis=1)


@pytest.mark.parametrize("normalize", ["hajek", "horvitz-thompson"])
@pytest.mark.parametrize("name", MODELS)
def test_the_mean_squared_distance_falls_like_one_over_n(name, normalize):
    model = MODELS[name]
    estimator = KLIEP(missingness={1: model}, normalize=normalize)
    means, errors = [], []
    for n in SIZES:
        runs = 1000 if n < 5000 else 100
        distances = squared_distances(estimator, model, n, runs, 0)
        means.append(distances.mean())
        errors.append(distances.std() / np.sqrt(runs) / distances.mean())
    # From 200 rows on, where terms of order 1/n² are small, a weighted line through
    # the logarithms.
    log_n, log_mean = np.log(SIZES[1:]), np.log(means[1:])
    weights = 1.0 / np.array(errors[1:]) ** 2
    centred = log_n - np.average(log_n, weights=weights)
    slope = (weights * centred * log_mean).sum() / (weights * centred**2).sum()
    error = 1.0 / np.sqrt((weights * centred**2).sum())
    assert slope == pytest.approx(-1.0, abs=3 * error + 0.03)


@pytest.mark.parametrize("name", MODELS)
def test_the_distance_of_complete_case_stays_where_it_is(name):
    model = MODELS[name]
    # ‖θ_cc − θ‖², where θ_cc matches the mean of the rows that stay.
    rows = np.random.default_rng(0).normal(size=(2_000_000, 5))
    weights = 1.0 - model.missing_probability(rows)
    limit = (np.average(rows, axis=0, weights=weights) ** 2).sum()
    distances = squared_distances(KLIEP(missingness="ignore"), model, 12_800, 100, 1)
    error = distances.std() / 10.0
    # Its variance, (5 + 5)/n at most up to the weights, is all that comes on top.
    assert distances.mean() == pytest.approx(limit, abs=4 * error + 0.003)


def test_the_published_example_stays_near_eight_hundredths():
    model = MODELS["step"]
    ignoring = KLIEP(missingness="ignore")
    for n in (1000, 1500, 12_800):
        distances = squared_distances(ignoring, model, n, 200, 2)
        assert distances.mean() == pytest.approx(0.08, abs=0.012)
