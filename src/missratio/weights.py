"""Inverse-probability weights 1{observed} / (1 − φ), and what they leave of a sample.

By the paper's Lemma main_prob, E g(Z) = E[1{X ≠ ∅} / (1 − φ(X)) g(X)]: weighted means
of what is observed are unbiased for means of what was there.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from missratio._base.reading import column_name, joined, read_floats
from missratio._base.storable import storable
from missratio._base.typing import FloatArray, IntArray
from missratio.exceptions import Message, WeightConcentrationWarning, warn
from missratio.missingness import Missingness, joint_weight, once

# The largest weight that a row is given.
HEAVIEST = 1e15


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
    if isinstance(missingness, Missingness):
        return missingness.weights(X)
    if missingness is not None and missingness != "ignore":
        raise TypeError(
            'missingness must be one class\'s model, "ignore" or None, and no mapping: '
            f"got {missingness!r}."
        )
    missing = np.isnan(read_floats(X, coded=True))
    if missingness == "ignore":
        return (~missing).astype(np.float64)
    incomplete = missing.any(axis=0)
    if incomplete.any():
        names = [column_name(X, int(j)) for j in np.flatnonzero(incomplete)]
        raise ValueError(
            f"X has NaN in column(s) {joined(names)}, but no missingness model. Give "
            'one, or missingness="ignore" for the complete-case estimator.'
        )
    return np.ones(len(missing))


def row_weights(entries: FloatArray, groups: IntArray | None = None) -> FloatArray:
    """Return the weight of complete rows under per-feature missingness.

    Entries are missing independently given z, so that a row is complete with
    probability Π_j (1 − φ_j), and its weight is the product of its entries' weights: 0
    if any is missing.

    Parameters
    ----------
    entries : ndarray of shape (n, d)
        As `inverse_probability_weights` gives for a per-feature model.
    groups : ndarray of int of shape (d,), optional
        Columns with equal numbers go missing together, and count once.

    Returns
    -------
    ndarray of shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from missratio.weights import row_weights
    >>> row_weights(np.array([[2.0, 3.0], [0.0, 3.0]]))
    array([6., 0.])
    """
    weights = joint_weight(entries, groups)
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
    weights = inverse_probability_weights(X, missingness)
    if weights.ndim == 1:
        return weights
    return row_weights(weights, getattr(missingness, "groups", None))


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
    edges = []
    for probability, factor in ((lower, 1.0 / odds_factor), (upper, odds_factor)):
        with np.errstate(divide="ignore", over="ignore"):
            weights = 1.0 + factor * probability / (1.0 - probability)
            if weights.ndim == 2:
                weights = weights.prod(axis=1)
        edges.append(np.where(np.isnan(weights), 0.0, np.minimum(weights, HEAVIEST)))
    return edges[0], edges[1]


def effective_sample_size(weights: ArrayLike) -> float:
    """Return Kish's effective sample size (Σw)² / Σw².

    At most the number of positive weights, and equal to it where they are all the same;
    0 where all weights are 0. It doesn't depend on the scale of the weights.

    Parameters
    ----------
    weights : array-like of shape (n_rows,)
        Finite and not negative.

    Returns
    -------
    float
        Rows that tell as much if each counts the same.

    Examples
    --------
    >>> from missratio.weights import effective_sample_size
    >>> effective_sample_size([1.0, 1.0, 0.0]), effective_sample_size([2.0, 1.0])
    (2.0, 1.8)
    """
    checked = np.asarray(weights, dtype=np.float64)
    if checked.ndim != 1:
        raise ValueError(f"weights must be one number a row: got {weights!r}.")
    # One pass each, without a temporary: NaN reaches both the minimum and the maximum.
    if checked.size and not (checked.min() >= 0 and checked.max() < np.inf):
        place = int(np.argmin((checked >= 0) & (checked < np.inf)))
        raise ValueError(
            f"weights must be finite and not negative: got {checked[place]} at index "
            f"{place}. Missing rows or entries have weight 0."
        )
    scaled = checked / (checked.max(initial=0.0) or 1.0)
    total = float(scaled.sum())
    squares = float(np.square(scaled, out=scaled).sum())
    # Rounding must not break the inequality.
    return min(total**2 / (squares or 1.0), float(np.count_nonzero(checked)))


def worst_case_sample_size(n_rows: int, maximum: float) -> float:
    """Return n (1 − ‖φ‖∞), a class's share in the paper's effective sample size m_eff.

    Parameters
    ----------
    n_rows : int
        Rows of the class, missing ones included.
    maximum : float
        ‖φ‖∞, the supremum of the missing probability.

    Examples
    --------
    >>> from missratio.weights import worst_case_sample_size
    >>> worst_case_sample_size(1000, 0.75)
    250.0
    """
    if n_rows < 0:
        raise ValueError(f"n_rows must not be negative: got {n_rows}.")
    if not 0 <= maximum <= 1:
        raise ValueError(f"maximum must lie in [0, 1], a probability: got {maximum}.")
    return float(n_rows * (1 - maximum))


@storable()
@dataclass(frozen=True)
class SampleSize:
    """How much of a class's sample is left.

    Parameters
    ----------
    rows : int
        Rows of the class, missing ones included.
    observed : int
        Rows with a positive weight.
    kish : float
        Kish's effective sample size of the weights.
    worst_case : float
        n (1 − ‖φ‖∞), the size that the paper's bounds hold for.
    """

    rows: int
    observed: int
    kish: float
    worst_case: float


def warn_if_concentrated(weights: ArrayLike, label: str | Message) -> None:
    """Warn when a twentieth of the observed rows, or one row, has half of the weight.

    Parameters
    ----------
    weights : array-like of shape (n,)
        1{observed} / (1 − φ); nothing is said of two observed rows or fewer.
    label : str or Message
        What the weights belong to.

    Warns
    -----
    WeightConcentrationWarning
    """
    positive = np.sort(np.asarray(weights, dtype=np.float64))[::-1]
    positive = positive[positive > 0]
    n_observed = positive.size
    if n_observed <= 2:
        return
    few = max(1, n_observed // 20)
    scaled = positive / positive[0]
    carried, half = np.cumsum(scaled[:few]), scaled.sum() / 2
    if carried[-1] < half:
        return
    about = label if isinstance(label, Message) else Message.plain(label)
    carrying = 1 + int(np.searchsorted(carried, half))
    claim = (
        f": half of the total weight sits on {carrying} of {n_observed} observed rows "
        "(Kish's effective sample size {kish:.1f}, largest missing probability "
        f"{max(0.0, 1 - 1 / float(positive[0])):.12g}), so that the estimate hangs on "
        "them."
    )
    remedies = (
        "cap the missing probability by design",
        "collect more rows where it is close to 1",
    )
    facts = {**about.facts, "kish": effective_sample_size(positive)}
    message = replace(about, claim=about.claim + claim, remedies=remedies, facts=facts)
    warn(WeightConcentrationWarning(message))
