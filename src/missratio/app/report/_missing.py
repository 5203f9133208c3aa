"""What is missing of each feature, and the φ that is to explain it."""

from __future__ import annotations

from typing import Any

import numpy as np

from missratio._typing import BoolArray, FloatArray
from missratio.app.report._columns import Column, columns_of
from missratio.app.report._patterns import patterns
from missratio.app.report._rows import LabelledRows
from missratio.learning import LearnedMissingness
from missratio.missingness import Missingness
from missratio.weights import effective_sample_size

MOST_LISTED = 60
MOST_DRAWN = 12
BINS = 24
DELTA = 0.05


def missing_values(
    rows: LabelledRows, drawn_rows: LabelledRows, names: list[str]
) -> dict[str, Any]:
    """Missing values by class and feature, with φ and its band where it is modelled.

    Parameters
    ----------
    rows : LabelledRows
    drawn_rows : LabelledRows
        Fewer of them, to draw histograms of.
    names : list of str
        Of the features.

    Returns
    -------
    dict
        `classes`: the model of each. `features`: those with the most missing values
        first, with counts by class. `profiles`: what is drawn. `left_out`: how many
        features are not listed.
    """
    before = rows.as_found
    counts = np.array([_missing_counts(before, label, names) for label in rows.labels])
    width = counts.shape[1]
    totals = np.array([max(1, len(rows.index(label))) for label in rows.labels])
    shares = counts / totals[:, None]
    order = np.argsort(-shares.max(axis=0, initial=0.0), kind="stable")
    listed = [
        {
            "name": names[j],
            "missing": counts[:, j],
            "share": shares[:, j],
        }
        for j in order[:MOST_LISTED]
    ]
    profiles: list[dict[str, Any]] = []
    for place, label in enumerate(rows.labels):
        lossy = [int(j) for j in order if counts[place, j]]
        profiles += _profiles(drawn_rows.as_found, label, lossy, names)
    return {
        "classes": [_class_model(rows, label) for label in rows.labels],
        "features": listed,
        "n_features": width,
        "left_out": max(0, width - MOST_LISTED),
        "any": bool(counts.any()),
        "profiles": profiles,
        "patterns": patterns(before, drawn_rows.as_found, names),
    }


def _missing_counts(rows: LabelledRows, label: Any, names: list[str]) -> list[int]:
    """How many values of each feature are missing in a class."""
    # Complete rows, most of them as a rule, lack none.
    lossy = np.flatnonzero((rows.y == label) & ~rows.complete)
    columns = columns_of(rows.take(lossy).X, names)
    return [int(column.missing.sum()) for column in columns]


def band_delta(rows: LabelledRows, label: Any) -> float:
    """At which level φ's band is shown: the certificate's, where that rests on it."""
    part = rows.classifier.certificate_.missingness_delta
    return part if label == rows.controlled and part > 0.0 else DELTA


def _class_model(rows: LabelledRows, label: Any) -> dict[str, Any]:
    model, index = rows.model(label), rows.index(label)
    complete = rows.as_found.complete[index]
    drawn = np.zeros(len(index), dtype=bool)
    if model is None and rows.drawn is not None:
        drawn = ~complete & (rows.drawn.probability[index] > 0.0)
    kind = "none" if model is None else "learned" if model.learned else "known"
    checks = model.checks if isinstance(model, LearnedMissingness) else ()
    return {
        "label": label,
        "rows": len(index),
        "complete": int(complete.sum()),
        "kind": "looked-up" if drawn.any() else kind,
        "drawn": int(drawn.sum()),
        "found": int((drawn & rows.complete[index]).sum()),
        "whole_rows": None if model is None else model.rowwise,
        "model": None if model is None else repr(model),
        "band_confidence": 1.0 - band_delta(rows, label),
        "checks": [
            {"sentence": check.sentence, "failed": check.failed} for check in checks
        ],
    }


def _profiles(
    rows: LabelledRows, label: Any, lossy: list[int], names: list[str]
) -> list[dict[str, Any]]:
    """φ, its band, and the values of the features that miss most, of one class."""
    model = rows.model(label)
    if model is None or not lossy:
        return []
    table = rows.rows(label)
    columns = list(columns_of(table, names))
    drawable = [j for j in lossy if _is_spread(columns[j])][:MOST_DRAWN]
    if not drawable:
        return []
    delta = band_delta(rows, label)
    evaluate = _along_rows if model.rowwise else _along_features
    profiles = evaluate(model, table, columns, drawable, delta)
    for profile, j in zip(profiles, drawable, strict=True):
        profile |= {"name": names[j], "label": label}
        profile["extrapolated"] = _extrapolated(model, columns, j)
    return profiles


def _is_spread(column: Column) -> bool:
    if column.values is None or column.missing.all():
        return False
    return bool(np.ptp(column.values[~column.missing]) > 0.0)


def _edges(values: FloatArray) -> FloatArray:
    """Bins for all but the outermost values."""
    low, high = np.quantile(values, [0.005, 0.995])
    if not low < high:
        low, high = values.min(), values.max()
    return np.linspace(low, high, BINS + 1)


def _histograms(
    values: FloatArray, weights: FloatArray, edges: FloatArray
) -> dict[str, FloatArray]:
    """Shares of values in each bin, as observed and by their weights."""
    inside = (values >= edges[0]) & (values <= edges[-1])
    place = np.searchsorted(edges, values[inside], side="right")
    place = np.minimum(place, BINS) - 1
    tiny = np.finfo(float).tiny
    return {
        "observed": np.bincount(place, minlength=BINS) / max(len(values), 1),
        "reweighted": np.bincount(place, weights[inside], BINS)
        / max(float(weights.sum()), tiny),
    }


def _along_features(
    model: Missingness,
    table: Any,
    columns: list[Column],
    drawn: list[int],
    delta: float,
) -> list[dict[str, Any]]:
    """A per-feature φ: a function of the feature alone, on a grid."""
    width = len(columns)
    grid = np.zeros((BINS + 1, width))
    for j, column in enumerate(columns):
        if column.values is None or column.missing.all():
            continue
        known = column.values[~column.missing]
        grid[:, j] = _edges(known) if j in drawn else np.median(known)
    phi = model.missing_probability(grid)
    low, high = model.probability_band(grid, delta)
    seen = model.missing_probability(table)
    profiles = []
    for j in drawn:
        values, missing = columns[j].values, columns[j].missing
        assert values is not None
        weights = 1.0 / (1.0 - seen[~missing, j])
        profiles.append(
            {
                "edges": grid[:, j],
                **_histograms(values[~missing], weights, grid[:, j]),
                "at": grid[:, j],
                "phi": phi[:, j],
                "low": low[:, j],
                "high": high[:, j],
                "kish": effective_sample_size(weights),
            }
        )
    return profiles


def _along_rows(
    model: Missingness,
    table: Any,
    columns: list[Column],
    drawn: list[int],
    delta: float,
) -> list[dict[str, Any]]:
    """A φ of whole rows: its mean among rows alike in one feature."""
    phi = model.missing_probability(table)
    observed = ~np.isnan(phi)
    low, high = (edge[observed] for edge in model.probability_band(table, delta))
    phi = phi[observed]
    # Observed rows stand for all of them, so the mean is over rows before any was lost.
    weights = 1.0 / (1.0 - phi)
    kish = effective_sample_size(weights)
    profiles = []
    for j in drawn:
        values = columns[j].values
        assert values is not None
        known = values[observed]
        edges = _edges(known)
        place = np.clip(np.searchsorted(edges, known, side="right") - 1, 0, BINS - 1)
        mass = np.bincount(place, weights, BINS)
        some = mass > 0.0
        means = [
            np.bincount(place, weights * v, BINS)[some] / mass[some]
            for v in (phi, low, high)
        ]
        profiles.append(
            {
                "edges": edges,
                **_histograms(known, weights, edges),
                "at": ((edges[1:] + edges[:-1]) / 2.0)[some],
                "phi": means[0],
                "low": means[1],
                "high": means[2],
                "kish": kish,
            }
        )
    return profiles


def _extrapolated(model: Missingness, columns: list[Column], j: int) -> float | None:
    """The share of observed values beyond all that were looked up.

    There φ rests on the logistic form alone. None for a φ that wasn't learned.
    """
    values = columns[j].values
    revealed = revealed_values(model, j)
    if revealed is None or not len(revealed) or values is None:
        return None
    known = values[~columns[j].missing]
    beyond: BoolArray = (known < revealed.min()) | (known > revealed.max())
    return float(beyond.mean())


def revealed_values(model: Missingness, j: int) -> FloatArray | None:
    """Values of a feature that were missing and looked up; None for a known φ."""
    if not model.learned:
        return None
    evidence = model.evidence[0 if model.rowwise else j]  # type: ignore[attr-defined]
    if evidence is None or not len(evidence.values):
        return None
    row = j if model.rowwise else 0
    return np.asarray(evidence.values[row, : evidence.n_revealed])
