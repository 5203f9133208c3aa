"""False alarms of the monitor at many settings, drawn at random."""

import numpy as np
import pytest
from promises import kept

from missratio import TypeIErrorMonitor

pytestmark = pytest.mark.validity


@pytest.mark.parametrize("setting", range(12))
def test_false_alarms_stay_below_delta(setting):
    design = np.random.default_rng([11, setting])
    alpha, delta = design.uniform(0.01, 0.4), design.uniform(0.02, 0.2)
    worst = design.uniform(0.0, 0.97)
    n_rows, n_repeats = int(design.integers(50, 2500)), 300
    raised = 0
    for repeat in range(n_repeats):
        rng = np.random.default_rng([setting, repeat])
        wrong = rng.random(n_rows) < alpha
        # Few different weights, so that it is quick.
        phi = np.where(wrong, worst, worst * rng.integers(0, 5, n_rows) / 4.0)
        weights = np.where(rng.random(n_rows) < phi, 0.0, 1.0 / (1.0 - phi))
        raised += TypeIErrorMonitor(alpha, delta).update(wrong, weights).alarm
    assert kept(raised, n_repeats, delta)


def test_false_alarms_stay_below_delta_where_good_and_just_kept_promises_alternate():
    # Additions to the bets after good stretches must not add false alarms.
    raised, n_repeats = 0, 400
    for repeat in range(n_repeats):
        rng = np.random.default_rng([17, repeat])
        error = np.repeat(rng.choice([0.0, 0.05, 0.1], 60), 50)
        raised += TypeIErrorMonitor(0.1, 0.1).update(rng.random(3000) < error).alarm
    assert kept(raised, n_repeats, 0.1)


def test_a_doubled_error_after_2000_good_rows_is_seen_within_350():
    delays = []
    for repeat in range(200):
        rng = np.random.default_rng([19, repeat])
        error = np.repeat([0.05, 0.2], [2000, 1500])
        row = TypeIErrorMonitor(0.1, 0.05).update(rng.random(3500) < error).alarm_row
        delays.append((row or np.inf) - 2000)
    assert np.median(delays) <= 350
