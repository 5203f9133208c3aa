"""Two samples are one labelled table, used where they lie."""

import tracemalloc

import numpy as np
import pytest
from optional_packages import optional
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

import missratio as mr
from missratio.ratio import stack_samples

pd = optional("pandas")
pl = optional("polars")

ROWS = mr.StepMissingness([1.0, 1.0], 0.0, 0.6)
ENTRIES = mr.LogisticMissingness([-0.5, 0.0], [1.0, -1.0])
ESTIMATORS = [
    mr.KLIEP(),
    mr.KLIEP(basis="polynomial"),
    mr.FDivergenceRatio("js"),
    mr.NaiveBayesRatio(),
]


def samples(n1=300, n0=200, d=2, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(0.3, 1, (n1, d)), rng.normal(size=(n0, d))


def frame(library):
    return lambda X: library.DataFrame(dict(zip(["age", "dose"], X.T, strict=True)))


@pytest.mark.parametrize("make", [np.asarray, frame(pd), frame(pl)])
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_it_is_a_fit_of_the_stacked_table(estimator, missing, make):
    X1, X0 = samples()
    models = {1: ENTRIES, 0: ROWS} if missing else None
    if missing:
        X1, X0 = mr.corrupt(X1, ENTRIES, 0), mr.corrupt(X0, ROWS, 0)
    two = mr.density_ratio(make(X1), make(X0), estimator, missingness=models)
    one = type(estimator)(**{**estimator.get_params(deep=False), "missingness": models})
    one.fit(*stack_samples(X1, X0))
    np.testing.assert_allclose(two.coef_, one.coef_, atol=1e-9)
    assert two.intercept_ == pytest.approx(one.intercept_, abs=1e-9)
    assert two.classes_.tolist() == [0, 1]
    assert two.n_features_in_ == 2
    assert hasattr(two, "feature_names_in_") == (make is not np.asarray)
    np.testing.assert_allclose(
        two.predict_ratio(make(X0)), one.predict_ratio(X0), rtol=1e-8
    )


def test_the_estimator_is_cloned_and_not_fitted():
    estimator = mr.KLIEP(l2=0.3)
    fitted = mr.density_ratio(*samples(), estimator)
    assert fitted is not estimator
    assert fitted.l2 == 0.3
    with pytest.raises(NotFittedError):
        check_is_fitted(estimator)


def test_large_arrays_are_not_copied():
    X1, X0 = samples(450_000, 450_000, 20)
    tracemalloc.start()
    try:
        mr.density_ratio(X1, X0)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 0.5 * X0.nbytes


# Bad input.


@pytest.mark.parametrize("estimator", [mr.KLIEP(), mr.NaiveBayesRatio()], ids=str)
def test_samples_that_do_not_match_are_refused(estimator):
    X1, X0 = samples()
    for tables, message in (
        ((X1, X0[:, :1]), "X1 has 2 columns and X0 has 1"),
        ((X1[:0], X0), r"0 sample\(s\)|one class only"),
        ((X1, X0[:0]), r"0 sample\(s\)|one class only"),
    ):
        with pytest.raises(ValueError, match=message):
            mr.density_ratio(*tables, estimator)
    with pytest.raises(ValueError, match=r"class 'a', but the classes are \[0, 1\]"):
        mr.density_ratio(X1, X0, estimator, missingness={"a": ROWS})


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize(
    "compare",
    [mr.ratio_test, mr.estimate_divergence, mr.density_ratio],
)
def test_two_samples_have_the_same_columns_in_the_same_order(make, compare):
    X1 = np.random.default_rng(0).normal(size=(30, 2))
    names = {"a": X1[:, 0], "b": X1[:, 1]}
    swapped = {"b": X1[:, 0], "a": X1[:, 1]}
    with pytest.raises(ValueError, match=r"columns 'a', 'b' and X0 has 'b', 'a'"):
        compare(make(names), make(swapped))
