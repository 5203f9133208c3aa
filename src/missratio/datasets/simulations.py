"""The paper's simulated experiments, each as two laws and what class 1 loses.

Where the curves that were published came from other laws than the text describes, the
variant "published" is that of the curves and "text" that of the text. A function
``make_…`` draws a sample of an experiment, as a table with NaN and labels.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Bunch

from missratio._base.hints import listed
from missratio.datasets.laws import GaussianMixture, Simulation
from missratio.missingness import StepMissingness, corrupt
from missratio.missingness.contract import RandomState

# The names of this module that users see; `missratio.datasets` has the makers.
__all__ = ["diff_variance", "misspecification", "msd_5dim", "naive_bayes", "np_mixture"]

Variant = Literal["published", "text"]
VARIANTS: tuple[Variant, ...] = ("published", "text")
Size = int | Sequence[int]


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


def make_msd_5dim(
    n_samples: Size = 200,
    *,
    variant: Variant = "published",
    random_state: RandomState = None,
) -> Bunch:
    """Two normal samples in five dimensions, whole rows of class 1 missing.

    The laws are those of `missratio.datasets.simulations.msd_5dim`.

    Parameters
    ----------
    n_samples : int or pair of int, default=200
        Rows in all, half of them in each class, or the rows of class 0 and of class 1.
    variant : {"published", "text"}, default="published"
        The laws that the published curve came from, or those of the paper's text, in
        which the means are swapped.
    random_state : int, RandomState, Generator or None, default=None
        Random seed; an int gives the same sample every time.

    Returns
    -------
    Bunch
        With `data` (NaN where missing), `target` (1 for the numerator, 0 for the
        controlled class), `complete` (the data before values were lost), `missingness`,
        `simulation` with the true ratio and the oracle's power, `feature_names`,
        `target_names` and `DESCR`.

    Examples
    --------
    >>> import missratio as mr
    >>> from missratio.datasets import make_msd_5dim
    >>> sample = make_msd_5dim(20_000, random_state=0)
    >>> ratio = mr.KLIEP(missingness=sample.missingness).fit(sample.data, sample.target)
    >>> bool(abs(ratio.coef_ - sample.simulation.coef).max() < 0.04)
    True
    """
    return _sample(msd_5dim(variant), n_samples, random_state)


def make_np_mixture(
    n_samples: Size = 1000, *, random_state: RandomState = None
) -> Bunch:
    """Two samples of mixtures in the plane, whole rows of class 1 missing.

    The laws are those of `missratio.datasets.simulations.np_mixture`.

    Parameters
    ----------
    n_samples : int or pair of int, default=1000
        Rows in all, half of them in each class, or the rows of class 0 and of class 1.
    random_state : int, RandomState, Generator or None, default=None
        Random seed; an int gives the same sample every time.

    Returns
    -------
    Bunch
        As of `make_msd_5dim`.

    Examples
    --------
    >>> from missratio.datasets import make_np_mixture
    >>> sample = make_np_mixture((300, 200), random_state=0)
    >>> sample.data.shape, int(sample.target.sum())
    ((500, 2), 200)
    """
    return _sample(np_mixture(), n_samples, random_state)


def make_naive_bayes(
    n_samples: Size = 200, *, rho: float = 0.0, random_state: RandomState = None
) -> Bunch:
    """Two normal samples in the plane with correlation ρ, entries of class 1 missing.

    The laws are those of `missratio.datasets.simulations.naive_bayes`.

    Parameters
    ----------
    n_samples : int or pair of int, default=200
        Rows in all, half of them in each class, or the rows of class 0 and of class 1.
    rho : float, default=0.0
        The correlation of the features, the same in both classes.
    random_state : int, RandomState, Generator or None, default=None
        Random seed; an int gives the same sample every time.

    Returns
    -------
    Bunch
        As of `make_msd_5dim`.

    Examples
    --------
    >>> from missratio.datasets import make_naive_bayes
    >>> sample = make_naive_bayes(200, rho=0.5, random_state=0)
    >>> round(sample.simulation.oracle_power(0.1), 4)
    0.7638
    """
    return _sample(naive_bayes(rho), n_samples, random_state)


def make_diff_variance(
    n_samples: Size = 1000,
    *,
    variant: Variant = "published",
    random_state: RandomState = None,
) -> Bunch:
    """Two normal samples of different variances, whole rows of class 1 missing.

    The laws are those of `missratio.datasets.simulations.diff_variance`.

    Parameters
    ----------
    n_samples : int or pair of int, default=1000
        Rows in all, half of them in each class, or the rows of class 0 and of class 1.
    variant : {"published", "text"}, default="published"
        Rows are missing where x₂ > 0, as in the published figures, or where x₁ > 0, as
        in the paper's text.
    random_state : int, RandomState, Generator or None, default=None
        Random seed; an int gives the same sample every time.

    Returns
    -------
    Bunch
        As of `make_msd_5dim`.

    Examples
    --------
    >>> from missratio.datasets import make_diff_variance
    >>> make_diff_variance(random_state=0).missingness[1].direction
    array([0., 1.])
    """
    return _sample(diff_variance(variant), n_samples, random_state)


def make_misspecification(
    n_samples: Size = 1000,
    *,
    rho: float = 0.25,
    variant: Variant = "published",
    random_state: RandomState = None,
) -> Bunch:
    """A sample of which a share ρ of class 1 lies beyond class 0, rows missing.

    The laws are those of `missratio.datasets.simulations.misspecification`.

    Parameters
    ----------
    n_samples : int or pair of int, default=1000
        Rows in all, half of them in each class, or the rows of class 0 and of class 1.
    rho : float, default=0.25
        The share; the paper calls 2ρ the level of misspecification.
    variant : {"published", "text"}, default="published"
        Class 0 has the mean (1, 1) and rows of class 1 are missing where x₁ < 0, as in
        the published figure, or the mean is (1, 0) and they are missing where x₁ > 0,
        as in the paper's text.
    random_state : int, RandomState, Generator or None, default=None
        Random seed; an int gives the same sample every time.

    Returns
    -------
    Bunch
        As of `make_msd_5dim`.

    Examples
    --------
    >>> from missratio.datasets import make_misspecification
    >>> make_misspecification(rho=0.0, random_state=0).simulation.coef
    array([-1., -1.])
    """
    return _sample(misspecification(rho, variant), n_samples, random_state)


def _sample(
    simulation: Simulation, n_samples: Size, random_state: RandomState
) -> Bunch:
    sizes = np.asarray(n_samples)
    if sizes.shape not in ((), (2,)) or sizes.dtype.kind not in "iu" or sizes.min() < 0:
        raise ValueError(
            "n_samples must be a number of rows, or the rows of class 0 and of class "
            f"1: got {n_samples!r}."
        )
    n0, n1 = sizes.tolist() if sizes.ndim else (int(sizes) // 2, -(-int(sizes) // 2))
    rng = random_state
    if not isinstance(rng, np.random.RandomState):
        rng = np.random.default_rng(rng)
    complete, target = simulation.draw(n1, n0, rng)
    order = rng.permutation(n0 + n1)
    complete, target = complete[order], target[order]
    data = complete.copy()
    for label, phi in simulation.missingness.items():
        rows = target == label
        if rows.any():
            data[rows] = corrupt(complete[rows], phi, rng)
    # What the experiment's function says of itself, with its name above.
    text = inspect.cleandoc(globals()[simulation.name].__doc__)
    for section in ("Parameters", "Returns"):
        text = text.partition(f"\n\n{section}")[0]
    return Bunch(
        data=data,
        target=target,
        complete=complete,
        missingness=simulation.missingness,
        simulation=simulation,
        feature_names=[f"x{j + 1}" for j in range(simulation.n_features)],
        target_names=np.array(["controlled", "numerator"]),
        DESCR=f"{simulation.name}: a simulated experiment of Givens, Liu and Reeve "
        f"(2023)\n\n{text}\n",
    )
