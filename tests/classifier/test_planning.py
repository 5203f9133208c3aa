"""How many rows are needed, and the power to expect of them."""

import warnings
from functools import partial

import numpy as np
import pytest
from data import corrupted, equicorrelated
from scipy.stats import binom, norm
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier

import missratio as mr
from missratio.classifier import (
    expected_power,
    forecast_power,
    required_calibration_rows,
)
from missratio.threshold import CalibrationSample, make_rule

LEVELS = [(0.1, 0.05), (0.2, 0.1), (0.05, 0.2)]
SHARES = [0.0, 0.3, 0.5, 0.8]


def feasible(rule, n, alpha, delta, phi_max):
    """Whether a rule certifies anything of n rows, 1 − phi_max of them observed."""
    bound = 1.0 / (1.0 - phi_max)
    observed = max(1, round(n / bound))
    weights = np.repeat([bound, 0.0], [observed, n - observed])
    sample = CalibrationSample.build(np.arange(n, dtype=float), weights, bound)
    made = make_rule(rule, training=sample, complete=phi_max == 0.0)
    return made.select(sample, alpha, delta).threshold is not None


@pytest.mark.parametrize(("alpha", "delta"), LEVELS)
@pytest.mark.parametrize("phi_max", SHARES)
@pytest.mark.parametrize("rule", ["paper", "bernstein", "betting"])
def test_it_is_the_smallest_number_by_brute_force(rule, phi_max, alpha, delta):
    needed = required_calibration_rows(alpha, delta, phi_max, rule)
    if needed > 2000:
        fewer, more = [needed - 2, needed - 1], [needed, needed + 1, 2 * needed]
    else:
        fewer, more = range(1, needed), range(needed, needed + 30)
    assert not any(feasible(rule, n, alpha, delta, phi_max) for n in fewer)
    assert all(feasible(rule, n, alpha, delta, phi_max) for n in more)


def of_pilot(controlled=(1.0,), other=(2.0,), **options):
    given = {"n_rows": 100, "alpha": 0.1, "delta": 0.1, **options}
    return expected_power(controlled, other, **given)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        *((partial(required_calibration_rows, *given), message) for given, message in (
            ((0.0, 0.05), "alpha"), ((0.1, 1.0), "delta"),
            ((0.1, 0.05, 1.0), "phi_max"), ((0.1, 0.05, -0.1), "phi_max"),
            ((0.1, 0.05, 0.0, "fastest"), "rule must be one of"),
            ((0.1, 0.05, 0.5, "binomial"), "complete calibration rows"),
            ((1e-320, 0.05), "No number of rows up to"))),
        (partial(of_pilot, phi_max=1.0), "phi_max"),
        (partial(of_pilot, other=[]), "other_scores"),
        (partial(of_pilot, [1.0, 2.0], [np.nan]), "other_scores"),
        (partial(of_pilot, []), "controlled_scores"),
        *((partial(of_pilot, n_rows=n), "n_rows") for n in (-1, 1e3)),
        (partial(of_pilot, n_draws=0), "n_draws"),
    ],
)  # fmt: skip
def test_what_can_not_be_planned_is_refused(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()


def test_the_expected_power_is_that_of_the_order_statistic():
    n, alpha, delta = 300, 0.1, 0.05
    rng = np.random.default_rng(0)
    pilot = rng.normal(0, 1, 20_000), rng.normal(1.5, 1, 20_000)
    n_tail = int(binom.ppf(delta, n, alpha)) - 1
    rng = np.random.default_rng(1)
    errors = rng.beta(n_tail + 1, n - n_tail, size=200_000)
    exact = norm.sf(norm.isf(errors) - 1.5).mean()
    found = expected_power(*pilot, n, alpha=alpha, delta=delta)
    assert found == pytest.approx(exact, abs=0.03)
    assert found == expected_power(*pilot, n, alpha=alpha, delta=delta)
    assert expected_power(*pilot, n, alpha=alpha, delta=delta, phi_max=0.5) < found
    assert expected_power(*pilot, 28, alpha=alpha, delta=delta) == 0.0


# The power that is forecast of a certificate is about the one that it then has.


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
@pytest.mark.parametrize(
    "seeds", [range(6), pytest.param(range(12), marks=pytest.mark.validity)]
)
@pytest.mark.parametrize("stated", [False, True], ids=["learned", "stated"])
def test_it_is_about_the_power_that_a_fit_then_has(stated, seeds):
    off = []
    for seed in seeds:
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
    with warnings.catch_warnings(action="ignore"):
        classifier = classifier_of(X, y, stated=True)
    forecast = forecast_power(classifier, X, y)
    assert forecast.power == 0.0
    assert "alpha=0.1 at delta=0.1: got 150 calibration rows" in str(forecast.reason)


def test_a_forecast_does_not_accuse_a_right_phi():
    # Its rows stand for the many that will calibrate, and are no evidence twice.
    rng = np.random.default_rng(0)
    for seed in range(12):
        phi = mr.LogisticMissingness(rng.uniform(-1.0, 0.0, 1), rng.uniform(-1.5, 1.5))
        y = np.arange(2400) % 2
        X = rng.normal(size=(2400, 1)) + 1.5 * y[:, None]
        X[y == 0] = mr.corrupt(X[y == 0], phi, seed)
        classifier = mr.NeymanPearsonClassifier(
            mr.KLIEP(), 0.2, 0.2, {0: phi}, calibration_size=0.9, random_state=seed
        )
        reason = forecast_power(classifier, X, y, n_trials=1).reason
        assert "contradict" not in str(reason)


def test_complete_rows_of_a_class_whose_blanks_nothing_explains_count(two_normals):
    phi = mr.LogisticMissingness(-2.0, [1.0, -1.0])
    X, y = two_normals(1000, 2, shift=1.2)
    X = corrupted(X, y, {0: phi, 1: phi})
    trees = HistGradientBoostingClassifier(max_iter=5, random_state=0)
    classifier = mr.NeymanPearsonClassifier(trees, 0.2, 0.1, {0: phi}, random_state=0)
    known = ~np.isnan(X).any(axis=1) & (y == 1)
    power = (classifier.fit(X, y).predict(X[known]) == 1).mean()
    assert forecast_power(classifier, X, y).power == pytest.approx(power, abs=0.15)
    several = mr.MulticlassNeymanPearsonClassifier(trees, {0: 0.2}, 0.1)
    several.set_params(missingness={0: phi}, random_state=0).fit(X, y)
