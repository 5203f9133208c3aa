"""What the ``basis`` parameter of an estimator may be."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.preprocessing import StandardScaler

from missratio.basis import (
    Basis,
    GaussianBasis,
    LinearBasis,
    PolynomialBasis,
    TransformerBasis,
    as_basis,
)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("linear", LinearBasis),
        ("polynomial", PolynomialBasis),
        ("gaussian", GaussianBasis),
    ],
)
def test_a_name_gives_a_new_basis_with_its_defaults(name, kind):
    basis = as_basis(name)
    assert type(basis) is kind
    assert basis.get_params() == kind().get_params()
    assert as_basis(name) is not basis


def test_a_basis_resolves_to_itself():
    basis = PolynomialBasis(3)
    assert as_basis(basis) is basis


def test_a_basis_of_ones_own_resolves_to_itself():
    class First(Basis):
        def fit(self, X, y=None):
            p = self._validated(X, reset=True).shape[1]
            self.required_columns_ = np.eye(1, p, dtype=bool)
            return self

        def transform(self, X):
            return self._validated(X)[:, :1]

        def get_feature_names_out(self, input_features=None):
            return self._input_names(input_features)[:1]

    basis = First()
    assert as_basis(basis) is basis
    np.testing.assert_array_equal(basis.fit_transform([[1.0, np.nan]]), [[1.0]])


def test_any_other_transformer_is_wrapped():
    scaler = StandardScaler()
    basis = as_basis(scaler)
    assert isinstance(basis, TransformerBasis)
    assert basis.transformer is scaler


@pytest.mark.parametrize(
    ("basis", "message"),
    [
        ("gausian", r"'linear', 'polynomial', 'gaussian'.*mean 'gaussian'\?"),
        ("Linear", r"got 'Linear'\. Did you mean 'linear'\?"),
        ("tree", r"got 'tree'\.$"),
        (LinearBasis, r"got the class LinearBasis\. Give an instance.*LinearBasis\("),
        (StandardScaler, r"StandardScaler\(\.\.\.\)"),
        (LinearRegression(), "has no fit and transform"),
        (np.tanh, "'linear', 'polynomial', 'gaussian', a Basis, or a"),
        (None, "got None of type NoneType"),
    ],
)
def test_anything_else_is_an_error_that_lists_the_choices(basis, message):
    with pytest.raises(TypeError, match=message):
        as_basis(basis)
