import numpy as np
import pytest

from missratio.missingness import FunctionMissingness


def test_a_rowwise_function_never_sees_nan():
    def function(X):
        assert not np.isnan(X).any()
        return 0.5 * (X[:, 0] > 0)

    X = np.array([[1.0, 1.0], [np.nan, 1.0], [-1.0, 1.0], [np.nan, np.nan]])
    probability = FunctionMissingness(function).missing_probability(X)
    np.testing.assert_array_equal(probability, [0.5, np.nan, 0.0, np.nan])


def test_a_rowwise_function_is_not_called_where_no_row_is_complete():
    model = FunctionMissingness(lambda X: 1 / 0)
    assert np.isnan(model.missing_probability([[np.nan]])).all()


def test_what_a_per_feature_function_returns_at_nan_is_not_used():
    model = FunctionMissingness(lambda X: np.where(np.isnan(X), 7.0, 0.5), False)
    probability = model.missing_probability([[1.0, np.nan]])
    np.testing.assert_array_equal(probability, [[0.5, np.nan]])


def test_invalid_operations_at_nan_are_silent():
    model = FunctionMissingness(lambda X: 0.5 * (np.sqrt(-X * 0) + 1), rowwise=False)
    assert model.missing_probability([[1.0, np.nan]])[0, 0] == 0.5
    logs = FunctionMissingness(lambda X: 0 * np.log(X) + 0.1, rowwise=False)
    with pytest.raises(ValueError, match="gives nan at row 0, column 0"):
        logs.missing_probability([[-1.0]])


def test_the_function_cannot_change_the_table():
    def function(X):
        X[:] = 0.0
        return X

    with pytest.raises(ValueError, match="read-only"):
        FunctionMissingness(function, rowwise=False).missing_probability(
            np.ones((1, 1))
        )


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
    assert model.missing_probability([[0.5]]).tolist() == [0.5]
    message = "declared maximum 0.5 .* is exceeded: .* gives 0.6 at row 1.*larger"
    with pytest.raises(ValueError, match=message):
        model.missing_probability([[0.1], [0.6]])


def test_rounding_does_not_exceed_the_declared_maximum():
    model = FunctionMissingness(lambda X: X[:, 0] * 3, maximum=0.3)
    assert model.missing_probability([[0.1]])[0] == pytest.approx(0.3)


def test_what_is_not_callable_is_refused():
    with pytest.raises(TypeError, match=r"function must be callable.*got 0.5"):
        FunctionMissingness(0.5)


@pytest.mark.parametrize("maximum", [1.0, -0.1, np.nan])
def test_a_maximum_outside_its_range_is_refused(maximum):
    with pytest.raises(ValueError, match=r"maximum must lie in \[0, 1\).*None"):
        FunctionMissingness(abs, maximum=maximum)
