"""φ against each feature, over the feature's values, and what was looked up."""

from __future__ import annotations

from typing import Any

import numpy as np

from missratio._base.typing import BoolArray, FloatArray
from missratio.app.report._columns import Column, columns_of
from missratio.app.report._rows import LabelledRows, certificates_of
from missratio.missingness import BlockMissingness, Missingness
from missratio.weights import effective_sample_size

MOST_DRAWN = 12
MOST_MARKS = 200
BINS = 24
DELTA = 0.05


def band_delta(rows: LabelledRows, label: Any) -> float:
    """At which level φ's band is shown: the certificate's, where that rests on it."""
    for certificate in certificates_of(rows.classifier):
        part = certificate.missingness_delta
        if label == certificate.controlled_class and part > 0.0:
            return part
    return DELTA


def profiles_of(
    rows: LabelledRows, label: Any, lossy: list[int], names: list[str]
) -> list[dict[str, Any]]:
    """φ, its band, and the values of the features that miss most, of one class.

    Without a model of φ, the values of features that were looked up.

    Parameters
    ----------
    rows : LabelledRows
    label : object
    lossy : list of int
        The features that miss values, those that miss most first.
    names : list of str
        Of the features.
    """
    model = rows.model(label)
    if model is None or not lossy:
        return _looked_up(rows, label, lossy, names)
    rows = rows.as_found
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
        profile["marks"] = _some(revealed_values(model, j))
    return profiles


def _looked_up(
    rows: LabelledRows, label: Any, lossy: list[int], names: list[str]
) -> list[dict[str, Any]]:
    """Values observed, and values looked up, where these are data and φ is none."""
    if rows.before is None or rows.drawn is None:
        return []
    before = list(columns_of(rows.as_found.rows(label), names))
    after = list(columns_of(rows.rows(label), names))
    weights = rows.drawn.take(rows.index(label)).weights
    profiles: list[dict[str, Any]] = []
    for j in lossy:
        values = after[j].values
        if values is None or not _is_spread(before[j]) or len(profiles) == MOST_DRAWN:
            continue
        found = before[j].missing & ~after[j].missing
        if not found.any():
            continue
        edges = _edges(values[~after[j].missing])
        seen, whole = ~before[j].missing, weights > 0.0
        drawn = {
            "observed": _histogram(values[seen], np.ones(seen.sum()), edges),
            "reweighted": _histogram(values[whole], weights[whole], edges),
        }
        profiles.append(
            {"name": names[j], "label": label, "edges": edges, **drawn,
             "at": [], "phi": [], "low": [], "high": [], "kish": None,
             "extrapolated": None, "marks": _some(values[found])}
        )  # fmt: skip
    return profiles


def _some(values: FloatArray | None) -> FloatArray:
    """Values evenly picked from those looked up, few enough to be drawn."""
    if values is None or not len(values):
        return np.zeros(0)
    ordered = np.sort(values)
    places = np.linspace(0, len(ordered) - 1, min(MOST_MARKS, len(ordered)))
    return np.asarray(ordered[places.round().astype(int)])


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
    return {
        "observed": _histogram(values, np.ones(len(values)), edges),
        "reweighted": _histogram(values, weights, edges),
    }


def _histogram(
    values: FloatArray, weights: FloatArray, edges: FloatArray
) -> FloatArray:
    """Weighted shares of values in each bin; some may lie beyond all bins."""
    inside = (values >= edges[0]) & (values <= edges[-1])
    place = np.searchsorted(edges, values[inside], side="right")
    place = np.minimum(place, BINS) - 1
    total = max(float(weights.sum()), np.finfo(float).tiny)
    return np.bincount(place, weights[inside], BINS) / total


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
    if isinstance(model, BlockMissingness):
        for block in model.blocks:
            if j in block.inputs:
                return revealed_values(block.model, block.inputs.index(j))
        return revealed_values(model.base, j)
    if not model.learned:
        return None
    evidence = model.evidence[0 if model.rowwise else j]  # type: ignore[attr-defined]
    if evidence is None or not len(evidence.values):
        return None
    row = j if model.rowwise else 0
    return np.asarray(evidence.values[row, : evidence.n_revealed])
