"""Curves past the paper on data sets: what each is told, and what it can't do."""

import numpy as np
import pytest

import missratio as mr
from missratio.reproduce._beyond import BEYOND, LEARNERS, with_products
from missratio.reproduce._experiment import Conditions, known, learned
from missratio.reproduce._fits import stacked
from missratio.reproduce._real import type_one_error
from missratio.reproduce._runs import Loss, RealTable, SplitSizes, draw_run
from missratio.threshold import binomial_tail

CORRECTED = Conditions("corrected")


def assert_same_scores(made, other):
    for ours, theirs in zip(made, other, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)


def test_joint_is_one_ratio_of_all_columns(make_run):
    run = make_run()
    X, y = stacked(run.numerator, run.denominator)
    model = mr.KLIEPCV(missingness={1: run.missingness}, random_state=0).fit(X, y)
    expected = [model.predict_log_ratio(rows) for rows in (run.calibration, run.test)]
    assert_same_scores(BEYOND["Joint M-KLIEP (known)"](run, CORRECTED), expected)


def test_products_are_of_columns_that_are_no_indicators():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(1600, 2)), rng.integers(0, 2, 1600)])
    table = RealTable(X, np.arange(1600) >= 400)
    sizes, loss = SplitSizes(100, 50, 5), Loss.of(table, None)
    run = draw_run(table, sizes, loss, rng, corrected=True)
    basis = with_products(run, run.missingness).basis
    assert basis.interactions == [(0, 0), (0, 1), (1, 1)]


def test_products_that_hardly_any_row_has_are_left_out(make_run):
    run = make_run(share=0.9)
    pairs = with_products(run, run.missingness).basis.interactions
    seen = (~np.isnan(run.numerator)).astype(int)
    together = seen.T @ seen
    assert pairs == [
        (j, k) for j in range(3) for k in range(j, 3) if together[j, k] >= 100
    ]
    assert len(pairs) < 6


@pytest.mark.parametrize("name", LEARNERS)
def test_where_nothing_is_lost_known_and_learned_are_one(make_run, name):
    run = make_run(share=0.0)
    pair = [BEYOND[kind(name)](run, CORRECTED) for kind in (known, learned)]
    assert_same_scores(*pair)


def test_where_nothing_is_lost_trees_have_all_they_want(make_run):
    run = make_run(share=0.0)
    full = BEYOND["Trees (full data)"](run, CORRECTED)
    assert_same_scores(BEYOND["Trees on NaN"](run, CORRECTED), full)
    nothing, _ = BEYOND["Iterative imputation and trees"](run, CORRECTED)
    assert np.isnan(nothing).all()


@pytest.mark.parametrize("method", BEYOND)
def test_a_run_gives_the_same_scores_every_time(make_run, method):
    run = make_run(variant="corrected")
    once, again = (BEYOND[method](run, CORRECTED) for _ in range(2))
    assert_same_scores(once, again)
    assert np.isfinite(once[0]).all()


def test_half_of_the_rows_calibrate_and_the_other_half_is_fresh():
    rng = np.random.default_rng(0)
    errors = [
        type_one_error((rng.normal(size=400), np.empty(0)), 0.1, strict=True)
        for _ in range(2000)
    ]
    expected = (binomial_tail(200, 0.1, 0.05)) / 201
    spread = np.std(errors) / np.sqrt(len(errors))
    assert abs(np.mean(errors) - expected) < 1 / 201 + 4 * spread


def test_a_method_that_has_nothing_to_do_has_no_error_either():
    nan = np.array([np.nan])
    assert np.isnan(type_one_error((nan, nan), 0.1, strict=True))
