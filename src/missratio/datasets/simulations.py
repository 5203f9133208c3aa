"""The paper's simulated experiments, each as two laws and what class 1 loses.

Where the curves that were published came from other laws than the text describes, the
variant "published" is that of the curves and "text" that of the text. `sample` of a
simulation draws a table with NaN, and its labels.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from missratio._base.hints import listed
from missratio.datasets.laws import GaussianMixture, Simulation
from missratio.missingness import StepMissingness

__all__ = ["diff_variance", "misspecification", "msd_5dim", "naive_bayes", "np_mixture"]

Variant = Literal["published", "text"]
VARIANTS: tuple[Variant, ...] = ("published", "text")


def msd_5dim(variant: Variant = "published") -> Simulation:
    """Two normal laws in five dimensions, with a log-linear ratio.

    p₁ = N(0, I) and p₀ = N(0.1·1, I), so that θ = −0.1·1. A row of class 1 is missing
    with probability 0.5 where its sum is positive. The paper's Figure 1.

    Parameters
    ----------
    variant : {"published", "text"}, default="published"
        In the text the two means are swapped.

    Returns
    -------
    Simulation
    """
    near, far = np.zeros(5), np.full(5, 0.1)
    if _is_text(variant):
        near, far = far, near
    phi = StepMissingness(np.ones(5), threshold=0.0, probability=0.5)
    return Simulation("msd_5dim", _normal(near), _normal(far), {1: phi})


def np_mixture() -> Simulation:
    """Two mixtures of two normal laws in the plane; the log ratio is not linear.

    p₁ = ½N((0, 0), I) + ½N((−1, 4), I) and p₀ = ½N((1, 0), I) + ½N((0, 4), I). A row of
    class 1 is missing with probability 0.9 where x₂ > 2. The paper's Figures 2 and 3.

    Returns
    -------
    Simulation
    """
    half = [0.5, 0.5]
    phi = StepMissingness([0.0, 1.0], threshold=2.0, probability=0.9)
    return Simulation(
        "np_mixture",
        GaussianMixture(half, [[0.0, 0.0], [-1.0, 4.0]], [np.eye(2)] * 2),
        GaussianMixture(half, [[1.0, 0.0], [0.0, 4.0]], [np.eye(2)] * 2),
        {1: phi},
    )


def naive_bayes(rho: float = 0.0) -> Simulation:
    """Two normal laws in the plane whose features have the correlation ρ.

    p₁ = N((0, 0), Σ) and p₀ = N((1, 2), Σ), Σ = [[1, ρ], [ρ, 1]]. Entries of class 1
    are missing one by one: x₁ with probability 0.8 where x₁ > 0, x₂ where x₂ < 0. Naive
    Bayes is right for ρ = 0 only.

    Parameters
    ----------
    rho : float, default=0.0
        −1 < ρ < 1.

    Returns
    -------
    Simulation
    """
    if not -1.0 < rho < 1.0:
        raise ValueError(f"rho, a correlation, must lie in (-1, 1): got {rho}.")
    covariance = [[1.0, rho], [rho, 1.0]]
    phi = StepMissingness([1.0, -1.0], threshold=0.0, probability=0.8, rowwise=False)
    return Simulation(
        "naive_bayes",
        _normal([0.0, 0.0], covariance),
        _normal([1.0, 2.0], covariance),
        {1: phi},
    )


def diff_variance(variant: Variant = "published") -> Simulation:
    """Two normal laws in the plane of different variances; the log ratio is quadratic.

    p₁ = N((0, 0), I) and p₀ = N((1, 1), diag(1, 2)). A row of class 1 is missing with
    probability 0.8 where x₂ > 0.

    Parameters
    ----------
    variant : {"published", "text"}, default="published"
        In the text rows are missing where x₁ > 0.

    Returns
    -------
    Simulation
    """
    direction = [1.0, 0.0] if _is_text(variant) else [0.0, 1.0]
    phi = StepMissingness(direction, threshold=0.0, probability=0.8)
    return Simulation(
        "diff_variance",
        _normal([0.0, 0.0]),
        _normal([1.0, 1.0], np.diag([1.0, 2.0])),
        {1: phi},
    )


def misspecification(rho: float = 0.25, variant: Variant = "published") -> Simulation:
    """A share ρ of class 1 lies on the far side of class 0.

    p₁ = (1 − ρ)N((0, 0), I) + ρN((2, 0), I) and p₀ = N((1, 1), I). A row of class 1 is
    missing with probability 0.8 where x₁ < 0. The log ratio is linear for ρ = 0 only.

    Parameters
    ----------
    rho : float, default=0.25
        0 ≤ ρ ≤ 1; the paper calls 2ρ the level of misspecification.
    variant : {"published", "text"}, default="published"
        In the text the mean of class 0 is (1, 0), and rows are missing where x₁ > 0.

    Returns
    -------
    Simulation
    """
    if not 0.0 <= rho <= 1.0:
        raise ValueError(f"rho, a share, must lie in [0, 1]: got {rho}.")
    text = _is_text(variant)
    phi = StepMissingness([1.0 if text else -1.0, 0.0], threshold=0.0, probability=0.8)
    return Simulation(
        "misspecification",
        GaussianMixture([1.0 - rho, rho], [[0.0, 0.0], [2.0, 0.0]], [np.eye(2)] * 2),
        _normal([1.0, 0.0] if text else [1.0, 1.0]),
        {1: phi},
    )


def _normal(mean: ArrayLike, covariance: ArrayLike | None = None) -> GaussianMixture:
    spread = np.eye(np.size(mean)) if covariance is None else np.asarray(covariance)
    return GaussianMixture([1.0], [np.asarray(mean)], [spread])


def _is_text(variant: str) -> bool:
    if variant not in VARIANTS:
        raise ValueError(f"variant must be one of {listed(VARIANTS)}: got {variant!r}.")
    return variant == "text"
