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
    SAFE,
    Doubt,
    largest_bet,
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
