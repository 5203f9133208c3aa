"""Make a complete table lose values, as a missingness model says."""

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from missratio._base.reading import as_numeric_array, row_blocks, with_values
from missratio.missingness.base import Missingness, check_no_partial_row

Table = TypeVar("Table")
RandomState = int | np.random.RandomState | np.random.Generator | None


def corrupt(
    X: Table, missingness: Missingness, random_state: RandomState = None
) -> Table:
    """Return a copy of X in which values are missing with the probability of the model.

    Parameters
    ----------
    X : array-like or dataframe of shape (n, d)
        A table of numbers. What is NaN already stays so; a rowwise model needs rows
        that are either complete or missing as a whole.
    missingness : Missingness
        Loses whole rows, or single entries independently given the row.
    random_state : int, RandomState, Generator or None, default=None
        Decides which values are lost; an int gives the same table every time.

    Returns
    -------
    ndarray or dataframe of shape (n, d)
        Floating, NaN where missing. A pandas or polars dataframe gives one of the same
        kind, with its columns and index; anything else an array.

    Examples
    --------
    >>> import numpy as np
    >>> from missratio.missingness import StepMissingness, corrupt
    >>> X = np.arange(4.0).reshape(4, 1)
    >>> corrupt(X, StepMissingness(1, 1, 0.9), random_state=0).ravel()
    array([ 0.,  1., nan, nan])
    """
    if not isinstance(missingness, Missingness):
        raise TypeError(
            f"missingness must be one class's model, such as StepMissingness: got "
            f"{type(missingness).__name__}."
        )
    table = as_numeric_array(X)
    lossy = np.array(
        table, dtype=table.dtype if table.dtype.kind == "f" else np.float64
    )
    _lose(lossy, X, missingness, _generator(random_state))
    result: Table = with_values(X, lossy)
    return result


def _generator(
    random_state: RandomState,
) -> np.random.RandomState | np.random.Generator:
    if isinstance(random_state, np.random.Generator):
        return random_state
    generator: np.random.RandomState = check_random_state(random_state)
    return generator


def _lose(
    lossy: NDArray[Any],
    source: Any,
    missingness: Missingness,
    generator: np.random.RandomState | np.random.Generator,
) -> None:
    """Set entries of `lossy` to NaN in place; the draws don't depend on the blocks."""
    blocks = list(row_blocks((lossy.shape[0], lossy.shape[1])))
    if missingness.rowwise:
        for rows in blocks:
            check_no_partial_row(lossy[rows], rows.start)
    probability = missingness.missing_probability(source)
    for rows in blocks:
        # A comparison with NaN, where φ is not known, is False: what is missing stays
        # so.
        draws = generator.random(probability[rows].shape)
        if missingness.groups is not None:
            draws = draws[:, missingness.groups]
        # By number: a mask of which half is true takes longer.
        lost = np.flatnonzero(draws < probability[rows])
        if missingness.rowwise:
            lossy[rows][lost] = np.nan
        else:
            np.put(lossy[rows], lost, np.nan)
