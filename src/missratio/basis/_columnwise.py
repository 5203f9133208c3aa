"""Any scikit-learn transformer as a basis, one column at a time."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from missratio._base.typing import FloatArray, IntArray, Names
from missratio.basis._base import Basis
from missratio.basis._polynomial import column_number


class ColumnwiseBasis(Basis):
    """A scikit-learn transformer applied to each column by itself.

    The log ratio becomes additive, Σ_j g_j(z_j), with splines or bins or bumps for the
    g_j. Each feature needs one column, so that under per-feature missingness it uses
    every row in which that column is observed, under that column's own weights.

    Parameters
    ----------
    transformer : scikit-learn transformer
        A copy of it is fitted to the observed values of each column, as a table of
        one column.
    columns : list of int or str, optional
        The columns to use, by number or name; all of them by default.

    Attributes
    ----------
    transformers_ : list of scikit-learn transformers
        The fitted copies.
    columns_ : ndarray of int, shape (n_columns_used,)
        The columns used.
    required_columns_ : ndarray of bool, shape (k, p)
        One true entry a row.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.preprocessing import SplineTransformer
    >>> from missratio.basis import ColumnwiseBasis
    >>> basis = ColumnwiseBasis(SplineTransformer(n_knots=2, degree=1))
    >>> basis.fit_transform([[0.0, 2.0], [1.0, 4.0], [0.5, np.nan]])
    array([[1. , 0. , 1. , 0. ],
           [0. , 1. , 0. , 1. ],
           [0.5, 0.5, nan, nan]])
    """

    def __init__(
        self, transformer: Any, columns: list[int] | list[str] | None = None
    ) -> None:
        self.transformer = transformer
        self.columns = columns

    transformers_: list[Any]
    columns_: IntArray

    def fit(self, X: Any, y: ArrayLike | None = None) -> Self:
        """Fit one copy of the transformer to each column's observed values.

        Parameters
        ----------
        X : array-like or dataframe, shape (n, p)
            Rows, NaN where a value is missing.
        y : ignored
            For the conventions of scikit-learn.

        Returns
        -------
        Self
            The fitted basis.
        """
        validated = self._validated(X, reset=True)
        n_columns = validated.shape[1]
        names = [str(name) for name in getattr(self, "feature_names_in_", [])]
        chosen = range(n_columns) if self.columns is None else self.columns
        self.columns_ = np.array(
            [column_number(column, n_columns, names, "columns") for column in chosen],
            dtype=np.intp,
        )
        self.transformers_ = []
        self._widths: list[int] = []
        for column in self.columns_:
            values = _observed(validated, column)
            if not len(values):
                raise ValueError(
                    f"{self.transformer!r} is fitted to observed values; column "
                    f"{self._input_names(None)[column]} has none. Drop it, or leave it "
                    "out of columns."
                )
            self.transformers_.append(clone(self.transformer).fit(values))
            first = self._map(len(self.transformers_) - 1, values[:1])
            self._widths.append(first.shape[1])
        owners = np.repeat(self.columns_, self._widths)
        self.required_columns_ = np.zeros((len(owners), n_columns), dtype=bool)
        self.required_columns_[np.arange(len(owners)), owners] = True
        return self

    def transform(self, X: Any) -> Any:
        """Map every column's observed values; the others are NaN.

        Parameters
        ----------
        X : array-like or dataframe, shape (n, p)
            Rows, NaN where a value is missing.

        Returns
        -------
        ndarray, shape (n, k)
            NaN exactly where the column that the feature needs is NaN.
        """
        check_is_fitted(self)
        validated = self._validated(X)
        shape = (len(validated), len(self.required_columns_))
        out = np.full(shape, np.nan, validated.dtype)
        start = 0
        for i, column in enumerate(self.columns_):
            stop = start + self._widths[i]
            observed = ~np.isnan(validated[:, column])
            if observed.any():
                mapped = self._map(i, _observed(validated, column))
                out[observed, start:stop] = mapped
            start = stop
        return out

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> Names:
        """Name the features as the transformer does, or by column and number.

        Parameters
        ----------
        input_features : array-like of str, shape (p,), optional
            Names of the columns, for a basis fitted on an array.

        Returns
        -------
        ndarray of str, shape (k,)
            One name a feature.
        """
        columns = self._input_names(input_features)
        names: list[str] = []
        for i, transformer in enumerate(self.transformers_):
            name = str(columns[self.columns_[i]])
            if hasattr(transformer, "get_feature_names_out"):
                own = [str(each) for each in transformer.get_feature_names_out([name])]
            else:
                own = [str(number) for number in range(self._widths[i])]
            names += [
                each if each.startswith(name) else f"{name}_{each}" for each in own
            ]
        return np.array(names, dtype=object)

    def _map(self, i: int, values: FloatArray) -> FloatArray:
        """Transform one column's observed values into finite floats."""
        mapped = self.transformers_[i].transform(values)
        mapped = np.asarray(mapped.toarray() if issparse(mapped) else mapped, float)
        if mapped.ndim != 2 or len(mapped) != len(values):
            raise ValueError(
                f"{self.transformer!r} must map {len(values)} rows to a table of as "
                f"many rows; got shape {mapped.shape}."
            )
        if not np.isfinite(mapped).all():
            raise ValueError(
                f"{self.transformer!r} gave NaN or infinity for a value of column "
                f"{self._input_names(None)[self.columns_[i]]}. Use a transformer that "
                "is finite wherever its input is."
            )
        return mapped


def _observed(X: FloatArray, column: int) -> FloatArray:
    """A column's observed values, as a table."""
    values = X[:, column]
    return values[~np.isnan(values), np.newaxis]
