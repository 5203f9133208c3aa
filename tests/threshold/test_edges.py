"""Uncertain weights: every rule takes the worst that they may be."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from missratio.threshold import CalibrationSample, make_rule
from missratio.threshold.betting import Bet, largest_bet, log_capital

RULES = (
    "paper",
    "bernstein",
    "thinning",
    "betting",
    "flipped-betting",
    "tuned-betting",
)
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


@settings(deadline=None, max_examples=40)
@given(
    n=st.integers(1, 200),
    seed=st.integers(0, 2**32),
    factor=st.floats(1.0, 3.0),
    ratio=st.floats(0.0, 1.0),
    share=st.floats(0.0, 1.0),
    boldness=st.floats(0.01, 0.98),
)
def test_capital_is_at_most_what_any_weights_between_would_make(
    n, seed, factor, ratio, share, boldness
):
    alpha = 0.1
    scores, weights = draw(n, seed)
    low, high = widened(weights, factor)
    # Each row somewhere else between its edges.
    place = np.random.default_rng(seed).uniform(size=n) ** (4 * share)
    between = low + place * (high - low)
    on_tail = boldness * float(largest_bet(ratio, alpha, BOUND))
    bet = Bet(on_tail, ratio * on_tail)
    worst = CalibrationSample.build(scores, weights, BOUND, (low, high))
    true = CalibrationSample.build(scores, between, BOUND)
    n_tail = worst.n_observed
    lower = log_capital(worst, bet, alpha, n_tail)
    assert (lower <= log_capital(true, bet, alpha, n_tail) + 1e-9).all()
    # And it falls along the tail, as it does for known weights.
    assert (np.diff(lower) <= 1e-12).all()


@settings(deadline=None, max_examples=40)
@given(
    n=st.integers(1, 400),
    seed=st.integers(0, 2**32),
    factor=st.floats(1.0, 3.0),
    share=st.floats(0.0, 1.0),
)
def test_thinning_by_edges_is_stricter_than_by_any_weights_between(
    n, seed, factor, share
):
    scores, weights = draw(n, seed)
    low, high = widened(weights, factor)
    between = low + share * (high - low)
    worst = CalibrationSample.build(scores, weights, BOUND, (low, high))
    true = CalibrationSample.build(scores, between, BOUND)
    if worst.n_observed:
        assert select("thinning", worst, None) >= select("thinning", true, None)


@pytest.mark.parametrize(
    ("name", "bound", "edge"),
    [
        ("paper", BOUND, 1),
        ("bernstein", BOUND, 1),
        ("counting", BOUND, 1),
        ("flipped-betting", None, 0),
    ],
)
def test_some_rules_use_the_upper_or_the_lower_edge_alone(name, bound, edge):
    scores, weights = draw(20_000, 0)
    edges = widened(weights, 1.2)
    both = CalibrationSample.build(scores, weights, bound, edges)
    alone = CalibrationSample.build(scores, edges[edge], bound)
    assert select(name, both, None) == select(name, alone, None) < np.inf


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        (([1.0, 1.6], [2.0, 2.0]), "between their edges"),
        (([1.0, 1.0], [2.0, 1.2]), "between their edges"),
        (([1.0, 1.0], [2.0, 9.0]), "exceeds the bound"),
        (([1.0], [2.0]), "one for each score"),
        (([1.0, 1.0], [2.0, np.inf]), "finite"),
    ],
)
def test_edges_that_make_no_sense_are_refused(edges, message):
    edges = tuple(np.array(edge) for edge in edges)
    with pytest.raises(ValueError, match=message):
        CalibrationSample.build([0.0, 1.0], [1.5, 1.5], 5.0, edges)
