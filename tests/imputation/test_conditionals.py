"""Conditional models against scikit-learn's, and draws against their law."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression, Ridge

from missratio.imputation.columns import NumericLevels
from missratio.imputation.conditionals import (
    BinaryLogistic,
    Donors,
    Entries,
    LinearLocation,
)
from missratio.imputation.noise import DrawnNoise


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
    ours = BinaryLogistic.fit(entries, levels == 1, None)
    peer = LogisticRegression(C=1.0, tol=1e-8, max_iter=1000).fit(X, levels, weights)
    np.testing.assert_allclose(ours.predict_proba(X), peer.predict_proba(X), atol=0.001)
    again = BinaryLogistic.fit(entries, levels == 1, ours)
    np.testing.assert_allclose(again.predict_proba(X), ours.predict_proba(X), atol=1e-3)


TILTS = {
    "even": np.ones(20),
    "line": np.linspace(0, 1, 20),
    "one level": np.r_[np.zeros(19), 1.0],
    "steep": np.geomspace(1e-4, 1, 20),
}


def donors(tilt, n_nearest=None, seed=0):
    """Levels 0, …, 19, none of which makes up a tenth; residuals of one location."""
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 20, 5000).astype(float)
    levels, places = NumericLevels.build(values, np.ones(5000))
    location = np.zeros(5000)
    weights = rng.exponential(size=5000)
    mass = np.bincount(places, weights)
    law = Donors.build(
        levels,
        tilt,
        mass * tilt,
        location,
        levels.scores[places],
        weights,
        n_nearest,
        rng,
    )
    return law, mass / mass.sum(), rng


@pytest.mark.parametrize("n_nearest", [None, 50])
@pytest.mark.parametrize("tilt", TILTS.values(), ids=TILTS)
def test_draws_are_tilted_exactly(tilt, n_nearest):
    law, mass, rng = donors(tilt, n_nearest)
    drawn = law.draw(np.zeros(40_000), None, DrawnNoise(rng, 40_000))
    expected = mass * tilt / (mass * tilt).sum()
    found = np.bincount(drawn, minlength=20) / len(drawn)
    np.testing.assert_allclose(found, expected, atol=0.012)


@pytest.mark.parametrize("spike", [0.0, 3.0, 99.0])
def test_a_value_that_makes_up_a_tenth_is_a_matter_of_its_own(spike):
    rng = np.random.default_rng(0)
    values = np.where(rng.random(5000) < 0.4, spike, rng.uniform(1, 5, 5000))
    levels, places = NumericLevels.build(values, np.ones(5000))
    assert levels.values[levels.spike] == spike
    np.testing.assert_array_equal(
        levels.regressors(places), levels.encode(levels.values[places])
    )
    others = values != spike
    # The others have normal scores of their own, and no score gives the spike.
    assert levels.scores[places[others]].std() == pytest.approx(1, abs=0.02)
    assert levels.spike not in levels.nearest(np.linspace(-8, 8, 100_000))
    assert np.abs(levels.scores).max() < 4


def test_the_spike_is_tilted_too():
    rng = np.random.default_rng(0)
    values = np.where(rng.random(5000) < 0.4, 0.0, rng.uniform(1, 5, 5000))
    levels, places = NumericLevels.build(values, np.ones(5000))
    tilt = np.where(levels.values == 0.0, 1.0, 0.25)
    others = np.flatnonzero(values)
    location = np.zeros(len(others))
    law = Donors.build(
        levels,
        tilt,
        tilt,
        location,
        levels.scores[places[others]],
        np.ones(len(others)),
        None,
        rng,
    )
    chance = np.repeat([0.2, 0.6], 20_000)
    drawn = (
        levels.values[law.draw(np.zeros(40_000), chance, DrawnNoise(rng, 40_000))]
        == 0.0
    )
    for p, found in zip((0.2, 0.6), (drawn[:20_000], drawn[20_000:]), strict=True):
        assert found.mean() == pytest.approx(p / (p + 0.25 * (1 - p)), abs=0.015)


def test_where_hardly_any_proposal_is_accepted_the_best_of_many_is():
    # Level 19 alone goes missing, and a location of −2 hardly ever proposes it.
    law, _, rng = donors(np.r_[np.zeros(19), 1.0])
    assert set(law.draw(np.full(50, -2.0), None, DrawnNoise(rng, 50)).tolist()) == {19}


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
