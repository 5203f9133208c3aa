"""Test martingales: no bet gains on average where the error is α or more."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from missratio.threshold import CalibrationSample, make_rule
from missratio.threshold.betting import (
    Bet,
    largest_bet,
    largest_tail,
    log_capital,
    mixture,
    tune_bet,
)

ALPHAS = st.sampled_from([0.01, 0.05, 0.1, 0.2, 0.4])
RATIOS = st.one_of(st.sampled_from([0.0, 0.1, 1.0]), st.floats(0.0, 1.0))


def bet_of(ratio, alpha, bound, boldness=0.98):
    """A bet (λ, ratio·λ) at a share of the largest possible."""
    on_tail = boldness * float(largest_bet(ratio, alpha, bound))
    return Bet(on_tail, ratio * on_tail)


def factors(bet, alpha, weight, bound):
    """What one row makes of the capital: missing, outside and within the tail."""
    missing = CalibrationSample.build([0.0], [0.0], bound)
    observed = CalibrationSample.build([0.0], [weight], bound)
    capital = np.exp(log_capital(observed, bet, alpha, 1))
    return np.exp(log_capital(missing, bet, alpha, 0))[0], capital[0], capital[1]


@st.composite
def samples(draw, bound=5.0):
    n = draw(st.integers(1, 60))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    kind = draw(st.sampled_from(["up", "down", "constant", "none"]))
    z = rng.normal(size=n)
    # The same probability of weight B up, down, or anywhere in between.
    phi = {"up": 0.8 * (z > 0), "down": 0.8 / (1 + np.exp(2 * z))}.get(
        kind, np.full(n, 0.5 if kind == "constant" else 0.0)
    )
    weights = np.where(rng.uniform(size=n) < phi, 0.0, 1.0 / (1.0 - phi))
    if draw(st.booleans()):
        z = np.rint(z)
    return CalibrationSample.build(z, weights, bound)


@settings(deadline=None)
@given(RATIOS, ALPHAS, st.floats(1.0, 100.0), st.floats(0.0, 1.0))
def test_capital_stays_positive_for_all_weights_up_to_the_bound(
    ratio, alpha, bound, share
):
    bet = bet_of(ratio, alpha, bound)
    weight = 1.0 + share * (bound - 1.0)
    assert min(factors(bet, alpha, weight, bound)) > 0.0


def test_without_a_bound_only_the_flipped_bet_is_safe():
    assert largest_bet(0.999, 0.1, None) == 0.0
    assert largest_bet(1.0, 0.1, None) == pytest.approx(1 / 0.9)


@settings(deadline=None)
@given(
    RATIOS,
    ALPHAS,
    st.lists(
        st.tuples(st.floats(0.01, 1.0), st.floats(0.0, 0.9), st.booleans()),
        min_size=1,
        max_size=5,
    ),
    st.floats(0.01, 0.98),
)
def test_no_bet_gains_on_average_where_the_error_is_alpha_or_more(
    ratio, alpha, law, boldness
):
    mass = np.array([point[0] for point in law])
    mass /= mass.sum()
    error = sum(m for m, (_, _, above) in zip(mass, law, strict=True) if above)
    bound = 10.0
    bet = bet_of(ratio, alpha, bound, boldness)
    mean = 0.0
    for m, (_, phi, above) in zip(mass, law, strict=True):
        missing, outside, within = factors(bet, alpha, 1.0 / (1.0 - phi), bound)
        mean += m * (phi * missing + (1.0 - phi) * (within if above else outside))
    assert mean == pytest.approx(1.0 + bet.on_tail * (alpha - error))
    if error >= alpha:
        assert mean <= 1.0 + 1e-9


@settings(deadline=None)
@given(samples(), RATIOS, ALPHAS)
def test_capital_falls_along_the_tail(sample, ratio, alpha):
    capital = log_capital(sample, bet_of(ratio, alpha, 5.0), alpha, sample.n_observed)
    assert len(capital) == sample.n_observed + 1
    assert (np.diff(capital) < 0.0).all()


@settings(deadline=None)
@given(samples(), RATIOS, ALPHAS, st.floats(0.01, 0.98))
def test_capital_is_the_product_over_the_rows(sample, ratio, alpha, boldness):
    bet = bet_of(ratio, alpha, 5.0, boldness)
    weights = np.concatenate(
        [sample.ranked.weights, np.zeros(sample.n_rows - sample.n_observed)]
    )
    n_tail = sample.n_observed // 2
    in_tail = np.arange(sample.n_rows) < n_tail
    terms = 1.0 + bet.on_tail * (alpha - weights * in_tail)
    terms += bet.on_weight * (weights - 1.0)
    found = log_capital(sample, bet, alpha, n_tail)[n_tail]
    assert found == pytest.approx(np.log(terms).sum(), abs=1e-9)


@settings(deadline=None)
@given(samples(), RATIOS, ALPHAS, st.sampled_from([0.01, 0.1, 0.5, 0.9]))
def test_the_shortcut_never_cuts_off_a_tail_that_passes(sample, ratio, alpha, delta):
    for bets in (mixture(ratio, alpha, 5.0), [bet_of(ratio, alpha, 5.0)]):
        all_tails = [log_capital(sample, bet, alpha, sample.n_observed) for bet in bets]
        average = np.logaddexp.reduce(all_tails) - math.log(len(bets))
        passing = np.flatnonzero(average >= math.log(1.0 / delta))
        expected = int(passing.max()) if len(passing) else -1
        assert expected < len(log_capital(sample, bets[0], alpha))
        assert largest_tail(sample, bets, alpha, delta) == expected


@settings(deadline=None)
@given(st.integers(1, 80), st.integers(0, 80), ALPHAS, st.floats(0.01, 0.98))
def test_under_constant_phi_a_bet_can_be_on_the_observed_rows_alone(
    n_observed, n_missing, alpha, boldness
):
    bound = 2.0
    scores = np.arange(n_observed + n_missing, dtype=float)
    weights = np.repeat([bound, 0.0], [n_observed, n_missing])
    thinned = CalibrationSample.build(scores, weights, bound)
    observed = CalibrationSample.build(scores[:n_observed])
    bet = bet_of(alpha, alpha, bound, boldness)
    plain = Bet(bet.on_tail * bound, 0.0)
    np.testing.assert_allclose(
        log_capital(thinned, bet, alpha, n_observed),
        log_capital(observed, plain, alpha, n_observed),
        atol=1e-9,
    )


@settings(deadline=None)
@given(samples(), ALPHAS, st.integers(20, 100_000), st.sampled_from([5.0, 50.0, None]))
def test_a_tuned_bet_is_always_a_safe_one(training, alpha, n_rows, bound):
    assume(training.n_observed)
    bet, error, kept, tail = tune_bet(training, alpha, 0.05, n_rows, bound)
    assert bet.on_tail > 0.0
    assert 0.0 <= bet.on_weight <= bet.on_tail * (1 + 1e-12)
    assert error >= 0.0
    # No weight is above the bound, and all are certain.
    assert (kept, tail) == pytest.approx((1.0, 1.0))
    for weight in (1.0, 2.0, bound or 1e6):
        assert min(factors(bet, alpha, weight, bound)) > 0.0


@pytest.mark.filterwarnings("ignore:divide by zero")
def test_bets_keep_their_sign_where_weights_are_beyond_rounding():
    # φ = 1 − 2⁻⁶⁰: the factor of a row in the tail is 1 − λ(1 − α), however heavy.
    bet = bet_of(1.0, 0.1, None)
    sample = CalibrationSample.build([1.0], [2.0**60])
    capital = log_capital(sample, bet, 0.1, 1)
    assert capital[1] == pytest.approx(math.log(1.0 - bet.on_tail * 0.9))


def test_a_weight_above_the_bound_that_a_bet_was_made_for_is_refused():
    """It could lose more than there is: a capital below zero has no logarithm."""
    bet = bet_of(0.0, 0.1, 2.0)
    sample = CalibrationSample.build([1.0, 0.0], [2.0, 3.0])
    assert np.isfinite(log_capital(sample, bet, 0.1, 1)).all()
    with pytest.raises(ValueError, match="A weight of 3 would lose more than a bet"):
        log_capital(sample, bet, 0.1, 2)


# Uncertain weights: every rule takes the worst that they may be.


BETTING = ("betting", "flipped-betting", "tuned-betting")
RULES = ("paper", "bernstein", "thinning", *BETTING)
WEIGHTED = (*RULES, "auto")
BOUND = 12.0


def draw(n, seed, kind="up", ties=False):
    """Scores of N(0, 1) and weights 1/(1 − φ), zero where missing."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n)
    phi = {
        "up": 0.7 / (1 + np.exp(-2 * z)),
        "down": 0.7 / (1 + np.exp(2 * z)),
        "constant": np.full(n, 0.3),
    }[kind]
    weights = np.where(rng.uniform(size=n) < phi, 0.0, 1.0 / (1.0 - phi))
    return np.rint(2 * z) / 2 if ties else z, weights


def widened(weights, factor):
    """Edges at which the odds of being missing are wrong by a factor."""
    odds = np.maximum(weights - 1.0, 0.0)
    seen = weights > 0.0
    return seen * (1.0 + odds / factor), seen * (1.0 + odds * factor)


def sample_of(n, seed, factor=None, kind="up", ties=False, bound=BOUND):
    scores, weights = draw(n, seed, kind, ties)
    edges = None if factor is None else widened(weights, factor)
    return CalibrationSample.build(scores, weights, bound, edges, random_state=seed)


def select(name, sample, training, alpha=0.2, delta=0.1):
    rule = make_rule(name, training=training, complete=False)
    threshold = rule.select(sample, alpha, delta).threshold
    return np.inf if threshold is None else threshold


@pytest.mark.parametrize("name", WEIGHTED)
@pytest.mark.parametrize("ties", [False, True])
@settings(deadline=None, max_examples=15)
@given(
    n=st.integers(1, 1500),
    seed=st.integers(0, 2**32),
    kind=st.sampled_from(["up", "down", "constant"]),
)
def test_edges_that_meet_change_nothing(name, ties, n, seed, kind):
    plain = sample_of(n, seed, None, kind, ties)
    met = sample_of(n, seed, 1.0, kind, ties)
    training = sample_of(400, 1, None, kind)
    if plain.n_observed:
        assert select(name, met, training) == select(name, plain, training)


@pytest.mark.parametrize("name", RULES)
@settings(deadline=None, max_examples=25)
@given(
    n=st.integers(50, 3000),
    seed=st.integers(0, 2**32),
    factors=st.tuples(st.floats(1.0, 3.0), st.floats(1.0, 3.0)),
    kind=st.sampled_from(["up", "down", "constant"]),
    ties=st.booleans(),
)
def test_wider_edges_never_lower_the_threshold(name, n, seed, factors, kind, ties):
    # The training rows, and so the bet, are the same.
    training = sample_of(400, 1, None, kind)
    narrow, wide = sorted(factors)
    thresholds = [
        select(name, sample_of(n, seed, factor, kind, ties), training)
        for factor in (None, narrow, wide)
    ]
    assert thresholds == sorted(thresholds)


def between(n, seed, factor, place):
    """A sample of uncertain weights, and one of weights somewhere between the edges."""
    scores, weights = draw(n, seed)
    low, high = widened(weights, factor)
    # Rounding must not take it beyond an edge.
    weights = np.clip(low + place * (high - low), low, high)
    worst = CalibrationSample.build(scores, weights, BOUND, (low, high))
    return worst, CalibrationSample.build(scores, weights, BOUND)


SIZES, SEEDS, FACTORS = st.integers(1, 400), st.integers(0, 2**32), st.floats(1.0, 3.0)
SHARES = st.floats(0.0, 1.0)


@settings(deadline=None, max_examples=40)
@given(SIZES, SEEDS, FACTORS, SHARES, SHARES, st.floats(0.01, 0.98))
def test_capital_is_at_most_what_any_weights_between_would_make(
    n, seed, factor, share, ratio, boldness
):
    # Each row somewhere else between its edges.
    place = np.random.default_rng(seed).uniform(size=n) ** (4 * share)
    worst, true = between(n, seed, factor, place)
    bet, n_tail = bet_of(ratio, 0.1, BOUND, boldness), worst.n_observed
    lower = log_capital(worst, bet, 0.1, n_tail)
    assert (lower <= log_capital(true, bet, 0.1, n_tail) + 1e-9).all()
    # And it falls along the tail, as it does for known weights.
    assert (np.diff(lower) <= 1e-12).all()


@settings(deadline=None, max_examples=40)
@given(SIZES, SEEDS, FACTORS, SHARES)
def test_thinning_by_edges_is_stricter_than_by_any_weights_between(
    n, seed, factor, share
):
    worst, true = between(n, seed, factor, share)
    if worst.n_observed:
        assert select("thinning", worst, None) >= select("thinning", true, None)


UPPER = [(name, BOUND, 1) for name in ("paper", "bernstein", "counting")]


@pytest.mark.parametrize(
    ("name", "bound", "edge"), [*UPPER, ("flipped-betting", None, 0)]
)
def test_some_rules_use_the_upper_or_the_lower_edge_alone(name, bound, edge):
    scores, weights = draw(20_000, 0)
    edges = widened(weights, 1.2)
    both = CalibrationSample.build(scores, weights, bound, edges)
    alone = CalibrationSample.build(scores, edges[edge], bound)
    assert select(name, both, None) == select(name, alone, None) < np.inf
