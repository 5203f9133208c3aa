"""Permutation importance: the power that is lost where a column is shuffled."""

from __future__ import annotations

from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from scipy.sparse import issparse

from missratio._base.blocks import take_rows
from missratio._base.typing import FloatArray, IntArray
from missratio.app.report._columns import Names
from missratio.app.report._rows import LabelledRows
from missratio.classifier import measured_power

MOST_ROWS = 1500
# Shuffles in all; more would make a report of a wide table slow.
MOST_SHUFFLES = 120
REPEATS = 5


def importance(
    fresh: LabelledRows | None, names: Names, alpha: float
) -> dict[str, Any] | None:
    """The power lost at error α where the values of a column are shuffled.

    Every feature of the column is shuffled together, among the rows of both classes,
    and the threshold is moved so that the (weighted) share α of the controlled class
    lies above it as before.

    Parameters
    ----------
    fresh : LabelledRows or None
        Rows of both classes that their classifier was not fitted on.
    names : Names
        Of the features and of their columns.
    alpha : float

    Returns
    -------
    dict, or None
        Columns, most important first, with the mean loss and its range over shuffles;
        None where there are no such rows, or X is sparse.
    """
    if fresh is None or issparse(fresh.X):
        return None
    rng = np.random.default_rng(0)
    index, weights = _drawn(fresh, rng)
    if len(np.unique(fresh.y[index])) < len(fresh.labels):
        return None
    X, is_other = take_rows(fresh.X, index), fresh.y[index] == fresh.other

    def power(X: Any) -> float:
        scores = fresh.classifier.score_samples(X)
        scores = np.where(np.isnan(scores), -np.inf, scores)
        found, _ = measured_power(scores, is_other, weights, alpha)
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


def _drawn(rows: LabelledRows, rng: np.random.Generator) -> tuple[IntArray, FloatArray]:
    """Some rows of each class that have a weight, and their weights."""
    weights = np.empty(len(rows.y))
    for label in rows.labels:
        weights[rows.index(label)] = rows.masses(label)
    usable = np.flatnonzero(weights > 0.0)
    kept = [usable[rows.y[usable] == label] for label in rows.labels]
    index = np.concatenate([rng.permutation(own)[:MOST_ROWS] for own in kept])
    return index, weights[index]


def _shuffled(X: Any, places: list[int], rng: np.random.Generator) -> Any:
    order = rng.permutation(X.shape[0])
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        names = [frame.columns[j] for j in places]
        shuffled = [frame.get_column(name)[order] for name in names]
        return frame.with_columns(shuffled).to_native()
    changed = np.array(X)
    changed[:, places] = changed[order][:, places]
    return changed
