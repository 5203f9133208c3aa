"""Which arrays are weights."""

import numpy as np
from numpy.typing import ArrayLike

from missratio._base.typing import BoolArray, FloatArray


def checked_weights(weights: ArrayLike) -> FloatArray:
    """An array of weights, finite and not negative."""
    checked = np.asarray(weights, dtype=np.float64)
    if checked.ndim == 0:
        raise ValueError(f"weights must be an array: got {weights!r}.")
    # One pass each, without a temporary: NaN reaches both the minimum and the maximum.
    if checked.size and not (checked.min() >= 0 and checked.max() < np.inf):
        bad: BoolArray = ~((checked >= 0) & (checked < np.inf))
        at = tuple(int(i) for i in np.argwhere(bad)[0])
        raise ValueError(
            f"weights must be finite and not negative: got {checked[at]} at index "
            f"{at}. Missing rows or entries have weight 0."
        )
    return checked


def checked_row_weights(weights: ArrayLike) -> FloatArray:
    """Weights of rows, one for each."""
    checked = checked_weights(weights)
    if checked.ndim != 1:
        raise ValueError(
            f"weights must have shape (rows,): got {checked.shape}. Give one column, "
            "or the rows' product by row_weights."
        )
    return checked
