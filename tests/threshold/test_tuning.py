"""A bet that is tuned is the one of the formula, and expects what it should."""

import math

import numpy as np
import pytest

from missratio.threshold import (
    CalibrationSample,
    CountingRule,
    ThinningRule,
    TunedBettingRule,
    make_rule,
)
from missratio.threshold.betting import (
    GRID,
    SAFE,
    Bet,
    Doubt,
    _own_error,
    empty_tail_growth,
    largest_bet,
    log_capital,
    mixture,
    tune_bet,
)

ALPHA, DELTA, ROWS = 0.1, 0.05, 2000


def constant(bound, n_rows=4000, edges=None):
    """Rows that are all as likely to be missing, in numbers as expected."""
    weights = np.zeros(n_rows)
    weights[: round(n_rows / bound)] = bound
    scores = np.random.default_rng(0).permutation(n_rows).astype(float)
    if edges is not None:
        edges = tuple(factor * weights for factor in edges)
    return CalibrationSample.build(scores, weights, 9.0, edges)


def variance(bound, ratio):
    """Of W·1{h > C} − (γ/λ)(W − 1), where W is the bound or 0: see `tune_bet`."""
    both = (bound - 1.0) * ALPHA
    return bound * ALPHA - ALPHA**2 - 2 * ratio * both + ratio**2 * (bound - 1.0)


@pytest.mark.parametrize("ratio", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("bound", [1.25, 4.0])
@pytest.mark.parametrize("n_rows", [50, 2000, 10**6])
def test_the_bet_is_that_of_the_formula_or_the_largest_that_is_safe(
    ratio, bound, n_rows
):
    bet, _ = tune_bet(constant(bound), ALPHA, DELTA, n_rows, bound, ratio)
    best = math.sqrt(2 * math.log(1 / DELTA) / (n_rows * variance(bound, ratio)))
    expected = min(SAFE * largest_bet(ratio, ALPHA, bound), best)
    assert bet.on_tail == pytest.approx(expected, rel=1e-3)
    assert bet.on_weight == pytest.approx(ratio * bet.on_tail)


@pytest.mark.parametrize("bound", [1.25, 2.0, 4.0])
def test_where_missingness_is_constant_the_bet_is_on_observed_rows_alone(bound):
    """γ = λα makes the variance least: chance in the weights then has no part."""
    bet, _ = tune_bet(constant(bound), ALPHA, DELTA, 10**5, bound)
    assert bet.on_weight / bet.on_tail == pytest.approx(ALPHA, rel=0.02)
    bet, _ = tune_bet(constant(bound), ALPHA, DELTA, 10**5, None)
    assert bet.on_weight == bet.on_tail


@pytest.mark.parametrize("n_rows", [1000, 10**4, 10**5])
def test_the_error_to_expect_is_less_by_the_root_of_the_variance(n_rows):
    """α − √(2 v log(1/δ)/n) to second order, and its spread is that of the mean."""
    v = variance(2.0, ALPHA)
    _, root = tune_bet(constant(2.0, 40_000), ALPHA, DELTA, n_rows, 2.0, ALPHA)
    expected = ALPHA - math.sqrt(2 * v * math.log(1 / DELTA) / n_rows)
    assert root == pytest.approx(math.sqrt(expected), rel=0.02)


@pytest.mark.parametrize("ratio", [0.0, 0.4, 1.0])
def test_with_very_many_rows_the_error_to_expect_is_what_edges_leave_of_alpha(ratio):
    training = constant(2.0, 40_000, edges=(0.95, 1.1))
    _, root = tune_bet(training, ALPHA, DELTA, 10**9, 2.2, ratio)
    left = (ALPHA - ratio * 0.05) / (ratio * 0.95 + (1.0 - ratio) * 1.1)
    assert root**2 == pytest.approx(left, rel=5e-3)


@pytest.mark.parametrize("edges", [None, (0.9, 1.2)])
@pytest.mark.parametrize("n_rows", [60, 300, 3000])
@pytest.mark.parametrize("bound", [1.5, 4.0])
def test_auto_takes_the_largest_of_what_its_rules_expect(edges, n_rows, bound):
    training = constant(bound, edges=edges)
    bound *= 1.2  # which the largest that a weight may be doesn't exceed
    doubt = Doubt.of(training, ALPHA, bound)
    thinning = ThinningRule().expected_root(n_rows, bound, ALPHA, DELTA)
    counting = CountingRule().expected_root(n_rows, bound, ALPHA, DELTA)
    betting = TunedBettingRule(training).expected_root(n_rows, bound, ALPHA, DELTA)
    expected = {
        "thinning": thinning * math.sqrt(doubt.low / doubt.high_tail),
        "counting": counting / math.sqrt(doubt.high_tail),
        "tuned-betting": betting,
    }
    auto = make_rule("auto", training=training)
    rule, root = auto.choose(n_rows, bound, ALPHA, DELTA)
    assert root == pytest.approx(max(expected.values()))
    assert expected[rule.name] == pytest.approx(root)


@pytest.mark.parametrize("ratio", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("n_scored", [4, 300])
@pytest.mark.parametrize("heavy", [0.2, 0.7])
def test_the_error_of_ones_own_rows_is_that_of_every_tail_tried(ratio, n_scored, heavy):
    rng = np.random.default_rng(n_scored)
    scores = np.where(np.arange(300) < n_scored, rng.normal(size=300), -np.inf)
    weights = rng.choice([0.0, 1.0, 2.0], size=300, p=[0.2, 0.8 - heavy, heavy])
    sample = CalibrationSample.build(scores, weights, 2.0)
    on_tail = 0.5 * largest_bet(ratio, 0.3, 2.0)
    bet, needed = Bet(on_tail, ratio * on_tail), math.log(1.02)
    capital = log_capital(sample, bet, 0.3, sample.n_scored)
    masses = sample.tail_masses[: sample.n_scored + 1]
    expected = np.interp(-needed, -capital, masses) / 300
    found = _own_error(sample, bet, 0.3, needed, 1.0)
    assert found == pytest.approx(expected)
    assert found > 0.0


@pytest.mark.parametrize("seed", range(12))
def test_the_variance_that_a_bet_is_tuned_to_is_that_of_few_rows_too(seed):
    """W·1{h > C} − (γ/λ)(W − 1) has E[W·1{h > C}] = α and E W = 1, as rows will."""
    rng = np.random.default_rng(seed)
    n, ratio, alpha = int(rng.integers(3, 12)), rng.uniform(), rng.uniform(0.1, 0.6)
    weights = rng.choice([0.0, 1.0, 1.5, 3.0], size=n)
    weights[0] = 3.0
    training = CalibrationSample.build(rng.normal(size=n), weights, 3.0)
    in_tail = np.cumsum(training.weights) <= alpha * n
    loss = max((training.weights**2)[in_tail].sum() / n, alpha)
    both, square = loss - alpha, max((training.weights**2).sum() / n - 1.0, 0.0)
    v = loss - alpha**2 - 2 * ratio * both + ratio**2 * square
    v = max(v, alpha * (1 - alpha) / 4)
    bet, _ = tune_bet(training, alpha, DELTA, 10**6, 3.0, ratio)
    expected = math.sqrt(2 * math.log(1 / DELTA) / (10**6 * v))
    assert bet.on_tail == pytest.approx(expected)


def test_a_variance_that_rows_make_too_small_is_a_quarter_of_that_of_complete_ones():
    """All weight is in the tail: chance in it and in the weights would cancel."""
    alpha, weights = 0.4, np.where(np.arange(100) < 20, 2.0, 0.0)
    training = CalibrationSample.build(np.arange(100.0), weights, 2.0)
    bet, _ = tune_bet(training, alpha, DELTA, 10**6, 2.0, 1.0)
    expected = math.sqrt(2 * math.log(1 / DELTA) / (10**6 * alpha * (1 - alpha) / 4))
    assert bet.on_tail == pytest.approx(expected)


def test_doubt_is_by_how_much_the_edges_are_off():
    sample = constant(2.0, edges=(0.75, 1.5))
    doubt = Doubt.of(sample, ALPHA, None)
    assert doubt.shortfall == pytest.approx(0.25)
    assert doubt.low == pytest.approx(0.75)
    assert doubt.low_tail == pytest.approx(0.75)
    assert doubt.high_tail == pytest.approx(1.5)
    # Thinning keeps no row more often than the bound allows.
    assert Doubt.of(sample, ALPHA, 1.0).low == pytest.approx(0.5)
    assert Doubt.of(constant(2.0), ALPHA, 1.0).low == pytest.approx(0.5)
    # A tail of no whole row is judged by its first one.
    uneven = CalibrationSample.build(
        [2.0, 1.0], [2.0, 2.0], 9.0, (np.array([1.0, 2.0]), np.array([4.0, 2.0]))
    )
    few = Doubt.of(uneven, 0.01, None)
    assert (few.low_tail, few.high_tail) == (0.5, 2.0)


def test_bets_of_a_mixture_go_from_timid_to_the_boldest():
    bets = mixture(0.5, ALPHA, 2.0)
    boldest = SAFE * largest_bet(0.5, ALPHA, 2.0)
    assert len(bets) == GRID
    assert bets[-1].on_tail == pytest.approx(boldest)
    assert bets[0].on_tail == pytest.approx(0.005 * boldest)
    assert all(bet.on_weight == 0.5 * bet.on_tail for bet in bets)


@pytest.mark.parametrize("bound", [1.0, 3.0])
@pytest.mark.parametrize("ratio", [0.0, 0.1, 0.6, 1.0])
def test_an_empty_tail_grows_as_its_mean_log_factor(ratio, bound):
    for bet in mixture(ratio, ALPHA, bound):
        seen = 1 + bet.on_tail * ALPHA + bet.on_weight * (bound - 1)
        lost = 1 + bet.on_tail * ALPHA - bet.on_weight
        expected = math.log(seen) / bound + (1 - 1 / bound) * math.log(lost)
        assert empty_tail_growth(bet, ALPHA, bound) == pytest.approx(expected)
