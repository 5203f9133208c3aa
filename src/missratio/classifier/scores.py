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
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from missratio._base.blocks import in_double, rows_with_nan, take_rows
from missratio._base.reading import as_frame
from missratio._base.storable import storable
from missratio._base.typing import BoolArray, FloatArray, IntArray

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
    if deployment == "complete":
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
NEAR, ALL_OVER, ALONE = 32, 16, 2
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
    rows : array or dataframe of shape (n_rows, n_columns)
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
    few, known = take_rows(rows, chosen[::-1]), scores[chosen[::-1]]
    low, high = np.quantile(scores[np.isfinite(scores)], [0.25, 0.75])
    scale = float(high - low)
    size = np.abs(known) + scale
    size = np.where(size > 0.0, size, 1.0)
    # A smaller batch in another order, in memory as well where that is known to matter.
    is_array = isinstance(few, np.ndarray) and few.dtype.kind == "f"
    differences = [score(np.asfortranarray(few) if is_array else few) - known]
    for i in range(min(ALONE, len(chosen))):
        differences.append(np.zeros(len(known)))
        differences[-1][i] = score(take_rows(few, np.array([i])))[0] - known[i]
    relative = np.nan_to_num(np.abs(differences) / size, nan=np.inf)
    worst = float(relative.max())
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


# The logarithm of the least positive number: log-scores are kept this side of −∞.
LEAST_LOG = -745.0


@storable()
@dataclass(frozen=True)
class ClassScores:
    """Fitted estimators, and the log-score of each class that they give a row.

    Parameters
    ----------
    estimators : tuple of estimator
        One that knows all classes; or one for each class but the reference, fitted to
        its rows (1) and to those of the reference (0).
    classes : tuple of int
        The class, by position, that each of several estimators is for.
    reference : int
        The position of the class that the others are compared with.
    n_classes : int
    """

    estimators: tuple[Any, ...]
    classes: tuple[int, ...]
    reference: int
    n_classes: int

    def of(self, X: Any, rows: BoolArray) -> FloatArray:
        """Scores of some rows; NaN for the others.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_columns)
        rows : ndarray of bool of shape (n_rows,)
            Which rows to score.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
        """
        scores = np.full((len(rows), self.n_classes), np.nan)
        if not rows.any():
            return scores
        if not self.classes:
            scores[rows] = _all_at_once(self.estimators[0], X, rows, scores.shape[1])
        else:
            scores[rows, self.reference] = 0.0
            for position, estimator in zip(self.classes, self.estimators, strict=True):
                scores[rows, position] = score_rows(estimator, X, rows, 1.0)[rows]
        scores[rows] = np.clip(
            np.nan_to_num(scores[rows], nan=LEAST_LOG), LEAST_LOG, -LEAST_LOG
        )
        return scores


def _all_at_once(estimator: Any, X: Any, rows: BoolArray, n_classes: int) -> FloatArray:
    chosen = in_double(X if rows.all() else take_rows(X, np.flatnonzero(rows)))
    if hasattr(estimator, "predict_proba"):
        probability = probabilities(estimator, chosen, n_classes)
        with np.errstate(divide="ignore"):
            return np.log(probability)
    if hasattr(estimator, "decision_function"):
        return np.asarray(estimator.decision_function(chosen), dtype=np.float64)
    raise TypeError(
        f"{estimator!r} has neither decision_function nor predict_proba: it can't "
        "score rows."
    )
