"""Two samples compared: divergences with intervals, and a test."""

import warnings

import numpy as np
import pytest
from comparison_validity import true_divergences
from scipy.stats import binom, hypergeom

import missratio as mr
from missratio.exceptions import DataError, SmallSampleWarning

PHI = mr.StepMissingness([1.0], 0.5, 0.6)


@pytest.mark.parametrize("divergence", ["kl", "js", "pearson"])
@pytest.mark.parametrize("missing", [False, True])
def test_divergences_of_normal_laws(divergence, missing):
    rng = np.random.default_rng(0)
    X1, X0 = rng.normal(0.6, 0.8, (3000, 1)), rng.normal(0, 1, (3000, 1))
    truth = true_divergences(0.6, 0.8)[divergence]
    missingness = {1: PHI} if missing else None
    if missing:
        X1 = mr.corrupt(X1, PHI, random_state=0)
    found = mr.estimate_divergence(
        X1, X0, divergence, missingness=missingness, random_state=0
    )
    assert abs(found.estimate - truth) < 4 * found.standard_error
    assert found.standard_error < 0.2 * truth
    assert found.confidence_interval[0] < found.estimate < found.confidence_interval[1]
    if missing:
        ignored = mr.estimate_divergence(
            X1, X0, divergence, missingness="ignore", random_state=0
        )
        assert abs(ignored.estimate - truth) > 4 * ignored.standard_error


@pytest.mark.parametrize(
    "change",
    [
        lambda X: X + 1e4,
        lambda X: X * 1e-8,
        lambda X: X * 1e3 - 1e6,
        # A column of one value in both samples.
        lambda X: np.c_[X, np.full(len(X), 7.0)],
    ],
)
def test_units_and_a_constant_column_change_nothing(change):
    rng = np.random.default_rng(9)
    X1, X0 = rng.normal(0, 0.6, (300, 1)), rng.normal(0, 1, (300, 1))
    one = mr.estimate_divergence(X1, X0, random_state=0)
    two = mr.estimate_divergence(change(X1), change(X0), random_state=0)
    assert one.estimate == pytest.approx(two.estimate, rel=1e-4)


@pytest.mark.filterwarnings("ignore::missratio.exceptions.SmallSampleWarning")
@pytest.mark.parametrize("divergence", ["kl", "js", "pearson"])
def test_an_estimate_that_is_too_small_has_an_interval_that_holds_the_truth(divergence):
    # Its error is judged too small, too, so that the same margin on both sides doesn't.
    rng = np.random.default_rng(24)
    X1, X0 = rng.normal(0.7, 1, (100, 1)), rng.normal(0, 1, (100, 1))
    found = mr.estimate_divergence(X1, X0, divergence, random_state=0)
    truth, (low, high) = (
        true_divergences(0.7, 1.0)[divergence],
        found.confidence_interval,
    )
    assert found.estimate + 1.96 * found.standard_error < truth < high
    assert 0.0 <= low < found.estimate


def test_equal_laws_have_no_divergence():
    rng = np.random.default_rng(2)
    X1, X0 = rng.normal(size=(2, 500, 2))
    found = mr.estimate_divergence(X1, X0, "js", random_state=0)
    assert abs(found.estimate) < 0.02


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (lambda *both: both, {"divergence": "hellinger"}, "one of"),
        (lambda *both: both, {"confidence": 1.0}, "confidence"),
        (lambda *both: both, {"confidence": np.nan}, "confidence"),
        (lambda X1, X0: (X1[:3], X0), {}, "cv=5"),
        (lambda X1, X0: (X1[:, 0], X0), {}, r"X1 must be two-dim.*got shape \(40,\)"),
        (lambda X1, X0: (X1, X0[:0]), {}, "X0 has 0 complete row"),
    ],
)
def test_what_is_refused(change, options, message):
    samples = np.random.default_rng(4).normal(size=(2, 40, 1))
    with pytest.raises(ValueError, match=message):
        mr.estimate_divergence(*change(*samples), **options)


@pytest.mark.parametrize("divergence", ["kl", "js", "pearson"])
@pytest.mark.parametrize("swapped", [False, True])
def test_columns_without_a_common_value_are_refused(divergence, swapped):
    rng = np.random.default_rng(5)
    X1, X0 = np.c_[rng.normal(size=20), np.ones(20)], rng.normal(size=(20, 2))
    X1, X0 = (X0, X1) if swapped else (X1, X0)
    with pytest.raises(DataError, match="'x1' have one value") as caught:
        mr.estimate_divergence(X1, X0, divergence, random_state=0)
    assert caught.value.message.columns == (1,)
    with pytest.raises(DataError, match="'x0' have one value"):
        mr.estimate_divergence(np.ones((20, 1)), np.zeros((20, 1)), divergence)


def test_a_value_that_only_the_numerator_has_makes_kl_infinite():
    rng = np.random.default_rng(6)
    X1 = np.c_[rng.normal(size=400), rng.integers(0, 2, 400)]
    X0 = np.c_[rng.normal(size=400), np.zeros(400)]
    for divergence in ("kl", "pearson"):
        with pytest.raises(DataError, match="infinite"):
            mr.estimate_divergence(X1, X0, divergence, random_state=0)
    # Jensen and Shannon's is that of a fair coin and a zero.
    truth = (0.5 * np.log(2) + 0.5 * np.log(2 / 3) + np.log(4 / 3)) / 2
    found = mr.estimate_divergence(X1, X0, "js", random_state=0)
    assert abs(found.estimate - truth) < 4 * found.standard_error < 0.1
    # The other way round KL is finite: the log of two.
    found = mr.estimate_divergence(X0, X1, "kl", random_state=0)
    assert abs(found.estimate - np.log(2)) < 4 * found.standard_error < 0.3


def test_samples_that_do_not_overlap():
    rng = np.random.default_rng(8)
    X1, X0 = rng.normal(8, 1, (50, 1)), rng.normal(0, 1, (50, 1))
    for divergence in ("kl", "pearson"):
        with pytest.raises(DataError, match="without error"):
            mr.estimate_divergence(X1, X0, divergence, random_state=0)
    with pytest.warns(SmallSampleWarning, match="too short"):
        found = mr.estimate_divergence(X1, X0, "js", random_state=0)
    assert found.estimate == pytest.approx(np.log(2), abs=0.01)


def test_an_interval_that_a_few_rows_decide_is_said():
    said = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X1, X0 = rng.normal(1, 1, (500, 1)), rng.normal(0, 1, (500, 1))
        with warnings.catch_warnings(record=True, action="always") as caught:
            mr.estimate_divergence(X1, X0, "pearson", random_state=0)
        said += any(issubclass(w.category, SmallSampleWarning) for w in caught)
        mr.estimate_divergence(X1, X0, "js", random_state=0)
        # Where the ratio is bounded nothing is said.
        mr.estimate_divergence(0.7 * (X1 - 1), X0, "pearson", random_state=0)
    assert said >= 8


def test_a_divergence_that_held_out_rows_of_long_tails_carry_is_said_to_be_so():
    rng = np.random.default_rng(0)
    X1, X0 = rng.standard_t(2, (1500, 3)) + 0.5, rng.standard_t(2, (1500, 3))
    with pytest.warns(SmallSampleWarning, match="effective rows of X0"):
        mr.estimate_divergence(X1, X0, "kl", random_state=0)


@pytest.mark.filterwarnings("ignore::missratio.exceptions.SmallSampleWarning")
@pytest.mark.parametrize("law", ["laplace", "correlated"])
def test_a_difference_that_means_and_spreads_do_not_show_is_covered(law):
    """Laplace's law against a normal one, and a correlation: equal squares."""
    covariance = np.array([[1.0, 0.6], [0.6, 1.0]])
    truth = -np.log(1 - 0.6**2) / 2
    if law == "laplace":
        truth = np.log(np.sqrt(2 * np.pi) / 1.4) - 1 + 0.7**2
    held = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X1, X0 = rng.laplace(0, 0.7, (600, 1)), rng.normal(size=(600, 1))
        if law == "correlated":
            X1 = rng.multivariate_normal([0, 0], covariance, 600)
            X0 = rng.normal(size=(600, 2))
        low, high = mr.estimate_divergence(X1, X0, random_state=0).confidence_interval
        held += 0.0 < low < truth < high if law == "correlated" else low < truth < high
    # At a coverage of 95% fewer than 16 come once in 380 times (binomial); blind, 0.
    assert held >= 16


# The two-sample test: exactness, what it refuses, and a smoke run of its level.


ROWS = mr.StepMissingness([1.0, 0.0], 0.0, 0.6)
OTHER = mr.StepMissingness([0.0, -1.0], 0.5, 0.5)


def normals(n, seed, scale=1.0):
    rng = np.random.default_rng(seed)
    return rng.normal(0, scale, (n, 2)), rng.normal(0, 1, (n, 2))


def test_the_statistic_does_not_depend_on_the_units_of_columns():
    X1, X0 = normals(60, 2, scale=1.4)
    scale = np.array([1e3, 1e-3])
    one = mr.ratio_test(X1, X0, n_resamples=99, random_state=0)
    two = mr.ratio_test(X1 * scale, X0 * scale, n_resamples=99, random_state=0)
    assert one.pvalue == two.pvalue
    assert one.statistic == pytest.approx(two.statistic)
    # (1 + b)/(1 + B)
    assert one.n_resamples == 99
    assert round(one.pvalue * 100, 9) in range(1, 101)


SAME, EQUAL = (mr.LogisticMissingness([-5.0, -5.0], [0.5, 0.5]) for _ in "12")


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
    assert mr.ratio_test(*normals(80, 4), n_resamples=9, **options).method == method


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (lambda *both: both, {"n_resamples": 0}, "n_resamples"),
        (lambda *both: both, {"missingness": {2: ROWS}}, "classes are"),
        (lambda X1, X0: (np.where(X1 > 1, np.nan, X1), X0), {}, "NaN"),
        (lambda X1, X0: (np.where(X1 > 1, np.inf, X1), X0), {}, "X1 contains infinity"),
        (lambda X1, X0: (X1, X0[:, :1]), {}, "columns"),
        (lambda X1, X0: (X1 * np.nan, X0), {"missingness": "ignore"}, "complete row"),
    ],
)
def test_bad_tables_and_parameters_are_refused(change, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        mr.ratio_test(*change(*normals(20, 6)), **options)


def test_rows_that_are_lost_by_their_values_count_through_those_that_are_left():
    X1, X0 = normals(400, 8)
    X1 = mr.corrupt(X1, ROWS, random_state=1)
    by_model, ignored = (
        mr.ratio_test(X1, X0, missingness=phi, n_resamples=99, random_state=0)
        for phi in ({1: ROWS}, "ignore")
    )
    assert ignored.pvalue == 0.01 < by_model.pvalue


def rejections(rng, n_tests, n, missing, scale=1.0, level=0.1):
    """How often the test rejects at a level, and where φ differs by class."""
    found = 0
    for _ in range(n_tests):
        X1, X0 = rng.normal(0, scale, (n, 2)), rng.normal(0, 1, (n, 2))
        missingness = None
        if missing:
            missingness = {1: ROWS, 0: OTHER}
            X1 = mr.corrupt(X1, ROWS, random_state=rng)
            X0 = mr.corrupt(X0, OTHER, random_state=rng)
        options = {"missingness": missingness, "n_resamples": 59}
        found += mr.ratio_test(X1, X0, random_state=rng, **options).pvalue <= level
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
        assert mr.ratio_test(X1, X0, n_resamples=99, random_state=seed).pvalue == 1.0


@pytest.mark.parametrize("value", [0.0, 0.1, 1e300])
@pytest.mark.parametrize("missingness", [None, {0: SAME}])
def test_equal_rows_have_a_p_value_of_one(value, missingness):
    X1, X0 = np.full((50, 2), -value), np.full((60, 2), -value)
    test = mr.ratio_test(X1, X0, missingness=missingness, n_resamples=99)
    assert test.pvalue == 1.0


@pytest.mark.parametrize(("ones", "others"), [(3, 0), (0, 3), (5, 1), (2, 2)])
def test_a_binary_column_is_fishers_two_sided_test(ones, others):
    X1, X0 = np.zeros((2, 40, 1))
    X1[:ones], X0[:others] = 1.0, 1.0
    k = ones + others
    law = hypergeom(80, k, 40).pmf(np.arange(k + 1))
    far = np.abs(np.arange(k + 1) - k / 2) >= abs(ones - k / 2)
    exact = law[far].sum()
    found = mr.ratio_test(X1, X0, n_resamples=1999, random_state=0).pvalue
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
        found.append(mr.ratio_test(X1, X0, n_resamples=99, random_state=rng).pvalue)
    for level in (0.01, 0.05):
        rejected = np.count_nonzero(np.array(found) <= level)
        assert rejected <= binom(n_tests, level).ppf(0.999)


def steps(rng, n_rows, maxima):
    """Samples of one law, whose values are missing on opposite sides."""
    one, other = (mr.StepMissingness([s], 0.0, maxima[s < 0]) for s in (1.0, -1.0))
    X1, X0 = (
        mr.corrupt(rng.normal(size=(n, 1)), phi, random_state=rng)
        for phi, n in zip((one, other), n_rows, strict=True)
    )
    return X1, X0, {1: one, 0: other}


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
            mr.ratio_test(X1, X0, missingness=models, n_resamples=9, random_state=0)


def test_a_part_of_the_law_without_rows_is_said():
    rng = np.random.default_rng(14)
    X1, X0 = rng.normal(size=(2, 200, 1))
    X1[X1 > 0.0] = np.nan
    phi = mr.StepMissingness([1.0], 0.0, 0.99)
    with pytest.warns(SmallSampleWarning, match="of 200 rows"):
        mr.ratio_test(X1, X0, missingness={1: phi}, n_resamples=9)
