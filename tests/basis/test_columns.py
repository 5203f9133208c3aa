"""The linear basis is its input; powers and products equal their formulas."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from optional_packages import optional

from missratio.basis import LinearBasis, PolynomialBasis

pd = optional("pandas")

X = np.array([[2.0, 3.0, 5.0], [-1.0, 0.5, 7.0], [0.0, 4.0, -2.0]])
a, b, c = X.T


@given(
    arrays(np.float64, (4, 3), elements=st.floats(-100, 100)),
    st.integers(1, 4),
    st.lists(
        st.lists(st.integers(0, 2), min_size=1, max_size=4).map(tuple), max_size=4
    ),
)
def test_a_feature_is_the_product_of_columns_to_its_exponents(X, degree, interactions):
    basis = PolynomialBasis(degree, interactions).fit(X)
    expected = np.prod(X[:, None, :] ** basis.exponents_, axis=2)
    np.testing.assert_allclose(basis.transform(X), expected, 1e-12, 1e-300)


def test_equal_features_appear_once():
    basis = PolynomialBasis(2, interactions=[(0, 1), (1, 0), (0, 0), (2,), [0, 1]])
    names = ["x0", "x0^2", "x1", "x1^2", "x2", "x2^2", "x0 x1"]
    assert basis.fit(X).get_feature_names_out().tolist() == names


def test_names_and_numbers_ask_for_the_same_columns():
    frame = pd.DataFrame(X, columns=["age", "dose", "weight"])
    by_name = PolynomialBasis(2, [("dose", "age"), ("age", "age", "weight")]).fit(frame)
    by_number = PolynomialBasis(2, [(np.int64(1), 0), (0, 0, 2)]).fit(frame)
    np.testing.assert_array_equal(by_name.exponents_, by_number.exponents_)
    names = by_name.get_feature_names_out().tolist()
    assert names[-2:] == ["age dose", "age^2 weight"]


@pytest.mark.parametrize("order", ["C", "F"])
def test_blocks_of_rows_join_without_a_seam(order):
    tall = np.asarray(np.random.default_rng(0).normal(size=(150_001, 2)), order=order)
    basis = PolynomialBasis(2, interactions="all")
    u, v = tall.T
    expected = np.column_stack([u, u**2, v, v**2, u * v])
    np.testing.assert_array_equal(basis.fit_transform(tall), expected)


def test_a_value_beyond_the_range_is_an_error():
    basis = PolynomialBasis(2).fit(X)
    with pytest.raises(ValueError, match=r"beyond the range of float64.*Standardise"):
        basis.transform([[1e200, 0.0, np.nan]])
    with pytest.raises(ValueError, match="beyond the range of float32"):
        basis.transform(np.full((1, 3), 1e30, dtype=np.float32))


@pytest.mark.parametrize(
    ("interactions", "message"),
    [
        ("al", r"one of \['all'\], got 'al'.*mean 'all'"),
        ([("age", "dos")], r"'age', 'dose'\], got 'dos'.*mean 'dose'"),
        ([(0, 2)], r"one of \[0, 1, 'age', 'dose'\], got 2"),
        ([(0, -1)], "got -1"),
        ([()], "one or more columns"),
        (("age", "dose"), r"tuple of one or more columns; got 'age'"),
    ],
)
def test_interactions_that_make_no_sense_are_an_error(interactions, message):
    frame = pd.DataFrame({"age": [1.0, 2.0], "dose": [3.0, 4.0]})
    with pytest.raises(ValueError, match=message):
        PolynomialBasis(interactions=interactions).fit(frame)
    with pytest.raises(ValueError, match=r"\[0, 1, 2, 'x0', 'x1', 'x2'\], got 'age'"):
        PolynomialBasis(interactions=[("age", 0)]).fit(X)
    for degree in (0, 1.5):
        with pytest.raises((TypeError, ValueError), match="degree"):
            PolynomialBasis(degree).fit(X)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("order", ["C", "F"])
def test_the_output_of_the_linear_basis_is_the_input_itself(dtype, order):
    table = np.array([[1.0, np.nan], [3.0, 4.0]], dtype=dtype, order=order)
    basis = LinearBasis().fit(table)
    assert basis.transform(table) is table
    assert np.shares_memory(basis.transform(table[::2]), table)
    assert basis.transform([[1, 2], [3, 4]]).dtype == np.float64
    np.testing.assert_array_equal(basis.required_columns_, np.eye(2, dtype=bool))
