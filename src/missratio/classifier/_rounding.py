"""By how much a row's score may differ with the batch that it is scored in.

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

from missratio._base.blocks import take_rows
from missratio._base.reading import as_frame
from missratio._base.typing import FloatArray, IntArray

# How many calibration rows are scored again: near the threshold, and all over.
NEAR, ALL_OVER, ALONE = 32, 16, 3
# ε as a multiple of the largest difference seen among these.
SAFETY = 8.0
# More than this share of the scores' size is no rounding.
LARGEST = 1e-4


class UnstableScoresWarning(UserWarning):
    """A row's score depends on the rows that it is scored with."""


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
