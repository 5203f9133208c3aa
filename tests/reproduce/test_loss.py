"""Runs: who is in which split, what is lost, and what stands for NaN."""

import numpy as np
import pytest
from scipy.special import expit

from missratio.reproduce._loss import Loss


def probability(loss, grid, upward):
    """φ at a grid, for signs as zeros and ones."""
    intercept, slope = loss.log_odds(upward)[:, :, None]
    return expit(intercept + slope * grid)


def test_a_split_uses_every_row_once(table, make_run):
    run = make_run()
    classes = [run.train, run.calibration], [run.numerator_train, run.test]
    for expected, parts in zip(table.rows, classes, strict=True):
        np.testing.assert_array_equal(np.sort(np.concatenate(parts)), expected)
    sizes = [len(part) for pair in classes for part in pair]
    assert sizes == [150, 150, 400, 100]


def test_histograms_are_those_of_the_rows(make_run):
    run = make_run()
    left = np.isnan(run.numerator_rows()).sum(axis=0)
    np.testing.assert_array_equal(run.lost.sum(axis=1), left)
    np.testing.assert_array_equal((run.complete - run.observed).sum(axis=1), left)
    values = run.numerator_rows()
    mean = (run.observed * run.grids[1]).sum(axis=1) / run.observed.sum(axis=1)
    np.testing.assert_allclose(mean, np.nanmean(values, axis=0), atol=1e-12)


def test_training_rows_are_normalised(make_run):
    run = make_run()
    low, high = run.grids
    total = (run.denominator + run.observed).sum(axis=1)
    mean = (run.denominator * low + run.observed * high).sum(axis=1) / total
    square = (run.denominator * low**2 + run.observed * high**2).sum(axis=1) / total
    np.testing.assert_allclose(mean, 0.0, atol=1e-12)
    np.testing.assert_allclose(square, 1.0)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_shift_gives_the_share_for_both_signs(table, share):
    loss = Loss.with_share(table, share)
    for upward in (0, 1):
        phi = probability(loss, table.grid, np.full(3, upward))[:, :-1]
        counts = table.counts[:, :-1]
        mean = (phi * counts).sum(axis=1) / counts.sum(axis=1)
        np.testing.assert_allclose(mean, share, rtol=1e-8)


def test_without_a_shift_phi_is_one_half_at_the_mean_and_falls_or_rises(table):
    loss = Loss.centred(table)
    at = np.stack([table.mean, table.mean + table.spread], axis=1)
    np.testing.assert_allclose(
        probability(loss, at, np.array([1, 1, 1])), [[0.5, expit(-1)]] * 3
    )
    np.testing.assert_allclose(
        probability(loss, at, np.array([0, 0, 0])), [[0.5, expit(1)]] * 3
    )


def test_a_share_of_zero_loses_nothing(make_run):
    run = make_run(share=0.0)
    assert not run.lost.any()
    assert (run.revealed == -1).all()


def test_published_fills_nan_by_each_splits_own_mean(table, make_run):
    run = make_run("published")
    values = table.values
    for fill, rows in zip(
        run.fills, [run.train, run.calibration, run.numerator_train, run.test],
        strict=True,
    ):  # fmt: skip
        np.testing.assert_allclose(fill, np.nanmean(values[:, rows], axis=1))


def test_corrected_fills_nan_by_a_mean_that_does_not_tell_the_class(table, make_run):
    run = make_run("corrected")
    training = np.concatenate([run.train, run.numerator_train])
    expected = np.nanmean(table.values[:, training], axis=1)
    np.testing.assert_allclose(run.fills, np.tile(expected, (4, 1)))


def test_only_lost_values_are_looked_up(make_run):
    run = make_run(queries=5)
    lost = run.complete - run.observed
    for codes, counts in zip(run.revealed, lost, strict=True):
        looked_up = np.bincount(codes, minlength=len(counts))
        assert looked_up.sum() == 5
        assert (looked_up <= counts).all()


def test_rows_that_are_alike_score_alike(table, make_run):
    run = make_run()
    calibration, test = run.scores(np.array([0.3, -0.7, 0.1]))
    X = np.concatenate(
        [
            table.filled_values(run.calibration, run.fills[1]).T,
            table.filled_values(run.test, run.fills[3]).T,
        ]
    )
    scores = np.concatenate([calibration, test])
    _, group = np.unique(X, axis=0, return_inverse=True)
    for own in range(group.max() + 1):
        assert len(np.unique(scores[group == own])) == 1
