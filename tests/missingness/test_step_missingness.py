import numpy as np
import pytest

from missratio.missingness import StepMissingness


def test_probability_is_taken_strictly_beyond_the_threshold():
    model = StepMissingness([0.0, 1.0], 2.0, 0.9)
    X = [[9.0, 1.0], [9.0, 2.0], [-9.0, 2.1]]
    np.testing.assert_array_equal(model.missing_probability(X), [0, 0, 0.9])


def test_the_sum_of_features_is_the_direction_of_ones():
    X = np.random.default_rng(0).normal(size=(100, 5))
    np.testing.assert_array_equal(
        StepMissingness(np.ones(5), 0, 0.5).missing_probability(X),
        0.5 * (X.sum(axis=1) > 0),
    )


def test_every_feature_has_its_own_step():
    X = np.random.default_rng(1).normal(size=(100, 2))
    model = StepMissingness([1, -1], [0.0, 0.5], [0.8, 0.3], rowwise=False)
    expected = np.column_stack([0.8 * (X[:, 0] > 0), 0.3 * (-X[:, 1] > 0.5)])
    np.testing.assert_array_equal(model.missing_probability(X), expected)


def test_scalars_hold_for_every_feature():
    X = np.random.default_rng(2).normal(size=(20, 3))
    model = StepMissingness(1, 0, 0.8, rowwise=False)
    assert model.n_features is None
    np.testing.assert_array_equal(model.missing_probability(X), 0.8 * (X > 0))


def test_a_scalar_direction_of_a_rowwise_step_is_one_feature():
    model = StepMissingness(-1.0, 0.0, 0.5)
    assert model.n_features == 1
    assert model.missing_probability([[-1.0], [1.0]]).tolist() == [0.5, 0.0]


def test_the_maximum_is_the_largest_probability():
    assert StepMissingness([1.0], 0.0, 0.7).maximum == 0.7
    assert StepMissingness(1, 0, [0.2, 0.6], rowwise=False).maximum == 0.6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0], 0.0, 1.0), r"probability must lie in \[0, 1\): got 1.0"),
        (([1.0], 0.0, -0.1), r"probability must lie in \[0, 1\)"),
        (([1.0], 0.0, np.nan), r"probability must lie in \[0, 1\)"),
        (([np.inf], 0.0, 0.5), "direction must be finite"),
        (([1.0], np.nan, 0.5), "threshold must be finite"),
        (([1.0, 1.0], [0.0, 1.0], 0.5), "one threshold and one probability.*rowwise="),
        (([1.0, 1.0], [0.0] * 3, 0.5, False), "direction has 2, threshold has 3"),
        (([[1.0]], 0.0, 0.5), r"direction must be a number or a vector.*\(1, 1\)"),
        (([], 0.0, 0.5), "direction must be a number or a vector"),
        (("up", 0.0, 0.5), "direction must be a number or a vector.*'up'"),
    ],
)
def test_parameters_that_make_no_step_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        StepMissingness(*arguments)


def test_a_side_lost_to_overflow_is_refused():
    with pytest.raises(ValueError, match="gives nan at row 0"):
        StepMissingness([1e10, 1e10], 0, 0.5).missing_probability([[1e300, -1e300]])
