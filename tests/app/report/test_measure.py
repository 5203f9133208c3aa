"""Intervals of shares hold what they are for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from missratio.app.report.measure import EXACT, WEIGHTED, share_of, weighted_interval
from missratio.evaluation import exact_interval


@given(st.integers(1, 60), st.floats(0.1, 9.0), st.data())
def test_equal_weights_give_the_exact_interval(n, weight, data):
    events = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    share, interval = weighted_interval(events, np.full(n, weight), 0.95)
    assert share == pytest.approx(events.mean())
    assert interval == pytest.approx(exact_interval(int(events.sum()), n), abs=1e-6)


def test_rows_of_weight_zero_are_left_out():
    events = np.array([True, False, True, True])
    found = share_of(events, np.array([1.0, 1.0, 0.0, 0.0]), 0.95)
    assert found["estimate"] == 0.5
    assert found["rows"] == 2
    assert found["method"] == EXACT


def test_no_row_tells_nothing():
    found = share_of(np.zeros(3, dtype=bool), np.zeros(3), 0.95)
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


def test_all_events_are_a_share_of_one_whatever_weights_add_up_to():
    weights = np.full(6, 3.04318645189452)
    share, interval = weighted_interval(np.ones(6, dtype=bool), weights, 0.95)
    assert share == 1.0
    assert interval == pytest.approx(exact_interval(6, 6), abs=1e-6)


@pytest.mark.parametrize("first", [True, False])
def test_a_row_with_all_the_weight_decides_alone(first):
    events = np.array([first, not first, not first])
    share, (low, high) = weighted_interval(
        events, np.array([1.0, 1e-300, 1e-300]), 0.95
    )
    assert share == pytest.approx(float(first))
    assert 0.0 <= low <= high <= 1.0
    assert high - low > 0.9
