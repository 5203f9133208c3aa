"""Batches of one-dimensional fits, log r̂_j = θ_j z − log N̂_j: naive Bayes's factors."""

from __future__ import annotations

import numpy as np

from missratio._typing import FloatArray
from missratio.objective import KLIEPObjective
from missratio.ratio._batch import batch_problem, batch_sample
from missratio.ratio._problem import WeightedMean
from missratio.ratio._solve import solve
from missratio.solver import Status

TOLERANCE = 1e-8
MAX_ITERATIONS = 100
INFINITE = 100.0
"""What stands for an infinite coefficient: beside it no other column counts."""


def fit_columns(
    numerator_mean: FloatArray, values: FloatArray, counts: FloatArray | None = None
) -> FloatArray:
    """Maximise θ·numerator_mean − log mean exp(θ values), for each column.

    The numerator enters through one mean, with whatever weights and normalisation it
    was made.

    Parameters
    ----------
    numerator_mean : ndarray of shape (...)
    values : ndarray of shape (..., n_values)
        Of the denominator.
    counts : ndarray of shape (..., n_values), optional
        How often each value occurs.

    Returns
    -------
    ndarray of shape (...)
        θ, in the unit of the values; ±100 where no finite optimum exists, since the
        numerator's mean lies outside the range of the denominator's values.
    """
    shape = numerator_mean.shape
    mean = numerator_mean.reshape(-1, 1)
    features = values.reshape(len(mean), -1, 1).astype(np.float64)
    weights = None if counts is None else counts.reshape(len(mean), -1)
    # The centre of the denominator, so that second moments are free of cancellation.
    centre = np.average(features[..., 0], axis=1, weights=weights)[:, None]
    objective = KLIEPObjective()
    problem = batch_problem(
        objective,
        WeightedMean.centred(mean, np.ones(len(mean)), centre, objective),
        batch_sample(features, weights),
        np.zeros(1),
        centre,
    )
    solution = solve(problem, solver="newton", tol=TOLERANCE, max_iter=MAX_ITERATIONS)
    coef = solution.theta[:, 0]
    unbounded = solution.status == Status.NO_OPTIMUM
    return np.where(unbounded, np.copysign(INFINITE, coef), coef).reshape(shape)
