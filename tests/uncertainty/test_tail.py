"""Rows that would decide, and were hardly to be seen."""

import warnings

import numpy as np
import pytest

import missratio as mr
from missratio.uncertainty import UnreliableIntervalWarning


def fitted(slope, n_rows=300, seed=0):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(2 * n_rows, 1)) + np.repeat([0.5, 0.0], n_rows)[:, None]
    phi = mr.LogisticMissingness(0.0, [slope], rowwise=True)
    X = np.concatenate([mr.corrupt(Z[:n_rows], phi, rng), Z[n_rows:]])
    y = np.repeat([1, 0], n_rows)
    return mr.KLIEP(missingness={1: phi}).fit(X, y), X, y


def uncertainty(slope, seed=0):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return mr.ratio_uncertainty(*fitted(slope, seed=seed))


def test_a_mild_phi_is_reliable():
    assert uncertainty(0.5).reliable.all()


def test_a_steep_phi_is_not_whatever_was_seen():
    """Samples without a heavy row look harmless, and are the ones that are wrong."""
    assert not any(uncertainty(3.0, seed).reliable.any() for seed in range(12))


def test_that_is_said():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ratio, X, y = fitted(3.0)
    with pytest.warns(UnreliableIntervalWarning, match="would if they had been"):
        mr.ratio_uncertainty(ratio, X, y)


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


def test_a_heavy_tail_is_not_reliable_whatever_was_seen():
    """The weights' second moment is infinite; the log-odds are far from normal."""
    phi = mr.LogisticMissingness(-2.0, [1.0])
    assert not any(called_reliable(phi, seed) for seed in range(12))


def test_a_light_tail_is_reliable():
    phi = mr.LogisticMissingness(-2.0, [0.3])
    assert all(called_reliable(phi, seed) for seed in range(6))


def test_values_that_never_go_missing_make_no_tail():
    def step(X):
        return np.where(X > 3.0, 0.5, 0.0)

    phi = mr.FunctionMissingness(step, rowwise=False)
    assert all(called_reliable(phi, seed) for seed in range(6))


@pytest.mark.parametrize(
    "phi",
    [
        mr.StepMissingness(direction=1.0, threshold=1.5, probability=0.9),
        mr.StepMissingness(direction=1.0, threshold=3.0, probability=0.9),
        mr.FunctionMissingness(
            lambda X: 0.95 / (1.0 + np.exp(2.0 - X)), rowwise=False, maximum=0.95
        ),
    ],
    ids=["step", "rare step", "logistic below .95"],
)
def test_a_bound_on_weights_is_enough(phi):
    assert sum(called_reliable(phi, seed) for seed in range(10)) >= 9
