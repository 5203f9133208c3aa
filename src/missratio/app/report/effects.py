"""What the score and the certificate depend on: coefficients, columns, φ."""

from __future__ import annotations

import warnings
from dataclasses import asdict
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline

from missratio._base.blocks import take_rows
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
    rows: LabelledRows, few: LabelledRows, confidence: float, columns: list[str]
) -> Data | None:
    """What a standard deviation more of each feature adds to a score that is linear.

    Those largest in size first, and how many are left out, because they are small or
    because the fit had no data on them; None where the estimator has none. Standard
    deviations are measured on `few` of the rows.
    """
    values = np.asarray(
        getattr(last_step(rows.classifier.estimator_), "coef_", np.zeros(0)),
        dtype=np.float64,
    )
    if values.ndim == 2 and len(values) == 1:
        values = values[0]
    if values.ndim != 1 or not len(values):
        return None
    names, spread = _features(few, columns, len(values))
    reach, undetermined, doubt = _reach(rows, confidence)
    spread[undetermined] = 0.0
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


def _features(
    rows: LabelledRows, columns: list[str], width: int
) -> tuple[list[str], FloatArray]:
    """What features are called, and their standard deviations; 0 for a constant."""
    estimator, X, names = rows.classifier.estimator_, rows.X, columns
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
    known = ~np.isnan(features)
    count = np.maximum(known.sum(axis=0), 1)
    mean = np.where(known, features, 0.0).sum(axis=0) / count
    off = np.where(known, features - mean, 0.0)
    spread = np.sqrt((off**2).sum(axis=0) / count)
    spread = np.where(spread > ROUNDING * np.abs(mean), spread, 0.0)
    return names if len(names) == width else [f"x{j}" for j in range(width)], spread


def _reach(
    rows: LabelledRows, confidence: float
) -> tuple[FloatArray | None, list[int], str | None]:
    """Half-lengths of the intervals, which coefficients have no data, and cautions.

    There are no intervals for other estimators, where the ratio was fitted elsewhere or
    with sample weights, and where its optimum wasn't reached.
    """
    classifier = rows.classifier
    ratio = classifier.estimator_
    is_ratio = isinstance(ratio, LinearRatio)
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
    weights = np.empty(len(fresh.y))
    for label in fresh.labels:
        weights[fresh.index(label)] = fresh.masses(label)
    usable = np.flatnonzero(weights > 0.0)
    index = np.concatenate(
        [
            rng.permutation(usable[fresh.y[usable] == label])[:MOST_SHUFFLED]
            for label in fresh.labels
        ]
    )
    if len(np.unique(fresh.y[index])) < len(fresh.labels):
        return None
    X, is_other = take_rows(fresh.X, index), fresh.y[index] == fresh.other

    def power(X: Any) -> float:
        scores = fresh.classifier.score_samples(X)
        scores = np.where(np.isnan(scores), -np.inf, scores)
        found, _ = measured_power(scores, is_other, weights[index], alpha)
        assert found is not None
        return found

    whole = power(X)
    members = names.members()[:MOST_SHUFFLES]
    repeats = int(np.clip(MOST_SHUFFLES // max(len(members), 1), 1, REPEATS))
    lost = np.array(
        [
            [whole - power(_shuffled(X, places, rng)) for _ in range(repeats)]
            for places in members
        ]
    )
    order = np.argsort(-lost.mean(axis=1), kind="stable")
    return {
        "names": [names.columns[j] for j in order],
        "values": lost.mean(axis=1)[order],
        "low": lost.min(axis=1)[order],
        "high": lost.max(axis=1)[order],
        "power": whole,
        "rows": len(index),
        "repeats": repeats,
    }


def _shuffled(X: Any, places: list[int], rng: np.random.Generator) -> Any:
    order = rng.permutation(X.shape[0])
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        columns = [frame.get_column(frame.columns[j])[order] for j in places]
        return frame.with_columns(columns).to_native()
    changed = np.array(X)
    changed[:, places] = changed[order][:, places]
    return changed


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
