"""Whether intervals are reliable: what the rows tell, and what their weights do.

Rows that would decide may not be likely to be seen at all.

Half of E[1/(1 − φ)], the second moment of the weights, may come from rows that nearly
always go missing. A sample without any of them looks harmless, has short intervals, and
is wrong by what they would have added. So it is not asked how heavy the rows are that
were seen, but how many should have been, by the tail of the log-odds.

Log-odds of observed rows are taken to lie exponentially above a threshold u, with rate
a: the second moment is infinite where a ≤ 2. Two things tell 1/a. One is the mean
excess over u. It is short in the samples that lack heavy rows, which are those whose
intervals fail. The other is what is missing. All weights sum to n on average, so the
rows above u must weigh what those below it leave: k (1 + e^u a/(a − 1)) for k of them.
That is the more, the fewer heavy rows were seen. It counts twice, so that the verdict
doesn't select the samples that are wrong.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import logit

from missratio._base.typing import FloatArray
from missratio.rows import ClassRows, RowBlock

# With fewer rows than these expected there, coverage at 95% falls below 90%.
FEWEST_EXPECTED = 3.0
EXCESSES = np.linspace(0.0, 30.0, 3001)
SMALLEST = 1e-12
# Of a kind of which none was seen, three rows may be expected in one table of twenty.
UNSEEN = 3.0


def expected_in_tail(rows: ClassRows) -> float:
    """How many observed rows are expected where half of the second moment lies.

    It is the number of the column with the fewest, and infinite where weights are by no
    model, or can't be large.
    """
    model, n_rows = rows.model, rows.source.n_rows
    if model is None:
        return np.inf
    largest = 1.0 if model.maximum is None else model.maximum
    # Weights of which 30 rows make a whole class are no matter of a tail.
    bounded = n_rows * (1.0 - largest) >= 30.0
    table = rows.source.every(1).block().rows.astype(np.float64, copy=False)
    probability = np.asarray(model.missing_probability(table))
    columns = probability[:, None] if probability.ndim == 1 else probability
    expected = [_expected(column, n_rows, bounded) for column in columns.T]
    return min(expected, default=np.inf)


def _expected(probability: FloatArray, n_rows: int, bounded: bool) -> float:
    """The same of one column, or of whole rows; NaN where missing."""
    seen = np.sort(probability[~np.isnan(probability)])
    can_miss = np.clip(seen[seen > 0.0], SMALLEST, 1.0 - SMALLEST)
    n_lost = n_rows - len(seen)
    if not len(can_miss):
        # What was lost is like no row that was seen.
        return 0.0 if n_lost else np.inf
    if can_miss[0] == can_miss[-1]:
        # A step: so many were lost beyond it that this many should have been seen.
        weight = 1.0 / (1.0 - can_miss[0])
        beyond_step = n_lost / (weight - 1.0)
        rest = len(seen) - len(can_miss)
        # A tenth of the second moment is no matter.
        heavy = beyond_step * weight**2 >= 0.1 * rest
        return beyond_step if heavy else np.inf
    if bounded:
        return np.inf
    # As many as Pareto smoothing takes (Vehtari et al.).
    k = int(min(0.2 * len(can_miss), 3.0 * np.sqrt(len(can_miss))))
    if k < FEWEST_EXPECTED:
        return 0.0
    log_odds = logit(can_miss)
    u = log_odds[-k - 1]
    below = 1.0 / (1.0 - np.minimum(seen[: len(seen) - k], 1.0 - SMALLEST))
    excess = (log_odds[-k:] - u).sum() / (k - 1)
    left = ((n_rows - below.sum()) / k - 1.0) * np.exp(-u)
    by_mass = 1.0 - 1.0 / left if left > 1.0 else 0.0
    mean = (excess + 2.0 * by_mass) / 3.0
    if mean <= EXCESSES[1]:
        return float(k)
    density = np.exp(-EXCESSES / mean) / mean
    weights = 1.0 + np.exp(u + EXCESSES)
    # As far as a row is expected, be it observed or not.
    observed = np.where(k * density * weights >= 1.0, k * density * EXCESSES[1], 0.0)
    beyond = (observed * weights**2)[::-1].cumsum()[::-1]
    total = (below**2).sum() + beyond[0]
    return float(observed[beyond <= total / 2.0].sum())


def weight_sums(weights: FloatArray) -> FloatArray:
    """Σ w, Σ w Y, Σ w Y² with Y = log w, Σ w² and Σ w⁴ of weights (n_rows, n_means)."""
    logs = np.log(np.where(weights > 0.0, weights, 1.0))
    moments = [(weights * logs**k).sum(axis=0) for k in range(3)]
    return np.array([*moments, (weights**2).sum(axis=0), (weights**4).sum(axis=0)])


def rates(sums: FloatArray, n_rows: int, largest: FloatArray) -> FloatArray:
    """One over the degrees of freedom that weights have on average.

    Were Y normal over complete data, n E W² = n E e^Y and n E W⁴ = n E e^{3Y} over the
    observed rows would make 2n/exp(μ + 7σ²/2) of them. Moments of the logarithm are
    known well even where those of the weights are not. Where weights have a bound, it
    is 2 (Σ w²)²/Σ w⁴ with a few more rows as heavy as can be, if that is more.
    """
    total = np.where(sums[0] > 0.0, sums[0], 1.0)
    mean, square = sums[1:3] / total
    spread = np.maximum(square - mean**2, 0.0)
    level = mean - np.log(total / n_rows) + 3.5 * spread
    spread_out = np.exp(np.minimum(level, 700.0)) / (2.0 * n_rows)
    bound = np.where(np.isfinite(largest), largest, 0.0)
    fourth = sums[4] + UNSEEN * bound**4
    bounded = fourth / (2.0 * (sums[3] + UNSEEN * bound**2) ** 2)
    least = np.minimum(spread_out, bounded)
    return np.asarray(np.where(bound > 0.0, least, spread_out))


def undetermined_features(
    classes: Sequence[ClassRows], by_column: bool
) -> dict[int, float]:
    """Features of one value only in some classes' rows, and that value.

    The classes are those whose rows enter one by one, and not through a mean alone.
    They say nothing of these features' coefficients: a penalty makes them up. By
    column, a feature counts wherever it is observed, not in complete rows alone.
    """

    def work(block: RowBlock) -> FloatArray:
        used = block.features
        if not by_column:
            used = used[~np.isnan(block.rows).any(axis=1)]
        least = np.fmin.reduce(used, axis=0, initial=np.inf)
        return np.array([least, -np.fmax.reduce(used, axis=0, initial=-np.inf)])

    ends = [rows.source.fold(work, lambda p: np.min(p, axis=0)) for rows in classes]
    least, largest = np.min(ends, axis=0) * np.array([[1.0], [-1.0]])
    constant = np.flatnonzero(least == largest).tolist()
    return {j: float(least[j]) for j in constant}
