"""Calibration rows: what is kept of them, and what is refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from missratio.threshold import CalibrationSample


def test_missing_rows_count_but_are_not_kept():
    sample = CalibrationSample.build([3.0, np.nan, 1.0, 2.0], [2.0, 0.0, 1.0, 2.0], 2.0)
    assert sample.n_rows == 4
    assert sample.n_observed == 3
    np.testing.assert_array_equal(sample.scores, [3.0, 2.0, 1.0])
    np.testing.assert_array_equal(sample.weights, [2.0, 2.0, 1.0])


def test_complete_rows_have_weight_and_bound_one():
    sample = CalibrationSample.build([1.0, 2.0])
    np.testing.assert_array_equal(sample.weights, [1.0, 1.0])
    assert sample.bound == 1.0
    assert sample.effective_rows == 2.0


def test_the_effective_number_of_rows_is_kishs():
    sample = CalibrationSample.build([1.0, 2.0, 3.0], [1.0, 3.0, 0.0], 3.0)
    assert sample.effective_rows == pytest.approx(16 / 10)


def test_nothing_observed_is_worth_nothing():
    sample = CalibrationSample.build(np.full(5, np.nan), np.zeros(5), 2.0)
    assert sample.n_rows == 5
    assert sample.n_observed == 0
    assert sample.effective_rows == 0.0


@settings(deadline=None)
@given(
    st.lists(st.integers(-5, 5), min_size=1, max_size=30),
    st.integers(0, 40),
)
def test_at_most_n_tail_rows_score_above_the_threshold_and_no_lower_one_does(
    values, n_tail
):
    sample = CalibrationSample.build(values)
    scores = sample.scores
    threshold = sample.threshold(n_tail)
    assert (scores > threshold).sum() <= n_tail
    lower = scores[scores < threshold]
    if len(lower):
        assert (scores > lower.max()).sum() > n_tail


def test_the_estimated_error_is_the_weighted_share_above():
    sample = CalibrationSample.build([1.0, 2.0, 3.0, 4.0], [1.0, 1.0, 4.0, 2.0], 4.0)
    assert sample.estimated_error(2.0) == pytest.approx(6 / 8)
    assert sample.estimated_error(4.0) == 0.0


def test_an_observed_row_without_a_score_is_refused():
    with pytest.raises(ValueError, match="score of NaN"):
        CalibrationSample.build([1.0, np.nan])
    with pytest.raises(ValueError, match="score of NaN"):
        CalibrationSample.build([1.0, np.nan], [1.0, 1.0], 1.0)


def test_a_weight_above_the_bound_is_refused():
    with pytest.raises(ValueError, match=r"weight of 3 exceeds the bound 2"):
        CalibrationSample.build([1.0, 2.0], [1.0, 3.0], 2.0)
    # Rounding is not an excess.
    CalibrationSample.build([1.0], [1.0 / (1.0 - 0.8)], 5.0)


@pytest.mark.parametrize(
    ("scores", "weights", "message"),
    [
        ([[1.0], [2.0]], None, "one-dimensional"),
        ([1.0, 2.0], [1.0], "one for each score"),
        ([1.0, 2.0], [1.0, -1.0], "not negative"),
        ([1.0, 2.0], [1.0, np.inf], "finite"),
        ([1.0, 2.0], [1.0, np.nan], "finite"),
    ],
)
def test_what_is_no_sample_is_refused(scores, weights, message):
    with pytest.raises(ValueError, match=message):
        CalibrationSample.build(scores, weights)
