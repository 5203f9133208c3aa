"""Transformers as bases, bases side by side, and what a ``basis`` parameter may be."""

from collections.abc import Sequence
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

    transformer_: Any

    def fit(self, X: Any, y: ArrayLike | None = None) -> Self:
        """Fit the transformer on the complete rows, with their labels."""
        validated = self._validated(X, reset=True)
        complete = ~rows_with_nan(validated)
        if not complete.any():
            raise ValueError(
                f"{self.transformer!r} is fitted on complete rows; got {len(complete)} "
                f"rows and none is complete. Use a basis that takes columns one by "
                f"one: 'linear' or 'polynomial'."
            )
        if y is not None:
            check_consistent_length(validated, y)
            y = np.asarray(y)[complete]
        rows = self._rows(X, validated, complete)
        self.transformer_ = clone(self.transformer).fit(rows, y)
        # One row is enough to see how many features there are.
        first = np.arange(len(complete)) == complete.argmax()
        n_features = self._map(self._rows(X, validated, first), validated).shape[1]
        self.required_columns_ = np.ones((n_features, validated.shape[1]), dtype=bool)
        return self

    def transform(self, X: Any) -> Any:
        """Map the complete rows; the others are NaN throughout."""
        check_is_fitted(self)
        validated = self._validated(X)
        complete = ~rows_with_nan(validated)
        shape = (len(validated), len(self.required_columns_))
        if not complete.any():
            return np.full(shape, np.nan, validated.dtype)
        mapped = self._map(self._rows(X, validated, complete), validated)
        if complete.all():
            return mapped
        out = np.full(shape, np.nan, mapped.dtype)
        out[complete] = mapped
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
        if inner.transformer_tags is not None:
            tags.transformer_tags = inner.transformer_tags
        return tags

    def _rows(self, X: Any, validated: FloatArray, chosen: BoolArray) -> Any:
        """Take rows of a dataframe with names as such, and else of the array."""
        frame = nw.from_native(X, eager_only=True, pass_through=True)
        if isinstance(frame, nw.DataFrame) and hasattr(self, "feature_names_in_"):
            return X if chosen.all() else frame.filter(chosen.tolist()).to_native()
        return validated if chosen.all() else validated[chosen]

    def _map(self, rows: Any, validated: FloatArray) -> FloatArray:
        mapped = _mapped(self.transformer, self.transformer_, rows, "complete row")
        floating = np.issubdtype(mapped.dtype, np.floating)
        return mapped if floating else mapped.astype(validated.dtype)


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
        """Fit a copy of the transformer to each column's values; ``y`` is ignored."""
        validated = self._validated(X, reset=True)
        n_columns = validated.shape[1]
        names = [str(name) for name in getattr(self, "feature_names_in_", [])]
        chosen = range(n_columns) if self.columns is None else self.columns
        numbers = [column_number(c, n_columns, names, "columns") for c in chosen]
        self.columns_ = np.array(numbers, dtype=np.intp)
        self.transformers_ = []
        self._widths: list[int] = []
        for column in self.columns_:
            values = validated[~np.isnan(validated[:, column])][:, [column]]
            name = self._input_names(None)[column]
            if not len(values):
                raise ValueError(
                    f"{self.transformer!r} is fitted to observed values; column "
                    f"{name} has none. Drop it, or leave it out of columns."
                )
            self.transformers_.append(clone(self.transformer).fit(values))
            self._widths.append(self._map(-1, values[:1], name).shape[1])
        owners = np.repeat(self.columns_, self._widths)
        self.required_columns_ = owners[:, np.newaxis] == np.arange(n_columns)
        return self

    def transform(self, X: Any) -> Any:
        """Map every column's observed values; the others are NaN."""
        check_is_fitted(self)
        validated = self._validated(X)
        names = self._input_names(None)
        out = np.full(
            (len(validated), len(self.required_columns_)), np.nan, validated.dtype
        )
        ends = np.cumsum(self._widths)
        for i, column in enumerate(self.columns_):
            observed = ~np.isnan(validated[:, column])
            if observed.any():
                values = validated[observed][:, [column]]
                part = slice(ends[i] - self._widths[i], ends[i])
                out[observed, part] = self._map(i, values, names[column])
        return out

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

    def _map(self, i: int, values: FloatArray, name: str) -> FloatArray:
        where = f"value of column {name}"
        mapped = _mapped(self.transformer, self.transformers_[i], values, where)
        return np.asarray(mapped, dtype=np.float64)


def _mapped(given: Any, transformer: Any, rows: Any, where: str) -> FloatArray:
    """Transform rows without NaN into an array of finite numbers."""
    mapped = transformer.transform(rows)
    mapped = np.asarray(mapped.toarray() if issparse(mapped) else mapped)
    if mapped.ndim != 2 or len(mapped) != len(rows):
        raise ValueError(
            f"{given!r} must map {len(rows)} rows to a table of as many rows; got "
            f"shape {mapped.shape}."
        )
    if not np.isfinite(mapped).all():
        raise ValueError(
            f"{given!r} gave NaN or infinity for a {where}. NaN is kept for missing "
            f"values; use a transformer that is finite wherever its input is."
        )
    return mapped


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
        """Fit every basis."""
        self._validated(X, reset=True)
        if isinstance(self.bases, str) or not len(self.bases):
            raise ValueError(f"bases must be a list of bases; got {self.bases!r}.")
        self.bases_ = [clone(as_basis(basis)).fit(X, y) for basis in self.bases]
        self.required_columns_ = np.concatenate(
            [basis.required_columns_ for basis in self.bases_]
        )
        return self

    def transform(self, X: Any) -> Any:
        """Evaluate every basis at every row."""
        check_is_fitted(self)
        self._validated(X)
        parts = [np.asarray(basis.transform(X)) for basis in self.bases_]
        return np.concatenate(parts, axis=1)

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> Names:
        """Name the features as their bases do."""
        self._input_names(input_features)
        parts = [basis.get_feature_names_out(input_features) for basis in self.bases_]
        return np.concatenate(parts)


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
