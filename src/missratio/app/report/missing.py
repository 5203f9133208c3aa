"""What is missing of each column, what is missing together, and φ along a column."""

from __future__ import annotations

from typing import Any

import numpy as np

from missratio._base.blocks import any_by_row
from missratio._base.typing import FloatArray, IntArray
from missratio.app.modelfile import certificates_of
from missratio.app.report.rows import Column, LabelledRows, Names, columns_of
from missratio.learning import LearnedMissingness
from missratio.missingness import BlockMissingness, Missingness, missingness_patterns

Data = dict[str, Any]

MOST_LISTED, MOST_PATTERNS, MOST_DRAWN = 60, 20, 12
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
            {"name": names.columns[j], "missing": counts[:, j], "share": shares[:, j],
             "looked_up": looked_up[:, j]}
            for j in order[:MOST_LISTED]
        ],
        "n_features": width,
        "left_out": max(0, width - MOST_LISTED),
        "any": bool(counts.any()),
        "profiles": profiles,
        "patterns": _patterns(rows.as_found, few.as_found, names),
    }  # fmt: skip


def _looked_up(rows: LabelledRows, label: Any, names: Names) -> IntArray:
    """How many missing values of each column were looked up in a class."""
    model, members = rows.model(label), names.members()
    if model is None and rows.before is not None:
        mine = rows.take(rows.index(label))
        found = names.missing(mine.as_found.X) & ~names.missing(mine.X)
        return np.asarray(found.sum(axis=0))
    return np.array([_revealed(model, places[0]) for places in members])


def _revealed(model: Missingness | None, j: int) -> int:
    """How many values of a feature φ was learned from; none for a known φ."""
    if isinstance(model, BlockMissingness):
        for block in model.blocks:
            if j in block.inputs:
                return _revealed(block.model, block.inputs.index(j))
        return _revealed(model.base, j)
    if not isinstance(model, LearnedMissingness):
        return 0
    evidence = model.evidence[0 if model.rowwise else j]
    return 0 if evidence is None else int(evidence.n_revealed)


def _class_model(rows: LabelledRows, label: Any) -> Data:
    model, index = rows.model(label), rows.index(label)
    complete = rows.as_found.complete[index]
    drawn = np.zeros(len(index), dtype=bool)
    if model is None and rows.drawn is not None:
        drawn = ~complete & (rows.drawn.probability[index] > 0.0)
    kind = "none" if model is None else "learned" if model.learned else "known"
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
        "checks": [
            {"sentence": check.sentence, "failed": check.failed}
            for check in getattr(model, "checks", ())
        ],
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
    whole = [[np.count_nonzero(~lossy[rows.index(k)])] for k in rows.labels]
    counted = [
        np.bincount(code[rows.y[lossy] == label], minlength=len(found))
        for label in rows.labels
    ]
    # Nothing is a pattern, too.
    found = np.concatenate([np.zeros((1, found.shape[1]), dtype=bool), found])
    counts = np.concatenate([whole, counted], axis=1)
    order = np.argsort(-counts.sum(axis=0), kind="stable")
    totals = [max(1, len(rows.index(label))) for label in rows.labels]
    return {
        "columns": [names.columns[j] for j in np.flatnonzero(missing.any(axis=0))],
        "listed": [
            {"missing": [names.columns[j] for j in np.flatnonzero(found[place])],
             "rows": counts[:, place], "share": counts[:, place] / totals}
            for place in order[:MOST_PATTERNS].tolist()
        ],
        "n_patterns": len(order),
        "left_out": max(0, len(order) - MOST_PATTERNS),
        "test": [_tested(few, label) for label in rows.labels],
    }  # fmt: skip


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
    every = certificates_of(rows.classifier)
    parts = [c.missingness_delta for c in every if c.controlled_class == label]
    return next((part for part in parts if part > 0.0), BAND_DELTA)


def _profiles(
    rows: LabelledRows, label: Any, lossy: list[int], names: list[str]
) -> list[Data]:
    """φ, its band, and the values of the features that miss most, of one class.

    φ of single values is a function of the feature alone, on a grid; of whole rows its
    mean among rows alike in the feature, before any was lost.
    """
    model, table = rows.model(label), rows.as_found.rows(label)
    columns = list(columns_of(table, names))
    drawn = [j for j in lossy if _is_spread(columns[j])][:MOST_DRAWN]
    if model is None or not drawn:
        return []
    seen, at = model.missing_probability(table), table
    if not model.rowwise:
        at = np.zeros((BINS + 1, len(columns)))
        for j, column in enumerate(columns):
            if column.values is not None and not column.missing.all():
                known = column.values[~column.missing]
                at[:, j] = _edges(known) if j in drawn else np.median(known)
    delta = _band_delta(rows, label)
    bands = [model.missing_probability(at), *model.probability_band(at, delta)]
    profiles = []
    for j in drawn:
        values = columns[j].values
        assert values is not None
        there = ~np.isnan(seen) if model.rowwise else ~columns[j].missing
        weights = 1.0 / (1.0 - (seen if model.rowwise else seen[:, j])[there])
        known = values[there]
        edges = _edges(known)
        grid, band = edges, [each if model.rowwise else each[:, j] for each in bands]
        if model.rowwise:
            place = np.searchsorted(edges, known, side="right") - 1
            place = np.clip(place, 0, BINS - 1)
            mass = np.bincount(place, weights, BINS)
            some = mass > 0.0
            grid = ((edges[1:] + edges[:-1]) / 2.0)[some]
            band = [
                np.bincount(place, weights * each[there], BINS)[some] / mass[some]
                for each in band
            ]
        profiles.append(
            {"edges": edges, "observed": _histogram(known, None, edges),
             "reweighted": _histogram(known, weights, edges), "at": grid,
             "phi": band[0], "low": band[1], "high": band[2], "name": names[j],
             "label": label}
        )  # fmt: skip
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


def _histogram(
    values: FloatArray, weights: FloatArray | None, edges: FloatArray
) -> FloatArray:
    """Weighted shares of values in each bin; some may lie beyond all bins."""
    mass = np.ones(len(values)) if weights is None else weights
    counts, _ = np.histogram(values, edges, weights=mass)
    return counts / max(float(mass.sum()), np.finfo(float).tiny)
