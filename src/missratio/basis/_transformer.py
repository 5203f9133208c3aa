"""Any scikit-learn transformer as a basis."""

from typing import Any, Self

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.utils import check_consistent_length, get_tags
from sklearn.utils.validation import check_is_fitted

from missratio._base.typing import BoolArray, FloatArray, Names
from missratio.basis._base import Basis, complete_rows


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
        """Fit the transformer on the complete rows.

        Parameters
        ----------
        X : array-like or dataframe, shape (n, p)
            Rows, NaN where a value is missing.
        y : array-like, shape (n,), optional
            Labels, handed on for the complete rows.

        Returns
        -------
        Self
            The fitted basis.
        """
        validated = self._validated(X, reset=True)
        complete = complete_rows(validated)
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
        """Map the complete rows; the others are NaN.

        Parameters
        ----------
        X : array-like or dataframe, shape (n, p)
            Rows, NaN where a value is missing.

        Returns
        -------
        ndarray, shape (n, k)
            NaN throughout a row that has a NaN.
        """
        check_is_fitted(self)
        validated = self._validated(X)
        complete = complete_rows(validated)
        n_features = len(self.required_columns_)
        if not complete.any():
            return np.full((len(validated), n_features), np.nan, validated.dtype)
        mapped = self._map(self._rows(X, validated, complete), validated)
        if complete.all():
            return mapped
        out = np.full((len(validated), n_features), np.nan, mapped.dtype)
        out[complete] = mapped
        return out

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> Names:
        """Name the features as the transformer does, or ``f0``, ``f1`` and so on.

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
        """Transform complete rows into an array of finite floats."""
        mapped = self.transformer_.transform(rows)
        mapped = np.asarray(mapped.toarray() if issparse(mapped) else mapped)
        if mapped.ndim != 2 or len(mapped) != len(rows):
            raise ValueError(
                f"{self.transformer!r} must map {len(rows)} rows to a table of as many "
                f"rows; got shape {mapped.shape}."
            )
        if not np.issubdtype(mapped.dtype, np.floating):
            mapped = mapped.astype(validated.dtype)
        if not np.isfinite(mapped).all():
            raise ValueError(
                f"{self.transformer!r} gave NaN or infinity for a complete row. NaN is "
                f"kept for rows with a missing value; use a transformer that is "
                f"finite wherever its input is."
            )
        return mapped
