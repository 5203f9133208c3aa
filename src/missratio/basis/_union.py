"""Several bases side by side."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from missratio._base.typing import Names
from missratio.basis._base import Basis
from missratio.basis._resolve import as_basis


class UnionBasis(Basis):
    """The features of several bases, side by side.

    Each feature keeps the columns that it needs, which scikit-learn's `FeatureUnion`
    would forget.

    Parameters
    ----------
    bases : sequence of names, Basis or scikit-learn transformers
        Each as an estimator's ``basis`` may be.

    Attributes
    ----------
    bases_ : list of Basis
        The fitted copies.
    required_columns_ : ndarray of bool, shape (k, p)
        Those of the bases, one below the other.

    Examples
    --------
    Additive splines, and the product of two columns:

    >>> import numpy as np
    >>> from sklearn.preprocessing import SplineTransformer
    >>> from missratio.basis import ColumnwiseBasis, PolynomialBasis, UnionBasis
    >>> splines = ColumnwiseBasis(SplineTransformer(n_knots=3, degree=2))
    >>> basis = UnionBasis([PolynomialBasis(1, [(0, 1)]), splines])
    >>> basis.fit(np.random.default_rng(0).normal(size=(9, 2))).required_columns_.shape
    (11, 2)
    """

    def __init__(self, bases: Sequence[Any]) -> None:
        self.bases = bases

    bases_: list[Basis]

    def fit(self, X: Any, y: ArrayLike | None = None) -> Self:
        """Fit every basis.

        Parameters
        ----------
        X : array-like or dataframe, shape (n, p)
            Rows, NaN where a value is missing.
        y : array-like, shape (n,), optional
            Labels, handed on.

        Returns
        -------
        Self
            The fitted basis.
        """
        self._validated(X, reset=True)
        if isinstance(self.bases, str) or not len(self.bases):
            raise ValueError(f"bases must be a list of bases; got {self.bases!r}.")
        self.bases_ = [clone(as_basis(basis)).fit(X, y) for basis in self.bases]
        self.required_columns_ = np.concatenate(
            [basis.required_columns_ for basis in self.bases_]
        )
        return self

    def transform(self, X: Any) -> Any:
        """Evaluate every basis at every row.

        Parameters
        ----------
        X : array-like or dataframe, shape (n, p)
            Rows, NaN where a value is missing.

        Returns
        -------
        ndarray, shape (n, k)
            NaN exactly where a column that the feature needs is NaN.
        """
        check_is_fitted(self)
        self._validated(X)
        parts = [np.asarray(basis.transform(X)) for basis in self.bases_]
        return np.concatenate(parts, axis=1)

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> Names:
        """Name the features as their bases do.

        Parameters
        ----------
        input_features : array-like of str, shape (p,), optional
            Names of the columns, for a basis fitted on an array.

        Returns
        -------
        ndarray of str, shape (k,)
            One name a feature.
        """
        self._input_names(input_features)
        parts = [basis.get_feature_names_out(input_features) for basis in self.bases_]
        return np.concatenate(parts)
