"""scikit-learn's own checks of estimators, with the failures that are meant.

Estimators at their defaults are checked in tests/test_at_home.py.
"""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import missratio as mr

# Without a penalty the coefficient of a feature that is constant in the denominator is
# not determined, and with no more denominator rows than features there is no finite
# optimum. Both are refused; these checks have such tables.
WITHOUT_PENALTY = {
    "check_sample_weights_shape": "a feature is constant in a class",
    "check_sample_weights_not_overwritten": "a feature is constant in a class",
    "check_sample_weight_equivalence_on_dense_data": "fewer rows than features",
}
UNPENALISED = {
    "KLIEP ignore": (mr.KLIEP(missingness="ignore"), WITHOUT_PENALTY),
}

FOLDS = {
    "check_sample_weight_equivalence_on_dense_data": "a row is left out, whatever its "
    "weight"
}
ON_COMPLETE_ROWS = {
    "kernel KLIEP": (mr.KernelRatio("kliep", sigma_grid=2, random_state=0), FOLDS),
    "mean matching": (mr.KernelRatio("kmm", sigma_grid=2, cv=2, random_state=0), {}),
}
PENALISED = {
    "KLIEP": (mr.KLIEP(l2=0.1), {}),
    "KLIEP polynomial": (mr.KLIEP(basis="polynomial", l2=0.1), {}),
    "KLIEP sparse": (mr.KLIEP(l1=0.5, penalty_weights="standard-error"), {}),
    "JS": (mr.FDivergenceRatio(l2=0.1), {}),
    "KL": (mr.FDivergenceRatio("kl", l2=0.1), {}),
    "naive Bayes": (mr.NaiveBayesRatio(mr.KLIEP(l2=0.1)), {}),
}


def checks_of(table, **options):
    expected = {repr(estimator): failures for estimator, failures in table.values()}
    return parametrize_with_checks(
        [estimator for estimator, _ in table.values()],
        expected_failed_checks=lambda estimator: expected[repr(estimator)],
        **options,
    )


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@checks_of(UNPENALISED)
def test_scikit_learns_checks_without_a_penalty(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@checks_of(PENALISED, xfail_strict=True)
def test_scikit_learns_checks_with_a_penalty(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore::missratio.exceptions.FlatRatioWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@checks_of(ON_COMPLETE_ROWS, xfail_strict=True)
def test_scikit_learns_checks_on_complete_rows(estimator, check):
    check(estimator)
