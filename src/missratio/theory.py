"""The paper's quantities, as functions to call."""

from __future__ import annotations

from typing import Any

import numpy as np

from missratio._base.hints import check_probability
from missratio.threshold import PaperRule
from missratio.weights import worst_case_sample_size


def effective_sample_sizes(
    n0: int, n1: int, phi0_max: float = 0.0, phi1_max: float = 0.0
) -> tuple[float, float]:
    """The paper's m_eff = min_ω n_ω(1 − ‖φ^ω‖∞), and class 0's own share of it.

    Parameters
    ----------
    n0, n1 : int
        Rows of the denominator and the numerator class, missing ones included.
    phi0_max, phi1_max : float
        Largest missing probabilities.

    Returns
    -------
    m_eff, m_eff0 : float
        The smaller of both classes' worst cases, and class 0's.

    Examples
    --------
    >>> from missratio.theory import effective_sample_sizes
    >>> effective_sample_sizes(1000, 500, phi0_max=0.75)
    (250.0, 250.0)
    """
    m0 = worst_case_sample_size(n0, phi0_max)
    return min(m0, worst_case_sample_size(n1, phi1_max)), m0


def threshold_margin(delta: float, effective_rows: float) -> float:
    """The paper's Δ = √(16 log(1/δ)/m_eff⁰), by which its rule stays below α.

    Parameters
    ----------
    delta : float
    effective_rows : float
        m_eff⁰ = n₀(1 − ‖φ⁰‖∞).

    Returns
    -------
    float
        Δ, in units of the type I error.

    Examples
    --------
    >>> from missratio.theory import threshold_margin
    >>> round(threshold_margin(0.05, 4794), 3)
    0.1
    """
    check_probability("delta", delta)
    if effective_rows <= 0.0:
        raise ValueError(f"effective_rows must be above 0, got {effective_rows}.")
    return PaperRule().margin(1.0, delta, effective_rows)


def oracle_threshold(law: Any, alpha: float) -> float:
    """C* = inf{C : P(h(Z⁰) > C) ≤ α}, the threshold of one who knows the law.

    Parameters
    ----------
    law : frozen scipy.stats distribution, or array-like of scores
        The law of the score over the controlled class; an array stands for the law
        that puts equal mass on its entries.
    alpha : float

    Returns
    -------
    float
        C*, on the scale of the scores.

    Examples
    --------
    >>> from scipy.stats import norm
    >>> from missratio.theory import oracle_threshold
    >>> round(oracle_threshold(norm(), 0.1), 3)
    1.282
    >>> oracle_threshold([1.0, 2.0, 3.0, 4.0], 0.25)
    3.0
    """
    check_probability("alpha", alpha)
    if hasattr(law, "isf"):
        return float(law.isf(alpha))
    scores = np.sort(np.asarray(law, dtype=np.float64))
    # The largest k with k/n ≤ α rows may lie above.
    above = int(np.floor(alpha * len(scores) * (1.0 + 1e-12)))
    return float(scores[len(scores) - 1 - above])


def oracle_power(other_law: Any, threshold: float) -> float:
    """P(h(Z¹) > C) for a known law of the other class's score.

    Parameters
    ----------
    other_law : frozen scipy.stats distribution, or array-like of scores
    threshold : float

    Returns
    -------
    float
        The share of the other class above the threshold.

    Examples
    --------
    >>> from scipy.stats import norm
    >>> from missratio.theory import oracle_power, oracle_threshold
    >>> round(oracle_power(norm(1.5), oracle_threshold(norm(), 0.1)), 3)
    0.586
    """
    if hasattr(other_law, "sf"):
        return float(other_law.sf(threshold))
    return float(np.mean(np.asarray(other_law) > threshold))
