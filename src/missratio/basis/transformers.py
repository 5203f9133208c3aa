"""Transformers as bases, and what a ``basis`` parameter may be."""

from typing import Any, Self

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.utils import check_consistent_length, get_tags
from sklearn.utils.validation import check_is_fitted

from missratio._base.blocks import rows_with_nan
from missratio._base.hints import did_you_mean, listed
from missratio._base.storable import storable
from missratio._base.typing import BoolArray, FloatArray, IntArray, Names
from missratio.basis.columns import LinearBasis, PolynomialBasis, column_number
from missratio.basis.contract import Basis
from missratio.basis.gaussian import GaussianBasis


class TransformerBasis(Basis):
    """Any scikit-learn transformer, on the complete rows.

    The transformer is taken to need every column for every feature: it is fitted on
    the complete rows and maps those; a row with a missing value has no feature at
    all. What must use rows that are observed in part is better written as a `Basis`.

    Parameters
    ----------
    transformer : scikit-learn transformer
        A copy of it is fitted. It is given a dataframe where X is one with names.
        Its output may be sparse or a dataframe, and becomes an array.

    Attributes
    ----------
    transformer_ : scikit-learn transformer
        The fitted copy.
    required_columns_ : ndarray of bool, shape (k, p)
        All true.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.preprocessing import MinMaxScaler
    >>> from missratio.basis import TransformerBasis
    >>> X = np.array([[0.0, 2.0], [4.0, 6.0], [9.0, np.nan]])
    >>> TransformerBasis(MinMaxScaler()).fit_transform(X)
    array([[ 0.,  0.],
           [ 1.,  1.],
           [nan, nan]])
    """

    def __init__(self, transformer: Any) -> None:
        self.transformer = transformer

    transformers_: list[Any]

    @property
    def transformer_(self) -> Any:
        """The fitted copy."""
        return self.transformers_[0]

    def _parts(self) -> list[tuple[slice, str, str]]:
        """Columns that a copy of the transformer has, in words, and what if none."""
        remedy = "Use a basis that takes columns one by one: 'linear' or 'polynomial'."
        return [(slice(None), "complete row", remedy)]

    def fit(self, X: Any, y: ArrayLike | None = None) -> Self:
        """Fit the transformer on the complete rows, with their labels."""
        validated = self._validated(X, reset=True)
        if y is not None:
            check_consistent_length(validated, y)
            y = np.asarray(y)
        columns = np.arange(validated.shape[1])
        self.transformers_, self._widths, needed = [], [], []
        for part, what, remedy in self._parts():
            complete = ~rows_with_nan(validated[:, part])
            if not complete.any():
                raise ValueError(
                    f"{self.transformer!r} needs a {what}; got {len(complete)} rows "
                    f"and none has one. {remedy}"
                )
            rows = self._rows(X, validated, part, complete)
            labels = None if y is None else y[complete]
            self.transformers_.append(clone(self.transformer).fit(rows, labels))
            # One row is enough to see how many features there are.
            first = np.arange(len(complete)) == complete.argmax()
            mapped = self._map(-1, self._rows(X, validated, part, first), what)
            self._widths.append(mapped.shape[1])
            needed.append(np.isin(columns, columns[part]))
        self.required_columns_ = np.repeat(needed, self._widths, axis=0)
        return self

    def transform(self, X: Any) -> Any:
        """Map what is complete; all else is NaN."""
        check_is_fitted(self)
        validated = self._validated(X)
        shape = (len(validated), len(self.required_columns_))
        out = np.full(shape, np.nan, validated.dtype)
        ends = np.cumsum(self._widths)
        for i, (part, what, _) in enumerate(self._parts()):
            complete = ~rows_with_nan(validated[:, part])
            if complete.any():
                rows = self._rows(X, validated, part, complete)
                features = slice(ends[i] - self._widths[i], ends[i])
                out[complete, features] = self._map(i, rows, what)
        return out

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> Names:
        """Name the features as the transformer does, or ``f0``, ``f1`` and so on."""
        self._input_names(input_features)
        if hasattr(self.transformer_, "get_feature_names_out"):
            names = self.transformer_.get_feature_names_out(input_features)
        else:
            names = [f"f{i}" for i in range(len(self.required_columns_))]
        return np.asarray(names, dtype=object)

    def __sklearn_tags__(self) -> Any:
        """Declare what the transformer asks of the labels and of the values."""
        tags = super().__sklearn_tags__()
        if not hasattr(self.transformer, "__sklearn_tags__"):
            return tags
        inner = get_tags(self.transformer)
        tags.target_tags = inner.target_tags
        tags.input_tags.positive_only = inner.input_tags.positive_only
        tags.non_deterministic = inner.non_deterministic
        return tags

    def _rows(
        self, X: Any, validated: FloatArray, part: slice, chosen: BoolArray
    ) -> Any:
        """Take rows of a dataframe with names as such, and else of the array."""
        frame = nw.from_native(X, eager_only=True, pass_through=True)
        named = hasattr(self, "feature_names_in_") and part == slice(None)
        if named and isinstance(frame, nw.DataFrame):
            return X if chosen.all() else frame.filter(chosen.tolist()).to_native()
        return validated[:, part] if chosen.all() else validated[chosen, part]

    def _map(self, i: int, rows: Any, what: str) -> FloatArray:
        """Transform rows without NaN into an array of finite numbers."""
        mapped = self.transformers_[i].transform(rows)
        mapped = np.asarray(mapped.toarray() if issparse(mapped) else mapped)
        if mapped.ndim != 2 or len(mapped) != len(rows):
            raise ValueError(
                f"{self.transformer!r} must map {len(rows)} rows to a table of as many "
                f"rows; got shape {mapped.shape}."
            )
        if not np.isfinite(mapped).all():
            raise ValueError(
                f"{self.transformer!r} gave NaN or infinity for a {what}. NaN is kept "
                "for missing values; use a transformer that is finite wherever its "
                "input is."
            )
        return mapped


@storable()
class ColumnwiseBasis(TransformerBasis):
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

    columns_: IntArray

    def fit(self, X: Any, y: ArrayLike | None = None) -> Self:
        """Fit a copy of the transformer to each column's values, with their labels."""
        n_columns = self._validated(X, reset=True).shape[1]
        names = [str(name) for name in getattr(self, "feature_names_in_", [])]
        chosen = range(n_columns) if self.columns is None else self.columns
        numbers = [column_number(c, n_columns, names, "columns") for c in chosen]
        self.columns_ = np.array(numbers, dtype=np.intp)
        return super().fit(X, y)

    def _parts(self) -> list[tuple[slice, str, str]]:
        names = self._input_names(None)
        remedy = "Drop the column, or leave it out of columns."
        return [
            (slice(j, j + 1), f"value of column {names[j]}", remedy)
            for j in self.columns_.tolist()
        ]

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> Names:
        """Name the features as the transformer does, or by column and number."""
        columns = self._input_names(input_features)
        names: list[str] = []
        for i, transformer in enumerate(self.transformers_):
            name = str(columns[self.columns_[i]])
            given: Any = range(self._widths[i])
            if hasattr(transformer, "get_feature_names_out"):
                given = transformer.get_feature_names_out([name])
            names += [
                each if each.startswith(name) else f"{name}_{each}"
                for each in map(str, given)
            ]
        return np.array(names, dtype=object)


_BY_NAME: dict[str, type[Basis]] = {
    "linear": LinearBasis,
    "polynomial": PolynomialBasis,
    "gaussian": GaussianBasis,
}


def as_basis(basis: Any) -> Basis:
    """Resolve the ``basis`` parameter of an estimator.

    Parameters
    ----------
    basis : {"linear", "polynomial", "gaussian"}, Basis or scikit-learn transformer
        A name gives a new basis with its defaults. A `Basis` is returned as it is:
        clone it before fitting. Any other object with ``fit`` and ``transform`` is
        wrapped in a `TransformerBasis`.

    Returns
    -------
    Basis
        Not fitted, unless a fitted one was given.

    Examples
    --------
    >>> from missratio.basis import as_basis
    >>> as_basis("polynomial")
    PolynomialBasis()
    >>> from sklearn.preprocessing import SplineTransformer
    >>> as_basis(SplineTransformer())
    TransformerBasis(transformer=SplineTransformer())
    """
    if isinstance(basis, str) and basis in _BY_NAME:
        return _BY_NAME[basis]()
    if isinstance(basis, Basis):
        return basis
    if isinstance(basis, type):
        name = basis.__name__
        came = f"the class {name}. Give an instance of it: {name}(...)."
    elif isinstance(basis, str):
        came = f"{basis!r}.{did_you_mean(basis, _BY_NAME)}"
    elif hasattr(basis, "fit") and hasattr(basis, "transform"):
        return TransformerBasis(basis)
    else:
        kind = type(basis).__name__
        came = f"{basis!r} of type {kind}, which has no fit and transform."
    raise TypeError(
        f"basis must be {listed(_BY_NAME)}, a Basis, or a scikit-learn transformer; "
        f"got {came}"
    )
