"""Samples of the simulated experiments, as tables with NaN and labels."""

from __future__ import annotations

import inspect
from collections.abc import Sequence

import numpy as np
from sklearn.utils import Bunch

from missratio.datasets import simulations
from missratio.datasets._mixture import Rng
from missratio.datasets._simulation import Simulation
from missratio.datasets.simulations import Variant
from missratio.missingness import corrupt
from missratio.missingness.corruption import RandomState

Size = int | Sequence[int]


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
    return _sample(simulations.msd_5dim(variant), n_samples, random_state)


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
    return _sample(simulations.np_mixture(), n_samples, random_state)


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
    return _sample(simulations.naive_bayes(rho), n_samples, random_state)


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
    return _sample(simulations.diff_variance(variant), n_samples, random_state)


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
    return _sample(simulations.misspecification(rho, variant), n_samples, random_state)


def _sample(
    simulation: Simulation, n_samples: Size, random_state: RandomState
) -> Bunch:
    n0, n1 = _sizes(n_samples)
    rng = _generator(random_state)
    complete, target = simulation.draw(n1, n0, rng)
    order = rng.permutation(n0 + n1)
    complete, target = complete[order], target[order]
    data = complete.copy()
    for label, phi in simulation.missingness.items():
        rows = target == label
        if rows.any():
            data[rows] = corrupt(complete[rows], phi, rng)
    return Bunch(
        data=data,
        target=target,
        complete=complete,
        missingness=simulation.missingness,
        simulation=simulation,
        feature_names=[f"x{j + 1}" for j in range(simulation.n_features)],
        target_names=np.array(["controlled", "numerator"]),
        DESCR=_describe(simulation),
    )


def _sizes(n_samples: Size) -> tuple[int, int]:
    """Rows of class 0 and of class 1."""
    sizes = np.asarray(n_samples)
    if sizes.shape not in ((), (2,)) or sizes.dtype.kind not in "iu" or sizes.min() < 0:
        raise ValueError(
            "n_samples must be a number of rows, or the rows of class 0 and of class "
            f"1: got {n_samples!r}."
        )
    if sizes.ndim:
        return int(sizes[0]), int(sizes[1])
    half = int(sizes) // 2
    return half, int(sizes) - half


def _generator(random_state: RandomState) -> Rng:
    if isinstance(random_state, np.random.RandomState):
        return random_state
    return np.random.default_rng(random_state)


def _describe(simulation: Simulation) -> str:
    """What the experiment's function says of itself, with its name above."""
    law = getattr(simulations, simulation.name)
    text = inspect.cleandoc(law.__doc__).partition("\n\nParameters")[0]
    text = text.partition("\n\nReturns")[0]
    return (
        f"{simulation.name}: a simulated experiment of Givens, Liu and Reeve (2023)\n\n"
        f"{text}\n"
    )
