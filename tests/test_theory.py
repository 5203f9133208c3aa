"""The paper's quantities against their closed forms."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import expon, norm, poisson, uniform

from missratio.theory import (
    effective_sample_sizes,
    oracle_power,
    oracle_threshold,
    threshold_margin,
)


def test_the_effective_sample_size_is_the_smaller_of_both_classes():
    assert effective_sample_sizes(1000, 500, 0.75, 0.2) == pytest.approx((250, 250))
    assert effective_sample_sizes(1000, 500, 0.2, 0.5) == pytest.approx((250, 800))
    assert effective_sample_sizes(1000, 500) == (500, 1000)


@settings(deadline=None)
@given(st.floats(0.001, 0.5), st.floats(1.0, 1e6))
def test_the_margin_is_the_papers(delta, rows):
    expected = math.sqrt(16 * math.log(1 / delta) / rows)
    assert threshold_margin(delta, rows) == pytest.approx(expected)
    # Four times the rows are half the margin.
    assert threshold_margin(delta, 4 * rows) == pytest.approx(expected / 2)


def test_below_4794_effective_rows_the_papers_rule_has_no_power():
    assert threshold_margin(0.05, 4793) > 0.1 > threshold_margin(0.05, 4794)


@pytest.mark.parametrize("alpha", [0.01, 0.1, 0.3])
def test_the_oracles_threshold_is_the_quantile_of_a_continuous_law(alpha):
    assert oracle_threshold(norm(), alpha) == pytest.approx(norm.isf(alpha))
    assert oracle_threshold(expon(), alpha) == pytest.approx(-math.log(alpha))
    assert oracle_threshold(uniform(), alpha) == pytest.approx(1 - alpha)


@settings(deadline=None)
@given(st.floats(0.01, 0.99), st.floats(0.5, 20.0))
def test_for_a_discrete_law_it_is_the_smallest_that_keeps_alpha(alpha, mean):
    law = poisson(mean)
    threshold = oracle_threshold(law, alpha)
    assert law.sf(threshold) <= alpha * (1 + 1e-9)
    assert law.sf(threshold - 1) > alpha * (1 - 1e-9)


@settings(deadline=None)
@given(
    st.lists(st.integers(-5, 5), min_size=1, max_size=40),
    st.sampled_from([0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7]),
)
def test_for_a_sample_it_is_the_smallest_that_keeps_alpha(values, alpha):
    scores = np.array(values, dtype=float)
    threshold = oracle_threshold(scores, alpha)
    assert threshold in scores
    assert np.mean(scores > threshold) <= alpha + 1e-12
    lower = scores[scores < threshold]
    if len(lower):
        assert np.mean(scores > lower.max()) > alpha - 1e-12


def test_the_oracles_power_in_the_papers_example():
    threshold = oracle_threshold(norm(), 0.1)
    assert oracle_power(norm(1.5), threshold) == pytest.approx(0.586, abs=5e-4)
    assert oracle_power([1.0, 2.0, 3.0, 4.0], 2.0) == 0.5
