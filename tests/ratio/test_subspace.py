"""Ratios of few directions among many columns."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from missratio import (
    KLIEP,
    KernelRatio,
    StepMissingness,
    SubspaceRatio,
    corrupt,
    density_ratio,
)
from missratio.exceptions import FlatRatioWarning
from missratio.ratio import Two, WeightedTable
from missratio.ratio.subspace import differing_directions

SMALL = KernelRatio(centers=30, sigma_grid=3, l2_grid=4, random_state=0)


def samples(n, d, seed=0):
    """One column is shifted, another has half the spread."""
    rng = np.random.default_rng(seed)
    X1, X0 = rng.normal(size=(n, d)), rng.normal(size=(n, d))
    X1[:, 2] += 0.8
    X1[:, 5] *= 0.5
    return X1, X0


def test_the_directions_are_those_in_which_the_laws_differ():
    tables = [WeightedTable(X, np.full(4000, 1 / 4000)) for X in samples(4000, 10)]
    found = differing_directions(Two(*tables), 0.0)
    assert np.abs(found[:, 0]).argmax() == 2
    assert np.abs(found[:, 1]).argmax() == 5


def test_directions_follow_the_units_of_columns():
    X1, X0 = samples(500, 6)
    unit = np.array([1e-3, 1.0, 1e3, 1.0, 10.0, 0.1])
    weights = np.full(500, 1 / 500)
    one, two = (
        differing_directions(
            Two(WeightedTable(X1 * s, weights), WeightedTable(X0 * s, weights)),
            0.1,
        )
        for s in (np.ones(6), unit)
    )
    np.testing.assert_allclose(
        np.abs(X0 @ one)[:, :2], np.abs((X0 * unit) @ two)[:, :2], rtol=1e-5
    )


def test_it_beats_kernels_of_all_columns():
    X1, X0 = samples(800, 50)
    F1, F0 = samples(4000, 50, seed=1)
    losses = []
    for estimator in (SubspaceRatio(SMALL, random_state=0), SMALL, KLIEP(l2=0.01)):
        fitted = density_ratio(X1, X0, estimator)
        r1, r0 = fitted.predict_ratio(F1), fitted.predict_ratio(F0)
        losses.append(np.log1p(1 / np.maximum(r1, 1e-9)).mean() + np.log1p(r0).mean())
    assert losses[0] < min(losses[1:])


@pytest.mark.parametrize("d", [1, 5])
@pytest.mark.parametrize("shift", [3.0, 5.0])
def test_samples_that_lie_apart_give_no_flat_ratio(d, shift):
    rng = np.random.default_rng(1)
    X1, X0 = rng.normal(size=(2, 250, d))
    X1[:, 0] += shift
    fitted = density_ratio(X1, X0, SubspaceRatio(random_state=0))
    F1, F0 = rng.normal(size=(2, 500, d))
    F1[:, 0] += shift
    scores = fitted.decision_function(np.concatenate([F1, F0]))
    assert np.isfinite(scores).all()
    assert roc_auc_score(np.repeat([1, 0], 500), scores) > 0.95


def test_a_flat_ratio_is_said_to_be_so():
    X1, X0 = np.random.default_rng(0).normal(size=(2, 250, 1))
    with pytest.warns(FlatRatioWarning, match="one everywhere"):
        fitted = density_ratio(X1, X0, SubspaceRatio(random_state=0))
    assert (fitted.predict_ratio(X0) == 1.0).all()


@pytest.mark.filterwarnings("ignore::missratio.exceptions.FlatRatioWarning")
def test_equal_samples_give_a_flat_ratio():
    rng = np.random.default_rng(2)
    X1, X0 = rng.normal(size=(2, 200, 30))
    fitted = density_ratio(X1, X0, SubspaceRatio(SMALL, n_directions=1, random_state=1))
    assert np.std(fitted.predict_ratio(X0)) < 0.35


def test_weights_put_back_what_is_missing():
    Z1, X0 = samples(3000, 8)
    direction = np.zeros(8)
    direction[0] = 1.0
    phi = StepMissingness(direction, 0.0, 0.8)
    X1 = corrupt(Z1, phi, random_state=0)
    estimator = SubspaceRatio(SMALL, n_directions=2, random_state=0)
    weighted = density_ratio(X1, X0, estimator, missingness={1: phi})
    ignored = density_ratio(X1, X0, estimator, missingness="ignore")
    # Column 0 has one law in both classes, and drops out where it is weighed.
    strength = [np.abs(f.directions_[0][0]).max() for f in (weighted, ignored)]
    assert strength[0] < 0.5 * strength[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_directions": 0}, "n_directions"),
        ({"n_directions": [1.5]}, "n_directions"),
        ({"shrinkage": 2.0}, "shrinkage"),
        ({"cv": 1}, "cv"),
    ],
)
def test_bad_parameters_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        density_ratio(*samples(40, 6), SubspaceRatio(**options))
