"""What holds for every basis."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from optional_packages import optional
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import SplineTransformer, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from missratio.basis import (
    ColumnwiseBasis,
    GaussianBasis,
    LinearBasis,
    PolynomialBasis,
    TransformerBasis,
    UnionBasis,
)

pd = optional("pandas")
pl = optional("polars")

BASES = [
    LinearBasis(),
    PolynomialBasis(),
    PolynomialBasis(3, interactions="all"),
    PolynomialBasis(1, interactions=[(0, 2), (1, 1, 2)]),
    GaussianBasis(8, random_state=0),
    TransformerBasis(StandardScaler()),
    TransformerBasis(SplineTransformer(n_knots=3)),
    ColumnwiseBasis(GaussianBasis(4, bandwidth=1.0, random_state=0)),
    UnionBasis(["linear", ColumnwiseBasis(SplineTransformer(n_knots=3))]),
]
every_basis = pytest.mark.parametrize("basis", BASES, ids=repr)

X = np.random.default_rng(0).normal(size=(30, 3))
NAMES = ["age", "dose", "weight"]


# All but the one with column numbers of its own: the checks bring tables of one or two
# columns too, where asking for column 2 is an error, and rightly.
@parametrize_with_checks([basis for basis in BASES if basis is not BASES[3]])
def test_scikit_learn_finds_no_fault(estimator, check):
    check(estimator)


@every_basis
@settings(deadline=None)
@given(mask=arrays(np.bool_, X.shape))
def test_a_feature_is_missing_exactly_where_a_column_it_needs_is(basis, mask):
    fitted = clone(basis).fit(X)
    features = fitted.transform(np.where(mask, np.nan, X))
    needed = (mask[:, None, :] & fitted.required_columns_).any(axis=2)
    np.testing.assert_array_equal(np.isnan(features), needed)


@every_basis
@settings(deadline=None)
@given(mask=arrays(np.bool_, X.shape))
def test_a_feature_that_is_there_does_not_depend_on_what_is_missing(basis, mask):
    fitted = clone(basis).fit(X)
    features = fitted.transform(np.where(mask, np.nan, X))
    there = ~np.isnan(features)
    np.testing.assert_allclose(features[there], fitted.transform(X)[there], rtol=1e-12)


@every_basis
@settings(deadline=None)
@given(order=st.permutations(range(len(X))))
def test_rows_are_mapped_one_by_one(basis, order):
    fitted = clone(basis).fit(X)
    np.testing.assert_allclose(
        fitted.transform(X[order]), fitted.transform(X)[order], rtol=1e-12
    )


@every_basis
def test_one_name_one_feature_and_one_row_of_required_columns(basis):
    fitted = clone(basis).fit(X)
    n_features = fitted.transform(X).shape[1]
    assert fitted.required_columns_.shape == (n_features, 3)
    assert fitted.required_columns_.dtype == np.bool_
    assert fitted.required_columns_.any(axis=1).all()
    names = fitted.get_feature_names_out()
    assert len(set(names)) == len(names) == n_features


@every_basis
@pytest.mark.parametrize("frame_of", [pd.DataFrame, pl.DataFrame])
def test_a_dataframe_gives_what_its_array_gives(basis, frame_of):
    holed = np.where(X > 1.2, np.nan, X)
    frame = frame_of(dict(zip(NAMES, holed.T, strict=True)))
    fitted = clone(basis).fit(frame)
    assert fitted.feature_names_in_.tolist() == NAMES
    expected = clone(basis).fit(holed).transform(holed)
    np.testing.assert_allclose(fitted.transform(frame), expected, rtol=1e-12)


@every_basis
@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_set_output_names_the_columns(basis, kind):
    fitted = clone(basis).set_output(transform=kind).fit(X)
    frame = fitted.transform(X)
    assert type(frame).__module__.startswith(kind)
    assert list(frame.columns) == fitted.get_feature_names_out().tolist()


@every_basis
@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_an_infinite_value_is_an_error(basis, value):
    infinite = X.copy()
    infinite[0, 0] = value
    with pytest.raises(ValueError, match="infinity"):
        clone(basis).fit(infinite)
    with pytest.raises(ValueError, match="infinity"):
        clone(basis).fit(X).transform(infinite)


@every_basis
def test_an_unfitted_basis_refuses_to_transform(basis):
    with pytest.raises(NotFittedError):
        clone(basis).transform(X)
    with pytest.raises(NotFittedError):
        clone(basis).get_feature_names_out()


@every_basis
def test_names_that_do_not_fit_the_columns_are_an_error(basis):
    fitted = clone(basis).fit(X)
    with pytest.raises(ValueError, match="input_features should have length equal"):
        fitted.get_feature_names_out(["age"])


@every_basis
def test_a_pickled_basis_maps_the_same(basis):
    fitted = clone(basis).fit(X)
    loaded = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(loaded.transform(X), fitted.transform(X))
