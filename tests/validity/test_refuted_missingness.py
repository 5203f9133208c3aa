"""No certificate rests on a φ that data refute, and those that remain hold.

φ is stated, learned from look-ups, or taught by the table itself, which may teach
little.
"""

import warnings

import numpy as np
import pytest
from classifiers import certified
from data import looked_up, stacked
from promises import kept, slack
from scipy.special import expit

import missratio as mr
from missratio.missingness import MissingnessContradictionError

pytestmark = pytest.mark.validity

ALPHA = DELTA = 0.1
FRESH = 20_000


def outcome(seed, loses, phi="table", draw=None, n=3000):
    """Whether φ was refused, and the error and the power of what is certified.

    Class 0 loses values of its first column.
    """
    rng, draw = np.random.default_rng(seed), draw or pair
    Z0, X1 = draw(rng, n), draw(rng, 1000) + 1.0
    X0 = Z0.copy()
    X0[rng.random(n) < loses(X0[:, 0]), 0] = np.nan
    fresh = draw(rng, FRESH)
    with warnings.catch_warnings(action="ignore"):
        if phi == "table":
            phi = mr.learn_missingness(X0)
        elif phi == "look-ups":
            revealed = looked_up(X0, Z0, 100, rng)
            phi = mr.learn_missingness(X0, revealed, from_table=False)
        options = {"random_state": seed, "on_infeasible": "reject_all"}
        model = certified(mr.KLIEP(), missingness={0: phi}, **options)
        try:
            model.fit(*stacked(X0, X1))
        except MissingnessContradictionError:
            return True, 0.0, 0.0
    return False, *((model.predict(rows) == 1).mean() for rows in (fresh, fresh + 1.0))


def check(repeats, *setting, **options):
    """Tables in which φ was refused, and the mean power; at most δ are broken."""
    found = np.array([outcome(seed, *setting, **options) for seed in range(repeats)])
    refused, errors, powers = found.T
    broken = (errors > ALPHA + slack(ALPHA, FRESH, deviations=2.0)).sum()
    assert kept(broken, repeats, DELTA, sure=0.01)
    return refused.sum(), powers.mean()


def pair(rng, n):
    """Two correlated columns."""
    return rng.normal(size=(n, 1)) + 0.6 * rng.normal(size=(n, 2))


def correlated(rho, d=4):
    """Columns of which any two have a correlation of ρ."""
    root = np.linalg.cholesky(np.full((d, d), rho) + (1 - rho) * np.eye(d))
    return lambda rng, n: rng.normal(size=(n, d)) @ root.T


def ends(z):
    """Both ends go missing: no logistic φ does that."""
    return np.where(np.abs(z) > 1.0, 0.7, 0.1)


def middle(z):
    return np.where(np.abs(z) > 1.0, 0.1, 0.6)


def rising(z, intercept=-1.0, slope=1.0):
    return expit(intercept + slope * z)


def stated(intercept, slope):
    return mr.LogisticMissingness([intercept, -np.inf], [slope, 0.0])


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


@pytest.mark.parametrize("name", WRONG)
def test_what_data_refute_is_refused_and_breaks_no_certificate(name):
    assert check(40, *WRONG[name])[0] >= 36


@pytest.mark.parametrize(("phi", "least"), [((-0.87, 0.5), 36), ((-0.85, 0.0), 40)])
def test_a_slope_that_is_too_flat_is_refused_whatever_its_share(phi, least):
    model = mr.LogisticMissingness([phi[0], *[-np.inf] * 2], [phi[1], 0.0, 0.0])
    found = [
        outcome(seed, lambda z: rising(z, -1.0, 1.2), model, correlated(0.4, 3))[0]
        for seed in range(40)
    ]
    assert sum(found) >= least


@pytest.mark.parametrize("phi", ["table", "look-ups", stated(-1.0, 1.0)], ids=str)
def test_a_right_phi_is_not_refused(phi):
    assert check(20, rising, phi)[0] == 0


@pytest.mark.parametrize(("repeats", "n"), [(40, 3000), (12, 20_000)])
@pytest.mark.parametrize("rho", [0.0, 0.1, 0.2, 0.3, 0.5])
def test_weak_instruments_break_no_certificate(rho, repeats, n):
    """Other columns say little of the one that loses values."""
    draw = correlated(rho)
    _, power = check(repeats, lambda z: rising(z, -1.2), draw=draw, n=n)
    if rho == 0.5 and n == 3000:
        assert power > 0.29


def test_columns_that_say_nothing_of_phi_break_no_certificate():
    check(40, lambda z: rising(z, -0.5, 0.6), draw=correlated(0.0, 3))


def test_a_phi_from_the_table_says_that_its_form_is_an_assumption():
    """A step looks like a logistic φ from other columns, however many rows there are.

    The test of the form has three degrees of freedom.
    """
    rng, n = np.random.default_rng(1), 100_000
    X0 = correlated(0.4, 3)(rng, n)
    X0[rng.random(n) < 0.85 * (X0[:, 0] > 0.8), 0] = np.nan
    phi = mr.learn_missingness(X0)
    (form,) = [check for check in phi.checks if check.kind == "form"]
    assert form.statistic < 10.0
    model = certified(mr.KLIEP(), missingness={0: phi}, on_infeasible="reject_all")
    model.fit(*stacked(X0[:3000], correlated(0.4, 3)(rng, 1000) + 1.0))
    said = " ".join(model.certificate_.assumptions)
    assert "hardly tell such a φ from a step or a bump" in said
