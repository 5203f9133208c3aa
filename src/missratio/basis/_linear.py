"""The basis of the columns themselves."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from missratio._base.typing import Names
from missratio.basis._base import Basis


class LinearBasis(Basis):
    """The columns themselves: f(z) = z.

    An array of floats is returned itself, not a copy of it.

    Attributes
    ----------
    required_columns_ : ndarray of bool, shape (p, p)
        The identity: each feature needs its own column.

    Examples
    --------
    >>> import numpy as np
    >>> from missratio.basis import LinearBasis
    >>> X = np.array([[1.0, np.nan], [3.0, 4.0]])
    >>> LinearBasis().fit(X).transform(X) is X
    True
    """

    def fit(self, X: Any, y: ArrayLike | None = None) -> Self:
        """Record the columns.

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
        self.required_columns_ = np.eye(validated.shape[1], dtype=bool)
        return self

    def transform(self, X: Any) -> Any:
        """Return the rows as they are.

        Parameters
        ----------
        X : array-like or dataframe, shape (n, p)
            Rows, NaN where a value is missing.

        Returns
        -------
        ndarray, shape (n, p)
            X itself where it is an array of floats.
        """
        check_is_fitted(self)
        return self._validated(X)

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> Names:
        """Name the features after their columns.

        Parameters
        ----------
        input_features : array-like of str, shape (p,), optional
            Names of the columns, for a basis fitted on an array.

        Returns
        -------
        ndarray of str, shape (p,)
            The names of the columns.
        """
        return self._input_names(input_features)
