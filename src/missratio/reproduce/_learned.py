"""φ learned in many runs at once, from what is left and the few values looked up."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from missratio._typing import BoolArray, FloatArray
from missratio.learning._logistic import LogisticBatch
from missratio.reproduce._loss import Run

SEPARATED_SLOPE = 100.0
"""What the published code took for an infinite slope, in standard deviations."""


def learned_weights(runs: Sequence[Run], *, corrected: bool) -> FloatArray:
    """1/(1 − φ̂_j) at the distinct values, as (n_runs, n_columns, n_codes)."""
    grid = np.stack([run.grids[1] for run in runs])
    theta = learned_log_odds(runs, corrected=corrected)
    return np.asarray(1.0 + np.exp(theta[:, 0, :, None] + theta[:, 1, :, None] * grid))


def learned_log_odds(runs: Sequence[Run], *, corrected: bool) -> FloatArray:
    """The log-odds of φ̂_j of every run, intercepts and slopes for normalised values.

    For each column a logistic regression of "was missing" on the normalised value, over
    the observed values and those looked up; the intercept is then lowered by log(m /
    n_missing). Published: maximum likelihood, and where the two are separated a slope
    of ±100 through the midpoint. Corrected: Firth's penalty.

    Returns
    -------
    ndarray of shape (n_runs, 2, n_columns)
        φ̂ is zero where nothing was lost, or nothing was looked up.
    """
    grid = np.stack([run.grids[1] for run in runs])
    observed = np.stack([run.observed for run in runs])
    codes = np.stack([run.revealed for run in runs])
    missing = np.stack([run.complete.sum(1) for run in runs]) - observed.sum(-1)
    n_revealed = (codes >= 0).sum(axis=-1)
    fitted = (n_revealed > 0) & observed.any(axis=-1)
    log_odds = np.zeros((len(runs), 2, grid.shape[1]))
    log_odds[:, 0] = -np.inf
    if not fitted.any():
        return log_odds
    looked_up = np.take_along_axis(grid, np.maximum(codes, 0), axis=-1)
    problem = (
        grid[fitted],
        observed[fitted],
        looked_up[fitted],
        (codes >= 0)[fitted].astype(np.float64),
    )
    theta = _fit(*problem, penalised=corrected)
    if not corrected:
        theta = _with_published_slopes(theta, *problem)
    intercept = theta[:, 0] - np.log(n_revealed[fitted] / missing[fitted])
    log_odds[:, 0][fitted] = intercept
    log_odds[:, 1][fitted] = theta[:, 1]
    return log_odds


def _fit(
    grid: FloatArray,
    observed: FloatArray,
    looked_up: FloatArray,
    mass: FloatArray,
    *,
    penalised: bool,
) -> FloatArray:
    """Intercepts and slopes, of shape (n_problems, 2)."""
    values = np.concatenate([grid, looked_up], axis=1)
    design = np.stack([np.ones_like(values), values], axis=1)
    outcome = np.zeros_like(values)
    outcome[:, grid.shape[1] :] = 1.0
    counts = np.concatenate([observed, mass], axis=1)
    batch = LogisticBatch(design, outcome, counts, penalised)
    theta = batch.solve().theta
    return batch.solve_intercept(theta) if penalised else theta


def _with_published_slopes(
    theta: FloatArray,
    grid: FloatArray,
    observed: FloatArray,
    looked_up: FloatArray,
    mass: FloatArray,
) -> FloatArray:
    """Replace what separation made infinite, as the published code did."""
    low, high = _extent(grid, observed > 0.0)
    lowest, highest = _extent(looked_up, mass > 0.0)
    above, below = lowest > high, highest < low
    midpoint = np.where(above, lowest + high, highest + low) / 2.0
    slope = np.where(above, SEPARATED_SLOPE, -SEPARATED_SLOPE)
    replaced = np.stack([-slope * midpoint, slope], axis=1)
    return np.where((above | below)[:, None], replaced, theta)


def _extent(values: FloatArray, present: BoolArray) -> tuple[FloatArray, FloatArray]:
    """The smallest and the largest value of each row that is present."""
    low = np.where(present, values, np.inf).min(axis=1)
    return low, np.where(present, values, -np.inf).max(axis=1)
