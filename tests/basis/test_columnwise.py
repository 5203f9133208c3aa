"""Transformers column by column, and bases side by side."""

import numpy as np
import pytest
from optional_packages import optional
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    SplineTransformer,
    StandardScaler,
)

from missratio.basis import ColumnwiseBasis, PolynomialBasis, UnionBasis

pd = optional("pandas")

X = np.random.default_rng(0).normal(size=(40, 3))


def test_each_column_is_fitted_by_itself_on_its_observed_values():
    lossy = np.where(np.random.default_rng(1).uniform(size=X.shape) < 0.5, np.nan, X)
    assert np.isnan(lossy).any(axis=1).sum() > 20
    scaled = ColumnwiseBasis(StandardScaler()).fit_transform(lossy)
    np.testing.assert_allclose(scaled, StandardScaler().fit_transform(lossy))


def test_all_columns_at_once_give_the_same_where_a_transformer_takes_them_so():
    spline = SplineTransformer(n_knots=4)
    np.testing.assert_allclose(
        ColumnwiseBasis(spline).fit_transform(X), spline.fit_transform(X)
    )


def test_sparse_output_and_counts_that_differ_between_columns_will_do():
    table = np.column_stack([X[:, 0], np.arange(40) % 2])
    bins = KBinsDiscretizer(3, strategy="uniform", quantile_method="linear")
    basis = ColumnwiseBasis(bins).fit(table)
    features = basis.transform(table)
    np.testing.assert_allclose(features[:, :3].sum(axis=1), 1.0)
    assert basis.required_columns_.sum(axis=0).tolist() == [3, 3]


def test_columns_are_chosen_by_number_or_name():
    frame = pd.DataFrame(X, columns=["age", "dose", "mass"])
    spline = SplineTransformer(n_knots=2, degree=1)
    by_name = ColumnwiseBasis(spline, columns=["mass", "age"]).fit(frame)
    by_number = ColumnwiseBasis(spline, columns=[2, 0]).fit(X)
    np.testing.assert_array_equal(
        by_name.required_columns_, by_number.required_columns_
    )
    assert by_name.get_feature_names_out().tolist() == [
        "mass_sp_0",
        "mass_sp_1",
        "age_sp_0",
        "age_sp_1",
    ]
    with pytest.raises(ValueError, match="Did you mean 'dose'"):
        ColumnwiseBasis(spline, columns=["does"]).fit(frame)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: np.full_like(x, np.nan), "NaN or infinity for a value of column x0"),
        (lambda x: x[:1], "must map 40 rows"),
    ],
)
def test_what_a_transformer_may_not_do_is_said(function, message):
    basis = ColumnwiseBasis(FunctionTransformer(function))
    with pytest.raises(ValueError, match=message):
        basis.fit(X).transform(X)


def test_a_column_without_a_value_is_refused():
    lossy = X.copy()
    lossy[:, 1] = np.nan
    with pytest.raises(ValueError, match="column x1 has none"):
        ColumnwiseBasis(StandardScaler()).fit(lossy)


def test_a_union_is_its_bases_side_by_side():
    parts = [PolynomialBasis(1, interactions="all"), ColumnwiseBasis(StandardScaler())]
    union = UnionBasis(parts).fit(X)
    features = [part.fit_transform(X) for part in parts]
    np.testing.assert_array_equal(union.transform(X), np.concatenate(features, axis=1))
    needed = [part.fit(X).required_columns_ for part in parts]
    np.testing.assert_array_equal(union.required_columns_, np.concatenate(needed))


@pytest.mark.parametrize("bases", [[], "linear"])
def test_a_union_needs_bases(bases):
    with pytest.raises(ValueError, match="bases must be a list of bases"):
        UnionBasis(bases).fit(X)
