"""The contract of a basis: features, the columns that they need, and their names."""

from abc import ABC, abstractmethod
from typing import Any, Self

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin

from missratio._base.reading import read_table
from missratio._base.typing import BoolArray, FloatArray, Names


class Basis(TransformerMixin, BaseEstimator, ABC):
    """Features f: R^p → R^k of a log-linear density ratio.

    A subclass is a scikit-learn transformer with two more promises:

    - ``fit`` sets ``required_columns_``, where entry (i, j) says whether feature i
      needs column j;
    - a feature is NaN exactly where a column it needs is NaN.

    Attributes
    ----------
    required_columns_ : ndarray of bool, shape (k, p)
        Which columns each feature needs.
    n_features_in_ : int
        The number p of columns seen in ``fit``.
    feature_names_in_ : ndarray of str, shape (p,)
        Names of the columns seen in ``fit``, where all of them are strings.

    Examples
    --------
    >>> import numpy as np
    >>> from missratio.basis import Basis
    >>> class Differences(Basis):
    ...     def fit(self, X, y=None):
    ...         p = self._validated(X, reset=True).shape[1]
    ...         self.required_columns_ = np.eye(p - 1, p) + np.eye(p - 1, p, 1) > 0
    ...         return self
    ...
    ...     def transform(self, X):
    ...         return np.diff(self._validated(X), axis=1)
    ...
    ...     def get_feature_names_out(self, input_features=None):
    ...         names = self._input_names(input_features)
    ...         pairs = zip(names[1:], names[:-1])
    ...         return np.array([f"{b}-{a}" for b, a in pairs], dtype=object)
    >>> Differences().fit_transform([[1.0, 4.0, np.nan]])
    array([[ 3., nan]])
    """

    required_columns_: BoolArray
    n_features_in_: int
    feature_names_in_: Names

    @abstractmethod
    def fit(self, X: Any, y: ArrayLike | None = None) -> Self:
        """Learn the basis and set ``required_columns_``.

        Parameters
        ----------
        X : array-like or dataframe, shape (n, p)
            Rows, NaN where a value is missing.
        y : array-like, shape (n,), optional
            Labels, for a basis that uses them.

        Returns
        -------
        Self
            The fitted basis.
        """

    @abstractmethod
    def transform(self, X: Any) -> Any:
        """Evaluate every feature at every row.

        Parameters
        ----------
        X : array-like or dataframe, shape (n, p)
            Rows, NaN where a value is missing.

        Returns
        -------
        ndarray, shape (n, k)
            NaN exactly where a column that the feature needs is NaN. A dataframe if
            ``set_output`` says so.
        """

    @abstractmethod
    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> Names:
        """Name the features.

        Parameters
        ----------
        input_features : array-like of str, shape (p,), optional
            Names of the columns, for a basis fitted on an array.

        Returns
        -------
        ndarray of str, shape (k,)
            One name a feature.
        """

    def __sklearn_tags__(self) -> Any:
        """Declare that NaN is allowed and that float32 stays float32."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _validated(self, X: Any, *, reset: bool = False) -> FloatArray:
        """Return X as an array of floats, not copied where it is one already."""
        validated: FloatArray = read_table(self, X, reset=reset, finite="allow-nan")
        return validated

    def _input_names(self, input_features: ArrayLike | None) -> Names:
        """Return names of the columns: those given, those of ``fit``, or x0, x1."""
        names: Names = OneToOneFeatureMixin.get_feature_names_out(self, input_features)
        return names
