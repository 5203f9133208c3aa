"""The worst φ that looked-up values leave possible, for the error of a threshold.

A rule rejects "the error is at least α" by weighted sums over calibration rows: of
W·1{h > C} alone, or of W·(1{h > C} − r), where a share r of all the weight is taken off
(as a bet on the weights does, r = γ/λ). Since E W = 1 for the true φ, the mean of the
latter is the error less r. Of all φ in the confidence region the worst is the one that
makes this mean largest: if the rule rejects with the weights of that φ, it would have
with those of the true one, as long as this lies in the region. That is far less to pay
than a band, which takes the worst φ anew in every row: rows in the tail and rows
outside share one φ, and an error in its level cancels for r = α.

It is found on training rows, at the threshold of estimated error α.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit

from missratio._base.typing import FloatArray
from missratio.learning import LearnedMissingness
from missratio.missingness import LogisticMissingness
from missratio.missingness.arrays import as_numeric_array

MOST_ROWS = 5000
SWEEPS = 2
# Log-odds beyond which a weight is as large as can be summed.
LARGEST = 30.0
# And beyond which a φ certifies nothing: on rows further out it may round to 1.
USABLE = 15.0


def worst_model(
    model: LearnedMissingness,
    delta: float,
    rows: Any,
    in_tail: FloatArray,
    ratio: float,
) -> LogisticMissingness | None:
    """The φ of a region that makes Σ W·(1{in the tail} − r) largest.

    Parameters
    ----------
    model : LearnedMissingness
    delta : float
        The region holds the truth with probability 1 − δ.
    rows : array-like or dataframe of shape (n_rows, n_columns)
        Training rows of the class.
    in_tail : ndarray of shape (n_rows,)
        1 for rows that score above the threshold, 0 for others.
    ratio : float
        r.

    Returns
    -------
    LogisticMissingness or None
        None for a model of whole rows in several columns, whose region has too many
        dimensions to look through, and where the worst φ is as good as 1 somewhere.
    """
    table = as_numeric_array(rows).astype(np.float64, copy=False)
    if model.rowwise and table.shape[1] > 1:
        return None
    complete = np.flatnonzero(~np.isnan(table).any(axis=1))
    complete = complete[:: -(-len(complete) // MOST_ROWS) or 1]
    values, effect = table[complete], in_tail[complete] - ratio
    regions = model.region(delta)
    intercept = np.atleast_1d(model.intercept).astype(np.float64)
    coef = np.broadcast_to(np.atleast_1d(model.coef), intercept.shape).copy()
    intercept = np.broadcast_to(intercept, coef.shape).copy()
    weights = 1.0 + _odds(intercept, coef, values)
    for _ in range(SWEEPS):
        for j, points in enumerate(regions):
            rest = effect * np.delete(weights, j, axis=1).prod(axis=1)
            odds = _odds(points[:, 0], points[:, 1], values[:, [j]])
            place = int(np.argmax(rest @ odds))
            intercept[j], coef[j] = points[place, :2]
            weights[:, j] = 1.0 + odds[:, place]
    if (intercept + np.nan_to_num(coef * table)).max(initial=-np.inf) > USABLE:
        return None
    if model.rowwise:
        return LogisticMissingness(intercept[0], coef, rowwise=True)
    return LogisticMissingness(intercept, coef)


def _odds(intercept: FloatArray, coef: FloatArray, values: FloatArray) -> FloatArray:
    """The odds of being missing, entry by entry."""
    with np.errstate(invalid="ignore"):
        log_odds = np.minimum(intercept + coef * values, LARGEST)
    probability = expit(log_odds)
    return np.asarray(probability / (1.0 - probability))
