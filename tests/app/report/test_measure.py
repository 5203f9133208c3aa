"""Intervals of shares hold what they are for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from missratio.app.report.measure import EXACT, WEIGHTED, share_of
from missratio.evaluation import exact_interval


@given(st.lists(st.booleans(), min_size=1, max_size=60), st.floats(0.1, 9.0))
def test_equal_weights_give_the_exact_interval_and_nearly_equal_ones_nearly(
    events, weight
):
    events, n = np.array(events), len(events)
    exact = exact_interval(int(events.sum()), n)
    weights = np.full(n, weight)
    for method in (EXACT, WEIGHTED) if n > 1 else (EXACT,):
        found = share_of(events, weights, 0.95)
        assert found["method"] == method
        assert found["estimate"] == pytest.approx(events.mean())
        assert (found["low"], found["high"]) == pytest.approx(exact, abs=1e-6)
        weights[0] *= 1.0 + 1e-12


def test_rows_of_weight_zero_are_left_out_and_no_row_tells_nothing():
    events = np.array([True, False, True, True])
    found = share_of(events, np.array([1.0, 1.0, 0.0, 0.0]), 0.95)
    assert (found["estimate"], found["rows"]) == (0.5, 2)
    found = share_of(events, np.zeros(4), 0.95)
    assert found["estimate"] is None
    assert (found["low"], found["high"]) == (0.0, 1.0)


@pytest.mark.parametrize("threshold", [0.5, 1.5, -1.0])
def test_weighted_intervals_hold_the_share_before_values_went_missing(threshold):
    rng = np.random.default_rng(0)
    truth, held, draws = norm.sf(threshold), 0, 600
    for _ in range(draws):
        z = rng.normal(size=300)
        phi = np.where(z > 0.0, 0.7, 0.1)
        seen = rng.uniform(size=300) >= phi
        found = share_of(z > threshold, seen / (1.0 - phi), 0.95)
        assert found["method"] == WEIGHTED
        held += found["low"] <= truth <= found["high"]
    assert held / draws >= 0.93


@pytest.mark.parametrize("first", [True, False])
def test_a_row_with_all_the_weight_decides_alone(first):
    events = np.array([first, not first, not first])
    found = share_of(events, np.array([1.0, 1e-300, 1e-300]), 0.95)
    assert found["estimate"] == pytest.approx(float(first))
    assert 0.0 <= found["low"] <= found["high"] <= 1.0
    assert found["high"] - found["low"] > 0.9
