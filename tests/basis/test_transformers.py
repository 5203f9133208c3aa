"""Transformers as bases, bases side by side, and what ``basis`` may be."""

import numpy as np
import pytest
from optional_packages import optional
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    SplineTransformer,
    StandardScaler,
)

from missratio.basis import (
    ColumnwiseBasis,
    GaussianBasis,
    LinearBasis,
    PolynomialBasis,
    TransformerBasis,
    as_basis,
)

pd = optional("pandas")
pl = optional("polars")

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 3))
MASK = rng.random(X.shape) < 0.15
HOLED = np.where(MASK, np.nan, X)
COMPLETE = ~MASK.any(axis=1)
NAMES = ["age", "dose", "weight"]

TRANSFORMERS = [
    StandardScaler(),
    SplineTransformer(n_knots=3),
    SplineTransformer(n_knots=3, sparse_output=True),
    KBinsDiscretizer(3, encode="onehot", quantile_method="averaged_inverted_cdf"),
    make_pipeline(StandardScaler(), FunctionTransformer(np.tanh)),
    StandardScaler().set_output(transform="pandas"),
    StandardScaler().set_output(transform="polars"),
]


def dense(table):
    return table.toarray() if hasattr(table, "toarray") else np.asarray(table)


@pytest.mark.needs("pandas", "polars")
@pytest.mark.parametrize("transformer", TRANSFORMERS, ids=repr)
def test_complete_rows_are_mapped_as_if_the_others_were_not_there(transformer):
    out = TransformerBasis(transformer).fit_transform(HOLED)
    assert isinstance(out, np.ndarray)
    expected = dense(transformer.fit_transform(HOLED[COMPLETE]))
    np.testing.assert_allclose(out[COMPLETE], expected)
    assert np.isnan(out[~COMPLETE]).all()
    whole = TransformerBasis(clone(transformer)).fit(X)
    np.testing.assert_array_equal(
        whole.transform(X), dense(transformer.fit_transform(X))
    )
    assert not hasattr(whole.transformer, "n_features_in_")


def test_labels_reach_the_transformer_for_the_complete_rows():
    y = (X[:, 2] > 0).astype(int)
    basis = TransformerBasis(SelectKBest(k=1)).fit(HOLED, y)
    np.testing.assert_array_equal(basis.transform(X), X[:, [2]])
    assert basis.get_feature_names_out().tolist() == ["x2"]


@pytest.mark.parametrize("frame_of", [pd.DataFrame, pl.DataFrame])
def test_a_transformer_of_named_columns_gets_a_dataframe(frame_of):
    frame = frame_of(dict(zip(NAMES, HOLED.T, strict=True)))
    by_name = make_column_transformer((StandardScaler(), ["dose", "age"]))
    basis = TransformerBasis(by_name).fit(frame)
    expected = StandardScaler().fit_transform(HOLED[COMPLETE][:, [1, 0]])
    np.testing.assert_allclose(basis.transform(frame)[COMPLETE], expected)
    names = ["standardscaler__dose", "standardscaler__age"]
    assert basis.get_feature_names_out().tolist() == names


def test_each_column_is_fitted_by_itself_on_its_observed_values():
    lossy = np.where(np.random.default_rng(1).uniform(size=X.shape) < 0.5, np.nan, X)
    assert np.isnan(lossy).any(axis=1).sum() > 20
    scaled = ColumnwiseBasis(StandardScaler()).fit_transform(lossy)
    np.testing.assert_allclose(scaled, StandardScaler().fit_transform(lossy))
    spline = SplineTransformer(n_knots=4)
    np.testing.assert_allclose(
        ColumnwiseBasis(spline).fit_transform(X), spline.fit_transform(X)
    )


def test_features_of_a_column_are_named_after_it():
    spline, frame = SplineTransformer(n_knots=2, degree=1), pd.DataFrame(X[:, :2])
    frame.columns = ["age", "dose"]
    names = ColumnwiseBasis(spline).fit(frame).get_feature_names_out()
    assert " ".join(names) == "age_sp_0 age_sp_1 dose_sp_0 dose_sp_1"


def made_of(function):
    return FunctionTransformer(function)


NONE_IN_1 = X * [1.0, np.nan, 1.0]


@pytest.mark.parametrize(
    ("basis", "table", "message"),
    [
        (TransformerBasis(StandardScaler()), NONE_IN_1, "got 40 rows and none is"),
        (TransformerBasis(made_of(np.sqrt)), -np.abs(X), "infinity for complete rows"),
        (TransformerBasis(made_of(lambda x: x.sum(axis=1))), X, r"got shape \(1,\)"),
        (TransformerBasis(made_of(lambda x: np.vstack([x, x]))), X, r"shape \(2, 3\)"),
        (ColumnwiseBasis(made_of(np.sqrt)), -np.abs(X), "Column x0: .*infinity for"),
        (ColumnwiseBasis(made_of(lambda x: x[:1])), X, "Column x0: .* must map 40"),
        (ColumnwiseBasis(StandardScaler()), NONE_IN_1, "Column x1: .*needs complete"),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value")
def test_what_makes_no_table_of_numbers_is_an_error(basis, table, message):
    with pytest.raises(ValueError, match=message):
        basis.fit(table).transform(table)


def test_a_name_is_a_new_basis_a_basis_itself_and_any_other_transformer_is_wrapped():
    kinds = (LinearBasis, PolynomialBasis, GaussianBasis)
    for name, kind in zip(("linear", "polynomial", "gaussian"), kinds, strict=True):
        basis = as_basis(name)
        assert type(basis) is kind
        assert basis.get_params() == kind().get_params()
        assert as_basis(name) is not basis
        assert as_basis(basis) is basis
    scaler = StandardScaler()
    assert as_basis(scaler).transformer is scaler


@pytest.mark.parametrize(
    ("basis", "message"),
    [
        ("gausian", r"'linear', 'polynomial', 'gaussian'.*mean 'gaussian'\?"),
        ("Linear", r"got 'Linear'\. Did you mean 'linear'\?"),
        ("tree", r"got 'tree'\.$"),
        (LinearBasis, "or an instance of a Basis.*got <class .*LinearBasis"),
        (LinearRegression(), "with fit and transform; got LinearRegression"),
        (np.tanh, "'linear', 'polynomial', 'gaussian', or an instance of a Basis"),
        (None, "got None"),
    ],
)
def test_anything_else_is_an_error_that_lists_the_choices(basis, message):
    with pytest.raises(TypeError, match=message):
        as_basis(basis)
