"""What is missing of each column, what is missing together, and φ along a column."""

from __future__ import annotations

from typing import Any

import numpy as np

from missratio._base.blocks import any_by_row
from missratio._base.typing import FloatArray, IntArray
from missratio.app.report.rows import (
    Column,
    LabelledRows,
    Names,
    certificates_of,
    columns_of,
)
from missratio.learning import LearnedMissingness
from missratio.missingness import BlockMissingness, Missingness, missingness_patterns
from missratio.weights import effective_sample_size

Data = dict[str, Any]

MOST_LISTED, MOST_PATTERNS, MOST_DRAWN, MOST_MARKS = 60, 20, 12, 200
# Little's test takes time and memory with the square of the columns.
MOST_TESTED = 60
BINS = 24
# The level of a band that no certificate rests on.
BAND_DELTA = 0.05


def missing_values(rows: LabelledRows, few: LabelledRows, names: Names) -> Data:
    """Missing values by class and column, with φ and its band where it is modelled.

    Histograms and tests are of `few` of the rows.

    Returns
    -------
    dict
        `classes`: the model of each. `features`: the columns, those with the most
        missing values first, with counts by class, and how many of these were looked
        up. `profiles`: φ along columns. `patterns`: what is missing together.
        `left_out`: how many columns are not listed.
    """
    missing = names.missing(rows.as_found.X)
    width = missing.shape[1]
    counts = np.array([missing[rows.y == k].sum(axis=0) for k in rows.labels])
    totals = np.array([max(1, len(rows.index(label))) for label in rows.labels])
    shares = counts / totals[:, None]
    looked_up = np.array([_looked_up(rows, k, names) for k in rows.labels])
    order = np.argsort(-shares.max(axis=0, initial=0.0), kind="stable")
    members = names.members()
    profiles: list[Data] = []
    for place, label in enumerate(rows.labels):
        # A column of numbers is one feature; categories can't be drawn.
        lossy = [members[j][0] for j in order if counts[place, j]]
        profiles += _profiles(few, label, lossy, list(names.features))
    return {
        "classes": [_class_model(rows, label) for label in rows.labels],
        "features": [
            {
                "name": names.columns[j],
                "missing": counts[:, j],
                "share": shares[:, j],
                "looked_up": looked_up[:, j],
            }
            for j in order[:MOST_LISTED]
        ],
        "n_features": width,
        "left_out": max(0, width - MOST_LISTED),
        "any": bool(counts.any()),
        "profiles": profiles,
        "patterns": _patterns(rows.as_found, few.as_found, names),
    }


def _looked_up(rows: LabelledRows, label: Any, names: Names) -> IntArray:
    """How many missing values of each column were looked up in a class."""
    model, members = rows.model(label), names.members()
    if model is None and rows.before is not None:
        mine = rows.take(rows.index(label))
        found = names.missing(mine.as_found.X) & ~names.missing(mine.X)
        return np.asarray(found.sum(axis=0))
    if model is None or not model.learned:
        return np.zeros(len(members), dtype=int)
    return np.array([len(_revealed(model, places[0])) for places in members])


def _class_model(rows: LabelledRows, label: Any) -> Data:
    model, index = rows.model(label), rows.index(label)
    complete = rows.as_found.complete[index]
    drawn = np.zeros(len(index), dtype=bool)
    if model is None and rows.drawn is not None:
        drawn = ~complete & (rows.drawn.probability[index] > 0.0)
    kind = "none" if model is None else "learned" if model.learned else "known"
    checks: tuple[Any, ...] = ()
    if isinstance(model, LearnedMissingness | BlockMissingness):
        checks = model.checks
    return {
        "label": label,
        "rows": len(index),
        "complete": int(complete.sum()),
        "kind": "looked-up" if drawn.any() else kind,
        "drawn": int(drawn.sum()),
        "found": int((drawn & rows.complete[index]).sum()),
        "whole_rows": None if model is None else model.rowwise,
        "model": None if model is None else repr(model),
        "band_confidence": 1.0 - _band_delta(rows, label),
        "checks": [{"sentence": c.sentence, "failed": c.failed} for c in checks],
    }


def _patterns(rows: LabelledRows, few: LabelledRows, names: Names) -> Data | None:
    """Rows by what is missing of them, the most frequent patterns first.

    None where nothing is missing.
    """
    missing = names.missing(rows.X)
    lossy = any_by_row(missing)
    if not lossy.any():
        return None
    found, code = np.unique(missing[lossy], axis=0, return_inverse=True)
    counts = np.stack(
        [
            np.bincount(code[rows.y[lossy] == label], minlength=len(found))
            for label in rows.labels
        ]
    )
    found = np.concatenate([np.zeros((1, found.shape[1]), dtype=bool), found])
    whole = [[np.count_nonzero(~lossy[rows.index(k)])] for k in rows.labels]
    counts = np.concatenate([whole, counts], axis=1)
    order = np.argsort(-counts.sum(axis=0), kind="stable")
    totals = [max(1, len(rows.index(label))) for label in rows.labels]
    return {
        "columns": [names.columns[j] for j in np.flatnonzero(missing.any(axis=0))],
        "listed": [
            {
                "missing": [names.columns[j] for j in np.flatnonzero(found[place])],
                "rows": counts[:, place],
                "share": counts[:, place] / totals,
            }
            for place in order[:MOST_PATTERNS].tolist()
        ],
        "n_patterns": len(order),
        "left_out": max(0, len(order) - MOST_PATTERNS),
        "test": [_tested(few, label) for label in rows.labels],
    }


def _tested(rows: LabelledRows, label: Any) -> str | None:
    """What Little's test says of a class; None where it can't be made."""
    X = rows.rows(label)
    if X.shape[1] > MOST_TESTED or rows.complete[rows.index(label)].all():
        return None
    try:
        return missingness_patterns(X).mcar_test.sentence
    except (TypeError, ValueError, np.linalg.LinAlgError):
        return None


def _band_delta(rows: LabelledRows, label: Any) -> float:
    """At which level φ's band is shown: the certificate's, where that rests on it."""
    for certificate in certificates_of(rows.classifier):
        part = certificate.missingness_delta
        if label == certificate.controlled_class and part > 0.0:
            return part
    return BAND_DELTA


def _profiles(
    rows: LabelledRows, label: Any, lossy: list[int], names: list[str]
) -> list[Data]:
    """φ, its band, and the values of the features that miss most, of one class.

    Without a model of φ, the values of features that were looked up.
    """
    model = rows.model(label)
    if model is None or not lossy:
        profiles = _looked_up_profiles(rows, label, lossy, names)
    else:
        table = rows.as_found.rows(label)
        columns = list(columns_of(table, names))
        drawn = [j for j in lossy if _is_spread(columns[j])][:MOST_DRAWN]
        along = _along_rows if model.rowwise else _along_features
        delta = _band_delta(rows, label)
        profiles = along(model, table, columns, drawn, delta) if drawn else []
        for profile, j in zip(profiles, drawn, strict=True):
            values, revealed = columns[j].values, _revealed(model, j)
            assert values is not None
            known, beyond = values[~columns[j].missing], None
            if len(revealed):
                # There φ rests on the logistic form alone.
                outside = (known < revealed.min()) | (known > revealed.max())
                beyond = float(outside.mean())
            profile |= {"name": names[j], "extrapolated": beyond,
                        "marks": _some(revealed)}  # fmt: skip
    return [{**profile, "label": label} for profile in profiles]


def _looked_up_profiles(
    rows: LabelledRows, label: Any, lossy: list[int], names: list[str]
) -> list[Data]:
    """Values observed, and values looked up, where these are data and φ is none."""
    if rows.before is None or rows.drawn is None:
        return []
    before = list(columns_of(rows.as_found.rows(label), names))
    after = list(columns_of(rows.rows(label), names))
    weights = rows.drawn.take(rows.index(label)).weights
    profiles: list[Data] = []
    for j in lossy:
        values, lost = after[j].values, before[j].missing
        found = lost & ~after[j].missing
        if values is None or not _is_spread(before[j]) or not found.any():
            continue
        edges = _edges(values[~after[j].missing])
        whole = weights > 0.0
        profiles.append(
            {"name": names[j], "edges": edges,
             "observed": _histogram(values[~lost], np.ones(len(values[~lost])), edges),
             "reweighted": _histogram(values[whole], weights[whole], edges),
             "at": [], "phi": [], "low": [], "high": [], "kish": None,
             "extrapolated": None, "marks": _some(values[found])}
        )  # fmt: skip
    return profiles[:MOST_DRAWN]


def _some(values: FloatArray) -> FloatArray:
    """Values evenly picked from those looked up, few enough to be drawn."""
    if not len(values):
        return values
    places = np.linspace(0, len(values) - 1, min(MOST_MARKS, len(values)))
    return np.asarray(np.sort(values)[places.round().astype(int)])


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


def _histogram(
    values: FloatArray, weights: FloatArray, edges: FloatArray
) -> FloatArray:
    """Weighted shares of values in each bin; some may lie beyond all bins."""
    inside = (values >= edges[0]) & (values <= edges[-1])
    place = np.searchsorted(edges, values[inside], side="right")
    place = np.minimum(place, BINS) - 1
    total = max(float(weights.sum()), np.finfo(float).tiny)
    return np.bincount(place, weights[inside], BINS) / total


def _profile(
    values: FloatArray,
    weights: FloatArray,
    edges: FloatArray,
    at: FloatArray,
    band: list[FloatArray],
) -> Data:
    """φ and its band at some values, and the histograms of all of them."""
    return {
        "edges": edges,
        "observed": _histogram(values, np.ones(len(values)), edges),
        "reweighted": _histogram(values, weights, edges),
        "at": at,
        **dict(zip(("phi", "low", "high"), band, strict=True)),
        "kish": effective_sample_size(weights),
    }


def _along_features(
    model: Missingness,
    table: Any,
    columns: list[Column],
    drawn: list[int],
    delta: float,
) -> list[Data]:
    """A per-feature φ: a function of the feature alone, on a grid."""
    grid = np.zeros((BINS + 1, len(columns)))
    for j, column in enumerate(columns):
        if column.values is not None and not column.missing.all():
            known = column.values[~column.missing]
            grid[:, j] = _edges(known) if j in drawn else np.median(known)
    bands = [model.missing_probability(grid), *model.probability_band(grid, delta)]
    seen = model.missing_probability(table)
    profiles = []
    for j in drawn:
        values, there = columns[j].values, ~columns[j].missing
        assert values is not None
        weights = 1.0 / (1.0 - seen[there, j])
        band = [each[:, j] for each in bands]
        profiles.append(_profile(values[there], weights, grid[:, j], grid[:, j], band))
    return profiles


def _along_rows(
    model: Missingness,
    table: Any,
    columns: list[Column],
    drawn: list[int],
    delta: float,
) -> list[Data]:
    """A φ of whole rows: its mean among rows alike in one feature."""
    phi = model.missing_probability(table)
    observed = ~np.isnan(phi)
    bands = [phi, *model.probability_band(table, delta)]
    # Observed rows stand for all of them, so the mean is over rows before any was lost.
    weights = 1.0 / (1.0 - phi[observed])
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
            np.bincount(place, weights * v[observed], BINS)[some] / mass[some]
            for v in bands
        ]
        at = ((edges[1:] + edges[:-1]) / 2.0)[some]
        profiles.append(_profile(known, weights, edges, at, means))
    return profiles


def _revealed(model: Missingness, j: int) -> FloatArray:
    """Values of a feature that were missing and looked up; none for a known φ."""
    if isinstance(model, BlockMissingness):
        for block in model.blocks:
            if j in block.inputs:
                return _revealed(block.model, block.inputs.index(j))
        return _revealed(model.base, j)
    if not model.learned:
        return np.zeros(0)
    evidence = model.evidence[0 if model.rowwise else j]  # type: ignore[attr-defined]
    if evidence is None or not len(evidence.values):
        return np.zeros(0)
    row = j if model.rowwise else 0
    return np.asarray(evidence.values[row, : evidence.n_revealed])
