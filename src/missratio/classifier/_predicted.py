"""Which incomplete rows score low, to judge by the columns that they do have.

Rows that surely score below the threshold need no stratum in common with those that may
not: of the rest, the looked-up ones say more. Any division of the incomplete rows is
valid that looks at neither their lost values nor at who was drawn; a poor one costs
power at worst. This one takes scores and columns for normal, as training rows show
them, and predicts scores of calibration rows from the columns that were observed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import ndtr

from missratio._base.reading import as_numeric_array
from missratio._base.typing import BoolArray, FloatArray
from missratio.missingness import RowInclusion

# Of the rows set aside as low, so many looked-up ones are expected above.
EXPECTED_ABOVE = 0.3
# With fewer low rows, or a smaller share of them, one stratum has more power.
FEWEST_ROWS = 10
FEWEST_DRAWN = 6
LEAST_SHARE = 1.0 / 3.0
FEWEST_TRAINING = 30
# Kinds of incomplete rows beyond which predictions would take long.
MOST_PATTERNS = 5000
RIDGE = 1e-3

Score = Callable[[Any], FloatArray]


def with_low_stratum(
    drawn: RowInclusion,
    rows: Any,
    training: RowInclusion,
    training_rows: Any,
    score: Score,
    alpha: float,
) -> RowInclusion:
    """The same draw with low-scoring incomplete rows as a stratum of their own.

    Parameters
    ----------
    drawn : RowInclusion
        Of the calibration rows.
    rows : array or dataframe
        The calibration rows.
    training : RowInclusion
        Of other rows of the controlled class.
    training_rows : array or dataframe
    score : callable
    alpha : float

    Returns
    -------
    RowInclusion
        As given where the columns say too little, or incomplete rows were drawn with
        several probabilities.
    """
    incomplete = np.flatnonzero(drawn.probability < 1.0)
    if drawn.lost is None or drawn.strata is None or not len(incomplete):
        return drawn
    if np.ptp(drawn.strata[incomplete]) > 0:
        return drawn
    known = training.found & (training.probability > 0.0)
    if known.sum() < FEWEST_TRAINING:
        return drawn
    try:
        table, other = as_numeric_array(rows), as_numeric_array(training_rows)
    except ValueError:
        # Texts and categories: nothing to predict from.
        return drawn
    scores = score(training_rows)[known]
    weights = training.weights[known]
    finite = np.isfinite(scores)
    if finite.sum() < FEWEST_TRAINING:
        return drawn
    law = _Normal(
        np.column_stack([other[known][finite], scores[finite]]), weights[finite]
    )
    critical = _quantile(scores, weights, 1.0 - alpha)
    above = law.above(table[incomplete], drawn.lost[incomplete], critical)
    if above is None:
        return drawn
    looked_up = drawn.probability[incomplete] > 0.0
    low = _low(above, looked_up)
    if low is None:
        return drawn
    strata = np.array(drawn.strata)
    strata[incomplete] = np.where(low, 2, 1)
    return replace(drawn, strata=strata, predicted=True)


def _low(above: FloatArray, looked_up: BoolArray) -> BoolArray | None:
    """The rows least likely to be above; None where they are too few."""
    order = np.argsort(above, kind="stable")
    expected = np.cumsum(above[order]) * looked_up.mean()
    low = np.zeros(len(above), dtype=bool)
    low[order[expected <= EXPECTED_ABOVE]] = True
    enough = low.sum() >= max(FEWEST_ROWS, LEAST_SHARE * len(above))
    seen = min((low & looked_up).sum(), (~low & looked_up).sum()) >= FEWEST_DRAWN
    return low if enough and seen and (~low).sum() >= FEWEST_ROWS else None


def _quantile(values: FloatArray, weights: FloatArray, level: float) -> float:
    order = np.argsort(values)
    mass = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(mass, level * mass[-1])])


class _Normal:
    """Columns and a score, taken to be jointly normal."""

    def __init__(self, rows: FloatArray, weights: FloatArray) -> None:
        rows = rows.astype(np.float64)
        self.mean = np.average(rows, axis=0, weights=weights)
        spread = np.sqrt(np.average((rows - self.mean) ** 2, axis=0, weights=weights))
        self.scale = np.where(spread > 0.0, spread, 1.0)
        standard = (rows - self.mean) / self.scale
        self.covariance = (standard.T * weights) @ standard / weights.sum()
        self.covariance += RIDGE * np.eye(len(self.mean))

    def above(
        self, rows: FloatArray, lost: BoolArray, critical: float
    ) -> FloatArray | None:
        """P(score > critical | observed columns) of rows, whose lost ones are not used.

        None where rows miss too many different sets of columns.
        """
        patterns, kind = np.unique(lost, axis=0, return_inverse=True)
        if len(patterns) > MOST_PATTERNS:
            return None
        standard = (rows - self.mean[:-1]) / self.scale[:-1]
        cut = (critical - self.mean[-1]) / self.scale[-1]
        above = np.empty(len(rows))
        for place, pattern in enumerate(patterns):
            own, seen = np.flatnonzero(kind == place), np.flatnonzero(~pattern)
            inner = self.covariance[np.ix_(seen, seen)]
            slopes = np.linalg.solve(inner, self.covariance[seen, -1])
            left = self.covariance[-1, -1] - self.covariance[-1, seen] @ slopes
            predicted = standard[np.ix_(own, seen)] @ slopes
            above[own] = ndtr((predicted - cut) / np.sqrt(max(left, RIDGE)))
        return above
