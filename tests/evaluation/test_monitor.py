"""The monitor: false alarms at most δ for ever, and a breach is seen soon."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from missratio import TypeIErrorMonitor
from missratio.evaluation.monitor import BETS

VALIDITY = pytest.mark.validity
STREAMS = st.lists(st.tuples(st.booleans(), st.floats(0, 50)), min_size=1, max_size=60)


def alarms(draw, n_repeats, alpha, delta, seed=0):
    """In how many repeats an alarm was ever raised, and after how many rows."""
    rows = []
    for repeat in range(n_repeats):
        rng = np.random.default_rng([seed, repeat])
        rows.append(TypeIErrorMonitor(alpha, delta).update(*draw(rng)).alarm_row)
    return rows


def not_above(n_events, n_repeats, delta):
    """Whether so many violations are likely at a rate of delta."""
    return binom.sf(n_events - 1, n_repeats, delta) > 1e-4


def good_and_just_kept(rng):
    """Errors of a promise that is kept well, kept or just kept, in turn."""
    return np.repeat(rng.choice([0.0, 0.05, 0.1], 60), 50)


def weighted_stream(rng, error, n_rows=1500):
    """Wrong rows go missing more often; the weights are 1/(1 - φ), or 0."""
    wrong = rng.random(n_rows) < error
    phi = np.where(wrong, rng.choice([0.5, 0.9], n_rows), 0.2)
    weights = np.where(rng.random(n_rows) < phi, 0.0, 1.0 / (1.0 - phi))
    return wrong, weights


@pytest.mark.parametrize(
    ("alpha", "draw"),
    [
        (0.02, lambda rng: (rng.random(1000) < 0.02,)),
        (0.1, lambda rng: (rng.random(1000) < 0.1,)),
        (0.3, lambda rng: (rng.random(1000) < 0.3,)),
        (0.1, lambda rng: weighted_stream(rng, 0.1)),
        # Additions to the bets after good stretches must not add false alarms.
        (0.1, lambda rng: (rng.random(3000) < good_and_just_kept(rng),)),
    ],
)
@pytest.mark.parametrize("repeats", [60, pytest.param(400, marks=VALIDITY)])
def test_false_alarms_are_at_most_delta_however_often_one_looks(alpha, draw, repeats):
    raised = alarms(draw, repeats, alpha, 0.1)
    assert not_above(sum(row is not None for row in raised), repeats, 0.1)


@VALIDITY
@pytest.mark.parametrize("setting", range(12))
def test_false_alarms_stay_below_delta_at_levels_and_phi_drawn_at_random(setting):
    design = np.random.default_rng([11, setting])
    alpha, delta = design.uniform(0.01, 0.4), design.uniform(0.02, 0.2)
    worst, n_rows = design.uniform(0.0, 0.97), int(design.integers(50, 2500))

    def draw(rng):
        wrong = rng.random(n_rows) < alpha
        # Few different weights, so that it is quick.
        phi = np.where(wrong, worst, worst * rng.integers(0, 5, n_rows) / 4.0)
        return wrong, np.where(rng.random(n_rows) < phi, 0.0, 1.0 / (1.0 - phi))

    raised = alarms(draw, 300, alpha, delta, seed=setting)
    assert not_above(sum(row is not None for row in raised), 300, delta)


def test_leaving_the_missing_rows_out_would_be_caught():
    # Observed rows alone, without weights, at an error that is too large by far.
    def draw(rng):
        wrong, weights = weighted_stream(rng, 0.3)
        return (wrong[weights > 0],)

    blind = alarms(draw, 30, 0.1, 0.1)
    weighted = alarms(lambda rng: weighted_stream(rng, 0.3), 30, 0.1, 0.1)
    assert np.mean([row is not None for row in weighted]) > 0.95
    found = [row for row in blind if row is not None]
    assert np.mean([row for row in weighted if row]) < np.mean(found or [9e9])


@pytest.mark.parametrize(("good", "median"), [(0, 95), (2000, 350)])
@pytest.mark.parametrize("repeats", [40, pytest.param(200, marks=VALIDITY)])
def test_a_doubled_error_is_seen_soon_even_after_a_good_stretch(good, median, repeats):
    def draw(rng):
        return (rng.random(good + 800) < np.repeat([0.05, 0.2], [good, 800]),)

    raised = np.array([row or np.inf for row in alarms(draw, repeats, 0.1, 0.05)])
    assert np.median(raised - good) <= median


def test_labels_that_come_late_for_right_rows_alone_must_be_waited_for():
    def draw(rng, late):
        wrong = rng.random(1000) < 0.1
        came = np.arange(1000) + np.where(wrong, 0, late)
        return (wrong[np.argsort(came, kind="stable")],)

    as_they_come = alarms(lambda rng: draw(rng, 100), 30, 0.1, 0.05)
    assert sum(row is not None for row in as_they_come) >= 28
    waited = alarms(lambda rng: draw(rng, 0), 30, 0.1, 0.05)
    assert not_above(sum(row is not None for row in waited), 30, 0.05)


def test_an_alarm_after_a_good_stretch_does_not_claim_a_constant_error():
    rng = np.random.default_rng(0)
    monitor = TypeIErrorMonitor(0.1).update(rng.random(4000) < 0.05)
    monitor.update(rng.random(600) < 0.25)
    assert monitor.alarm
    assert monitor.bound.low < 0.1
    assert "It has risen since the first" in monitor.summary()


def test_the_capital_is_that_of_all_bets_whenever_they_began():
    # As the docstring has it, each bet on its own.
    rng = np.random.default_rng(3)
    wrong = rng.random(230) < 0.15
    capital = 0.0
    for begin in range(0, 231, 50):
        share = 0.95
        if begin:
            before, after = (0.05 / (1 + np.log1p(begin // 50 - i)) for i in (1, 0))
            share = before - after
        factors = 1 + BETS * (wrong[begin:, None] / 0.1 - 1)
        capital += share * factors.prod(axis=0).mean()
    capital += 0.05 / (1 + np.log1p(230 // 50))
    assert TypeIErrorMonitor(0.1).update(wrong).capital == pytest.approx(capital)


def test_the_confidence_sequence_covers_the_error_at_all_times_together():
    missed = 0
    for repeat in range(40):
        rng = np.random.default_rng([7, repeat])
        error = rng.uniform(0.02, 0.4)
        monitor = TypeIErrorMonitor(0.1, 0.1)
        monitor.update(*weighted_stream(rng, error, 800))
        missed += any(not p.low <= error <= p.high for p in monitor.history)
    assert not_above(missed, 40, 0.1)


@settings(max_examples=15, deadline=None)
@given(STREAMS, st.data())
def test_rows_may_come_in_any_batches(stream, data):
    wrong, weights = (np.array(part, dtype=float) for part in zip(*stream, strict=True))
    cut = data.draw(st.integers(0, len(wrong)))
    whole = TypeIErrorMonitor(0.1).update(wrong, weights)
    parts = TypeIErrorMonitor(0.1).update(wrong[:cut], weights[:cut])
    parts.update(wrong[cut:], weights[cut:])
    assert parts.n_rows == whole.n_rows
    assert parts.alarm_row == whole.alarm_row
    assert parts.capital == pytest.approx(whole.capital, rel=1e-9)
    assert parts.bound == pytest.approx(whole.bound)


@settings(max_examples=15, deadline=None)
@given(STREAMS)
def test_the_state_survives_as_json(stream):
    wrong, weights = (np.array(part, dtype=float) for part in zip(*stream, strict=True))
    monitor = TypeIErrorMonitor(0.2, 0.1).update(wrong, weights)
    again = TypeIErrorMonitor.from_dict(json.loads(json.dumps(monitor.to_dict())))
    assert again.to_dict() == monitor.to_dict()
    assert again.update([1, 0]).to_dict() == monitor.update([1, 0]).to_dict()


def test_a_state_whose_parts_contradict_each_other_is_refused():
    rng = np.random.default_rng(0)
    monitor = TypeIErrorMonitor(0.2).update(rng.random(700) < 0.15)
    state = TypeIErrorMonitor(0.2).update(*weighted_stream(rng, 0.15, 700)).to_dict()
    for sound in (monitor.to_dict(), state):
        assert TypeIErrorMonitor.from_dict(sound).to_dict() == sound
        n_rows = 10**9
        later = [[n_rows, *sound["history"][-1][1:]]]
        wrong, right = sound["wrong_weight"], sound["right_weight"]
        less, more = sound["against_less"], sound["against_more"]
        for change in (
            {"n_rows": n_rows}, {"n_rows": n_rows, "history": later}, {"n_rows": 690},
            {"n_rows": 720}, {"n_rows": 700.5}, {"n_rows": True},
            {"wrong_weight": wrong / 2}, {"wrong_weight": 3 * wrong},
            {"right_weight": right / 2}, {"wrong_weight": right, "right_weight": wrong},
            {"largest_weight": 0.1}, {"against_less": more, "against_more": less},
            {"against_less": [[0.0] * 24] * 96}, {"capital": [100.0] * 24},
            {"capital": [0.0] * 24}, {"capital": [-100.0] * 24}, {"history": []},
            {"history": sound["history"][:-1]}, {"history": sound["history"][::-1]},
            {"history": [*sound["history"][:-1], [700, 9.0, 0.0, 1.0]]},
        ):  # fmt: skip
            with pytest.raises(ValueError, match="not the state of a monitor"):
                TypeIErrorMonitor.from_dict({**sound, **change})


def test_before_the_first_row_nothing_is_claimed_and_an_alarm_stays():
    monitor = TypeIErrorMonitor(0.1)
    assert not monitor.alarm
    assert monitor.bound == (0.0, 1.0)
    assert "No row" in monitor.summary()
    monitor.update(np.ones(50))
    row = monitor.alarm_row
    monitor.update(np.zeros(10_000))
    assert monitor.alarm
    assert monitor.alarm_row == row
    assert "ALARM" in monitor.summary()


@pytest.mark.parametrize("bad", [0.0, 1.0, -1, float("nan"), "0.1", None])
def test_levels_must_be_probabilities(bad):
    with pytest.raises((ValueError, TypeError), match="alpha must"):
        TypeIErrorMonitor(bad)
    with pytest.raises((ValueError, TypeError), match="delta must"):
        TypeIErrorMonitor(0.1, bad)


@pytest.mark.parametrize(
    ("rows", "match"),
    [
        (([0.5],), "0 or a 1"),
        (([0, 1], [1.0]), "one entry for each of the 2 rows"),
        (([0], [-1.0]), "weights must be finite and lie between 0"),
        (([0], [np.inf]), "weights must be finite"),
        (([[0, 1]],), "0 or a 1"),
    ],
)
def test_rows_that_are_none_are_refused_and_change_nothing(rows, match):
    monitor = TypeIErrorMonitor(0.1, 0.05).update([0, 1])
    before = monitor.to_dict()
    with pytest.raises(ValueError, match=match):
        monitor.update(*rows)
    assert monitor.to_dict() == before


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"version": None}, "another version"),
        ({"capital": [0.0]}, "'capital' has the shape"),
        ({"capital": [-np.inf] * 24}, "'capital' must lie"),
        ({"capital": [-1e300] * 24}, "'capital' must lie"),
        ({"against_less": [[np.nan] * 24] * 96}, "'against_less' must lie"),
        ({"n_rows": -5}, "'n_rows' must lie"),
        ({"n_rows": np.inf}, "'n_rows' must lie"),
        ({"alarm_row": 51}, "'alarm_row' must lie"),
        # An alarm can't be taken back.
        ({"alarm_row": None}, "'history' has the point"),
        ({"wrong_weight": np.nan}, "'wrong_weight' must lie"),
        ({"wrong_weight": -1.0}, "'wrong_weight' must lie"),
        ({"history": None}, "not the state"),
        ({"history": [[1, np.nan, 0.0, 1.0]]}, "'history' has the point"),
        ({"history": [[1, 0.0, 0.6, 0.5]]}, "'history' has the point"),
        ({"another": 1}, "no monitor writes"),
    ],
)
def test_foreign_state_is_refused(change, match):
    state = TypeIErrorMonitor(0.1).update(np.ones(50)).to_dict()
    with pytest.raises(ValueError, match=match):
        TypeIErrorMonitor.from_dict({**state, **change})
    with pytest.raises(ValueError, match="not the state"):
        TypeIErrorMonitor.from_dict({"alpha": 0.1})
