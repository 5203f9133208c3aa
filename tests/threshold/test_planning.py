"""How many rows a rule needs, and what it expects to certify, before any are there."""

from dataclasses import replace
from fractions import Fraction
from math import ceil, comb, log

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.special import ndtr
from scipy.stats import binom

from missratio.classifier import required_calibration_rows
from missratio.threshold import (
    BinomialRule,
    CalibrationSample,
    Rule,
    binomial_tail,
    make_rule,
)
from missratio.threshold.betting import SAFE, TunedBettingRule, largest_bet, tune_bet

ALPHA, DELTA, BOUND = 0.2, 0.1, 4.0


def constant(n_rows, bound, seed=0, edges=None):
    """Rows that are all as likely to be missing, in numbers as expected.

    Weights may be wrong by the factors that are given.
    """
    weights = np.zeros(n_rows)
    weights[: max(1, round(n_rows / bound))] = bound
    scores = np.random.default_rng(seed).normal(size=n_rows)
    if edges is not None:
        edges = tuple(factor * weights for factor in edges)
        bound = float(edges[1].max())
    return CalibrationSample.build(scores, weights, bound, edges)


@pytest.mark.parametrize("bound", [1.0, 2.0, 4.0])
def test_the_fewest_rows_are_those_with_which_an_empty_tail_passes(bound):
    """The formula against the rule itself, tried at one number after another."""
    rule = make_rule("flipped-betting")
    by_formula = rule.least_rows(ALPHA, DELTA, bound)
    # The trial has a whole number of observed rows.
    assert abs(by_formula - Rule.least_rows(rule, ALPHA, DELTA, bound)) <= bound


@pytest.mark.parametrize(
    ("alpha", "delta", "bound"), [(0.2, 0.1, 1.5), (0.2, 0.1, 4.0), (0.5, 0.05, 8.0)]
)
def test_with_the_fewest_rows_a_tuned_bet_passes_and_with_fewer_it_fails(
    alpha, delta, bound
):
    rule = TunedBettingRule()
    least = rule.least_rows(alpha, delta, bound)
    training = constant(8000, bound, seed=1)
    prepared = rule.prepare(training, complete=False)
    chosen = [
        prepared.select(constant(n_rows, bound), alpha, delta).threshold
        for n_rows in (round(0.9 * least), round(1.1 * least))
    ]
    assert chosen[0] is None
    assert chosen[1] is not None


def test_thinning_needs_to_keep_enough_nine_times_of_ten():
    rule, enough = make_rule("thinning"), BinomialRule().least_rows(ALPHA, DELTA, 1.0)
    least = rule.least_rows(ALPHA, DELTA, BOUND)
    assert binom.sf(enough - 1, least, 1 / BOUND) >= 0.9
    assert binom.sf(enough - 1, least - 1, 1 / BOUND) < 0.9


@pytest.mark.parametrize("name", ["thinning", "counting"])
@pytest.mark.parametrize(("n_rows", "bound"), [(400, 4.0), (1000, 1.5)])
def test_the_error_to_expect_is_that_of_simulated_rows(name, n_rows, bound):
    """Scores are uniform, so that the error above a threshold t is 1 − t."""
    rule, rng = make_rule(name), np.random.default_rng(0)
    roots = []
    for seed in range(300):
        weights = np.where(rng.uniform(size=n_rows) < 1 / bound, bound, 0.0)
        scores = rng.uniform(size=n_rows)
        sample = CalibrationSample.build(scores, weights, bound, random_state=seed)
        chosen = rule.select(sample, ALPHA, DELTA).threshold
        roots.append(0.0 if chosen is None else np.sqrt(1.0 - chosen))
    error = 4.0 * np.std(roots) / np.sqrt(len(roots))
    assert abs(np.mean(roots) - rule.expected_root(n_rows, bound, ALPHA, DELTA)) < error


def test_a_bet_expects_about_what_it_certifies_on_rows_like_the_training_rows():
    training = constant(4000, BOUND, seed=2)
    rule = TunedBettingRule().prepare(training, complete=False)
    expected = rule.expected_root(2000, BOUND, ALPHA, DELTA)
    found = []
    for seed in range(40):
        sample = constant(2000, BOUND, seed=10 + seed)
        found.append(
            sample.estimated_error(rule.select(sample, ALPHA, DELTA).threshold)
        )
    assert expected == pytest.approx(np.sqrt(np.mean(found)), abs=0.03)


@pytest.mark.parametrize("bound", [1.0, 3.0])
def test_counting_certifies_the_highest_row_with_the_fewest_rows(bound):
    rule = make_rule("counting")
    least = rule.least_rows(ALPHA, DELTA, bound)
    assert make_rule("auto").least_rows(ALPHA, DELTA, bound) == least
    sample = replace(constant(least, bound), coin=1.0)
    chosen = rule.select(sample, ALPHA, DELTA)
    assert chosen.threshold == sample.ranked.scores[0]
    # Clopper and Pearson's bound for one of all rows in B.
    assert binom.cdf(0, least, chosen.error_bound / bound) == pytest.approx(DELTA)
    fewer = replace(constant(least - 1, bound), coin=1.0)
    assert rule.select(fewer, ALPHA, DELTA).threshold is None
    # A coin can make up for the row that is not there, and then the bound is α.
    lucky = rule.select(replace(fewer, coin=0.5), ALPHA, DELTA)
    assert lucky.threshold == fewer.ranked.scores[0]
    assert lucky.error_bound == ALPHA


@pytest.mark.parametrize("name", ["thinning", "counting"])
def test_no_coin_certifies_what_would_be_wrong_more_often_than_not(name):
    """0.8³ > 1/2: of three rows, all kept, none can be above with any confidence."""
    sample = CalibrationSample.build([1.0, 2.0, 3.0, 4.0], np.ones(4), 1.0)
    rule = make_rule(name)
    for n_rows, expected in ((3, None), (4, 4.0)):
        few = CalibrationSample(
            sample.ranked.scores[:n_rows], np.ones(n_rows), n_rows, 1.0
        )
        few = replace(few, draws=np.zeros(n_rows), coin=0.0)
        assert rule.select(few, ALPHA, DELTA).threshold == expected


@pytest.mark.parametrize("alpha", [0.03, ALPHA, 0.6])
@pytest.mark.parametrize("delta", [0.01, DELTA, 0.7])
@pytest.mark.parametrize("n_rows", [10, 70, 400])
def test_with_a_coin_the_level_is_exactly_delta(n_rows, delta, alpha):
    coins = (np.arange(20_000) + 0.5) / 20_000
    allowed = [binomial_tail(n_rows, alpha, delta, coin) for coin in coins[::20]]
    level = np.mean(binom.cdf(allowed, n_rows, alpha))
    refused = binom.cdf(0, n_rows, alpha) > max(0.5, delta)
    assert level == pytest.approx(0.0 if refused else delta, abs=2e-3)
    assert (np.diff(allowed) <= 0).all()


@pytest.mark.parametrize("more", [-1, 0, 1, 2])
def test_counting_takes_all_kept_rows_where_they_are_few(more):
    """Each of a weight of B is kept; as many may lie above as the rule allows."""
    rule, n_rows = make_rule("counting"), 1000
    level = ALPHA / BOUND
    most = np.count_nonzero(binom.cdf(np.arange(n_rows), n_rows, level) <= DELTA) - 1
    weights = np.where(np.arange(n_rows) < most + more, BOUND, 0.0)
    sample = CalibrationSample.build(np.arange(n_rows), weights, BOUND)
    sample = replace(sample, coin=1.0)
    above = min(most, most + more - 1)
    assert rule.select(sample, ALPHA, DELTA).threshold == sample.ranked.scores[above]


def test_the_binomial_tail_is_exact_for_any_levels():
    """The largest k with P(Bin(n, α) ≤ k) ≤ δ, tiny and large levels included."""
    rng = np.random.default_rng(0)
    for _ in range(2000):
        n_rows = int(rng.integers(0, 40))
        alpha = 10.0 ** rng.uniform(-40, 0) if rng.uniform() < 0.5 else rng.uniform()
        delta = rng.choice(
            [10.0 ** rng.uniform(-12, 0), 1 - 10.0 ** rng.uniform(-9, 0)]
        )
        passing = binom.cdf(np.arange(n_rows), n_rows, alpha) <= delta
        found = binomial_tail(n_rows, alpha, delta)
        assert found == np.count_nonzero(passing) - 1


def variance(bound, ratio):
    """Of W·1{h > C} − (γ/λ)(W − 1), where W is the bound or 0: see `tune_bet`."""
    both = (bound - 1.0) * ALPHA
    return bound * ALPHA - ALPHA**2 - 2 * ratio * both + ratio**2 * (bound - 1.0)


@pytest.mark.parametrize("bound", [1.25, 4.0])
@pytest.mark.parametrize("n_rows", [50, 2000, 10**6])
def test_the_bet_is_that_of_the_formula_or_the_largest_that_is_safe(bound, n_rows):
    bet = tune_bet(constant(4000, bound), ALPHA, DELTA, n_rows, bound).bet
    ratio = bet.on_weight / bet.on_tail
    best = np.sqrt(2 * np.log(1 / DELTA) / (n_rows * variance(bound, ratio)))
    expected = min(SAFE * largest_bet(ratio, ALPHA, bound), best)
    assert bet.on_tail == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("bound", [1.25, 2.0, 4.0])
def test_where_missingness_is_constant_the_bet_is_on_observed_rows_alone(bound):
    """γ = λα makes the variance least: chance in the weights then has no part."""
    bet = tune_bet(constant(4000, bound), ALPHA, DELTA, 10**5, bound).bet
    assert bet.on_weight / bet.on_tail == pytest.approx(ALPHA, rel=0.02)
    bet = tune_bet(constant(4000, bound), ALPHA, DELTA, 10**5, None).bet
    assert bet.on_weight == bet.on_tail


@pytest.mark.parametrize("edges", [None, (0.9, 1.2)])
@pytest.mark.parametrize("n_rows", [60, 300, 3000])
@pytest.mark.parametrize("bound", [1.5, 4.0])
def test_auto_takes_the_largest_of_what_its_rules_expect(edges, n_rows, bound):
    training = constant(4000, bound, edges=edges)
    bound *= 1.2  # which the largest that a weight may be doesn't exceed
    low, high = edges or (1.0, 1.0)
    thinning = make_rule("thinning").expected_root(n_rows, bound, ALPHA, DELTA)
    counting = make_rule("counting").expected_root(n_rows, bound, ALPHA, DELTA)
    betting = TunedBettingRule(training).expected_root(n_rows, bound, ALPHA, DELTA)
    expected = {
        "thinning": thinning * np.sqrt(low / high),
        "counting": counting / np.sqrt(high),
        "tuned-betting": betting,
    }
    auto = make_rule("auto", training=training)
    rule, root = auto.choose(n_rows, bound, ALPHA, DELTA)
    assert root == pytest.approx(max(expected.values()))
    assert expected[rule.name] == pytest.approx(root)


# The binomial rule is the paper's Algorithm 2.


BINOMIAL = make_rule("binomial", training=None, complete=True)


def threshold(scores, alpha, delta):
    sample = CalibrationSample.build(scores)
    return BINOMIAL.select(sample, alpha, delta).threshold


def algorithm_2(n, alpha, delta):
    """i* = min{i in 1..n : P(Bin(n, 1 − α) ≥ i) ≤ δ} in exact arithmetic, or None."""
    p, delta = 1 - Fraction(alpha), Fraction(delta)
    tail, least = Fraction(0), None
    for i in range(n, 0, -1):
        tail += comb(n, i) * p**i * (1 - p) ** (n - i)
        if tail > delta:
            break
        least = i
    return least


# A tail probability of exactly δ is enough: P(Bin(3, 1/2) = 0) = 1/8.
@example(3, 0.5, 0.125)
@example(3, 0.5, 0.1249)
@settings(deadline=None)
@given(
    st.integers(1, 150),
    st.sampled_from([0.01, 0.05, 0.1, 0.2, 0.37, 0.49]),
    st.sampled_from([0.01, 0.05, 0.125, 0.3, 0.5]),
)
def test_the_threshold_is_the_order_statistic_of_algorithm_2(n, alpha, delta):
    scores = np.random.default_rng(n).permutation(n)
    order_statistic = algorithm_2(n, alpha, delta)
    expected = None if order_statistic is None else float(order_statistic - 1)
    assert threshold(scores, alpha, delta) == expected


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.1, 0.2])
@pytest.mark.parametrize("delta", [0.01, 0.05, 0.1])
def test_the_smallest_sample_is_that_of_nproc(alpha, delta):
    least = ceil(log(delta) / log(1 - alpha))
    assert required_calibration_rows(alpha, delta) == least
    assert required_calibration_rows(alpha, delta, rule="binomial") == least
    assert threshold(np.arange(least), alpha, delta) == least - 1
    assert threshold(np.arange(least - 1), alpha, delta) is None


@pytest.mark.parametrize("n", [59, 100, 1000, 100_000])
def test_the_error_bound_is_clopper_and_pearsons_and_at_most_alpha(n):
    sample = CalibrationSample.build(np.arange(n))
    chosen = BINOMIAL.select(sample, 0.05, 0.05)
    n_tail = n - 1 - int(chosen.threshold)
    assert chosen.error_bound <= 0.05
    # At the bound itself so short a tail has probability δ.
    assert binom.cdf(n_tail, n, chosen.error_bound) == pytest.approx(0.05)


def test_with_ties_to_accept_the_threshold_itself_would_break_the_promise():
    alpha, delta, repeats = 0.1, 0.05, 400
    rng = np.random.default_rng(0)
    scores = np.rint(2 * rng.normal(size=(repeats, 500))) / 2
    chosen = np.array([threshold(row, alpha, delta) for row in scores])
    # Rounded to halves, P(h > C) = P(z > C + 1/4) and P(h ≥ C) = P(z > C − 1/4).
    strictly = ndtr(-(chosen + 0.25)) > alpha
    or_equal = ndtr(-(chosen - 0.25)) > alpha
    assert strictly.mean() <= delta
    assert or_equal.mean() > 0.9


def test_missing_rows_are_refused():
    lost = CalibrationSample.build([1.0, 2.0], [1.0, 0.0], 1.0)
    weighted = CalibrationSample.build([1.0, 2.0], [1.0, 2.0], 2.0)
    for sample in (lost, weighted):
        with pytest.raises(ValueError, match="complete calibration rows"):
            BINOMIAL.select(sample, 0.1, 0.1)
