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


def test_a_bound_on_weights_is_enough():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(600, 1))
    phi = mr.StepMissingness(direction=1.0, threshold=0.0, probability=0.8)
    X = np.concatenate([mr.corrupt(Z[:300], phi, random_state=0), Z[300:]])
    y = np.repeat([1, 0], 300)
    ratio = mr.KLIEP(missingness={1: phi}).fit(X, y)
    assert mr.ratio_uncertainty(ratio, X, y).reliable.all()
