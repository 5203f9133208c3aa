"""A basis evaluated on each column by itself."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from missratio._base.typing import Names
from missratio.basis import Basis


class EachColumnBasis(Basis):
    """Features of every column by itself, column after column.

    Parameters
    ----------
    basis : Basis
        A copy of it is fitted to each column, as a table of one column.

    Attributes
    ----------
    bases_ : list of Basis
        The fitted copies.
    required_columns_ : ndarray of bool, shape (k, p)
        One true entry a row.
    """

    bases_: list[Basis]

    def __init__(self, basis: Basis) -> None:
        self.basis = basis

    def fit(self, X: Any, y: ArrayLike | None = None) -> Self:
        """Fit a copy of the basis to each column.

        Parameters
        ----------
        X : array-like or dataframe, shape (n, p)
        y : array-like, shape (n,), optional

        Returns
        -------
        Self
            The fitted basis.
        """
        table = self._validated(X, reset=True)
        n_columns = table.shape[1]
        self.bases_ = [
            clone(self.basis).fit(table[:, j : j + 1], y) for j in range(n_columns)
        ]
        widths = [len(basis.required_columns_) for basis in self.bases_]
        owner = np.repeat(np.arange(n_columns), widths)
        self.required_columns_ = owner[:, None] == np.arange(n_columns)
        return self

    def transform(self, X: Any) -> Any:
        """Evaluate every column's features.

        Parameters
        ----------
        X : array-like or dataframe, shape (n, p)

        Returns
        -------
        ndarray, shape (n, k)
        """
        table = self._validated(X)
        parts = [
            np.asarray(basis.transform(table[:, j : j + 1]))
            for j, basis in enumerate(self.bases_)
        ]
        return np.concatenate(parts, axis=1)

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> Names:
        """Name the features as the columns' bases do.

        Parameters
        ----------
        input_features : array-like of str, shape (p,), optional

        Returns
        -------
        ndarray of str, shape (k,)
        """
        names = self._input_names(input_features)
        return np.concatenate(
            [
                basis.get_feature_names_out([name])
                for basis, name in zip(self.bases_, names, strict=True)
            ]
        )
