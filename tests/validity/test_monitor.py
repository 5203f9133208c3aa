"""False alarms of the monitor at many settings, drawn at random."""

import numpy as np
import pytest
from scipy.stats import binom

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
    assert binom.sf(raised - 1, n_repeats, delta) > 1e-3
