"""Values that are missing with a probability that the user computes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from missratio._base.typing import FloatArray
from missratio.missingness.base import Missingness, read_only_parameter


@dataclass(frozen=True, eq=False, repr=False)
class FunctionMissingness(Missingness):
    """φ(x) = function(x), anything callable with values in [0, 1).

    Parameters
    ----------
    function : callable
        From a read-only array of shape (n, d) to shape (n,) for whole rows, or to (n,
        d) per feature. The value at a row must depend on that row only (it may be
        called on blocks of rows), and per feature the value at entry j on that entry
        only. Called on complete rows for a rowwise model; per feature it sees NaN, and
        what it returns there is not used. To pickle the model, use a function that is
        defined in a module.
    rowwise : bool, default=True
        Whether whole rows are missing, rather than single entries.
    maximum : float, or per feature array-like of shape (d,), optional
        The supremum ‖φ‖∞, 0 ≤ maximum < 1, if it is known; a value above it is an
        error. Per feature give one for each column, 0 for those that lose nothing: the
        largest weight of a row is a product over columns. The attribute is the largest.

    Examples
    --------
    >>> import numpy as np
    >>> from missratio.missingness import FunctionMissingness
    >>> phi = FunctionMissingness(lambda X: 0.8 * (X[:, 0] < 0), maximum=0.8)
    >>> phi.missing_probability([[-1.0, 3.0], [1.0, 3.0], [np.nan, np.nan]])
    array([0.8, 0. , nan])
    """

    function: Callable[[FloatArray], ArrayLike]
    rowwise: bool = True
    maximum: Any = None

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise TypeError(
                "function must be callable, (n, d) -> (n,) rowwise or (n, d) -> (n, "
                f"d) per feature: got {self.function!r}."
            )
        if self.maximum is None:
            return
        largest = read_only_parameter(self.maximum, "maximum")
        if not ((largest >= 0) & (largest < 1)).all():
            raise ValueError(
                f"maximum must lie in [0, 1): got {self.maximum}. Leave it None where "
                "the supremum is not known or is 1."
            )
        if self.rowwise and largest.ndim:
            raise ValueError(
                f"A rowwise model has one maximum: got shape {largest.shape}. Set "
                "rowwise=False for one per feature."
            )
        object.__setattr__(self, "_maxima", largest)
        object.__setattr__(self, "maximum", float(largest.max()))

    def column_maxima(self, n_columns: int) -> FloatArray:
        """What was declared for each column."""
        if self.maximum is None:
            return super().column_maxima(n_columns)
        largest: FloatArray = self.__dict__["_maxima"]
        return np.broadcast_to(largest, (1 if self.rowwise else n_columns,))

    @property
    def n_features(self) -> int | None:
        """As many as have a maximum each; None where one holds for all."""
        maxima = self.__dict__.get("_maxima")
        return None if maxima is None or not maxima.ndim else len(maxima)

    def _evaluate(self, X: FloatArray) -> ArrayLike:
        with np.errstate(invalid="ignore"):
            return self.function(X)
