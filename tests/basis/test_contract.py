"""What holds for every basis."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
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
    ColumnwiseBasis(SplineTransformer(n_knots=3)),
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
    # What is there doesn't depend on what is missing.
    np.testing.assert_allclose(features[~needed], fitted.transform(X)[~needed], 1e-12)


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
def test_names_required_columns_frames_and_copies_fit_the_features(basis):
    fitted = clone(basis).fit(X)
    features = fitted.transform(X)
    assert fitted.required_columns_.shape == (features.shape[1], 3)
    assert fitted.required_columns_.dtype == np.bool_
    assert fitted.required_columns_.any(axis=1).all()
    names = fitted.get_feature_names_out().tolist()
    assert len(set(names)) == len(names) == features.shape[1]
    for kind in ("pandas", "polars"):
        frame = clone(basis).set_output(transform=kind).fit(X).transform(X)
        assert type(frame).__module__.startswith(kind)
        assert list(frame.columns) == names
    loaded = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(loaded.transform(X), features)


@every_basis
def test_infinite_values_foreign_names_and_unfitted_bases_are_refused(basis):
    infinite = X.copy()
    infinite[0, 0] = np.inf
    fitted = clone(basis).fit(X)
    for refused in (
        lambda: clone(basis).fit(infinite),
        lambda: fitted.transform(-infinite),
    ):
        with pytest.raises(ValueError, match="infinity"):
            refused()
    with pytest.raises(ValueError, match="input_features should have length equal"):
        fitted.get_feature_names_out(["age"])
    for unfitted in (
        clone(basis).get_feature_names_out,
        lambda: clone(basis).transform(X),
    ):
        with pytest.raises(NotFittedError):
            unfitted()
