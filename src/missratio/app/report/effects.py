"""What the score and the certificate depend on: coefficients, columns, φ."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline

from missratio._base.blocks import take_rows
from missratio._base.reading import as_frame
from missratio._base.typing import FloatArray
from missratio.app.report.rows import LabelledRows, Names
from missratio.classifier import measured_power, sensitivity_curve
from missratio.ratio import LinearRatio, basis_features, feature_names
from missratio.uncertainty import UnreliableIntervalWarning, ratio_uncertainty

Data = dict[str, Any]

MOST_LISTED = 60
# Standard deviations of a constant, for the mean of it.
ROUNDING = 1e-12
DOUBT = "A few rows with large weights decide: intervals may be too short."
# Rows of each class to shuffle, and shuffles in all: a wide table would take long.
MOST_SHUFFLED, MOST_SHUFFLES, REPEATS = 1500, 120, 5


def last_step(estimator: Any) -> Any:
    """The last step of a pipeline; another estimator itself."""
    return estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator


def coefficients(
    rows: LabelledRows, few: LabelledRows, confidence: float, columns: Sequence[str]
) -> Data | None:
    """What a standard deviation more of each feature adds to a score that is linear.

    Those largest in size first, and how many are left out, because they are small or
    because the fit had no data on them; None where the estimator has none. Standard
    deviations are measured on `few` of the rows.
    """
    last = last_step(rows.classifier.estimator_)
    values = np.atleast_1d(np.squeeze(getattr(last, "coef_", np.zeros(0))))
    if values.ndim != 1 or not len(values):
        return None
    names, features = _features(few, columns, len(values))
    with warnings.catch_warnings():
        # A feature without any value has no spread either.
        warnings.simplefilter("ignore", RuntimeWarning)
        mean, spread = np.nanmean(features, axis=0), np.nanstd(features, axis=0)
    spread[~(spread > ROUNDING * np.abs(mean))] = 0.0
    reach, undetermined, doubt = _reach(rows, confidence)
    spread[undetermined] = 0.0
    known = np.flatnonzero(spread > 0.0)
    # The score is towards the other class, whichever the estimator has second.
    sizes = values * rows.classifier._sign * spread
    order = known[np.argsort(-np.abs(sizes[known]), kind="stable")][:MOST_LISTED]
    low = high = None
    if reach is not None:
        low, high = (sizes[order] + sign * (reach * spread)[order] for sign in (-1, 1))
    return {
        "names": [names[j] for j in order],
        "values": sizes[order],
        "low": low,
        "high": high,
        "confidence": confidence,
        "doubt": doubt,
        "left_out": len(known) - len(order),
        "no_data": [names[j] for j in np.flatnonzero(spread == 0.0)],
    }


def _features(
    rows: LabelledRows, columns: Sequence[str], width: int
) -> tuple[list[str], FloatArray]:
    """What the features of a linear score are called, and their values."""
    estimator, X, names = rows.classifier.estimator_, rows.X, list(columns)
    last = last_step(estimator)
    if isinstance(estimator, Pipeline) and len(estimator) > 1:
        X = estimator[:-1].transform(X)
        try:
            names = [*map(str, estimator[:-1].get_feature_names_out(columns))]
        except (AttributeError, ValueError, NotFittedError):
            names = []
    if isinstance(last, LinearRatio):
        names = feature_names(last, names) if names else names
        try:
            X = basis_features(last, X)
        except ValueError:
            # A ratio that knows of no missing values takes complete rows alone.
            X = basis_features(last, take_rows(X, np.flatnonzero(rows.complete)))
    features = np.asarray(X, dtype=np.float64).reshape(-1, width)
    return names if len(names) == width else [f"x{j}" for j in range(width)], features


def _reach(
    rows: LabelledRows, confidence: float
) -> tuple[FloatArray | None, list[int], str | None]:
    """Half-lengths of the intervals, which coefficients have no data, and cautions.

    There are no intervals for other estimators, where the ratio was fitted elsewhere or
    with sample weights, and where its optimum wasn't reached.
    """
    classifier = rows.classifier
    ratio = classifier.estimator_
    if not isinstance(ratio, LinearRatio) or not hasattr(classifier, "training_index_"):
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


def importance(fresh: LabelledRows | None, names: Names, alpha: float) -> Data | None:
    """The power lost at error α where the values of a column are shuffled.

    Every feature of the column is shuffled together, among the rows of both classes,
    and the threshold is moved so that the (weighted) share α of the controlled class
    lies above it as before. Columns, most important first, with the mean loss and its
    range over shuffles; None without rows that are new to the fit.
    """
    if fresh is None:
        return None
    rng = np.random.default_rng(0)
    usable = np.flatnonzero(fresh.weights > 0.0)
    rows = fresh.take(usable).sampled(MOST_SHUFFLED, rng)
    if len(np.unique(rows.y)) < len(rows.labels):
        return None
    frame, is_other = as_frame(rows.X), rows.y == rows.other

    def power(places: Sequence[int]) -> float:
        order, X = rng.permutation(len(rows.y)), rows.X
        if frame is not None:
            columns = [frame.get_column(frame.columns[j])[order] for j in places]
            X = frame.with_columns(columns).to_native()
        elif places:
            X = np.array(X)
            X[:, places] = X[order][:, places]
        scores = rows.classifier.score_samples(X)
        found, _ = measured_power(scores, is_other, rows.weights, alpha)
        assert found is not None
        return found

    whole = power([])
    members = list(names.members.values())[:MOST_SHUFFLES]
    repeats = int(np.clip(MOST_SHUFFLES // max(len(members), 1), 1, REPEATS))
    lost = np.array([[whole - power(p) for _ in range(repeats)] for p in members])
    order = np.argsort(-lost.mean(axis=1), kind="stable")
    columns = list(names.members)
    return {
        "names": [columns[j] for j in order],
        "values": lost.mean(axis=1)[order],
        "low": lost.min(axis=1)[order],
        "high": lost.max(axis=1)[order],
        "power": whole,
        "rows": len(rows.y),
        "repeats": repeats,
    }


def sensitivity(rows: LabelledRows, most: int) -> Data | None:
    """Certified error and power where φ is another, and the tipping points.

    None where no φ is assumed, nothing is certified, or rows are more than `most`.
    """
    classifier = rows.classifier
    certificate = classifier.certificate_
    model = classifier.calibration_.trust.model
    if model is None or not certificate.certified or certificate.rows > most:
        return None
    with warnings.catch_warnings():
        # Rows of a dataframe are scored as an array, and the estimator says so.
        warnings.simplefilter("ignore", UserWarning)
        found = sensitivity_curve(classifier, rows.X, rows.y)
    return {**asdict(found), "tipping_factor": found.tipping_factor}
