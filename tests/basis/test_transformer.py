"""A wrapped transformer does on complete rows what it does alone."""

import numpy as np
import pytest
from optional_packages import optional
from sklearn.compose import make_column_transformer
from sklearn.feature_selection import SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    SplineTransformer,
    StandardScaler,
)

from missratio.basis import TransformerBasis

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


def test_without_missing_values_it_is_the_transformer():
    out = TransformerBasis(StandardScaler()).fit_transform(X)
    np.testing.assert_array_equal(out, StandardScaler().fit_transform(X))


def test_the_transformer_given_is_left_unfitted():
    scaler = StandardScaler()
    TransformerBasis(scaler).fit(X)
    assert not hasattr(scaler, "mean_")


def test_a_frozen_transformer_is_not_fitted_again():
    frozen = FrozenEstimator(StandardScaler().fit(X))
    basis = TransformerBasis(frozen).fit(100 + X)
    np.testing.assert_array_equal(basis.transform(X), StandardScaler().fit_transform(X))


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


def test_polars_nulls_are_missing_values():
    frame = pl.DataFrame({"a": [1.0, None, 3.0], "b": [1, 2, None]})
    out = TransformerBasis(StandardScaler(with_std=False)).fit_transform(frame)
    np.testing.assert_array_equal(out, [[0, 0], [np.nan, np.nan], [np.nan, np.nan]])


def test_rows_that_are_all_incomplete_map_to_nan():
    basis = TransformerBasis(SplineTransformer(n_knots=3)).fit(X)
    out = basis.transform(np.full((2, 3), np.nan))
    assert out.shape == (2, len(basis.required_columns_))
    assert np.isnan(out).all()


def test_integer_output_becomes_float():
    as_int = FunctionTransformer(lambda table: (table > 0).astype(int))
    assert TransformerBasis(as_int).fit_transform(HOLED).dtype == np.float64


def test_features_of_a_nameless_transformer_are_numbered():
    basis = TransformerBasis(FunctionTransformer(np.tanh)).fit(X)
    assert basis.get_feature_names_out().tolist() == ["f0", "f1", "f2"]


def test_any_object_with_fit_and_transform_will_do():
    class Doubler:
        def get_params(self, deep=False):
            return {}

        def fit(self, X, y=None):
            return self

        def transform(self, X):
            return 2 * X

    np.testing.assert_array_equal(TransformerBasis(Doubler()).fit_transform(X), 2 * X)


def test_no_complete_row_is_an_error():
    with pytest.raises(ValueError, match="got 2 rows and none is complete"):
        TransformerBasis(StandardScaler()).fit([[np.nan, 1.0], [2.0, np.nan]])


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda table: np.where(table > 0, table, np.nan), "NaN or infinity"),
        (lambda table: table.sum(axis=1), r"got shape \(1,\)"),
        (lambda table: np.vstack([table, table]), r"1 rows.*got shape \(2, 3\)"),
    ],
)
def test_output_that_is_no_table_of_numbers_is_an_error(function, message):
    with pytest.raises(ValueError, match=message):
        TransformerBasis(FunctionTransformer(function)).fit(-np.abs(X))
