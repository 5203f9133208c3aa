"""Conditional models against scikit-learn's, and draws against their law."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression, Ridge

from missratio import FunctionMissingness, TiltedImputer
from missratio.imputation.columns import NumericLevels
from missratio.imputation.conditionals import BinaryLogistic, Entries, LinearLocation


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


@pytest.mark.parametrize("spike", [0.0, 0.4])
@pytest.mark.parametrize("n_donors", [None, 50])
@pytest.mark.parametrize("tilt", TILTS.values(), ids=TILTS)
def test_draws_are_tilted_exactly(tilt, n_donors, spike):
    """Levels 0, …, 19, of which the first may make up a tenth or more."""
    rng = np.random.default_rng(0)
    z = np.where(rng.random(40_000) < spike, 0.0, rng.integers(0, 20, 40_000))

    def probability(X):
        return np.column_stack([0.5 * np.interp(X[:, 0], range(20), tilt), 0 * X[:, 1]])

    phi = FunctionMissingness(probability, rowwise=False)
    rows = np.arange(40_000)
    X = np.column_stack([np.where(rows < 5000, z, np.nan), rows % 2])
    options = {"n_donors": n_donors, "bootstrap": False, "n_rounds": 1}
    completed = TiltedImputer(phi, random_state=0, **options).fit_transform(X)
    mass = np.bincount(z[:5000].astype(int)) * tilt / (1.0 - 0.5 * tilt)
    drawn = np.bincount(completed[5000:, 0].astype(int), minlength=20) / 35_000
    np.testing.assert_allclose(drawn, mass / mass.sum(), atol=0.012)


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
