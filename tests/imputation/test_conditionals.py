"""Conditional models against scikit-learn's, and draws against their law."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression, Ridge

from missratio.imputation._conditionals import (
    BinaryLogistic,
    Entries,
    LinearLocation,
)
from missratio.imputation._donors import Donors
from missratio.imputation._levels import CategoricalLevels, NumericLevels


def weighted_rows(n=20_000, width=3, seed=0):
    """More rows than fit one block."""
    rng = np.random.default_rng(seed)
    return rng, np.asfortranarray(rng.normal(size=(n, width))), rng.exponential(size=n)


def test_a_linear_location_is_weighted_ridge():
    rng, X, weights = weighted_rows()
    target = X @ [1.0, -2.0, 0.0] + 3 + rng.normal(size=len(X))
    ours = LinearLocation.fit(X, weights, target)
    peer = Ridge(alpha=1.0).fit(X, target, weights)
    np.testing.assert_allclose(ours.coef, peer.coef_, atol=1e-9)
    np.testing.assert_allclose(ours.predict(X), peer.predict(X), atol=1e-9)


@pytest.mark.parametrize("steepness", [0.5, 8.0, np.inf])
def test_two_levels_are_penalised_logistic_regression(steepness):
    rng, X, weights = weighted_rows(3000)
    log_odds = X @ [1.0, -2.0, 0.0] - 1
    if np.isinf(steepness):  # classes that a plane separates
        levels = (log_odds > 0).astype(int)
    else:
        levels = (rng.random(len(X)) < expit(steepness * log_odds)).astype(int)
    entries = Entries(X, levels, weights, np.ones(2))
    ours = BinaryLogistic.fit(entries, None)
    peer = LogisticRegression(C=1.0, tol=1e-8, max_iter=1000).fit(X, levels, weights)
    np.testing.assert_allclose(ours.predict_proba(X), peer.predict_proba(X), atol=0.001)
    again = BinaryLogistic.fit(entries, ours.log_odds)
    np.testing.assert_allclose(again.log_odds.coef, ours.log_odds.coef, rtol=1e-3)


TILTS = {
    "even": np.ones(10),
    "line": np.linspace(0, 1, 10),
    "one level": np.r_[np.zeros(9), 1.0],
    "steep": np.geomspace(1e-4, 1, 10),
}


def donors(tilt, n_nearest=None, seed=0):
    """Levels 0, …, 9 at even normal scores; residuals of one location."""
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 10, 5000).astype(float)
    levels, places = NumericLevels.build(values, np.ones(5000))
    location = np.zeros(5000)
    weights = rng.exponential(size=5000)
    mass = np.bincount(places, weights)
    law = Donors.build(
        levels, tilt, mass * tilt, location, levels.scores[places], weights, n_nearest
    )
    return law, mass / mass.sum(), rng


@pytest.mark.parametrize("n_nearest", [None, 50])
@pytest.mark.parametrize(
    "tilt",
    [
        np.ones(10),
        np.linspace(0, 1, 10),
        np.r_[np.zeros(9), 1.0],
        np.geomspace(1e-4, 1, 10),
    ],
    ids=["even", "line", "one level", "steep"],
)
def test_draws_are_tilted_exactly(tilt, n_nearest):
    law, mass, rng = donors(tilt, n_nearest)
    drawn = law.draw(np.zeros(40_000), rng)
    expected = mass * tilt / (mass * tilt).sum()
    found = np.bincount(drawn, minlength=10) / len(drawn)
    np.testing.assert_allclose(found, expected, atol=0.012)


def test_where_hardly_any_proposal_is_accepted_the_best_of_many_is():
    # Level 9 alone goes missing, and a location of −2 hardly ever proposes it.
    law, _, rng = donors(np.r_[np.zeros(9), 1.0])
    assert set(law.draw(np.full(50, -2.0), rng).tolist()) == {9}


def test_scores_are_those_of_the_complete_column():
    # Observed with probability 1/4 above zero; weights of 4 restore the median.
    rng = np.random.default_rng(0)
    z = rng.normal(size=40_000)
    z = z[(z < 0) | (rng.random(len(z)) < 0.25)]
    levels, places = NumericLevels.build(z, np.where(z < 0, 1.0, 4.0))
    assert np.abs(levels.scores[places] - z)[np.abs(z) < 2].max() < 0.1
    np.testing.assert_array_equal(levels.values[places], z)
    back = levels.values[levels.nearest(levels.scores)]
    np.testing.assert_allclose(back, levels.values, atol=0.1)


def test_categories_are_seen_as_indicators():
    levels = CategoricalLevels(np.array([1.0, 2.0, 5.0]))
    seen = levels.regressors(np.array([0, 1, 2]))
    np.testing.assert_array_equal(seen, [[0, 0], [1, 0], [0, 1]])
    np.testing.assert_array_equal(levels.encode(levels.values), seen)
