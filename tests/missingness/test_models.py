"""Steps and functions of the user's as models of φ."""

import pickle

import numpy as np
import pytest

from missratio.missingness import (
    FunctionMissingness,
    LogisticMissingness,
    NamedMissingness,
    StepMissingness,
)


def test_probability_is_taken_strictly_beyond_the_threshold():
    model = StepMissingness([0.0, 1.0], 2.0, 0.9)
    X = [[9.0, 1.0], [9.0, 2.0], [-9.0, 2.1]]
    np.testing.assert_array_equal(model.missing_probability(X), [0, 0, 0.9])


def test_every_feature_has_its_own_step():
    X = np.random.default_rng(1).normal(size=(100, 2))
    model = StepMissingness([1, -1], [0.0, 0.5], [0.8, 0.3], rowwise=False)
    expected = np.column_stack([0.8 * (X[:, 0] > 0), 0.3 * (-X[:, 1] > 0.5)])
    np.testing.assert_array_equal(model.missing_probability(X), expected)


IN_RANGE = r"must lie in \[0, 1\)"


@pytest.mark.parametrize(
    ("kind", "arguments", "message"),
    [
        (StepMissingness, ([1.0], 0.0, 1.0), rf"probability {IN_RANGE}: got 1.0"),
        (StepMissingness, ([1.0], 0.0, -0.1), f"probability {IN_RANGE}"),
        (StepMissingness, ([1.0], 0.0, np.nan), f"probability {IN_RANGE}"),
        (StepMissingness, ([np.inf], 0.0, 0.5), "direction must be finite"),
        (StepMissingness, ([1.0], np.nan, 0.5), "threshold must be finite"),
        (StepMissingness, ([1.0, 1.0], [0.0, 1.0], 0.5), "one threshold: .*rowwise="),
        (StepMissingness, ([1.0, 1.0], [0.0] * 3, 0.5, False), "has 2, threshold has"),
        (StepMissingness, ([[1.0]], 0.0, 0.5), r"must be a number or a vec.*\[\["),
        (StepMissingness, ([], 0.0, 0.5), "direction must be a number or a vector"),
        (StepMissingness, ("up", 0.0, 0.5), "must be a number or a vector.*'up'"),
        (FunctionMissingness, (0.5,), r"function must be callable.*got 0.5"),
        (FunctionMissingness, (abs, True, 1.0), f"maximum {IN_RANGE}.*None"),
        (FunctionMissingness, (abs, True, -0.1), f"maximum {IN_RANGE}.*None"),
        (FunctionMissingness, (abs, True, np.nan), f"maximum {IN_RANGE}.*None"),
        (FunctionMissingness, (abs, True, [0.5, 0.5]), "one maximum"),
        (LogisticMissingness, (np.inf, 1.0), "intercept must be finite, or -inf"),
        (LogisticMissingness, (np.nan, 1.0), "intercept must be finite, or -inf"),
        (LogisticMissingness, (0.0, [np.inf]), "coef must be finite"),
        (LogisticMissingness, ([0.0, 1.0], [1.0] * 3), "intercept has 2, coef has 3"),
        (LogisticMissingness, ([0.0, 1.0], [1, 1], True), "one intercept: .*rowwise=F"),
        (NamedMissingness, ({},), "No column is named"),
        (NamedMissingness, ({"bp": -1.0},), r"needs \(intercept, coef\)"),
        (NamedMissingness, ({"bp": (np.nan, 1.0)},), "intercept must be finite"),
        (NamedMissingness, ({"bp": (0.0, np.inf)},), "coef must be finite"),
    ],
)  # fmt: skip
def test_parameters_that_make_no_model_are_refused(kind, arguments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        kind(*arguments)


def test_a_rowwise_function_never_sees_nan():
    def function(X):
        assert not np.isnan(X).any()
        return 0.5 * (X[:, 0] > 0)

    X = np.array([[1.0, 1.0], [np.nan, 1.0], [-1.0, 1.0], [np.nan, np.nan]])
    probability = FunctionMissingness(function).missing_probability(X)
    np.testing.assert_array_equal(probability, [0.5, np.nan, 0.0, np.nan])
    never = FunctionMissingness(lambda X: 1 / 0)
    assert np.isnan(never.missing_probability([[np.nan]])).all()


def test_what_a_per_feature_function_returns_at_nan_is_not_used():
    model = FunctionMissingness(lambda X: np.where(np.isnan(X), 7.0, 0.5), False)
    probability = model.missing_probability([[1.0, np.nan]])
    np.testing.assert_array_equal(probability, [[0.5, np.nan]])


@pytest.mark.parametrize(
    ("function", "rowwise", "message"),
    [
        (
            lambda X: 0 * X,
            True,
            r"rowwise.*shape \(3,\).*gives \(3, 2\).*rowwise=False",
        ),
        (lambda X: 0 * X[:, 0], False, r"per-feature.*\(3, 2\).*\(3,\).*rowwise=True"),
        (lambda X: 0.5, True, r"gives \(\)\. Correct the shape"),
    ],
)
def test_the_wrong_shape_is_refused(function, rowwise, message):
    model = FunctionMissingness(function, rowwise)
    with pytest.raises(ValueError, match=message):
        model.missing_probability(np.zeros((3, 2)))


def test_a_probability_above_the_declared_maximum_is_refused():
    model = FunctionMissingness(lambda X: X[:, 0], maximum=0.5)
    # Rounding exceeds no maximum.
    assert model.missing_probability([[0.5 + 1e-13]])[0] == pytest.approx(0.5)
    message = "declared maximum 0.5 .* is exceeded: .* gives 0.6 at row 1.*larger"
    with pytest.raises(ValueError, match=message):
        model.missing_probability([[0.1], [0.6]])


def test_a_maximum_for_each_column_is_for_as_many_columns():
    two = FunctionMissingness(abs, rowwise=False, maximum=[0.5, 0.5])
    with pytest.raises(ValueError, match=r"is for 2 feature\(s\)"):
        two.missing_probability([[0.1]])
    assert pickle.loads(pickle.dumps(two)).weight_bound(2) == 4.0
