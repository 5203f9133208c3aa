"""The binomial rule is the paper's Algorithm 2."""

from fractions import Fraction
from math import ceil, comb, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr
from scipy.stats import binom

from missratio.classifier import required_calibration_rows
from missratio.threshold import CalibrationSample, make_rule

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


def test_a_tail_probability_of_exactly_delta_is_enough():
    # P(Bin(3, 1/2) = 0) = 1/8.
    assert threshold([1.0, 2.0, 3.0], 0.5, 0.125) == 3.0
    assert threshold([1.0, 2.0, 3.0], 0.5, 0.1249) is None


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
