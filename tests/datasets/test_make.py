"""Samples of the simulated experiments are tables with NaN, labels and the truth."""

import numpy as np
import pytest

import missratio as mr
from missratio import datasets

MAKERS = [
    datasets.make_msd_5dim,
    datasets.make_np_mixture,
    datasets.make_naive_bayes,
    datasets.make_diff_variance,
    datasets.make_misspecification,
]
every = pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)


@every
def test_only_class_1_loses_values_and_the_others_are_as_drawn(make):
    sample = make(400, random_state=0)
    lost = np.isnan(sample.data)
    assert lost.any()
    assert not lost[sample.target == 0].any()
    np.testing.assert_array_equal(sample.data[~lost], sample.complete[~lost])
    assert sample.data.shape == (400, len(sample.feature_names))
    assert sample.simulation.name in sample.DESCR
    assert list(sample.target_names) == ["controlled", "numerator"]


@every
def test_the_share_of_missing_values_is_the_mean_of_phi(make):
    sample = make((0, 20_000), random_state=0)
    phi = sample.missingness[1].missing_probability(sample.complete)
    error = np.sqrt(0.25 / len(phi))
    lost = np.isnan(sample.data)
    found = lost.all(axis=1) if phi.ndim == 1 else lost
    assert (np.abs(found.mean(axis=0) - phi.mean(axis=0)) < 4.5 * error).all()


@every
def test_a_seed_gives_the_same_sample_and_another_seed_another(make):
    first, again, other = (make(50, random_state=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.data, again.data)
    assert not np.array_equal(first.complete, other.complete)


@every
def test_rows_are_shared_among_the_classes_and_shuffled(make):
    assert make(101, random_state=0).target.sum() == 51
    target = make((30, 70), random_state=0).target
    assert target.sum() == 70
    assert 0 < target[:30].sum() < 30


def test_generators_of_both_kinds_serve_and_move_on():
    for rng in (np.random.default_rng(0), np.random.RandomState(0)):
        first, second = (datasets.make_np_mixture(20, random_state=rng) for _ in "12")
        assert not np.array_equal(first.complete, second.complete)


@pytest.mark.parametrize("size", [-1, 2.5, (1, 2, 3), (3, -1), "many"])
def test_what_is_no_number_of_rows_is_refused(size):
    with pytest.raises(ValueError, match="n_samples"):
        datasets.make_np_mixture(size)


def test_parameters_reach_the_law():
    assert datasets.make_naive_bayes(10, rho=0.5).simulation.numerator.covariance[
        0, 1
    ] == pytest.approx(0.5)
    weights = datasets.make_misspecification(10, rho=0.1).simulation.numerator.weights
    np.testing.assert_allclose(weights, [0.9, 0.1])
    sample = datasets.make_diff_variance(10, variant="text")
    np.testing.assert_array_equal(sample.missingness[1].direction, [1, 0])


def test_weights_find_the_true_parameter_and_complete_cases_do_not():
    sample = datasets.make_msd_5dim(40_000, random_state=0)
    fits = [
        mr.KLIEP(missingness=phi).fit(sample.data, sample.target).coef_
        for phi in (sample.missingness, "ignore")
    ]
    distance = [np.linalg.norm(coef - sample.simulation.coef) for coef in fits]
    assert distance[0] < 0.06 < 0.2 < distance[1]
