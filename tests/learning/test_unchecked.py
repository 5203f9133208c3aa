"""Learning φ without its tests, for those who don't read them."""

import warnings

import numpy as np
import pytest

import missratio as mr
from missratio.learning import MissingnessWarning


@pytest.fixture
def contradicted():
    """A column that goes missing by the square of its value, half of it looked up."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(4000, 2))
    X, revealed = Z.copy(), np.full_like(Z, np.nan)
    lost = np.flatnonzero(rng.random(4000) < 0.9 * (np.abs(Z[:, 0]) > 1.0))
    X[lost, 0] = np.nan
    revealed[lost[::2], 0] = Z[lost[::2], 0]
    return X, revealed


def test_without_checks_nothing_is_tested_and_the_fit_is_the_same(contradicted):
    with pytest.warns(MissingnessWarning, match="linear in the value"):
        tested = mr.learn_missingness(*contradicted, from_table=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plain = mr.learn_missingness(*contradicted, from_table=False, check=False)
    assert any(check.failed for check in tested.checks)
    assert plain.checks == ()
    assert (plain.intercept == tested.intercept).all()
    assert (plain.coef == tested.coef).all()
    assert (plain.covariance == tested.covariance).all()
