"""Certificates from units of several rows hold if groups= says which these are."""

import warnings

import numpy as np
import pytest
from classifiers import certified
from promises import kept
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression

from missratio.classifier import RepeatedRowsWarning

pytestmark = pytest.mark.validity
ALPHA = DELTA = 0.1
REPEATS = 300


def _units(rng, n_units, label, spread):
    """One to six rows of each unit, around its own place; small ones score higher."""
    counts = rng.integers(1, 7, n_units)
    units = np.repeat(np.arange(n_units), counts)
    centre = rng.normal(0.2 * (3.5 - counts) + 2.0 * label, 1.0)
    return centre[units] + spread * rng.normal(size=len(units)), units


def _true_error(threshold, spread):
    """That of a random row of a random unit of class 0."""
    scale = np.sqrt(1.0 + spread**2)
    return np.mean(norm.sf((threshold - 0.2 * (3.5 - np.arange(1, 7))) / scale))


def _broken(rng, spread, way, with_units):
    x0, u0 = _units(rng, 240, 0, spread)
    x1, u1 = _units(rng, 100, 1, spread)
    X = np.concatenate([x0, x1])[:, None]
    y = np.repeat([0, 1], [len(x0), len(x1)])
    units = np.concatenate([u0, 1000 + u1])
    model = certified(LogisticRegression(), alpha=ALPHA, delta=DELTA, random_state=rng)
    with warnings.catch_warnings(action="ignore", category=RepeatedRowsWarning):
        if way == "fit":
            model.fit(X, y, groups=units if with_units else None)
        else:
            model.estimator = LogisticRegression().fit(X[:, :1], y)
            fresh, own = _units(rng, 120, 0, spread)
            model.calibrate(fresh[:, None], groups=own if with_units else None)
    slope, shift = model.estimator_.coef_[0, 0], model.estimator_.intercept_[0]
    return _true_error((model.threshold_ - shift) / slope, spread) > ALPHA


@pytest.mark.parametrize("way", ["fit", "calibrate"])
@pytest.mark.parametrize("spread", [0.0, 0.5])
def test_units_break_no_promise(way, spread):
    broken = {
        with_units: sum(
            _broken(np.random.default_rng(seed), spread, way, with_units)
            for seed in range(REPEATS)
        )
        for with_units in (True, False)
    }
    assert kept(broken[True], REPEATS, DELTA)
    # Without being told, they do.
    assert not kept(broken[False], REPEATS, DELTA)
