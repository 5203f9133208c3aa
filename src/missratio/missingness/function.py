"""Values that are missing with a probability that the user computes."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from missratio._typing import FloatArray
from missratio.missingness.base import Missingness


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
        what it returns there is not used. A model that is to be pickled needs a
        function that can be, one of a module.
    rowwise : bool, default=True
        Whether whole rows are missing, rather than single entries.
    maximum : float, optional
        The supremum ‖φ‖∞, 0 ≤ maximum < 1, if it is known; a value above it is an
        error.

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
    maximum: float | None = None

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise TypeError(
                "function must be callable, (n, d) -> (n,) rowwise or (n, d) -> (n, "
                f"d) per feature: got {self.function!r}."
            )
        if self.maximum is not None and not 0 <= self.maximum < 1:
            raise ValueError(
                f"maximum must lie in [0, 1): got {self.maximum}. Leave it None where "
                "the supremum is not known or is 1."
            )

    def _evaluate(self, X: FloatArray) -> ArrayLike:
        with np.errstate(invalid="ignore"):
            return self.function(X)
