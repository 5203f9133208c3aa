"""The two-sample test: exactness, what it refuses, and a smoke run of its level."""

import numpy as np
import pytest
from optional_packages import optional
from scipy.stats import binom, hypergeom

from missratio import LogisticMissingness, StepMissingness, corrupt, ratio_test
from missratio.exceptions import SmallSampleWarning

pd = optional("pandas")

ROWS = StepMissingness([1.0, 0.0], 0.0, 0.6)
OTHER = StepMissingness([0.0, -1.0], 0.5, 0.5)


def normals(n, seed, scale=1.0):
    rng = np.random.default_rng(seed)
    return rng.normal(0, scale, (n, 2)), rng.normal(0, 1, (n, 2))


def test_the_statistic_does_not_depend_on_the_units_of_columns():
    X1, X0 = normals(60, 2, scale=1.4)
    scale = np.array([1e3, 1e-3])
    one = ratio_test(X1, X0, n_resamples=99, random_state=0)
    two = ratio_test(X1 * scale, X0 * scale, n_resamples=99, random_state=0)
    assert one.pvalue == two.pvalue
    assert one.statistic == pytest.approx(two.statistic)
    # (1 + b)/(1 + B)
    assert one.n_resamples == 99
    assert round(one.pvalue * 100, 9) in range(1, 101)


SAME, EQUAL = (LogisticMissingness([-5.0, -5.0], [0.5, 0.5]) for _ in "12")


@pytest.mark.parametrize(
    ("options", "method"),
    [
        ({}, "permutation"),
        ({"missingness": "ignore"}, "permutation"),
        ({"missingness": {0: SAME, 1: SAME}}, "permutation"),
        ({"missingness": {0: SAME, 1: EQUAL}}, "permutation"),
        ({"missingness": {0: SAME}}, "bootstrap"),
        ({"missingness": {0: ROWS, 1: OTHER}}, "bootstrap"),
    ],
)
def test_labels_are_permuted_where_both_lose_values_alike(options, method):
    assert ratio_test(*normals(80, 4), n_resamples=9, **options).method == method


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X1, X0: ((X1, X0), {"n_resamples": 0}), "n_resamples"),
        (lambda X1, X0: ((X1, X0), {"missingness": {2: ROWS}}), "classes are"),
        (lambda X1, X0: ((np.where(X1 > 1, np.nan, X1), X0), {}), "NaN"),
        (
            lambda X1, X0: ((np.where(X1 > 1, np.inf, X1), X0), {}),
            "Input X1 contains infinity",
        ),
        (lambda X1, X0: ((X1, X0[:, :1]), {}), "columns"),
        (
            lambda X1, X0: ((np.full((5, 2), np.nan), X0), {"missingness": "ignore"}),
            "complete row",
        ),
    ],
)
def test_bad_tables_and_parameters_are_refused(change, message):
    samples, options = change(*normals(20, 6))
    with pytest.raises((ValueError, TypeError), match=message):
        ratio_test(*samples, **options)


def test_rows_that_are_lost_by_their_values_count_through_those_that_are_left():
    X1, X0 = normals(400, 8)
    X1 = corrupt(X1, ROWS, random_state=1)
    by_model = ratio_test(X1, X0, missingness={1: ROWS}, n_resamples=99, random_state=0)
    ignored = ratio_test(X1, X0, missingness="ignore", n_resamples=99, random_state=0)
    assert ignored.pvalue == 0.01 < by_model.pvalue


def rejections(rng, n_tests, n, missing, scale=1.0, level=0.1):
    """How often the test rejects at a level, and where φ differs by class."""
    found = 0
    for _ in range(n_tests):
        X1, X0 = rng.normal(0, scale, (n, 2)), rng.normal(0, 1, (n, 2))
        missingness = None
        if missing:
            missingness = {1: ROWS, 0: OTHER}
            X1 = corrupt(X1, ROWS, random_state=rng)
            X0 = corrupt(X0, OTHER, random_state=rng)
        found += (
            ratio_test(
                X1, X0, missingness=missingness, n_resamples=59, random_state=rng
            ).pvalue
            <= level
        )
    return found


@pytest.mark.parametrize(("missing", "n"), [(False, 60), (True, 150)])
def test_the_level_holds_and_there_is_power(missing, n):
    rng = np.random.default_rng(10)
    assert rejections(rng, 200, n, missing) <= binom(200, 0.1).ppf(0.99)
    assert rejections(rng, 10, 150, missing, scale=1.6) >= 8


@pytest.mark.parametrize("n", [2, 5, 20, 30, 40, 100])
@pytest.mark.parametrize("swapped", [False, True])
def test_where_all_relabellings_are_equivalent_the_p_value_is_one(n, swapped):
    X1, X0 = np.zeros((2, n, 1))
    (X0 if swapped else X1)[0] = 0.1
    for seed in range(3):
        assert ratio_test(X1, X0, n_resamples=99, random_state=seed).pvalue == 1.0


@pytest.mark.parametrize("value", [0.0, 0.1, 1e300])
@pytest.mark.parametrize("missingness", [None, {0: SAME}])
def test_equal_rows_have_a_p_value_of_one(value, missingness):
    X1, X0 = np.full((50, 2), -value), np.full((60, 2), -value)
    test = ratio_test(X1, X0, missingness=missingness, n_resamples=99)
    assert test.pvalue == 1.0


@pytest.mark.parametrize(("ones", "others"), [(3, 0), (0, 3), (5, 1), (2, 2)])
def test_a_binary_column_is_fishers_two_sided_test(ones, others):
    X1, X0 = np.zeros((2, 40, 1))
    X1[:ones], X0[:others] = 1.0, 1.0
    k = ones + others
    law = hypergeom(80, k, 40).pmf(np.arange(k + 1))
    far = np.abs(np.arange(k + 1) - k / 2) >= abs(ones - k / 2)
    exact = law[far].sum()
    found = ratio_test(X1, X0, n_resamples=1999, random_state=0).pvalue
    assert found == pytest.approx(exact, abs=4 * np.sqrt(0.25 / 2000))


def zero_inflated(rng, n):
    return np.where(rng.random((n, 1)) < 0.03, rng.integers(1, 3, (n, 1)), 0.0)


def dummies(rng, n):
    return np.eye(4)[rng.choice(4, n, p=[0.94, 0.02, 0.02, 0.02])]


def rare(rng, n):
    return (rng.random((n, 1)) < rng.uniform(0.01, 0.05)).astype(float)


@pytest.mark.parametrize("law", [rare, zero_inflated, dummies])
def test_the_level_holds_with_many_ties(law):
    rng, n_tests = np.random.default_rng(11), 120
    found = []
    for _ in range(n_tests):
        X1, X0 = np.split(law(rng, 2 * rng.integers(25, 51)), 2)
        found.append(ratio_test(X1, X0, n_resamples=99, random_state=rng).pvalue)
    for level in (0.01, 0.05):
        rejected = np.count_nonzero(np.array(found) <= level)
        assert rejected <= binom(n_tests, level).ppf(0.999)


def steps(rng, n_rows, maxima):
    """Samples of one law, whose values are missing on opposite sides."""
    models = {
        label: StepMissingness([sign], 0.0, maximum)
        for label, sign, maximum in zip((1, 0), (1.0, -1.0), maxima, strict=True)
    }
    X1, X0 = (
        corrupt(rng.normal(size=(n, 1)), models[label], random_state=rng)
        for label, n in zip((1, 0), n_rows, strict=True)
    )
    return X1, X0, models


@pytest.mark.parametrize(
    ("n_rows", "maxima"),
    [((15, 150), (0.9, 0.0)), ((30, 300), (0.9, 0.0)), ((100, 100), (0.95, 0.9)),
     ((60, 60), (0.9, 0.0)), ((100, 100), (0.9, 0.0))],
)  # fmt: skip
def test_a_level_that_cannot_be_trusted_is_said(n_rows, maxima):
    rng = np.random.default_rng(12)
    for _ in range(10):
        X1, X0, models = steps(rng, n_rows, maxima)
        with pytest.warns(SmallSampleWarning, match="level can't be trusted"):
            ratio_test(X1, X0, missingness=models, n_resamples=9, random_state=0)


def test_a_part_of_the_law_without_rows_is_said():
    rng = np.random.default_rng(14)
    X1, X0 = rng.normal(size=(2, 200, 1))
    X1[X1 > 0.0] = np.nan
    phi = StepMissingness([1.0], 0.0, 0.99)
    with pytest.warns(SmallSampleWarning, match="of 200 rows"):
        ratio_test(X1, X0, missingness={1: phi}, n_resamples=9)
