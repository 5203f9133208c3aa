"""Scores of rows: the larger, the more like the class that is not controlled."""

from __future__ import annotations

from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from scipy.sparse import issparse

from missratio._base.blocks import in_double, rows_with_nan, take_rows
from missratio._base.typing import BoolArray, FloatArray

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
