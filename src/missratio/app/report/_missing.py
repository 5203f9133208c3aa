"""What is missing of each column, and the φ that is to explain it."""

from __future__ import annotations

from typing import Any

import numpy as np

from missratio._base.blocks import any_by_row
from missratio._base.typing import BoolArray, IntArray
from missratio.app.report._columns import Names
from missratio.app.report._profiles import band_delta, profiles_of, revealed_values
from missratio.app.report._rows import LabelledRows
from missratio.learning import LearnedMissingness
from missratio.missingness import BlockMissingness, missingness_patterns

MOST_LISTED, MOST_PATTERNS = 60, 20
# Little's test takes time and memory with the square of the columns.
MOST_TESTED = 60


def missing_values(
    rows: LabelledRows, drawn_rows: LabelledRows, names: Names
) -> dict[str, Any]:
    """Missing values by class and column, with φ and its band where it is modelled.

    Parameters
    ----------
    rows : LabelledRows
    drawn_rows : LabelledRows
        Fewer of them, to draw histograms of.
    names : Names
        Of the features and of their columns.

    Returns
    -------
    dict
        `classes`: the model of each. `features`: the columns, those with the most
        missing values first, with counts by class, and how many of these were looked
        up. `profiles`: what is drawn. `left_out`: how many columns are not listed.
    """
    before = rows.as_found
    missing = names.missing(before.X)
    width = missing.shape[1]
    counts = np.array([missing[rows.y == k].sum(axis=0) for k in rows.labels])
    totals = np.array([max(1, len(rows.index(label))) for label in rows.labels])
    shares = counts / totals[:, None]
    looked_up = np.array([_looked_up(rows, k, names) for k in rows.labels])
    order = np.argsort(-shares.max(axis=0, initial=0.0), kind="stable")
    listed = [
        {
            "name": names.columns[j],
            "missing": counts[:, j],
            "share": shares[:, j],
            "looked_up": looked_up[:, j],
        }
        for j in order[:MOST_LISTED]
    ]
    members = names.members()
    profiles: list[dict[str, Any]] = []
    for place, label in enumerate(rows.labels):
        # A column of numbers is one feature; categories can't be drawn.
        lossy = [members[j][0] for j in order if counts[place, j]]
        profiles += profiles_of(drawn_rows, label, lossy, list(names.features))
    return {
        "classes": [_class_model(rows, label) for label in rows.labels],
        "features": listed,
        "n_features": width,
        "left_out": max(0, width - MOST_LISTED),
        "any": bool(counts.any()),
        "profiles": profiles,
        "patterns": _patterns(before, drawn_rows.as_found, names),
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
    revealed = [revealed_values(model, places[0]) for places in members]
    return np.array([0 if each is None else len(each) for each in revealed])


def _class_model(rows: LabelledRows, label: Any) -> dict[str, Any]:
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
        "band_confidence": 1.0 - band_delta(rows, label),
        "checks": [
            {"sentence": check.sentence, "failed": check.failed} for check in checks
        ],
    }


def _patterns(
    rows: LabelledRows, few: LabelledRows, names: Names
) -> dict[str, Any] | None:
    """Rows by what is missing of them, the most frequent patterns first.

    Parameters
    ----------
    rows : LabelledRows
        Without what was looked up.
    few : LabelledRows
        Fewer of them, to test on.

    Returns
    -------
    dict, or None
        `columns`: those of which a value is missing. `listed`: for each pattern the
        columns missing, and rows of each class. `left_out`: how many patterns are not
        listed. `test`: what Little's test says of each class. None where nothing is
        missing.
    """
    missing = names.missing(rows.X)
    lossy: BoolArray = any_by_row(missing)
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
    listed = [
        {
            "missing": [names.columns[j] for j in np.flatnonzero(found[place])],
            "rows": counts[:, place],
            "share": counts[:, place] / totals,
        }
        for place in order[:MOST_PATTERNS].tolist()
    ]
    some = np.flatnonzero(missing.any(axis=0))
    return {
        "columns": [names.columns[j] for j in some],
        "listed": listed,
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
