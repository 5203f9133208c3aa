"""Whether rows that would decide were likely to be seen at all.

Half of E[1/(1 − φ)], the second moment of the weights, may come from rows that nearly
always go missing. A sample without any of them looks harmless, has short intervals, and
is wrong by what they would have added. So it is not asked how heavy the rows are that
were seen, but how many should have been: log-odds of φ are taken to be normal with the
mean and variance σ² that weighted rows have, and half of the second moment then lies
above mean + σ².
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit, logit
from scipy.stats import norm

from missratio._base.typing import FloatArray
from missratio.missingness import Missingness
from missratio.rows import ClassModel, ClassRows

# With fewer rows than these expected there, coverage at 95% falls below 90%.
FEWEST_EXPECTED = 3.0
# A weight that so many rows can have at most is no matter of a tail.
FEWEST_WORST_CASE = 30.0
DEVIATES = np.linspace(-8.0, 8.0, 641)
SMALLEST = 1e-12


def expected_in_tail(rows: ClassRows, model: ClassModel) -> float:
    """How many observed rows are expected where half of the second moment lies.

    Returns
    -------
    float
        Of the column with the fewest; infinite where weights are by no model, or can't
        be large.
    """
    if not isinstance(model, Missingness):
        return np.inf
    largest = 1.0 if model.maximum is None else model.maximum
    if rows.n_rows * (1.0 - largest) >= FEWEST_WORST_CASE:
        return np.inf
    table = rows.source.block(0, rows.n_rows).rows.astype(np.float64, copy=False)
    probability = np.asarray(model.missing_probability(table))
    columns = probability[:, None] if probability.ndim == 1 else probability
    return min((_expected(column, rows.n_rows) for column in columns.T), default=np.inf)


def _expected(probability: FloatArray, n_rows: int) -> float:
    """The same of one column, or of whole rows; NaN where missing."""
    seen = probability[~np.isnan(probability)]
    if not len(seen) or not seen.any():
        return np.inf
    log_odds = logit(np.clip(seen, SMALLEST, 1.0 - SMALLEST))
    weights = 1.0 / (1.0 - np.minimum(seen, 1.0 - SMALLEST))
    mean = np.average(log_odds, weights=weights)
    variance = np.average((log_odds - mean) ** 2, weights=weights)
    if variance == 0.0:
        return np.inf
    points = mean + np.sqrt(variance) * DEVIATES
    density = norm.pdf(DEVIATES) * (DEVIATES[1] - DEVIATES[0])
    beyond = points > mean + variance
    return float(n_rows * (density * expit(-points) * beyond).sum())
