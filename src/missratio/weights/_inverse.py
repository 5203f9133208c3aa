"""Inverse-probability weights 1{observed} / (1 − φ)."""

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from missratio._base.blocks import rows_with_nan
from missratio._base.reading import as_numeric_array, column_name, float_blocks, joined
from missratio._base.typing import FloatArray, IntArray
from missratio.missingness import Missingness, once
from missratio.weights._checks import checked_weights

_HEAVIEST = 1e15


def inverse_probability_weights(
    X: Any, missingness: Missingness | Literal["ignore"] | None
) -> FloatArray:
    """Return 1{observed} / (1 − φ) for every row, or for every entry, of one class.

    Parameters
    ----------
    X : array-like or dataframe of shape (n, d)
        The rows of one class, NaN where missing. For a rowwise model a missing row is
        NaN throughout.
    missingness : Missingness, "ignore" or None
        The class's model φ. None: X is complete, and a NaN is an error. "ignore": the
        complete-case weights 1{observed}, entry by entry.

    Returns
    -------
    ndarray of shape (n,) for None and for a rowwise model, else (n, d)
        0 where missing, 1 / (1 − φ) ≥ 1 where observed.

    Examples
    --------
    >>> import numpy as np
    >>> from missratio.missingness import StepMissingness
    >>> from missratio.weights import inverse_probability_weights
    >>> X = np.array([[-1.0], [2.0], [np.nan]])
    >>> inverse_probability_weights(X, StepMissingness(1.0, 0.0, 0.75))
    array([1., 4., 0.])
    """
    if missingness is None:
        return _weights_of_complete(X)
    if isinstance(missingness, str) and missingness == "ignore":
        return _complete_case_weights(X)
    if not isinstance(missingness, Missingness):
        raise TypeError(
            'missingness must be one class\'s model, "ignore" or None: got '
            f"{missingness!r}. From a mapping of classes to models take the class's "
            "own."
        )
    return missingness.weights(X)


def _weights_of_complete(X: Any) -> FloatArray:
    table = as_numeric_array(X)
    incomplete = np.zeros(table.shape[1], dtype=bool)
    for _, block in float_blocks(table, X):
        incomplete |= np.isnan(block).any(axis=0)
    if incomplete.any():
        names = [column_name(X, int(j)) for j in np.flatnonzero(incomplete)]
        raise ValueError(
            f"X has NaN in column(s) {joined(names)}, but no missingness model is "
            'given. Give a missingness model, or missingness="ignore" for the '
            "complete-case estimator."
        )
    return np.ones(table.shape[0])


def _complete_case_weights(X: Any) -> FloatArray:
    table = as_numeric_array(X)
    weights = np.empty(table.shape)
    for rows, block in float_blocks(table, X):
        weights[rows] = ~np.isnan(block)
    return weights


def row_weights(entry_weights: ArrayLike, groups: IntArray | None = None) -> FloatArray:
    """Return the weight of complete rows under per-feature missingness.

    Entries are missing independently given z, so that a row is complete with
    probability Π_j (1 − φ_j), and its weight is the product of its entries' weights: 0
    if any is missing.

    Parameters
    ----------
    entry_weights : array-like of shape (n, d)
        As `inverse_probability_weights` gives for a per-feature model.
    groups : ndarray of int of shape (d,), optional
        Columns with equal numbers go missing together, and count once.

    Returns
    -------
    ndarray of shape (n,)

    Examples
    --------
    >>> from missratio.weights import row_weights
    >>> row_weights([[2.0, 3.0], [0.0, 3.0]])
    array([6., 0.])
    """
    entries = checked_weights(entry_weights)
    if entries.ndim != 2:
        raise ValueError(
            f"entry_weights must have shape (rows, features): got {entries.shape}. "
            "Weights of rows need no product."
        )
    if groups is not None:
        entries = entries[:, once(groups)]
    with np.errstate(over="ignore", invalid="ignore"):
        weights: FloatArray = entries.prod(axis=1)
    finite = np.isfinite(weights)
    if not finite.all():
        # A missing entry beside huge ones is inf · 0; its row weighs nothing.
        weights[~finite] = np.where((entries[~finite] == 0).any(axis=1), 0.0, np.inf)
    if np.isinf(weights).any():
        raise ValueError(
            "The product of the entry weights overflows at row "
            f"{int(np.argmax(weights))}: its missing probabilities are too close to "
            "1. Use fewer features, or fit them one at a time."
        )
    return weights


def complete_row_weights(
    X: Any, missingness: Missingness | Literal["ignore"] | None
) -> FloatArray:
    """Return the weights of complete rows, 0 where any entry is missing.

    Parameters
    ----------
    X : array-like or dataframe of shape (n, d)
        The rows of one class, NaN where missing.
    missingness : Missingness, "ignore" or None
        As for `inverse_probability_weights`.

    Returns
    -------
    ndarray of shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from missratio.weights import complete_row_weights
    >>> complete_row_weights(np.array([[1.0, 2.0], [np.nan, 3.0]]), "ignore")
    array([1., 0.])
    """
    if isinstance(missingness, str) and missingness == "ignore":
        table = as_numeric_array(X)
        weights = np.empty(len(table))
        for rows, block in float_blocks(table, X):
            weights[rows] = ~rows_with_nan(block)
        return weights
    weights = inverse_probability_weights(X, missingness)
    if weights.ndim == 1:
        return weights
    return row_weights(weights, None if missingness is None else missingness.groups)


def complete_row_weight_edges(
    X: Any, missingness: Missingness, *, delta: float | None, odds_factor: float = 1.0
) -> tuple[FloatArray, FloatArray]:
    """Return the least and the largest weight that each complete row may have.

    Parameters
    ----------
    X : array-like or dataframe of shape (n, d)
        The rows of one class, NaN where missing.
    missingness : Missingness
        The class's model φ.
    delta : float or None
        φ lies within its band at this level, everywhere; None takes it at its word.
    odds_factor : float, default=1.0
        By what factor the odds φ/(1 − φ) of being missing may be wrong either way,
        beyond that.

    Returns
    -------
    low, high : ndarray of shape (n,)
        0 where any entry is missing; the larger one huge where φ may be 1.
    """
    lower, upper = missingness.probability_band(X, delta)
    if missingness.groups is not None:
        kept = once(missingness.groups)
        lower, upper = lower[:, kept], upper[:, kept]
    return weight_edges(lower, upper, odds_factor)


def weight_edges(
    lower: FloatArray, upper: FloatArray, odds_factor: float
) -> tuple[FloatArray, FloatArray]:
    """Return the least and the largest weight of rows whose φ is within bounds.

    Parameters
    ----------
    lower, upper : ndarray of shape (n,) or (n, d)
        Bounds on φ, NaN where missing.
    odds_factor : float
        By what factor the odds φ/(1 − φ) may be beyond them.

    Returns
    -------
    low, high : ndarray of shape (n,)
    """
    edges = []
    for probability, factor in ((lower, 1.0 / odds_factor), (upper, odds_factor)):
        with np.errstate(divide="ignore", over="ignore"):
            weights = 1.0 + factor * probability / (1.0 - probability)
            if weights.ndim == 2:
                weights = weights.prod(axis=1)
        edges.append(np.where(np.isnan(weights), 0.0, np.minimum(weights, _HEAVIEST)))
    return edges[0], edges[1]
