"""φ from the other columns: what identifies it, what it can't do, and its checks."""

import learning_table as simulation
import numpy as np
import pytest
from scipy.stats import binomtest, hypergeom

import missratio as mr
from missratio.learning import MissingnessWarning
from missratio.learning.checks import Residuals
from missratio.weights import inverse_probability_weights


def table(n=1500, d=4, rho=0.7, seed=0, slope=1.0):
    rng = np.random.default_rng(seed)
    Z = simulation.rows_of(n, d, rho, "normal", rng)
    slopes = slope * rng.choice([-1.0, 1.0], d)
    X = mr.corrupt(Z, mr.LogisticMissingness(0.0, slopes), rng)
    return X, Z, slopes


# The estimate


def test_weights_of_the_learned_phi_restore_means():
    X, Z, _ = table(n=20_000)
    model = mr.learn_missingness(X)
    weights = inverse_probability_weights(X, model)
    means = np.nansum(weights * X, axis=0) / weights.sum(axis=0)
    off = np.abs(means - Z.mean(axis=0))
    assert off.max() < 0.06
    assert np.abs(np.nanmean(X, axis=0) - Z.mean(axis=0)).min() > 0.3


def test_slopes_are_within_their_errors():
    z = []
    for seed in range(12):
        X, _, slopes = table(seed=seed)
        model = mr.learn_missingness(X)
        z += list((model.coef - slopes) / model.standard_errors[:, 1])
    assert 0.7 < np.std(z) < 1.3
    assert abs(np.mean(z)) < 0.5


def test_both_together_know_more_than_either():
    X, Z, _ = table(rho=0.5)
    rng = np.random.default_rng(1)
    revealed = simulation.look_up(X, Z, 100, rng)
    errors = [
        mr.learn_missingness(X, *options, from_table=use).standard_errors[:, 1]
        for options, use in (((), True), ((revealed,), False), ((revealed,), True))
    ]
    assert (errors[2] < np.minimum(errors[0], errors[1])).all()
    # Information adds up, but for the prior.
    total = errors[0] ** -2 + errors[1] ** -2
    assert errors[2] ** -2 == pytest.approx(total, rel=0.15)


def test_all_looked_up_leaves_nothing_to_the_table():
    X, Z, _ = table(n=400)
    revealed = np.where(np.isnan(X), Z, np.nan)
    both = mr.learn_missingness(X, revealed)
    alone = mr.learn_missingness(X, revealed, from_table=False)
    assert both.coef == pytest.approx(alone.coef)
    assert both.standard_errors == pytest.approx(alone.standard_errors)


# What it can't do


def test_one_column_alone_cannot_teach():
    X = np.where(np.arange(50) < 20, np.nan, np.arange(50.0))[:, None]
    with pytest.raises(ValueError, match=r"no other column to learn from.*Look up"):
        mr.learn_missingness(X)


def test_columns_that_nothing_predicts_say_so():
    X, _, _ = table(n=500, rho=0.0)
    with pytest.warns(
        MissingnessWarning, match=r"explain \d% of its variance.*Look up.*are obs"
    ) as caught:
        model = mr.learn_missingness(X)
    # Of many columns the worst are named, and the others counted.
    with pytest.warns(MissingnessWarning, match=r"\d+ columns, the worst of them"):
        mr.learn_missingness(table(n=500, d=12, rho=0.0)[0])
    assert len(str(caught[0].message).splitlines()) <= 4
    weak = [check for check in model.checks if check.kind == "instrument"]
    assert sum(check.failed for check in weak) >= 2
    # And the band is wide: nothing is claimed.
    failed = [int(check.feature) for check in weak if check.failed]
    lower, upper = model.probability_band(np.full((1, 4), 2.0))
    assert ((upper - lower)[0, failed] > 0.5).all()


def test_bands_of_a_column_with_few_blanks_hold():
    left = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        Z = simulation.rows_of(200, 4, 0.7, "normal", rng)
        phi = mr.LogisticMissingness.from_proportion(
            Z, [0.8, 0, 0, 0], [0.012, 0, 0, 0]
        )
        X = mr.corrupt(Z, phi, rng)
        if np.isnan(X).any():
            bands = mr.learn_missingness(X, check=False).probability_band(Z, 0.1)
            truth = phi.missing_probability(Z)
            left += bool(((truth < bands[0]) | (truth > bands[1])).any())
    # At 10% more than 8 come once in 65 times. By the spread of the one to seven rows
    # that are missing, 13 of 38 bands would miss some of φ.
    assert left <= 8


def test_columns_that_go_missing_together_are_no_shadows_of_each_other():
    X, Z, _ = table(n=2000, d=5)
    X[:, 1] = np.where(np.isnan(X[:, 0]), np.nan, Z[:, 1])
    with pytest.warns(MissingnessWarning, match=r"0, 1: they go missing in the same"):
        model = mr.learn_missingness(X)
    assert [c.feature for c in model.checks if c.kind == "together"] == ["0"]
    # Looked-up values teach them, and no warning is due.
    revealed = simulation.look_up(X, Z, 60, np.random.default_rng(0))
    both = simulation.learn(X, revealed)
    assert both.shadow[0] is both.shadow[1] is None
    assert both.shadow[2] is not None


# Rare blanks


def accused(X):
    """The tests that speak against the φ that a table teaches."""
    checks = simulation.learn(X, None).checks
    return [check for check in checks if check.failed and check.pvalue is not None]


@pytest.mark.parametrize(("n", "d", "share"), [(300, 5, 0.01), (1400, 20, 0.04)])
def test_rare_blanks_at_random_are_accused_of_nothing(n, d, share):
    # A pair is expected to be missing together twice, and is not, or only once.
    for seed in range(3):
        rng = np.random.default_rng(seed)
        Z = simulation.rows_of(n, d, 0.5, "normal", rng)
        X = np.where(rng.uniform(size=Z.shape) < share, np.nan, Z)
        assert accused(X) == []


def test_rare_blanks_that_exclude_each_other_are_found():
    # No pair shows it: all the other columns together do.
    rng = np.random.default_rng(0)
    Z = simulation.rows_of(1400, 20, 0.5, "normal", rng)
    chosen = rng.integers(20, size=1400), rng.uniform(size=1400) < 20 * 0.04
    X = np.where((np.arange(20) == chosen[0][:, None]) & chosen[1][:, None], np.nan, Z)
    found = accused(X)
    assert "more often where other columns are observed" in found[0].sentence


def test_rare_blanks_that_go_together_are_found():
    rng = np.random.default_rng(0)
    Z = simulation.rows_of(1400, 6, 0.5, "normal", rng)
    lost = rng.uniform(size=Z.shape) < 0.03
    lost[:, :2] |= (rng.uniform(size=1400) < 0.01)[:, None]
    found = accused(np.where(lost, np.nan, Z))
    assert {check.feature for check in found} == {"0", "1"}
    assert all("more often where" in check.sentence for check in found)


@pytest.mark.parametrize("lost_rows", [0, 1, 14, 25])
def test_the_tail_of_a_count_is_fishers(lost_rows):
    # Values at random: which rows miss both is a draw without replacement.
    n, blank, other = 2000, 120, 100
    z = np.random.default_rng(0).normal(size=n)
    function = np.zeros(n)
    function[:lost_rows] = function[n - other + lost_rows :] = 1.0
    residuals = Residuals(
        np.full(n - blank, np.log(blank / (n - blank))),
        z[None, blank:],
        np.arange(blank, n),
        np.column_stack([np.ones(n), z]),
    )
    f = (function - function.mean())[:, None]
    parts = residuals.orthogonal(f, f**2)
    pvalue = residuals.others(f, parts, np.ones(1, dtype=bool)).pvalue
    law = hypergeom(n, other, blank)
    exact = 2 * min(law.cdf(lost_rows), law.sf(lost_rows - 1))
    assert 0.5 < pvalue / exact < 3.0


# Bands and tests: the smoke of what `make validity` simulates


def test_bands_hold_and_tests_keep_their_level():
    outcomes = [simulation.right_form(seed) for seed in range(10)]
    covered = sum(outcome.covered for outcome in outcomes)
    assert binomtest(covered, 10, 0.95, "less").pvalue > 1e-3
    found = [p for o in outcomes for each in o.p_values.values() for p in each]
    count = sum(p <= 0.05 for p in found)
    assert binomtest(count, len(found), 0.05, "greater").pvalue > 1e-3


@pytest.mark.parametrize("law", ["normal", "lognormal"])
@pytest.mark.parametrize("form", ["step", "tail", "U"])
@pytest.mark.parametrize("from_table", [True, False])
@pytest.mark.parametrize("tables", [2, pytest.param(12, marks=pytest.mark.validity)])
def test_a_form_that_looked_up_values_contradict_is_warned_of(
    law, form, from_table, tables
):
    for seed in range(tables):
        model = simulation.wrong_form(form, law, 50, seed, from_table=from_table)
        assert any(check.failed for check in model.checks)


@pytest.mark.parametrize("form", ["tail", "U", "another column", "together"])
def test_the_table_contradicts_a_wrong_form_without_a_look_up(form):
    model = simulation.wrong_form(form, "normal", 0, 0)
    failed = [c for c in model.checks if c.failed]
    assert failed
    assert all(c.source == "table" for c in failed)
    assert "Don't weight by this φ" in failed[0].sentence


def test_the_form_tested_by_look_ups_keeps_its_level():
    # True logistic φ, which the Kolmogorov–Smirnov test of old rejected up to 59%.
    count = total = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        law = ("normal", "exponential", "lognormal")[seed % 3]
        Z = simulation.rows_of(1500, 20, 0.0, law, rng)
        slopes = rng.uniform(-2.0, 2.0, 20) / Z.std(axis=0)
        truth = mr.LogisticMissingness.from_proportion(Z, slopes, 0.6)
        X = mr.corrupt(Z, truth, rng)
        m = (10, 50, 200)[seed // 4]
        revealed = simulation.look_up(X, Z, m, rng)
        model = simulation.learn(X, revealed, from_table=False)
        p_values = [check.pvalue for check in model.checks if check.kind == "form"]
        count, total = count + sum(p <= 0.05 for p in p_values), total + len(p_values)
    assert binomtest(count, total, 0.05, "greater").pvalue > 1e-3
