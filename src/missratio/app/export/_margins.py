"""How far above a threshold a score must be to be above it in any order of summation.

A runtime may add up the terms of a score in another order than NumPy does. Two orders
of n terms differ by n·ε·Σ|terms| at most, ε the distance of 1 to the next double
(Higham, Accuracy and Stability of Numerical Algorithms, section 4.2). A graph that
gives a row to the other class only where its score is above the threshold by that much
never does so where `predict` doesn't: rounding only moves rows to the controlled one.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from missratio.app.export._scores import TreeScore

EPS = float(np.finfo(np.float64).eps)
# What the few operations around a sum round by, in units of EPS.
AROUND = 4
# A sum of absolute terms below this can't overflow, in whichever order.
LARGEST_SIZE = float(np.finfo(np.float64).max) / 4.0
LEAST = math.ulp(0.0)


def least_product(intercept: float, threshold: float) -> float:
    """The least p for which p + intercept, rounded, is above the threshold.

    Rounding is monotone, so comparing p with this is the same as comparing the score
    with the threshold, and what can differ is the rounding of p alone: nothing is lost
    where an intercept is far larger than all that p varies by.

    Examples
    --------
    >>> least_product(1.0, 1.0) == 2.0**-53 * (1 + 2.0**-52)
    True
    """
    if not math.isfinite(threshold):
        return threshold
    above = math.nextafter(threshold, math.inf)
    if not math.isfinite(above):
        return math.inf
    middle = (Fraction(threshold) + Fraction(above)) / 2
    try:
        found = float(middle - Fraction(intercept))
    except OverflowError:
        return math.inf if threshold > intercept else -math.inf
    while found + intercept > threshold:
        found = math.nextafter(found, -math.inf)
    while found + intercept <= threshold:
        found = math.nextafter(found, math.inf)
    return found


def product_margin(n_columns: int) -> tuple[float, float]:
    """By how much x·coef may come out lower elsewhere: a + b·Σ|x·coef| are a and b."""
    return 2.0 * n_columns * LEAST, (n_columns + AROUND) * EPS


def trees_margin(score: TreeScore, threshold: float) -> float:
    """By how much the sum of trees, or its log-odds, may come out lower elsewhere."""
    n_terms = len(score.trees) + AROUND
    if not score.is_probability:
        size = sum(float(np.abs(t.value[t.is_leaf]).max()) for t in score.trees)
        return n_terms * EPS * (size + abs(score.start) + abs(threshold))
    # At the threshold neither logarithm is beyond |threshold| + log 2.
    return 2.0 * n_terms * EPS * (1.0 + abs(threshold) + math.log(2.0))
