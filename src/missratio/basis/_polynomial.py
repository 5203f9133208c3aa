"""The basis of powers and products of columns."""

from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from numbers import Integral
from typing import Any, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_scalar
from sklearn.utils.validation import check_is_fitted

from missratio._base.hints import did_you_mean, listed
from missratio._base.typing import FloatArray, Names
from missratio.basis._base import Basis, row_blocks

# The factors of a product, as ascending column numbers: z0² z1 is (0, 0, 1).
Term: TypeAlias = tuple[int, ...]


class PolynomialBasis(Basis):
    """Powers of each column, and products of columns by choice.

    The features are z_j, z_j², …, z_j^degree for every column j, and then the
    products asked for, each feature once. There is no constant: the normaliser of the
    ratio is one already. A product of columns that go missing independently uses the
    rows where all of them are observed, under the product of their weights: it is
    noisier than a power of one column, so products are opt-in.

    Parameters
    ----------
    degree : int, default=2
        The highest power of a single column, at least 1.
    interactions : None, "all" or list of tuples, default=None
        None for no products, "all" for z_j z_k of every pair j < k, or the products
        themselves as tuples of column numbers or names: ``(0, 1)``,
        ``("age", "dose")``, and ``(0, 0, 1)`` for z_0² z_1.

    Attributes
    ----------
    exponents_ : ndarray of int, shape (k, p)
        The power of each column in each feature.
    required_columns_ : ndarray of bool, shape (k, p)
        Where ``exponents_`` is positive.

    Examples
    --------
    >>> import numpy as np
    >>> from missratio.basis import PolynomialBasis
    >>> basis = PolynomialBasis(degree=2, interactions=[(0, 1)])
    >>> basis.fit_transform([[2.0, 3.0], [5.0, np.nan]])
    array([[ 2.,  4.,  3.,  9.,  6.],
           [ 5., 25., nan, nan, nan]])
    >>> basis.get_feature_names_out(["age", "dose"]).tolist()
    ['age', 'age^2', 'dose', 'dose^2', 'age dose']
    """

    def __init__(
        self,
        degree: int = 2,
        interactions: Literal["all"] | Sequence[tuple[int | str, ...]] | None = None,
    ) -> None:
        self.degree = degree
        self.interactions = interactions

    exponents_: NDArray[np.int64]

    def fit(self, X: Any, y: ArrayLike | None = None) -> Self:
        """Work out the list of powers and products.

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
        degree = check_scalar(self.degree, "degree", Integral, min_val=1)
        n_columns = self._validated(X, reset=True).shape[1]
        powers = [(j,) * d for j in range(n_columns) for d in range(1, degree + 1)]
        # A dict keeps the first of equal terms, in order.
        terms = list(dict.fromkeys(powers + self._products(n_columns)))
        self.exponents_ = np.zeros((len(terms), n_columns), dtype=np.int64)
        for exponents, term in zip(self.exponents_, terms, strict=True):
            for column, power in Counter(term).items():
                exponents[column] = power
        self.required_columns_ = self.exponents_ > 0
        return self

    def transform(self, X: Any) -> Any:
        """Evaluate the powers and products at every row.

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
        validated = self._validated(X)
        n_rows, n_columns = validated.shape
        terms = _terms(self.exponents_)
        out = np.empty((n_rows, len(terms)), dtype=validated.dtype)
        for rows in row_blocks(n_rows, n_columns + len(terms)):
            try:
                with np.errstate(over="raise", under="ignore"):
                    _multiply_out(validated[rows], terms, out[rows])
            except FloatingPointError as error:
                raise ValueError(
                    f"A power or product of columns is beyond the range of "
                    f"{validated.dtype}: got values up to "
                    f"{np.nanmax(np.abs(validated[rows])):.3g}. Standardise the "
                    f"columns, or lower the degree."
                ) from error
        return out

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> Names:
        """Name the features by formula, as ``"age"``, ``"age^2"``, ``"age dose"``.

        Parameters
        ----------
        input_features : array-like of str, shape (p,), optional
            Names of the columns, for a basis fitted on an array.

        Returns
        -------
        ndarray of str, shape (k,)
            One name a feature.
        """
        names = self._input_names(input_features)
        return np.array(
            [
                " ".join(
                    names[j] if power == 1 else f"{names[j]}^{power}"
                    for j, power in sorted(Counter(term).items())
                )
                for term in _terms(self.exponents_)
            ],
            dtype=object,
        )

    def _products(self, n_columns: int) -> list[Term]:
        """Resolve ``interactions`` into terms."""
        if self.interactions is None:
            return []
        if isinstance(self.interactions, str):
            if self.interactions != "all":
                raise ValueError(
                    f"interactions must be None, 'all' or a list of tuples of columns; "
                    f"got {self.interactions!r}."
                    f"{did_you_mean(self.interactions, ['all'])}"
                )
            return list(combinations(range(n_columns), 2))
        names = [str(name) for name in getattr(self, "feature_names_in_", [])]

        def number(column: int | str) -> int:
            return column_number(column, n_columns, names, "interactions")

        return [
            tuple(sorted(number(column) for column in item))
            for item in _checked_items(self.interactions)
        ]


def _checked_items(interactions: Any) -> list[tuple[int | str, ...]]:
    """Return the products asked for, or say that they aren't tuples of columns."""
    items = list(interactions)
    for item in items:
        if not isinstance(item, tuple | list) or not item:
            raise ValueError(
                f"Each of interactions must be a tuple of one or more columns; got "
                f"{item!r}. Write a single product of two columns as [(0, 1)]."
            )
    return items


def column_number(column: Any, n_columns: int, names: list[str], parameter: str) -> int:
    """Find a column, that a parameter asks for, by number or name."""
    if isinstance(column, int | np.integer) and not isinstance(column, bool):
        if not 0 <= column < n_columns:
            raise ValueError(
                f"{parameter} ask for column {column}; X has {n_columns} columns, "
                f"numbered from 0 to {n_columns - 1}."
            )
        return int(column)
    if not isinstance(column, str):
        raise TypeError(
            f"{parameter} take column numbers or names; got {column!r} of type "
            f"{type(column).__name__}."
        )
    if not names:
        raise ValueError(
            f"{parameter} ask for column {column!r}, and X has no column names. Fit "
            f"on a dataframe with string names, or give column numbers."
        )
    if column not in names:
        raise ValueError(
            f"{parameter} ask for column {column!r}, which X does not have. Its "
            f"columns: {listed(names)}.{did_you_mean(column, names)}"
        )
    return names.index(column)


def _terms(exponents: NDArray[np.int64]) -> list[Term]:
    """List the factors of each feature.

    Examples
    --------
    >>> _terms(np.array([[2, 1], [0, 1]]))
    [(0, 0, 1), (1,)]
    """
    columns = np.arange(exponents.shape[1])
    return [tuple(np.repeat(columns, powers).tolist()) for powers in exponents]


def _multiply_out(X: FloatArray, terms: list[Term], out: FloatArray) -> None:
    """Fill each column of ``out`` with its term, starting from a term already there."""
    filled: dict[Term, int] = {}
    for i, term in enumerate(terms):
        parent = filled.get(term[:-1])
        if parent is not None:
            np.multiply(out[:, parent], X[:, term[-1]], out=out[:, i])
        else:
            out[:, i] = X[:, term[0]]
            for column in term[1:]:
                out[:, i] *= X[:, column]
        filled[term] = i
