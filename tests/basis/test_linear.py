"""The linear basis is its input."""

import numpy as np
import pytest

from missratio.basis import LinearBasis


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("order", ["C", "F"])
def test_the_output_is_the_input_itself(dtype, order):
    X = np.array([[1.0, np.nan], [3.0, 4.0]], dtype=dtype, order=order)
    assert LinearBasis().fit(X).transform(X) is X


def test_a_view_of_rows_shares_memory_with_the_output():
    X = np.arange(12.0).reshape(6, 2)
    assert np.shares_memory(LinearBasis().fit_transform(X[::2]), X)


def test_integers_become_floats():
    assert LinearBasis().fit_transform([[1, 2], [3, 4]]).dtype == np.float64


def test_each_feature_needs_its_own_column():
    basis = LinearBasis().fit(np.zeros((2, 3)))
    np.testing.assert_array_equal(basis.required_columns_, np.eye(3, dtype=bool))
