"""Transformers as bases, and what a ``basis`` parameter may be."""

from collections.abc import Callable
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
from missratio._base.typing import BoolArray, FloatArray, Names
from missratio.basis.columns import LinearBasis, PolynomialBasis
from missratio.basis.contract import Basis
from missratio.basis.gaussian import GaussianBasis


@storable()
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
                f"{self.transformer!r} needs complete rows; got {len(complete)} rows "
                "and none is. Use 'linear' or 'polynomial', which take single columns."
            )
        if y is not None:
            check_consistent_length(validated, y)
            y = np.asarray(y)[complete]
        rows = self._rows(X, validated, complete)
        self.transformer_ = clone(self.transformer).fit(rows, y)
        # One row is enough to see how many features there are.
        first = np.arange(len(complete)) == complete.argmax()
        n_features = self._map(self._rows(X, validated, first)).shape[1]
        self.required_columns_ = np.ones((n_features, validated.shape[1]), dtype=bool)
        return self

    def transform(self, X: Any) -> Any:
        """Map the complete rows; all others are NaN."""
        check_is_fitted(self)
        validated = self._validated(X)
        complete = ~rows_with_nan(validated)
        shape = (len(validated), len(self.required_columns_))
        out = np.full(shape, np.nan, validated.dtype)
        if complete.any():
            out[complete] = self._map(self._rows(X, validated, complete))
        return out

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> Names:
        """Name the features as the transformer does, or ``f0``, ``f1`` and so on."""
        self._input_names(input_features)
        names = [f"f{i}" for i in range(len(self.required_columns_))]
        if hasattr(self.transformer_, "get_feature_names_out"):
            names = self.transformer_.get_feature_names_out(input_features)
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

    def _rows(self, X: Any, validated: FloatArray, chosen: BoolArray) -> Any:
        """Take rows of a dataframe with names as such, and else of the array."""
        frame = nw.from_native(X, eager_only=True, pass_through=True)
        if hasattr(self, "feature_names_in_") and isinstance(frame, nw.DataFrame):
            return X if chosen.all() else frame.filter(chosen.tolist()).to_native()
        return validated if chosen.all() else validated[chosen]

    def _map(self, rows: Any) -> FloatArray:
        """Transform rows without NaN into an array of finite numbers."""
        mapped = self.transformer_.transform(rows)
        mapped = np.asarray(mapped.toarray() if issparse(mapped) else mapped)
        if mapped.ndim != 2 or len(mapped) != len(rows):
            raise ValueError(
                f"{self.transformer!r} must map {len(rows)} rows to a table of as many "
                f"rows; got shape {mapped.shape}."
            )
        if not np.isfinite(mapped).all():
            raise ValueError(
                f"{self.transformer!r} gave NaN or infinity for complete rows. Use one "
                "that is finite wherever its input is."
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

    Attributes
    ----------
    bases_ : list of TransformerBasis
        The fitted copies, one for each column.
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

    bases_: list[TransformerBasis]

    def fit(self, X: Any, y: ArrayLike | None = None) -> Self:
        """Fit a copy of the transformer to each column's values, with their labels."""
        n_columns = self._validated(X, reset=True).shape[1]
        self.bases_ = [TransformerBasis(self.transformer) for _ in range(n_columns)]
        features = self._by_column(X, lambda basis, rows: basis.fit(rows, y))
        widths = [len(basis.required_columns_) for basis in features]
        self.required_columns_ = np.eye(n_columns, dtype=bool).repeat(widths, axis=0)
        return self

    def transform(self, X: Any) -> Any:
        """Map the values that are observed; all else is NaN."""
        check_is_fitted(self)
        features = self._by_column(X, lambda basis, rows: basis.transform(rows))
        return np.concatenate(features, axis=1)

    def _by_column(
        self, X: Any, work: Callable[[TransformerBasis, FloatArray], Any]
    ) -> list[Any]:
        """What each column's basis makes of that column."""
        results, validated = [], self._validated(X)
        for j, name in enumerate(self._input_names(None)):
            try:
                results.append(work(self.bases_[j], validated[:, [j]]))
            except ValueError as error:
                raise ValueError(f"Column {name}: {error}") from error
        return results

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> Names:
        """Name the features as the transformer does, or by column and number."""
        names: list[str] = []
        columns = self._input_names(input_features)
        for column, basis in zip(map(str, columns), self.bases_, strict=True):
            given = map(str, basis.get_feature_names_out([column]))
            names += [n if n.startswith(column) else f"{column}_{n}" for n in given]
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
    transforms = hasattr(basis, "fit") and hasattr(basis, "transform")
    if transforms and not isinstance(basis, type):
        return TransformerBasis(basis)
    hint = did_you_mean(basis, _BY_NAME) if isinstance(basis, str) else ""
    raise TypeError(
        f"basis must be {listed(_BY_NAME)}, or an instance of a Basis or of a "
        f"scikit-learn transformer, with fit and transform; got {basis!r}.{hint}"
    )
