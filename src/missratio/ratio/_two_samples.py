"""Two samples in, a fitted ratio out."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from missratio.ratio._base import BaseRatio
from missratio.ratio._checks import stack_samples
from missratio.ratio._joint import JointRatio
from missratio.ratio._kliep import KLIEP
from missratio.ratio._reading import MissingnessParameter


def density_ratio(
    X1: Any,
    X0: Any,
    estimator: BaseRatio | None = None,
    *,
    missingness: MissingnessParameter = None,
) -> Any:
    """Estimate p1/p0 from a sample of each.

    Parameters
    ----------
    X1 : array-like or dataframe of shape (n_numerator_rows, n_columns)
        Rows from p1, NaN where a value is missing.
    X0 : array-like or dataframe of shape (n_denominator_rows, n_columns)
        Rows from p0. Large arrays are used where they lie, without a copy.
    estimator : ratio estimator, optional
        How to estimate, such as `KernelRatio`; it is cloned. ``KLIEP()`` by default.
    missingness : mapping from {1, 0} to Missingness, "ignore" or None
        Why values are missing, in the numerator (1) and the denominator (0); None
        leaves the estimator's own.

    Returns
    -------
    estimator
        The fitted clone, with classes 0 and 1.

    Examples
    --------
    >>> import numpy as np
    >>> import missratio as mr
    >>> rng = np.random.default_rng(0)
    >>> X1, X0 = rng.normal(1, 1, (1000, 1)), rng.normal(0, 1, (1000, 1))
    >>> ratio = mr.density_ratio(X1, X0)
    >>> ratio.predict_ratio([[0.5], [2.0]]).round(1)
    array([1. , 4.4])
    """
    estimator = KLIEP() if estimator is None else clone(estimator)
    if missingness is not None:
        estimator.set_params(missingness=missingness)
    if isinstance(estimator, JointRatio):
        return estimator._fit_two_samples(X1, X0)
    return estimator.fit(*stack_samples(X1, X0))
