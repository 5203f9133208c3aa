import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from missratio._base.reading import FloatArray
from missratio.missingness import LogisticMissingness


def normal(shape: tuple[int, int], seed: int = 0) -> FloatArray:
    return np.random.default_rng(seed).normal(size=shape)


def test_per_feature_is_logistic_in_the_entry_itself():
    X = normal((50, 3))
    model = LogisticMissingness([0.0, -1.0, 2.0], [1.0, 0.5, -2.0])
    expected = expit([0.0, -1.0, 2.0] + X * [1.0, 0.5, -2.0])
    np.testing.assert_allclose(model.missing_probability(X), expected, rtol=1e-15)


def test_rowwise_is_logistic_in_the_whole_row():
    X = normal((50, 2))
    model = LogisticMissingness(-0.5, [1.0, -1.0], rowwise=True)
    expected = expit(-0.5 + X[:, 0] - X[:, 1])
    np.testing.assert_allclose(model.missing_probability(X), expected, rtol=1e-14)


def test_for_one_feature_rowwise_and_per_feature_agree():
    X = normal((50, 1))
    np.testing.assert_array_equal(
        LogisticMissingness(-1.0, 2.0, rowwise=True).missing_probability(X),
        LogisticMissingness(-1.0, 2.0).missing_probability(X)[:, 0],
    )


def test_intercept_of_minus_infinity_loses_nothing():
    assert (
        not LogisticMissingness(-np.inf, 3.0).missing_probability(normal((9, 2))).any()
    )


def test_the_maximum_is_known_only_of_a_constant():
    assert LogisticMissingness(0.0, [0.0, 1.0]).maximum is None
    assert LogisticMissingness([0.0, -1.0], 0.0).maximum == 0.5
    assert LogisticMissingness(-np.inf, 0.0).maximum == 0.0


def test_a_probability_that_rounds_to_one_is_refused_with_its_cause():
    message = r"gives 1.0 at row 1, column 0\. expit rounds to 1.*scale of X"
    with pytest.raises(ValueError, match=message):
        LogisticMissingness(0.0, 1.0).missing_probability([[0.0], [40.0]])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.inf, 1.0), "intercept must be finite, or -inf"),
        ((np.nan, 1.0), "intercept must be finite, or -inf"),
        ((0.0, [np.inf]), "coef must be finite"),
        (([0.0, 1.0], [1.0, 1.0, 1.0]), "intercept has 2, coef has 3"),
        (([0.0, 1.0], [1.0, 1.0], True), "one intercept: got shape.*rowwise=False"),
    ],
)
def test_parameters_that_make_no_model_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        LogisticMissingness(*arguments)


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_rows=st.integers(1, 40),
    proportions=st.lists(st.floats(0, 0.9375), min_size=1, max_size=4),
    scale=st.floats(-6, 6),
    rowwise=st.booleans(),
)
def test_from_proportion_hits_the_proportion(seed, n_rows, proportions, scale, rowwise):
    d = len(proportions)
    X = normal((n_rows, d), seed)
    coef = scale * normal((1, d), seed + 1)[0]
    target = proportions[0] if rowwise else np.array(proportions)
    model = LogisticMissingness.from_proportion(X, coef, target, rowwise=rowwise)
    # Not missing_probability: a steep φ that rounds to 1 still has the right mean.
    phi = model._evaluate(X)
    np.testing.assert_allclose(np.mean(phi, axis=0), target, rtol=0, atol=1e-10)


def test_from_proportion_leaves_nan_out_of_the_mean():
    X = normal((40, 2))
    X[:10, 0] = np.nan
    model = LogisticMissingness.from_proportion(X, [1.0, -2.0], [0.2, 0.7])
    mean = np.nanmean(model.missing_probability(X), axis=0)
    np.testing.assert_allclose(mean, [0.2, 0.7], atol=1e-10)
    rowwise = LogisticMissingness.from_proportion(X, [1.0, -2.0], 0.4, rowwise=True)
    assert np.nanmean(rowwise.missing_probability(X)) == pytest.approx(0.4, abs=1e-10)


def test_from_proportion_zero_loses_nothing():
    model = LogisticMissingness.from_proportion(normal((5, 2)), 1.0, [0.0, 0.5])
    intercept = np.asarray(model.intercept)
    assert np.isneginf(intercept[0])
    assert np.isfinite(intercept[1])


def test_from_proportion_with_flat_coef_is_the_log_odds():
    model = LogisticMissingness.from_proportion(normal((5, 2)), 0.0, 0.25)
    np.testing.assert_allclose(np.asarray(model.intercept), np.log(1 / 3))
    assert model.maximum == pytest.approx(0.25)


@pytest.mark.parametrize("proportion", [1e-9, 0.1, 0.25, 0.5, 0.7, 0.75, 0.9])
def test_from_proportion_survives_clusters_far_apart(proportion):
    X = np.array([[-500.0], [-1.0], [300.0], [40.0]])
    model = LogisticMissingness.from_proportion(X, 10.0, proportion)
    assert np.mean(model._evaluate(X)) == pytest.approx(proportion, abs=1e-10)


def test_from_proportion_makes_the_subclass():
    class Learned(LogisticMissingness):
        pass

    assert type(Learned.from_proportion(normal((5, 1)), 1.0, 0.5)) is Learned


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((normal((5, 2)), 1.0, 1.0), r"proportion must lie in \[0, 1\): got 1.0"),
        ((normal((5, 2)), 1.0, np.nan), r"proportion must lie in \[0, 1\)"),
        ((normal((5, 2)), [1.0] * 3, 0.5), r"are for 3 feature\(s\): X has 2"),
        ((normal((5, 2)), np.nan, 0.5), "coef must be finite"),
        ((normal((5, 2)), [1, 1], [0.5, 0.5], True), "one proportion: got shape"),
        (([[0.0, np.nan]], 1.0, 0.5), "one observed entry in column 1 or more"),
        (([[0.0, np.nan]], [1, 1], 0.5, True), "one observed row or more"),
        (([[0.0], [1e20], [2e20]], 1.0, 0.4), "No intercept gives the proportion 0.4"),
        (([[np.inf]], 1.0, 0.5), "contains infinity"),
        (([[-1e300], [1.0]], 1e10, 0.5), "coef·x overflows"),
    ],
)
def test_proportions_without_a_solution_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        LogisticMissingness.from_proportion(*arguments)
