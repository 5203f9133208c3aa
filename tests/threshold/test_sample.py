"""Calibration rows: what is kept of them, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from missratio.threshold import CalibrationSample, LookUps, looked_up_sample


def test_missing_rows_count_but_are_not_kept():
    sample = CalibrationSample.build([3.0, np.nan, 1.0, 2.0], [2.0, 0.0, 1.0, 2.0], 2.0)
    assert sample.n_rows == 4
    assert sample.n_observed == 3
    np.testing.assert_array_equal(sample.ranked.scores, [3.0, 2.0, 1.0])
    np.testing.assert_array_equal(sample.ranked.weights, [2.0, 2.0, 1.0])
    # The effective number of rows is Kish's.
    sample = CalibrationSample.build([1.0, 2.0, 3.0], [1.0, 3.0, 0.0], 3.0)
    assert sample.effective_rows == pytest.approx(16 / 10)
    assert CalibrationSample.build([1.0, 2.0]).effective_rows == 2.0
    lost = CalibrationSample.build(np.full(5, np.nan), np.zeros(5), 2.0)
    assert (lost.n_rows, lost.n_observed, lost.effective_rows) == (5, 0, 0.0)


@settings(deadline=None)
@given(st.lists(st.integers(-5, 5), min_size=1, max_size=30), st.integers(0, 40))
def test_at_most_n_tail_rows_score_above_the_threshold_and_no_lower_one_does(
    values, n_tail
):
    sample = CalibrationSample.build(values)
    scores = sample.ranked.scores
    threshold = sample.threshold(n_tail)
    assert (scores > threshold).sum() <= n_tail
    lower = scores[scores < threshold]
    if len(lower):
        assert (scores > lower.max()).sum() > n_tail


def test_the_estimated_error_is_the_weighted_share_above():
    sample = CalibrationSample.build([1.0, 2.0, 3.0, 4.0], [1.0, 1.0, 4.0, 2.0], 4.0)
    assert sample.estimated_error(2.0) == pytest.approx(6 / 8)
    assert sample.estimated_error(4.0) == 0.0


@pytest.mark.parametrize(
    ("scores", "weights", "edges", "message"),
    [
        ([[1.0], [2.0]], None, None, "one-dimensional"),
        ([1.0, np.nan], None, None, "score of NaN"),
        ([1.0, np.nan], [1.0, 1.0], None, "score of NaN"),
        *[([1.0, 2.0], weights, None, message) for weights, message in (
            ([1.0], "one for each score"), ([1.0, -1.0], "not negative"),
            ([1.0, np.inf], "finite"), ([1.0, np.nan], "finite"),
            ([1.0, 3.0], "weight of 3 exceeds the bound 2"))],
        *[([0.0, 1.0], [1.5, 1.5], edges, message) for edges, message in (
            (([1.0, 1.6], [2.0, 2.0]), "between their edges"),
            (([1.0, 1.0], [2.0, 1.2]), "between their edges"),
            (([1.0, 1.0], [2.0, 9.0]), "exceeds the bound"),
            (([1.0], [2.0]), "one for each score"),
            (([1.0, 1.0], [2.0, np.inf]), "finite"))],
    ],
)  # fmt: skip
def test_what_is_no_sample_is_refused(scores, weights, edges, message):
    with pytest.raises(ValueError, match=message):
        CalibrationSample.build(scores, weights, 2.0, edges)
    # Rounding is no weight above the bound.
    CalibrationSample.build([1.0], [1.0 / (1.0 - 0.8)], 5.0)


def lossy(n=40, uncertain=False):
    rng = np.random.default_rng(0)
    weights = rng.choice([0.0, 1.0, 2.0, 4.0], n)
    edges = (0.5 * weights, np.minimum(2.0 * weights, 4.0)) if uncertain else None
    return CalibrationSample.build(rng.normal(size=n), weights, 4.0, edges)


SOUND = {
    "complete": lambda: CalibrationSample.build([3.0, 1.0, 2.0]),
    "weighted": lossy,
    "uncertain": lambda: lossy(uncertain=True),
    "looked up": lambda: looked_up_sample(np.arange(4.0), [1.0, 1.0, 0.5, 0.0]),
    "empty": lambda: CalibrationSample.build([np.nan] * 5, np.zeros(5), 2.0),
}


@pytest.mark.parametrize("kind", SOUND)
def test_a_sample_that_was_built_is_sound(kind):
    SOUND[kind]().check()


def swapped(column, place, value):
    changed = column.copy()
    changed[place] = value
    return changed


UNSOUND = {
    "NaN among scores": lambda s: replace(s, values=swapped(s.values, 0, np.nan)),
    "scores of another type": lambda s: replace(s, values=s.values.astype("f4")),
    "no array": lambda s: replace(s, masses=s.masses.tolist()),
    "a weight too few": lambda s: replace(s, masses=s.masses[1:]),
    "a draw too few": lambda s: replace(s, draws=s.draws[1:]),
    "an edge too few": lambda s: replace(s, edges=(s.edges[0][1:], s.edges[1])),
    "fewer rows than scores": lambda s: replace(s, n_rows=s.n_observed - 1),
    **{f"a weight of {w}": (lambda s, w=w: replace(
        s, masses=swapped(s.masses, 0, w), edges=None
    )) for w in (0.0, -1.0)},
    "a weight above the bound": lambda s: replace(s, bound=1.5),
    "weights beyond their edges": lambda s: replace(s, edges=s.edges[::-1]),
    "a coin above one": lambda s: replace(s, coin=1.5),
    "a coin of another type": lambda s: replace(s, coin="0.5"),
}  # fmt: skip


@pytest.mark.parametrize("what", UNSOUND)
def test_a_sample_that_was_not_built_is_refused(what):
    with pytest.raises(ValueError, match=r"sample's|weight|between their edges"):
        UNSOUND[what](lossy(uncertain=True)).check()


@pytest.mark.parametrize(
    ("stratum", "incomplete"),
    [
        (np.array([0, 0]), np.array([2])),
        (np.array([0.0, 0.0, 1.0]), np.array([2])),
        ([0, 0, 1], np.array([2])),
        (np.array([0, 0, -1]), np.array([2])),
        (np.array([0, 0, 2]), np.array([2])),
        (np.array([0, 1, 1]), np.array([1])),
    ],
    ids=["too few", "no whole numbers", "no array", "negative", "of no stratum",
         "more than there are"],
)  # fmt: skip
def test_look_ups_that_make_no_sense_are_refused(stratum, incomplete):
    sample = looked_up_sample(np.arange(4.0), [1.0, 1.0, 0.5, 0.0])
    with pytest.raises(ValueError, match="look-ups are not what it says"):
        replace(sample, lookups=LookUps(stratum, incomplete)).check()


def test_rows_that_were_drawn_are_known_unless_they_are_said_to_be_lost():
    sample = looked_up_sample([0.0, 1.0, np.nan, 3.0], [1.0, 0.5, 0.5, 0.0])
    assert (sample.n_observed, sample.n_known) == (3, 2)
    told = LookUps(sample.lookups.stratum, sample.lookups.incomplete)
    assert replace(sample, lookups=told).n_known == 3
