"""The columns themselves, and powers and products of them."""

from collections.abc import Sequence
from itertools import combinations
from numbers import Integral
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_scalar
from sklearn.utils.validation import check_is_fitted

from missratio._base.hints import check_choice
from missratio._base.reading import row_blocks
from missratio._base.storable import storable
from missratio._base.typing import Names
from missratio.basis.contract import Basis


@storable()
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

    @classmethod
    def of_columns(cls, n_columns: int, names: Names | None) -> Self:
        """A fitted basis, without a look at a table."""
        basis = cls()
        basis.required_columns_ = np.eye(n_columns, dtype=bool)
        basis.n_features_in_ = n_columns
        if names is not None:
            basis.feature_names_in_ = names
        return basis

    def fit(self, X: Any, y: ArrayLike | None = None) -> Self:
        """Record the columns; ``y`` is ignored."""
        n_columns = self._validated(X, reset=True).shape[1]
        self.required_columns_ = np.eye(n_columns, dtype=bool)
        return self

    def transform(self, X: Any) -> Any:
        """Return the rows as they are: X itself where it is an array of floats."""
        check_is_fitted(self)
        return self._validated(X)

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> Names:
        """Name the features after their columns."""
        return self._input_names(input_features)


@storable(counts=("degree",))
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
        """Work out the list of powers and products; ``y`` is ignored."""
        degree = check_scalar(self.degree, "degree", Integral, min_val=1)
        n_columns = self._validated(X, reset=True).shape[1]
        terms = [(j,) * d for j in range(n_columns) for d in range(1, degree + 1)]
        asked: Any = () if self.interactions is None else self.interactions
        if isinstance(asked, str):
            check_choice("interactions", asked, ("all",))
            terms, asked = [*terms, *combinations(range(n_columns), 2)], ()
        places = {j: j for j in range(n_columns)}
        places |= {name: j for j, name in enumerate(self._input_names(None))}
        for item in asked:
            if not isinstance(item, tuple | list) or not item:
                raise ValueError(
                    "Each of interactions must be a tuple of one or more columns; got "
                    f"{item!r}. Write a single product of two columns as [(0, 1)]."
                )
            for column in item:
                check_choice("A column of interactions", column, [*places])
            terms.append(tuple(sorted(places[column] for column in item)))
        # A dict keeps the first of equal terms, in order.
        distinct = dict.fromkeys(terms)
        self.exponents_ = np.array(
            [np.bincount(term, minlength=n_columns) for term in distinct]
        )
        self.required_columns_ = self.exponents_ > 0
        return self

    def transform(self, X: Any) -> Any:
        """Evaluate the powers and products at every row."""
        check_is_fitted(self)
        validated, columns = self._validated(X), np.arange(self.n_features_in_)
        # The factors of each product: z0² z1 is (0, 0, 1).
        terms = [np.repeat(columns, powers).tolist() for powers in self.exponents_]
        out = np.empty((len(validated), len(terms)), dtype=validated.dtype)
        for rows in row_blocks((len(out), sum(self.exponents_.shape))):
            try:
                with np.errstate(over="raise", under="ignore"):
                    for i, term in enumerate(terms):
                        out[rows, i] = validated[rows, term[0]]
                        for column in term[1:]:
                            out[rows, i] *= validated[rows, column]
            except FloatingPointError as error:
                raise ValueError(
                    "A power or product of columns is beyond the range of "
                    f"{validated.dtype}. Standardise the columns, or lower the degree."
                ) from error
        return out

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> Names:
        """Name the features by formula, as ``"age"``, ``"age^2"``, ``"age dose"``."""
        names = self._input_names(input_features)
        formulas = []
        for powers in self.exponents_.tolist():
            pairs = zip(names, powers, strict=True)
            factors = [x if p == 1 else f"{x}^{p}" for x, p in pairs if p]
            formulas.append(" ".join(factors))
        return np.array(formulas, dtype=object)
