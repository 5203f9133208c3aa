"""Coefficients of a linear score, with intervals where they can be had."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline

from missratio._base.blocks import take_rows
from missratio._base.typing import FloatArray
from missratio.app.report._origin import last_step
from missratio.app.report._rows import LabelledRows
from missratio.ratio import (
    JointRatio,
    NaiveBayesRatio,
    basis_features,
    feature_names,
)
from missratio.uncertainty import UnreliableIntervalWarning, ratio_uncertainty

MOST_LISTED = 60
# Standard deviations of a constant, for the mean of it.
ROUNDING = 1e-12
DOUBT = "A few rows with large weights decide: intervals may be too short."


def coefficients(
    rows: LabelledRows, few: LabelledRows, confidence: float, columns: list[str]
) -> dict[str, Any] | None:
    """What a standard deviation more of each feature adds to a score that is linear.

    Parameters
    ----------
    rows : LabelledRows
    few : LabelledRows
        Fewer of them, to measure standard deviations on.
    confidence : float
        Of the intervals.
    columns : list of str
        Names of the table's columns.

    Returns
    -------
    dict, or None
        Those largest in size first, and how many are left out, because they are small
        or because the fit had no data on them; None where the estimator has none.
    """
    estimator = rows.classifier.estimator_
    last = last_step(estimator)
    values = np.asarray(getattr(last, "coef_", np.zeros(0)), dtype=np.float64)
    if values.ndim == 2 and len(values) == 1:
        values = values[0]
    if values.ndim != 1 or not len(values):
        return None
    names = _names(estimator, last, columns, len(values))
    spread = _spread(few, len(values))
    reach, undetermined, doubt = _reach(rows, confidence)
    spread[list(undetermined)] = 0.0
    known = np.flatnonzero(spread > 0.0)
    # The score is towards the other class, whichever the estimator has second.
    sizes = values * rows.classifier._sign * spread
    order = known[np.argsort(-np.abs(sizes[known]), kind="stable")][:MOST_LISTED]
    if reach is not None:
        reach = (reach * spread)[order]
    return {
        "names": [names[j] for j in order],
        "values": sizes[order],
        "low": None if reach is None else sizes[order] - reach,
        "high": None if reach is None else sizes[order] + reach,
        "confidence": confidence,
        "doubt": doubt,
        "left_out": len(known) - len(order),
        "no_data": [names[j] for j in np.flatnonzero(spread == 0.0)],
    }


def _spread(rows: LabelledRows, width: int) -> FloatArray:
    """The standard deviation of each feature that the coefficients are of.

    0 where no row has another value than the rest.
    """
    estimator, X = rows.classifier.estimator_, rows.X
    last = last_step(estimator)
    if isinstance(estimator, Pipeline) and len(estimator) > 1:
        X = estimator[:-1].transform(X)
    if isinstance(last, JointRatio | NaiveBayesRatio):
        try:
            X = basis_features(last, X)
        except ValueError:
            # A ratio that knows of no missing values takes complete rows alone.
            X = basis_features(last, take_rows(X, np.flatnonzero(rows.complete)))
    if issparse(X):
        X = X.astype(np.float64)
        mean = np.asarray(X.mean(axis=0)).ravel()
        square = np.asarray(X.multiply(X).mean(axis=0)).ravel()
        return np.asarray(np.sqrt(np.maximum(square - mean**2, 0.0)))
    features = np.asarray(X, dtype=np.float64).reshape(-1, width)
    known = ~np.isnan(features)
    count = np.maximum(known.sum(axis=0), 1)
    mean = np.where(known, features, 0.0).sum(axis=0) / count
    off = np.where(known, features - mean, 0.0)
    spread = np.sqrt((off**2).sum(axis=0) / count)
    return np.where(spread > ROUNDING * np.abs(mean), spread, 0.0)


def _reach(
    rows: LabelledRows, confidence: float
) -> tuple[FloatArray | None, list[int], str | None]:
    """Half-lengths of the intervals, which coefficients have no data, and cautions.

    There are no intervals for other estimators, where the ratio was fitted elsewhere or
    with sample weights, and where its optimum wasn't reached.
    """
    classifier = rows.classifier
    ratio = classifier.estimator_
    is_ratio = isinstance(ratio, JointRatio | NaiveBayesRatio)
    if not is_ratio or not hasattr(classifier, "training_index_"):
        return None, [], None
    fitted = rows.take(classifier.training_index_)
    labels = (fitted.y != rows.controlled).astype(int)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            known = ratio_uncertainty(
                ratio, fitted.X, labels, inclusion=fitted.inclusion
            )
            reach = known.reach(confidence)
        except (ValueError, np.linalg.LinAlgError):
            return None, [], None
    # Which coefficients it is about is said by the ratio's own names for them.
    few = any(isinstance(w.message, UnreliableIntervalWarning) for w in caught)
    return reach, list(known.undetermined), DOUBT if few else None


def _names(estimator: Any, last: Any, columns: list[str], width: int) -> list[str]:
    """What the features are called, or their numbers."""
    names = columns
    if isinstance(estimator, Pipeline) and len(estimator) > 1:
        try:
            names = [*map(str, estimator[:-1].get_feature_names_out(columns))]
        except (AttributeError, ValueError, NotFittedError):
            names = []
    if isinstance(last, JointRatio | NaiveBayesRatio) and names:
        names = feature_names(last, names)
    return names if len(names) == width else [f"x{j}" for j in range(width)]
