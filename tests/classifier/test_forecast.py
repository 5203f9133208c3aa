"""The power that is forecast of a certificate is about the one that it then has."""

import warnings

import numpy as np
import pytest
from data import equicorrelated
from sklearn.base import clone

import missratio as mr
from missratio.classifier import forecast_power


def draw(n, d, share, seed, shift=1.0):
    """Two classes that lose values, and fresh rows of the second."""
    rng = np.random.default_rng(seed)
    Z, y = equicorrelated(rng, 2 * n, d, 0.6), np.repeat([0, 1], n)
    move = shift * np.linspace(-0.5, 1.0, d)
    Z[y == 1] += move
    phi = mr.LogisticMissingness.from_proportion(Z, np.full(d, 0.5), share)
    return mr.corrupt(Z, phi, rng), y, equicorrelated(rng, 20_000, d, 0.6) + move


def classifier_of(X, y, stated):
    models = {}
    for label in (0, 1):
        rows = X[y == label]
        shares = 100.0 * np.isnan(rows).mean(axis=0)
        known = [f"{j}: {s:.3g}%, higher more likely" for j, s in enumerate(shares)]
        models[label] = mr.learn_missingness(
            rows, assumptions=known if stated else (), from_table=not stated
        )
    return mr.NeymanPearsonClassifier(None, 0.1, 0.1, models, random_state=0)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("stated", [False, True], ids=["learned", "stated"])
def test_it_is_about_the_power_that_a_fit_then_has(stated):
    off = []
    for seed in range(6):
        n, d = ((600, 3), (1500, 4), (1000, 8))[seed % 3]
        X, y, fresh = draw(n, d, (0.05, 0.15)[seed % 2], seed)
        classifier = classifier_of(X, y, stated)
        forecast = forecast_power(classifier, X, y)
        fitted = clone(classifier).set_params(on_infeasible="reject_all").fit(X, y)
        off.append(forecast.power - (fitted.predict(fresh) == 1).mean())
    # A fit's own power varies by 0.1 with its split.
    assert abs(np.mean(off)) < 0.1
    assert np.abs(off).mean() < 0.15
    assert np.abs(off).max() < 0.3


def test_rows_that_calibrate_have_no_say():
    X, y, _ = draw(600, 3, 0.1, 0)
    classifier = classifier_of(X, y, stated=False)
    before = forecast_power(classifier, X, y)
    held = clone(classifier).fit(X, y).calibration_index_
    X[held] = np.random.default_rng(1).permutation(X[held])[:, ::-1]
    assert forecast_power(classifier, X, y) == before


def test_where_nothing_is_certified_it_says_why_at_the_delta_that_was_asked_for():
    X, y, _ = draw(300, 8, 0.3, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        classifier = classifier_of(X, y, stated=True)
    forecast = forecast_power(classifier, X, y)
    assert forecast.power == 0.0
    assert "alpha=0.1 at delta=0.1: got 150 calibration rows" in str(forecast.reason)
