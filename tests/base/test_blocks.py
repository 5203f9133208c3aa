"""Rows of large tables: the quick ways give what the plain ones do."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from optional_packages import optional

from missratio._base.blocks import rows_with_nan, take_rows

pd = optional("pandas")

CELLS = st.sampled_from([0.0, -1.5, 1e308, -1e308, np.inf, -np.inf, np.nan])


@given(arrays(np.float64, (7, 3), elements=CELLS))
def test_rows_with_nan_are_those_that_hold_one(X):
    assert np.array_equal(rows_with_nan(X), np.isnan(X).any(axis=1))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n_rows", [10, 50_000])
def test_taking_rows_is_indexing(n_rows, dtype):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 11)).astype(dtype)
    index = rng.integers(0, n_rows, n_rows)
    taken = take_rows(X, index)
    assert taken.dtype == dtype
    assert np.array_equal(taken, X[index])


def test_rows_of_a_dataframe_stay_one():
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": ["x", "y", "z"]})
    taken = take_rows(frame, np.array([2, 0]))
    assert taken["b"].tolist() == ["z", "x"]
