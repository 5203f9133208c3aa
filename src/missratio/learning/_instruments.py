"""Instruments: functions of the other columns that say most about a column's φ.

E[m | u] = 0 holds for the residual m = 1{observed}/(1 − φ) − 1 of the right φ, given
the other columns u. The most efficient functions of u are then E[∂m | u] / Var(m | u) =
E[φ·(1, z) | u] / E[φ/(1 − φ) | u]. They are computed as if z were normal about a
prediction from u. Any others are as valid: a poor prediction widens errors and
biases nothing.
"""

from __future__ import annotations

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from scipy.special import expit

from missratio._base.threads import one_blas_thread, share
from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.learning._scores import ScoredTable

FOLDS = 5
# More rows hardly change a prediction from a hundred columns.
FIT_ROWS = 20_000
PENALTIES = 10.0 ** np.arange(-4.0, 1.5, 0.5)
GRID = 129
NODES, NODE_WEIGHTS = hermegauss(9)
NODE_WEIGHTS = NODE_WEIGHTS / NODE_WEIGHTS.sum()
LARGEST_LOG_ODDS = 20.0


def predict_columns(
    features: FloatArray,
    table: ScoredTable,
    columns: IntArray,
    usable: BoolArray,
    fit_rows: int = FIT_ROWS,
) -> FloatArray:
    """Cross-fitted ridge predictions of columns from features, their own among these.

    A row's prediction comes from a fit to other rows, so that it is a function of the
    row's features alone. The penalty is chosen by generalised cross-validation.

    Parameters
    ----------
    features : ndarray of shape (n_rows, n_features)
        The first are the table's columns, as they are to be predicted.
    table : ScoredTable
    columns : ndarray of int
        Those of the table that are to be predicted.
    usable : ndarray of bool of shape (n_predicted, n_features)
        What each may be predicted from.
    fit_rows : int
        So many rows, about, are fitted to.

    Returns
    -------
    ndarray of shape (n_rows, n_predicted)
    """

    def coefficients(i: int) -> FloatArray:
        used = np.flatnonzero(usable[i])
        result = np.zeros((FOLDS, features.shape[1]))
        result[:, used] = _ridge_by_fold(
            features, table, int(columns[i]), used, fit_rows
        )
        return result

    with one_blas_thread(features.size) as threads:
        found = np.stack(share(coefficients, range(len(columns)), threads))
    predicted = np.empty((len(features), len(columns)), order="F")
    for fold in range(FOLDS):
        predicted[fold::FOLDS] = features[fold::FOLDS] @ found[:, fold].T
    # Beyond what was observed there are no predictions but accidents.
    for i, j in enumerate(columns):
        ends = features[table.order[j][[0, -1]], j]
        np.clip(predicted[:, i], *ends, out=predicted[:, i])
    return predicted


def _ridge_by_fold(
    features: FloatArray,
    table: ScoredTable,
    column: int,
    used: IntArray,
    fit_rows: int,
) -> FloatArray:
    """Coefficients for each fold, from the rows of the others: (FOLDS, n_used)."""
    rows = np.flatnonzero(~table.missing[:, column])
    rows = rows[:: max(1, len(rows) // fit_rows)]
    grams, products = [], []
    squares = 0.0
    for fold in range(FOLDS):
        own = rows[rows % FOLDS == fold]
        design = features[own][:, used]
        target = features[own, column]
        grams.append(design.T @ design)
        products.append(design.T @ target)
        squares += float(target @ target)
    gram, product = np.sum(grams, axis=0), np.sum(products, axis=0)
    penalty = _penalty(gram, product, squares, len(rows)) * np.eye(len(used))
    return np.stack(
        [
            np.linalg.solve(gram - own + penalty, product - without)
            for own, without in zip(grams, products, strict=True)
        ]
    )


def _penalty(
    gram: FloatArray, product: FloatArray, squares: float, n_rows: int
) -> float:
    """The penalty with the least generalised cross-validation error."""
    values, vectors = np.linalg.eigh(gram)
    values = np.maximum(values, 0.0)
    along = (vectors.T @ product) ** 2
    penalties = PENALTIES[:, None] * n_rows
    shrunk = values + penalties
    residual = squares - (along * (values + 2.0 * penalties) / shrunk**2).sum(axis=1)
    freedom = (values / shrunk).sum(axis=1)
    error = residual / np.maximum(1.0 - freedom / n_rows, 1e-3) ** 2
    return float(penalties[np.argmin(error), 0])


def efficient_instruments(
    predicted: FloatArray,
    deviation: float,
    ends: tuple[float, float],
    theta: FloatArray,
) -> FloatArray:
    """E[φ·(1, z) | u] / E[φ/(1 − φ) | u] at predictions, of shape (n_rows, 2).

    Parameters
    ----------
    predicted : ndarray of shape (n_rows,)
        A standardised column, predicted from u.
    deviation : float
        The standard deviation of values about their prediction.
    ends : tuple of float
        The least and the largest observed value.
    theta : ndarray of shape (2,)
        A first estimate of φ's standardised parameters.
    """
    grid = np.linspace(predicted.min(), predicted.max(), GRID)
    z = np.clip(grid[:, None] + deviation * NODES, *ends)
    log_odds = np.clip(theta[0] + theta[1] * z, -LARGEST_LOG_ODDS, LARGEST_LOG_ODDS)
    probability = expit(log_odds)
    variance = np.exp(log_odds) @ NODE_WEIGHTS
    means = (probability @ NODE_WEIGHTS, (probability * z) @ NODE_WEIGHTS)
    return np.stack(
        [np.interp(predicted, grid, mean / variance) for mean in means], axis=1
    )
