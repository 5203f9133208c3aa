"""The columns that a certificate can afford.

Where complete rows are meant and single values go missing, a calibration row counts
only if every column of the score is observed, with the product of its entries' weights.
Fewer columns leave more rows, and less to tell the classes apart by. Which columns
promise most power is judged by training rows alone, so it costs no promise.

1. Means and covariances, pair by pair of columns and weighted back, need no complete
   row. By them each column is added in turn that promises most: the power of a linear
   score of normal columns, at the error that so many rows, as they are worth, certify.
2. Some of the sets so found are tried: the estimator is fitted to one half of the
   training rows, and the certificate's own forecast is made by the other.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri
from sklearn.base import clone

from missratio._base import reading
from missratio._base.blocks import take_rows
from missratio._base.typing import IntArray
from missratio.classifier.certify import choose_trust
from missratio.classifier.estimators import (
    ClassTable,
    default_estimator,
    missingness_parameters,
    raw_scores,
)
from missratio.classifier.promise import Promise
from missratio.missingness import Missingness
from missratio.weights import inverse_probability_weights

# Sets of columns that are tried out, of those that are added one by one.
TRIED = 6
# Added to the variances, so that covariances of pairs can be inverted.
RIDGE = 0.05


def read_columns(columns: Any, names: Sequence[Any]) -> IntArray:
    """Positions of columns that are named, or numbered."""
    if isinstance(columns, str) or not np.ndim(columns) or not len(columns):
        raise ValueError(
            'columns must be "all", "auto" or a list of names or positions, one or '
            f"more: got {columns!r}."
        )
    return reading.column_places(columns, names, "columns")


def some_columns(X: Any, positions: IntArray) -> Any:
    """Some columns of an array or dataframe."""
    frame = reading.as_frame(X)
    if frame is None:
        return np.asarray(X)[:, positions]
    return frame[:, positions.tolist()].to_native()


def narrowed_estimator(
    estimator: Any, positions: IntArray, names: Any, table: ClassTable | None = None
) -> Any:
    """A clone whose own models of missingness are those of some columns, of all names.

    None is the default estimator of a table of these.
    """
    if estimator is None and table is not None:
        return default_estimator(table, table.fitted)
    estimator = clone(estimator)
    given = missingness_parameters(estimator).items()
    some = {name: narrowed_models(x, positions, names) for name, x in given}
    return estimator.set_params(**some)


def narrowed_models(missingness: Any, positions: IntArray, names: Any) -> Any:
    """A model of missingness, or each of a mapping, for some columns of a table."""
    if isinstance(missingness, Missingness):
        return missingness.bound(names).some_columns(positions, len(names))
    if isinstance(missingness, Mapping):
        models = missingness.items()
        return {k: narrowed_models(phi, positions, names) for k, phi in models}
    return missingness


def narrowed_table(table: ClassTable, positions: IntArray) -> ClassTable:
    """A table of some columns, with their models."""
    names = reading.names_or_numbers(table.X, table.X.shape[1])
    models = narrowed_models(table.models, positions, names)
    return replace(table, X=some_columns(table.X, positions), models=models or None)


def affordable_columns(
    table: ClassTable, promise: Promise, estimator: Any
) -> tuple[IntArray, float]:
    """The columns with which a certificate promises most power, and that power.

    Parameters
    ----------
    table : ClassTable
        Of two classes.
    promise : Promise
        With the calibration rows to come, of which only the number counts.
    estimator : estimator or None
        None is the default one of the columns that are tried.
    """
    names = reading.names_or_numbers(table.X, table.X.shape[1])
    order, likely = _added_columns(table, promise)
    sizes = np.unique(np.geomspace(1, len(order), TRIED).round().astype(int))
    best, power = np.arange(len(names)), 0.0
    for size in sizes.tolist():
        positions = np.sort(order[:size])
        some = narrowed_table(table, positions)
        narrowed = narrowed_estimator(estimator, positions, names, some)
        # Few rows may be complete in many columns: moments of pairs, which don't need
        # them, have to promise as much.
        promised = affordable_power(some, promise, narrowed)
        promised = min(promised, likely[size - 1])
        if promised > power:
            best, power = positions, promised
    return best, power


def affordable_power(table: ClassTable, promise: Promise, estimator: Any) -> float:
    """The power that a certificate promises, by one half of the training rows.

    The estimator is fitted to the other half; 0 where it can't be.
    """
    rows = [table.rows_of(k, table.fitted) for k in range(2)]
    first, second = (np.sort(np.hstack([x[half::2] for x in rows])) for half in (0, 1))
    X, scores = take_rows(table.X, second), np.full(len(table.codes), np.nan)
    try:
        with warnings.catch_warnings(action="ignore"):
            fitted = table.fit_one(estimator, first)
        scores[second] = raw_scores(fitted, X, table.deployment, unscored=-np.inf)
    except (ValueError, np.linalg.LinAlgError):
        # Too few rows are complete, or have all words, to be fitted to.
        return 0.0
    controlled, other = (table.rows_of(k, second) for k in range(2))
    model, _ = table.reasons(0, controlled)
    promise = replace(promise, model=model, training=controlled)
    return max(choose_trust(promise, table, scores, other, forecast=True)[1], 0.0)


def _added_columns(table: ClassTable, promise: Promise) -> tuple[IntArray, list[float]]:
    """Columns as each promises most, as far as any promises some, and these powers."""
    moments, weights, powers = [], np.empty((0, 0)), list[float]()
    for position in (1, 0):
        rows = take_rows(table.X, table.rows_of(position, table.fitted))
        # Without a model what is observed stands for itself.
        model: Any = (table.models or {}).get(table.labels[position], "ignore")
        weights = inverse_probability_weights(rows, model)
        X = np.where(weights > 0.0, reading.as_coded_array(rows).astype(float), 0.0)
        mean = (weights * X).sum(axis=0) / weights.sum(axis=0)
        away = weights * (X - mean)
        moments.append((mean, away.T @ away / (weights.T @ weights)))
    (other, spread), (mean, covariance) = moments
    covariance = (covariance + spread) / 2.0
    unit = np.sqrt(np.maximum(np.diag(covariance), 1e-300))
    shift = (other - mean) / unit
    covariance = covariance / np.outer(unit, unit) + RIDGE * np.eye(len(unit))
    chosen, product = list[int](), np.ones(len(weights))
    worth = len(promise.held) / len(weights)
    while len(chosen) < len(unit):
        rest = [j for j in range(len(unit)) if j not in chosen]
        masses = product[:, None] * weights[:, rest]
        total, squares = masses.sum(axis=0), (masses**2).sum(axis=0)
        size = np.maximum(worth * total**2 / np.maximum(squares, 1e-300), 1e-9)
        margin = ndtri(1.0 - promise.delta) * np.sqrt(promise.alpha / size)
        error = np.maximum(promise.alpha - margin, 0.0)
        sets = [[*chosen, j] for j in rest]
        distance = [
            shift[some] @ np.linalg.solve(covariance[np.ix_(some, some)], shift[some])
            for some in sets
        ]
        reached = np.sqrt(np.maximum(distance, 0.0))
        power = ndtr(reached - ndtri(1.0 - error))
        if chosen and not (power > 0.0).any():
            break
        best = int(np.argmax(power + 1e-9 * reached))
        chosen, product = sets[best], masses[:, best]
        powers.append(float(power[best]))
    return np.array(chosen), powers
