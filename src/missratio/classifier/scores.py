"""Scores of rows: the larger, the more like the class that is not controlled.

By how much a row's score may differ with the batch that it is scored in.

A matrix product rounds differently for one row than for many, for rows in memory order
than for columns, and in single precision. Where scores tie, as those of discrete
columns do, such a difference would put rows above a threshold that tie with the row it
was chosen by, and rounding would break the certificate.

Let h be any function of the row, and ε a bound on |score − h|, whatever the batch. The
threshold Ĉ that a rule chooses grows with the scores, so Ĉ ≥ C − ε, C being the one
that it would have chosen by h. A row that scores above Ĉ + 2ε then has h > C. So the
error of the threshold Ĉ + 2ε is at most that of C by h, which is certified.

Which incomplete rows score low, to judge by the columns that they do have.

Rows that surely score below the threshold need no stratum in common with those that may
not: of the rest, the looked-up ones say more. Any division of the incomplete rows is
valid that looks at neither their lost values nor at who was drawn; a poor one costs
power at worst. This one takes scores and columns for normal, as training rows show
them, and predicts scores of calibration rows from the columns that were observed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from scipy.sparse import issparse
from scipy.special import ndtr

from missratio._base.blocks import in_double, rows_with_nan, take_rows
from missratio._base.reading import as_frame, as_numeric_array
from missratio._base.storable import storable
from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.missingness import RowInclusion

# How far above 1 a probability may be rounded.
ROUNDING = 1e-6


def complete_mask(X: Any) -> BoolArray:
    """Which rows of an array or dataframe have no missing value."""
    frame = None
    if not isinstance(X, np.ndarray):
        frame = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        missing = np.zeros(len(frame), dtype=bool)
        for name in frame.columns:
            column = frame.get_column(name)
            missing |= column.is_null().to_numpy()
            if column.dtype.is_float():
                missing |= column.is_nan().fill_null(True).to_numpy()
        return ~missing
    table = np.asarray(X)
    if table.dtype.kind != "f":
        return np.ones(len(table), dtype=bool)
    return ~rows_with_nan(table)


def scorable(X: Any, deployment: str) -> BoolArray:
    """Which rows a classifier scores: all, or the complete ones."""
    if deployment == "complete" and not issparse(X):
        return complete_mask(X)
    return np.ones(X.shape[0], dtype=bool)


def probabilities(estimator: Any, X: Any, n_classes: int) -> FloatArray:
    """What `predict_proba` gives, a column for each class."""
    found = np.asarray(estimator.predict_proba(X), dtype=np.float64)
    if found.ndim != 2 or found.shape[1] != n_classes:
        raise ValueError(
            f"{type(estimator).__name__}.predict_proba must give a column for each of "
            f"the {n_classes} classes, got shape {found.shape}. Take an estimator that "
            "was fitted with rows of all classes and gives each a probability."
        )
    # NaN is at most nothing, too.
    if not ((found >= 0.0) & (found <= 1.0 + ROUNDING)).all():
        bad = found[~((found >= 0.0) & (found <= 1.0 + ROUNDING))][0]
        raise ValueError(
            f"{type(estimator).__name__}.predict_proba must give probabilities, from 0 "
            f"to 1: got {bad}. Take an estimator that gives one for every row; under "
            "deployment='as-observed' it also meets rows with missing values."
        )
    return found


def score_rows(estimator: Any, X: Any, rows: BoolArray, sign: float) -> FloatArray:
    """Scores of some rows; −∞ for the others, and where the estimator gives NaN.

    Parameters
    ----------
    estimator : estimator
        With `decision_function`, or else `predict_proba`, whose log-odds are taken.
    X : array-like or dataframe of shape (n_rows, n_columns)
    rows : ndarray of bool of shape (n_rows,)
        Which rows to score.
    sign : {1.0, -1.0}
        1.0 where the estimator's second class is the one not controlled.
    """
    scores = np.full(len(rows), -np.inf)
    if not rows.any():
        return scores
    chosen = in_double(X if rows.all() else take_rows(X, np.flatnonzero(rows)))
    if hasattr(estimator, "decision_function"):
        # A score that overflows is ±∞, or NaN where both meet: then the row gets the
        # controlled class.
        with np.errstate(over="ignore", invalid="ignore"):
            raw = np.asarray(estimator.decision_function(chosen), dtype=np.float64)
    elif hasattr(estimator, "predict_proba"):
        probability = probabilities(estimator, chosen, 2)
        with np.errstate(divide="ignore"):
            raw = np.log(probability[:, 1]) - np.log(probability[:, 0])
    else:
        raise TypeError(
            f"{estimator!r} has neither decision_function nor predict_proba: it can't "
            "score rows."
        )
    if raw.ndim != 1:
        raise ValueError(
            f"{estimator!r} must give one score a row, got shape {raw.shape}. Fit it "
            "with two classes."
        )
    raw = sign * raw
    scores[rows] = np.where(np.isnan(raw), -np.inf, raw)
    return scores


# How many calibration rows are scored again: near the threshold, and all over.
NEAR, ALL_OVER, ALONE = 32, 16, 3
# ε as a multiple of the largest difference seen among these.
SAFETY = 8.0
# More than this share of the scores' size is no rounding.
LARGEST = 1e-4


class UnstableScoresWarning(UserWarning):
    """A row's score depends on the rows that it is scored with."""


@storable()
@dataclass(frozen=True)
class Rounding:
    """How far a threshold is moved up so that rounding can't lift a row above it.

    Parameters
    ----------
    relative : float
        ε, as a multiple of the size of a score.
    scale : float
        What is added to a score's absolute value for its size, so that a score about
        zero has one too.
    """

    relative: float = 0.0
    scale: float = 0.0

    def moved(self, threshold: float) -> float:
        """The threshold plus 2ε."""
        if not np.isfinite(threshold):
            return threshold
        return threshold + 2.0 * self.relative * (abs(threshold) + self.scale)


def measure_rounding(
    score: Callable[[Any], FloatArray],
    rows: Any,
    scores: FloatArray,
    threshold: float,
) -> Rounding:
    """Score some rows alone, in another order and precision, and compare.

    Parameters
    ----------
    score : callable
        Gives the scores of rows.
    rows : array, sparse matrix or dataframe of shape (n_rows, n_columns)
    scores : ndarray of shape (n_rows,)
        As they came out together.
    threshold : float
        Rows that score close to it are looked at most.

    Warns
    -----
    UnstableScoresWarning
        Where scores differ by more than rounding.
    """
    chosen = _rows_to_compare(scores, threshold)
    if not len(chosen):
        return Rounding()
    few, known = take_rows(rows, chosen), scores[chosen]
    low, high = np.quantile(scores[np.isfinite(scores)], [0.25, 0.75])
    scale = float(high - low)
    size = np.abs(known) + scale
    again = [score(few), score(take_rows(few, np.arange(len(chosen))[::-1]))[::-1]]
    for i in range(min(ALONE, len(chosen))):
        alone = known.copy()
        alone[i] = score(take_rows(few, np.array([i])))[0]
        again.append(alone)
    if isinstance(few, np.ndarray) and few.dtype.kind == "f":
        again.append(score(np.asfortranarray(few)))
    size = np.where(size > 0.0, size, 1.0)
    differences = [np.abs(other - known) / size for other in again]
    worst = max(float(np.nan_to_num(d, nan=np.inf).max()) for d in differences)
    if worst > LARGEST:
        warnings.warn(
            "Scores depend on more than the row: scored again in another batch, a "
            f"calibration row's score changed by {worst:.2g} of its size. A "
            "certificate needs scores that are a function of the row. Fix the "
            "estimator's random state, or take one that doesn't look at other rows "
            "when it predicts.",
            UnstableScoresWarning,
            stacklevel=2,
        )
        worst = LARGEST
    single = _in_single_precision(few)
    if single is not None:
        # A step of the score that single precision crosses is no rounding of it.
        steps = np.abs(score(single) - known) / size
        worst = max(worst, float(steps[steps <= LARGEST].max(initial=0.0)))
    return Rounding(SAFETY * max(worst, np.finfo(np.float64).eps), scale)


def _in_single_precision(rows: Any) -> Any:
    """The rows as a table of float32 would have them; None where it can't be."""
    frame = as_frame(rows)
    if frame is not None:
        double = [name for name, kind in frame.schema.items() if kind == nw.Float64]
        return frame.with_columns(nw.col(*double).cast(nw.Float32)).to_native()
    if not isinstance(rows, np.ndarray) or rows.dtype != np.float64:
        return None
    with np.errstate(over="ignore"):
        single = rows.astype(np.float32)
    return None if np.isinf(single).any() else single


def _rows_to_compare(scores: FloatArray, threshold: float) -> IntArray:
    """Rows that score close to a threshold, and some all over."""
    finite = np.flatnonzero(np.isfinite(scores))
    if len(finite) <= NEAR + ALL_OVER:
        return finite
    near = np.argpartition(np.abs(scores[finite] - threshold), NEAR)[:NEAR]
    return np.union1d(finite[near], finite[:: len(finite) // ALL_OVER])


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
