"""Bands hold φ as often as they say, and certificates that rest on them keep theirs.

The simulation is that of docs/validity.md.
"""

import learning
import learning_table as table
import numpy as np
import pytest
from promises import at_least, kept
from scipy.stats import chi2

import missratio as mr

pytestmark = pytest.mark.validity


@pytest.fixture(scope="module")
def results():
    return learning.simulate_all(repeats=40)


# The band


def test_the_band_covers_as_often_as_it_says_and_is_no_wider(results):
    assert learning.too_low(results.coverage, tolerance=0.01) == []
    for delta in learning.LEVELS:
        count, total = learning.pooled(results.coverage, delta)
        assert at_least(count, total, 1 - delta - 0.005)
        assert kept(count, total, 1 - delta + 0.015)


@pytest.mark.parametrize("delta", learning.LEVELS)
def test_no_law_and_no_slope_is_left_out(results, delta):
    for law in learning.LAWS:
        for slope in learning.SLOPES:
            found = learning.pooled(results.coverage, delta, law=law, slope=slope)
            nominal = 1 - delta - 0.01
            assert at_least(*found, nominal)


def test_errors_are_about_as_large_as_they_say(results):
    # 1.96 of them either way; with 10 values looked up not yet quite normal.
    for m in learning.REVEALED:
        chosen = [c.wald for c in results.coverage if c.setting.n_revealed == m]
        covered = np.concatenate(chosen)
        for k in range(2):
            count = int(covered[:, k].sum())
            assert at_least(count, len(covered), 0.935)
            assert kept(count, len(covered), 0.97)


def test_bands_of_whole_rows_are_on_the_safe_side(results):
    for each in results.rowwise:
        count = int(each.covered.sum())
        assert at_least(count, len(each.covered), 0.95)


def test_a_band_that_makes_too_much_of_its_evidence_is_caught():
    # Half as wide as it should be, as if four times as many values had been looked up.
    too_large = float(chi2.sf(chi2.isf(0.05, 2) / 4.0, 2))
    setting = learning.Setting("normal", 1.0, 0.3, 20)
    law, repeats = learning.LAWS["normal"], 150
    rng = np.random.default_rng(0)
    truth = law.model(setting.slope, setting.proportion)
    parameters = np.array([np.ravel(truth.intercept)[0], setting.slope])
    values = law.draw(rng, (setting.n_rows, repeats))
    learned = mr.learn_missingness(
        *learning.lose_and_reveal(values, parameters, 20, rng), from_table=False
    )
    phi = truth.missing_probability(law.grid)
    covered = 0
    for j in range(repeats):
        low, high = learning.feature(learned, j).probability_band(law.grid, too_large)
        covered += bool(((low <= phi) & (phi <= high)).all())
    assert not at_least(covered, repeats, 0.94)


# Certificates


def test_certificates_under_a_learned_phi_keep_their_promise(results):
    outcomes = [*results.certificates, results.example]
    for outcome in outcomes:
        assert outcome.pvalue("learned") > 1e-3, outcome.cell
        assert outcome.pvalue("known") > 1e-3, outcome.cell
    # All of them together; δ is at most 0.2.
    violations = sum(outcome.violations("learned") for outcome in outcomes)
    allowed = sum(
        outcome.cell.delta * len(outcome.error["learned"]) for outcome in outcomes
    )
    assert violations <= allowed


def test_an_estimate_taken_at_its_word_is_caught(results):
    assert results.example.pvalue("plug-in") < 1e-6
    assert results.example.pvalue("learned") > 1e-3


def test_not_to_know_phi_costs_power_and_leaves_some(results):
    for outcome in results.certificates:
        known, learned = (outcome.power[kind].mean() for kind in ("known", "learned"))
        if not outcome.cell.ties:
            assert learned < known + 0.02
        if outcome.cell.n_revealed == 200:
            assert learned > 0.4 * known
    assert results.example.power["learned"].mean() > 0.3


# Ratios


def test_ratios_under_a_learned_phi_are_close_to_those_under_a_known_one(results):
    for each in results.distances:
        mean = {kind: values.mean() for kind, values in each.by_kind.items()}
        if each.phi == "logistic":
            assert mean["learned"] < 2.0 * mean["known"]
        # Far better than complete cases, even of the form that isn't logistic.
        assert mean["learned"] < 0.6 * mean["complete case"]


# What the table teaches


@pytest.fixture(scope="module")
def tables():
    return [table.right_form(seed) for seed in range(120)]


def test_bands_from_the_table_cover_as_often_as_they_say(tables):
    covered = sum(outcome.covered for outcome in tables)
    assert at_least(covered, len(tables), 0.94)


def test_tests_of_a_right_phi_keep_their_level(tables):
    kinds = {kind for outcome in tables for kind in outcome.p_values}
    assert len(kinds) == 5
    for kind in kinds:
        found = np.concatenate([o.p_values.get(kind, []) for o in tables])
        count = int((found <= 0.05).sum())
        assert kept(count, len(found), 0.05), kind


def test_a_right_phi_is_hardly_ever_warned_of(tables):
    failed = sum(outcome.failed for outcome in tables)
    assert kept(failed, len(tables), 0.01)


@pytest.mark.parametrize(
    ("n", "d", "repeats"),
    [(300, 5, 30), (300, 20, 12), (300, 60, 3), (1400, 5, 30), (1400, 20, 12),
     (1400, 60, 3), (5000, 5, 20), (5000, 20, 5), (5000, 60, 2)],
)  # fmt: skip
def test_innocent_tables_are_not_accused_however_rare_their_blanks(n, d, repeats):
    counts = [
        table.accused(n, d, share, logistic, seed)
        for share in (0.01, 0.04, 0.1, 0.3)
        for logistic in (False, True)
        for seed in range(repeats)
    ]
    assert kept(sum(counts), len(counts), 0.01)


def test_slopes_from_the_table_are_twice_as_good_as_50_look_ups():
    errors = table.slope_errors(20_000, 10, 0.5, 3)
    assert errors["none"] <= 0.5 * errors["50 looked up"]


def test_bands_of_the_table_alone_hold_as_often_as_they_say():
    missed = sum(
        not table.right_form(1000 + seed, 0.1, look_ups=False).covered
        for seed in range(150)
    )
    assert kept(missed, 150, 0.1)


# Categories


def test_bands_of_categories_hold_as_often_as_they_say():
    outcomes = [table.category(seed, dropped=seed % 2 == 1) for seed in range(80)]
    missed = sum(not outcome.covered for outcome in outcomes)
    assert kept(missed, len(outcomes), 0.1)
    errors = np.concatenate([o.learned - o.truth for o in outcomes])
    # One φ for all levels would be off by 0.14.
    assert np.sqrt(np.mean(errors**2)) < 0.08
    failed = sum(
        any(c.failed and c.pvalue is not None for c in o.model.checks) for o in outcomes
    )
    assert kept(failed, len(outcomes), 0.02)
