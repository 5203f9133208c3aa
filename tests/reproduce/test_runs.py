"""Runs: who is in which split, what is lost, and what stands for NaN."""

import numpy as np
import pytest
from scipy.special import expit

import missratio as mr
from missratio.reproduce._runs import Loss, RealTable, SplitSizes, draw_run


def test_a_split_uses_every_row_once():
    X = np.arange(800.0)[:, None]
    table = RealTable(X, np.arange(800) >= 300)
    sizes, loss = SplitSizes(150, 100, 20), Loss.of(table, 0.0)
    run = draw_run(table, sizes, loss, np.random.default_rng(0), corrected=False)
    parts = run.denominator, run.calibration, run.complete, run.test
    assert [len(part) for part in parts] == [150, 150, 400, 100]
    # Normalised: the smallest and the next tell the scale.
    whole = np.sort(np.concatenate(parts).ravel())
    np.testing.assert_allclose(np.diff(whole), whole[1] - whole[0])
    assert max(part.max() for part in parts[:2]) < min(p.min() for p in parts[2:])


def test_training_rows_are_normalised(make_run):
    run = make_run()
    both = np.concatenate([run.denominator, run.numerator])
    np.testing.assert_allclose(np.nanmean(both, axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(np.nanstd(both, axis=0), 1.0)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_shift_gives_the_share_for_both_signs(table, share):
    for phi in Loss.of(table, share).models:
        mean = np.nanmean(phi.missing_probability(table.X), axis=0)
        np.testing.assert_allclose(mean, share, rtol=1e-8)


def test_without_a_shift_phi_is_one_half_at_the_mean_and_rises_or_falls(table):
    mean, spread = np.nanmean(table.X, axis=0), np.nanstd(table.X, axis=0)
    at = np.stack([mean, mean + spread])
    for phi, sign in zip(Loss.of(table, None).models, (1, -1), strict=True):
        expected = [[0.5] * 3, [expit(sign)] * 3]
        np.testing.assert_allclose(phi.missing_probability(at), expected)


def test_signs_are_drawn_for_each_column_and_run(table):
    rng, loss = np.random.default_rng(0), Loss.of(table, None)
    slopes = np.array([np.sign(loss.draw(rng)[1]) for _ in range(400)])
    assert np.abs(slopes.mean(axis=0)).max() < 0.2
    assert np.abs(np.corrcoef(slopes.T) - np.eye(3)).max() < 0.2


@pytest.mark.parametrize("share", [None, 0.0, 0.7])
def test_values_are_lost_as_often_as_the_runs_phi_says(make_run, share):
    runs = [make_run(share=share, number=number) for number in range(30)]
    lost = [np.isnan(run.numerator) for run in runs]
    phi = [run.missingness.missing_probability(run.complete) for run in runs]
    excess = np.concatenate([own - p for own, p in zip(lost, phi, strict=True)])
    # By value as well as in all: below and above the mean.
    for part in (excess, excess[np.concatenate([run.complete for run in runs]) > 0]):
        assert abs(part.mean()) < 4 * 0.5 / np.sqrt(part.size)


def test_what_is_not_lost_stays_and_only_lost_values_are_looked_up(make_run):
    run = make_run(queries=5)
    lost, queried = np.isnan(run.numerator), ~np.isnan(run.revealed)
    np.testing.assert_array_equal(run.numerator[~lost], run.complete[~lost])
    np.testing.assert_array_equal(run.revealed[queried], run.complete[queried])
    assert (queried.sum(axis=0) == 5).all()
    assert lost[queried].all()
    assert run.is_lossy


def test_a_share_of_zero_loses_nothing(make_run):
    run = make_run(share=0.0)
    assert not run.is_lossy
    assert np.isnan(run.revealed).all()


@pytest.mark.parametrize("corrected", [False, True])
def test_nan_is_filled_by_means(corrected):
    """Published, a mean of each split; corrected, one that doesn't tell the class."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (800, 1)) + 10.0 * (np.arange(800) >= 300)[:, None]
    X[rng.random(800) < 0.3] = np.nan
    table = RealTable(X, np.arange(800) >= 300)
    sizes, loss = SplitSizes(150, 100, 20), Loss.of(table, 0.0)
    run = draw_run(table, sizes, loss, rng, corrected=corrected)
    for part in (run.denominator, run.complete, run.calibration, run.test):
        values, counts = np.unique(part, return_counts=True)
        fill = values[counts.argmax()]
        others = part[part != fill]
        assert len(values) == 4
        if corrected:
            assert values[0] == fill or values[-1] == fill
        else:
            assert others.mean() == pytest.approx(fill)


def test_rows_that_are_alike_score_alike(make_run):
    run = make_run()
    scores = np.concatenate(run.linear_scores(np.array([0.3, -0.7, 0.1])))
    rows = np.concatenate([run.calibration, run.test])
    _, group = np.unique(rows, axis=0, return_inverse=True)
    for own in range(group.max() + 1):
        assert len(np.unique(scores[group == own])) == 1


def test_the_same_generator_gives_the_same_run(make_run):
    once, again, other = make_run(number=1), make_run(number=1), make_run(number=2)
    np.testing.assert_array_equal(once.numerator, again.numerator)
    assert once.seed == again.seed
    assert not np.array_equal(once.test, other.test)
    assert isinstance(once.missingness, mr.LogisticMissingness)
