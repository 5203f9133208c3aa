"""Intervals are reliable unless rows that were hardly to be seen would decide."""

import warnings

import numpy as np
import pytest

import missratio as mr


def called_reliable(phi, seed, n_rows=1000):
    """Both classes gamma, the ratio log-linear; class 1 loses values."""
    rng = np.random.default_rng(seed)
    Z = rng.gamma(2.0, np.repeat([1.0, 0.7], n_rows))[:, None]
    X = np.concatenate([mr.corrupt(Z[:n_rows], phi, rng), Z[n_rows:]])
    y = np.repeat([1, 0], n_rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ratio = mr.KLIEP(missingness={1: phi}).fit(X, y)
        return mr.ratio_uncertainty(ratio, X, y).reliable.all()


NEVER_MISSING = mr.FunctionMissingness(
    lambda X: np.where(X > 3.0, 0.5, 0.0), rowwise=False
)
BELOW = mr.FunctionMissingness(
    lambda X: 0.95 / (1.0 + np.exp(2.0 - X)), rowwise=False, maximum=0.95
)


@pytest.mark.parametrize(
    ("phi", "least"),
    [
        (mr.LogisticMissingness(-2.0, [0.3]), 6),
        (NEVER_MISSING, 6),
        (mr.StepMissingness(direction=1.0, threshold=1.5, probability=0.9), 9),
        (mr.StepMissingness(direction=1.0, threshold=3.0, probability=0.9), 9),
        (BELOW, 9),
    ],
    ids=["light tail", "often never missing", "step", "rare step", "below .95"],
)
def test_a_light_tail_or_a_bound_on_weights_is_enough(phi, least):
    seeds = range(6 if least == 6 else 10)
    assert sum(called_reliable(phi, seed) for seed in seeds) >= least


@pytest.mark.parametrize("rowwise", [False, True])
def test_a_heavy_tail_is_not_reliable_whatever_was_seen(rowwise):
    """Samples without a heavy row look harmless, and are the ones that are wrong.

    The weights' second moment is infinite; the log-odds are far from normal.
    """
    phi = mr.LogisticMissingness(-2.0, [1.0], rowwise)
    assert not any(called_reliable(phi, seed) for seed in range(12))


def test_a_step_beyond_which_hardly_a_row_was_to_be_seen_is_not_reliable():
    """Seven rows of a thousand lie beyond it, and a third of a row is observed."""
    phi = mr.StepMissingness(direction=1.0, threshold=7.0, probability=0.95)
    assert not any(called_reliable(phi, seed) for seed in range(12))
