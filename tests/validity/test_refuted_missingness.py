"""No certificate rests on a φ that data refute; those that remain hold."""

import warnings

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binomtest

import missratio as mr
from missratio.missingness import MissingnessContradictionError

pytestmark = pytest.mark.validity

ALPHA = DELTA = 0.1
FRESH = 20_000
# Fresh rows tell an error to about 0.002.
TOLERANCE = 2.0 * np.sqrt(ALPHA * (1.0 - ALPHA) / FRESH)


def draw(rng, n, shift=0.0):
    """Two correlated columns."""
    return rng.normal(size=(n, 1)) + 0.6 * rng.normal(size=(n, 2)) + shift


def ends(z):
    """Both ends go missing: no logistic φ does that."""
    return np.where(np.abs(z) > 1.0, 0.7, 0.1)


def middle(z):
    return np.where(np.abs(z) > 1.0, 0.1, 0.6)


def rising(z):
    return expit(-1.0 + z)


def stated(intercept, slope):
    return mr.LogisticMissingness([intercept, -np.inf], [slope, 0.0])


def outcome(seed, loses, phi, n=3000):
    """Whether φ was refused, and whether a certificate is broken, of one table."""
    rng = np.random.default_rng(seed)
    X0, X1 = draw(rng, n), draw(rng, 1000, 1.0)
    Z0 = X0.copy()
    X0[rng.random(n) < loses(X0[:, 0]), 0] = np.nan
    fresh = draw(rng, FRESH)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if phi == "table":
            phi = mr.learn_missingness(X0)
        elif phi == "look-ups":
            drawn = rng.permutation(np.flatnonzero(np.isnan(X0[:, 0])))[:100]
            revealed = np.full_like(X0, np.nan)
            revealed[drawn, 0] = Z0[drawn, 0]
            phi = mr.learn_missingness(X0, revealed, from_table=False)
        model = mr.NeymanPearsonClassifier(
            mr.KLIEP(), ALPHA, DELTA, missingness={0: phi}, random_state=seed,
            on_infeasible="reject_all",
        )  # fmt: skip
        try:
            model.fit(np.concatenate([X0, X1]), np.repeat([0, 1], [n, len(X1)]))
        except MissingnessContradictionError:
            return True, False
    return False, (model.predict(fresh) == 1).mean() > ALPHA + TOLERANCE


WRONG = {
    "ends, by the table": (ends, "table"),
    "ends, by look-ups": (ends, "look-ups"),
    "middle, by the table": (middle, "table"),
    "middle, by look-ups": (middle, "look-ups"),
    "mirrored": (rising, stated(-1.0, -1.0)),
    "a quarter of the odds": (rising, stated(-1.0 - np.log(4.0), 1.0)),
    "scaled": (rising, stated(-8.0, 1.0 / 15.0)),
    "two thirds of the rows": (rising, stated(np.log(2.0), 0.0)),
}
RIGHT = {
    "by the table": (rising, "table"),
    "by look-ups": (rising, "look-ups"),
    "stated": (rising, stated(-1.0, 1.0)),
}


def outcomes(setting, tables):
    """How often φ was refused; certificates are broken in δ of the tables at most."""
    found = np.array([outcome(seed, *setting) for seed in range(tables)])
    refused, broken = found.sum(axis=0).tolist()
    assert binomtest(broken, tables, DELTA, "greater").pvalue > 0.01
    return refused


@pytest.mark.parametrize("name", WRONG)
def test_what_data_refute_is_refused_and_breaks_no_certificate(name):
    assert outcomes(WRONG[name], 40) >= 36


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_phi_is_not_refused(name):
    assert outcomes(RIGHT[name], 20) == 0
