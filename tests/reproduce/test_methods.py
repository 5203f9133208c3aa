"""Each curve's scores are those of naive Bayes on the same rows."""

import warnings

import numpy as np
import pytest
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer

import missratio as mr
from missratio.reproduce._columns import INFINITE, fit_columns
from missratio.reproduce._experiment import Conditions
from missratio.reproduce._methods import METHODS, Scores


def numerator(run):
    """Class-1 training rows, normalised, before and after the loss."""
    values = run.table.filled_values(run.numerator_train, run.fills[2]).T
    return (values - run.centre) / run.scale, run.numerator_rows()


def expected_scores(run, rows, missingness, normalize="horvitz-thompson"):
    train = run.table.filled_values(run.train, run.fills[0]).T
    X = np.concatenate([rows, (train - run.centre) / run.scale])
    y = np.repeat([1, 0], [len(rows), len(train)])
    estimator = mr.NaiveBayesRatio(
        mr.KLIEP(normalize=normalize), missingness=missingness
    )
    return run.scores(estimator.fit(X, y).coef_)


def check(made: Scores, run, rows, missingness):
    for ours, theirs in zip(
        made[0], expected_scores(run, rows, missingness), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_full_data_is_kliep_on_what_was_not_lost(make_run):
    run = make_run()
    check(
        METHODS["KLIEP (full data)"]([run], Conditions()), run, numerator(run)[0], None
    )


def test_complete_case_leaves_out_what_is_missing(make_run):
    run = make_run()
    check(METHODS["CC-KLIEP"]([run], Conditions()), run, numerator(run)[1], "ignore")


def test_known_weights_by_the_true_phi(make_run):
    run = make_run()
    # φ of a normalised value is that of the value: log-odds are linear in both.
    low, high = run.grids[1][:, 0], run.grids[1][:, -2]
    odds = np.log(run.missing_probability / (1 - run.missing_probability))
    slope = (odds[:, -2] - odds[:, 0]) / (high - low)
    phi = mr.LogisticMissingness(odds[:, 0] - slope * low, slope)
    check(
        METHODS["M-KLIEP (known)"]([run], Conditions()),
        run,
        numerator(run)[1],
        {1: phi},
    )


def test_imputation_completes_rows_first(make_run):
    run = make_run()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        completed = IterativeImputer().fit_transform(run.numerator_rows())
    check(METHODS["Iterative imputation"]([run], Conditions()), run, completed, None)


def test_imputation_has_nothing_to_do_where_nothing_is_lost(make_run):
    runs = [make_run(share=0.0), make_run(share=0.3)]
    first, second = METHODS["Iterative imputation"](runs, Conditions())
    assert np.isnan(first[1]).all()
    assert not np.isnan(second[1]).any()


@pytest.mark.parametrize("method", ["M-KLIEP (known)", "M-KLIEP (learned)", "CC-KLIEP"])
def test_where_nothing_is_lost_all_are_kliep(make_run, method):
    run = make_run(share=0.0)
    full = METHODS["KLIEP (full data)"]([run], Conditions())
    for ours, theirs in zip(
        METHODS[method]([run], Conditions())[0], full[0], strict=True
    ):
        np.testing.assert_allclose(ours, theirs, atol=1e-9)


def test_columns_without_a_finite_optimum_outweigh_all_others():
    values = np.tile(np.linspace(-1.0, 1.0, 50), (3, 1))
    coef = fit_columns(np.array([1.5, 0.2, -2.0]), values)
    assert coef[0] == INFINITE
    assert coef[2] == -INFINITE
    assert 0 < coef[1] < 2


def test_counts_stand_for_repeated_values():
    rng = np.random.default_rng(0)
    values, counts = rng.normal(size=(2, 20)), rng.integers(0, 5, (2, 20)).astype(float)
    mean = np.array([0.1, -0.2])
    repeated = [
        np.repeat(v, c.astype(int)) for v, c in zip(values, counts, strict=True)
    ]
    expected = [fit_columns(mean[i : i + 1], repeated[i][None])[0] for i in range(2)]
    np.testing.assert_allclose(fit_columns(mean, values, counts), expected, rtol=1e-7)
