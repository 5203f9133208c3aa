"""What weights leave of a sample."""

import warnings
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from missratio._base.typing import FloatArray
from missratio.exceptions import Message, WeightConcentrationWarning
from missratio.weights._checks import checked_row_weights, checked_weights

_CONCENTRATED_SHARE = 20


def effective_sample_size(weights: ArrayLike, axis: int = -1) -> float | FloatArray:
    """Return Kish's effective sample size (Σw)² / Σw².

    At most the number of positive weights, and equal to it where they are all the same;
    0 where all weights are 0. It doesn't depend on the scale of the weights.

    Parameters
    ----------
    weights : array-like
        Finite and not negative.
    axis : int, default=-1
        The axis along which rows run; for entry weights of shape (n, d) it is 0.

    Returns
    -------
    float, or ndarray where more than one axis was given

    Examples
    --------
    >>> from missratio.weights import effective_sample_size
    >>> effective_sample_size([1.0, 1.0, 0.0]), effective_sample_size([2.0, 1.0])
    (2.0, 1.8)
    """
    checked = checked_weights(weights)
    largest = checked.max(axis=axis, keepdims=True, initial=0.0)
    scaled = checked / np.where(largest > 0, largest, 1.0)
    total = scaled.sum(axis=axis)
    squares = np.square(scaled, out=scaled).sum(axis=axis)
    size = total**2 / np.where(squares > 0, squares, 1.0)
    # Rounding must not break the inequality.
    size = np.minimum(size, np.count_nonzero(checked, axis=axis))
    return float(size) if np.ndim(size) == 0 else np.asarray(size)


def worst_case_sample_size(n_rows: int, maximum: float) -> float:
    """Return n (1 − ‖φ‖∞), a class's share in the paper's effective sample size m_eff.

    Parameters
    ----------
    n_rows : int
        Rows of the class, missing ones included.
    maximum : float
        ‖φ‖∞, the supremum of the missing probability.
    """
    if n_rows < 0:
        raise ValueError(f"n_rows must not be negative: got {n_rows}.")
    if not 0 <= maximum <= 1:
        raise ValueError(f"maximum must lie in [0, 1], a probability: got {maximum}.")
    return float(n_rows * (1 - maximum))


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


def sample_size(weights: ArrayLike, maximum: float | None = None) -> SampleSize:
    """Describe what weights of shape (n,) leave of a class's sample.

    Parameters
    ----------
    weights : array-like of shape (n,)
        1{observed} / (1 − φ), not rescaled.
    maximum : float, optional
        ‖φ‖∞. None: the largest φ that the weights imply, 1 − 1 / max(w). That is a
        plug-in: φ at the observed rows can't exceed the supremum, so the worst case
        comes out too large.
    """
    checked = checked_row_weights(weights)
    observed = int(np.count_nonzero(checked))
    largest = maximum if maximum is not None else _largest_probability(checked)
    return SampleSize(
        rows=checked.size,
        observed=observed,
        kish=float(effective_sample_size(checked)),
        worst_case=worst_case_sample_size(checked.size, largest),
    )


def warn_if_concentrated(
    weights: ArrayLike, label: str | Message, stacklevel: int = 2
) -> None:
    """Warn when a twentieth of the observed rows, or one row, has half of the weight.

    Parameters
    ----------
    weights : array-like of shape (n,)
        1{observed} / (1 − φ); nothing is said of two observed rows or fewer.
    label : str or Message
        What the weights belong to.
    stacklevel : int, default=2
        As for `warnings.warn`; 2 is the caller of this function.

    Warns
    -----
    WeightConcentrationWarning
    """
    checked = checked_row_weights(weights)
    positive = checked[checked > 0]
    n_observed = positive.size
    if n_observed <= 2:
        return
    few = max(1, n_observed // _CONCENTRATED_SHARE)
    scaled = positive / positive.max()
    half = scaled.sum() / 2
    # Even if all of these few weighed as much as the heaviest.
    if few < half:
        return
    heaviest = np.partition(scaled, n_observed - few)[n_observed - few :]
    if heaviest.sum() < half:
        return
    carried = np.cumsum(np.sort(heaviest)[::-1])
    n_carrying = min(few, 1 + int(np.searchsorted(carried, half)))
    about = label if isinstance(label, Message) else Message.plain(label)
    message = replace(
        about,
        claim=about.claim
        + ": half of the total weight sits on {n_carrying} of {n_observed} observed "
        "rows (Kish's effective sample size {kish:.1f}, largest missing probability "
        "{largest:.12g}), so that the estimate hangs on them.",
        remedies=(
            "cap the missing probability by design",
            "collect more rows where it is close to 1",
        ),
        facts={
            **about.facts,
            "n_carrying": n_carrying,
            "n_observed": n_observed,
            "kish": effective_sample_size(positive),
            "largest": _largest_probability(positive),
        },
    )
    warnings.warn(WeightConcentrationWarning(message), stacklevel=stacklevel)


def _largest_probability(weights: FloatArray) -> float:
    """Return 1 − 1 / max(w), the largest φ that weights imply; 1 if all are 0."""
    largest = float(weights.max(initial=0.0))
    return max(0.0, 1 - 1 / largest) if largest > 0 else 1.0
