"""What is missing of each column, what is missing together, and φ along a column."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from missratio._base.typing import FloatArray
from missratio.app.modelfile import certificates_of
from missratio.app.report.rows import LabelledRows, Names, numbers
from missratio.exceptions import WeightConcentrationWarning
from missratio.weights import effective_sample_size, warn_if_concentrated

Data = dict[str, Any]

MOST_LISTED, MOST_PATTERNS, MOST_DRAWN = 60, 20, 12
BINS = 24
# The level of a band that no certificate rests on.
BAND_DELTA = 0.05


def missing_values(rows: LabelledRows, few: LabelledRows, names: Names) -> Data:
    """Missing values by class and column, with φ and its band where it is modelled.

    φ along columns is that of `few` of the rows.

    Returns
    -------
    dict
        `classes`: the model of each. `features`: the columns, those with the most
        missing values first, with counts by class, and how many of these were looked
        up. `profiles`: φ along columns. `patterns`: what is missing together, the most
        frequent first, or None. `left_out`: how many columns are not listed.
    """
    missing, columns = names.missing(rows.as_found.X), list(names.members)
    counts = np.array([missing[rows.y == k].sum(axis=0) for k in rows.labels])
    totals = np.array([max(1, len(rows.index(label))) for label in rows.labels])
    shares = counts / totals[:, None]
    filled = missing & ~names.missing(rows.X)
    looked_up = np.array([filled[rows.y == k].sum(axis=0) for k in rows.labels])
    order = np.argsort(-shares.max(axis=0, initial=0.0), kind="stable")
    first = [places[0] for places in names.members.values()]
    profiles: list[Data] = []
    for place, label in enumerate(rows.labels):
        # A column of numbers is one feature; categories can't be drawn.
        lossy = [first[j] for j in order if counts[place, j]]
        profiles += _profiles(few, label, lossy, names.features)
    patterns = None
    if counts.any():
        packed = np.packbits(missing, axis=1)
        _, some, code = np.unique(
            packed, axis=0, return_index=True, return_inverse=True
        )
        kinds = missing[some]
        by_class = np.array(
            [np.bincount(code[rows.y == k], minlength=len(kinds)) for k in rows.labels]
        )
        frequent = np.argsort(-by_class.sum(axis=0), kind="stable")
        patterns = {
            "listed": [
                {"missing": [columns[j] for j in np.flatnonzero(kinds[place])],
                 "rows": by_class[:, place], "share": by_class[:, place] / totals}
                for place in frequent[:MOST_PATTERNS]
            ],
            "left_out": max(0, len(kinds) - MOST_PATTERNS),
        }  # fmt: skip
    return {
        "classes": [_class_model(rows, label) for label in rows.labels],
        "features": [
            {"name": columns[j], "missing": counts[:, j], "share": shares[:, j],
             "looked_up": looked_up[:, j]}
            for j in order[:MOST_LISTED]
        ],
        "left_out": max(0, len(columns) - MOST_LISTED),
        "profiles": profiles,
        "patterns": patterns,
    }  # fmt: skip


def _class_model(rows: LabelledRows, label: Any) -> Data:
    model, index = rows.model(label), rows.index(label)
    complete = rows.as_found.complete[index]
    drawn = np.zeros(len(index), dtype=bool)
    if model is None and rows.drawn is not None:
        drawn = ~complete & (rows.drawn.probability[index] > 0.0)
    kind = "none" if model is None else "learned" if model.learned else "known"
    weights = rows.weights[index]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", WeightConcentrationWarning)
        warn_if_concentrated(weights, f"Class {label}")
    return {
        "label": label,
        "rows": len(index),
        "complete": int(complete.sum()),
        "kind": "looked-up" if drawn.any() else kind,
        "drawn": int(drawn.sum()),
        "found": int((drawn & rows.complete[index]).sum()),
        "largest": weights.max(initial=0.0),
        "effective_rows": effective_sample_size(weights),
        "concentrated": str(caught[0].message) if caught else None,
        "whole_rows": None if model is None else model.rowwise,
        "model": None if model is None else repr(model),
        "band_confidence": 1.0 - _band_delta(rows, label),
        "checks": [
            {"sentence": check.sentence, "failed": check.failed}
            for check in getattr(model, "checks", ())
        ],
    }


def _band_delta(rows: LabelledRows, label: Any) -> float:
    """At which level φ's band is shown: the certificate's, where that rests on it."""
    every = certificates_of(rows.classifier)
    parts = [c.missingness_delta for c in every if c.controlled_class == label]
    return next((part for part in parts if part > 0.0), BAND_DELTA)


def _profiles(
    rows: LabelledRows, label: Any, lossy: list[int], names: Any
) -> list[Data]:
    """φ, its band, and the values of the features that miss most, of one class.

    φ of single values is a function of the feature alone, on a grid; of whole rows its
    mean among rows alike in the feature, before any was lost.
    """
    model, table = rows.model(label), rows.as_found.rows(label)
    if model is None or not lossy:
        return []
    values, _ = numbers(table)
    seen = model.missing_probability(table)
    phi = np.broadcast_to(seen[:, None] if model.rowwise else seen, values.shape)
    known = ~np.isnan(values) & ~np.isnan(phi)
    spread = [j for j in lossy if known[:, j].any() and np.ptp(values[known[:, j], j])]
    grids = {j: _edges(values[known[:, j], j]) for j in spread[:MOST_DRAWN]}
    at = table
    if not model.rowwise:
        # Other features are in the middle of what is known of them.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            middle = np.nan_to_num(np.nanmedian(values, axis=0))
        at = np.tile(middle, (BINS + 1, 1))
        for j, edges in grids.items():
            at[:, j] = edges
    delta = _band_delta(rows, label)
    bands = [model.missing_probability(at), *model.probability_band(at, delta)]
    profiles = []
    for j, edges in grids.items():
        grid, band = edges, [each if model.rowwise else each[:, j] for each in bands]
        if model.rowwise:
            there = known[:, j]
            x, weights = values[there, j], 1.0 / (1.0 - phi[there, j])
            mass, _ = np.histogram(x, edges, weights=weights)
            some = mass > 0.0
            grid = ((edges[1:] + edges[:-1]) / 2.0)[some]
            sums = (np.histogram(x, edges, weights=weights * b[there])[0] for b in band)
            band = [each[some] / mass[some] for each in sums]
        found = dict(zip(("at", "phi", "low", "high"), (grid, *band), strict=True))
        profiles.append({**found, "name": names[j], "label": label})
    return profiles


def _edges(values: FloatArray) -> FloatArray:
    """Bins for all but the outermost values."""
    low, high = np.quantile(values, [0.005, 0.995])
    if not low < high:
        low, high = values.min(), values.max()
    return np.linspace(low, high, BINS + 1)
