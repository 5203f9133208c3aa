"""Each curve's scores are those of naive Bayes on the same rows."""

import warnings

import numpy as np
import pytest
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer

import missratio as mr
from missratio.reproduce._experiment import Conditions
from missratio.reproduce._fits import stacked
from missratio.reproduce._methods import METHODS, RunBatch


def made(method, *runs):
    return METHODS[method](RunBatch(runs), Conditions())


def check(method, run, rows, missingness):
    """Scores are the estimator's decision function, but for a constant."""
    estimator = mr.NaiveBayesRatio(mr.KLIEP(normalize="horvitz-thompson"), missingness)
    model = estimator.fit(*stacked(rows, run.denominator))
    for scores, fresh in zip(
        made(method, run)[0], (run.calibration, run.test), strict=True
    ):
        assert np.ptp(scores - model.decision_function(fresh)) < 1e-6


def test_full_data_is_kliep_on_what_was_not_lost(make_run):
    run = make_run()
    check("KLIEP (full data)", run, run.complete, None)


def test_complete_case_leaves_out_what_is_missing(make_run):
    run = make_run()
    check("CC-KLIEP", run, run.numerator, "ignore")


def test_known_weights_by_the_true_phi(make_run):
    run = make_run()
    check("M-KLIEP (known)", run, run.numerator, {1: run.missingness})


def test_learned_weights_by_a_learned_phi(make_run):
    run = make_run()
    phi = mr.learn_missingness(
        run.numerator, run.revealed, method="ml", from_table=False
    )
    check("M-KLIEP (learned)", run, run.numerator, {1: phi})


def test_imputation_completes_rows_first(make_run):
    run = make_run()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        completed = IterativeImputer().fit_transform(run.numerator)
    check("Iterative imputation", run, completed, None)


def test_imputation_has_nothing_to_do_where_nothing_is_lost(make_run):
    runs = [make_run(share=0.0), make_run(share=0.3)]
    nothing, something = made("Iterative imputation", *runs)
    assert np.isnan(nothing[1]).all()
    assert not np.isnan(something[1]).any()


@pytest.mark.parametrize("method", ["M-KLIEP (known)", "M-KLIEP (learned)", "CC-KLIEP"])
def test_where_nothing_is_lost_all_are_kliep(make_run, method):
    run = make_run(share=0.0)
    full = made("KLIEP (full data)", run)
    for ours, theirs in zip(made(method, run)[0], full[0], strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-9)


@pytest.mark.parametrize("method", ["M-KLIEP (known)", "M-KLIEP (learned)", "CC-KLIEP"])
def test_runs_beside_one_another_are_scored_by_their_own_columns(make_run, method):
    runs = [make_run(number=number) for number in range(3)]
    for run, together in zip(runs, made(method, *runs), strict=True):
        for ours, alone in zip(together, made(method, run)[0], strict=True):
            np.testing.assert_allclose(ours, alone, atol=1e-6)
