"""What rows of each class are classified as, measured on rows left out in turn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.app.report._rows import LabelledRows
from missratio.app.report._shares import share_of

SOURCES = {
    "test": "test rows, which took no part",
    "cross-validation": (
        "rows left out in turn, each classified by a fit to the others that hadn't "
        "seen it"
    ),
    "held out": (
        "rows that the estimator hasn't seen, though thresholds were chosen on them"
    ),
}


@dataclass(frozen=True, eq=False)
class Confusion:
    """Rows of known classes, and what they are classified as.

    Parameters
    ----------
    rows : LabelledRows
    predicted : ndarray of shape (n_rows,)
        Their labels.
    source : {"test", "cross-validation", "held out"}
    """

    rows: LabelledRows
    predicted: Any
    source: str

    def shares(self) -> FloatArray:
        """The share of each class that gets each label, as complete rows would.

        Returns
        -------
        ndarray of shape (n_classes, n_classes)
            NaN for a class of which no row was measured.
        """
        labels = self.rows.labels
        found = np.full((len(labels), len(labels)), np.nan)
        for place, label in enumerate(labels):
            weights, called = self._class(label)
            total = weights.sum()
            for column, other in enumerate(labels):
                if total > 0.0:
                    found[place, column] = weights[called == other].sum() / total
        return found

    def share(self, label: Any, called: list[Any], confidence: float) -> dict[str, Any]:
        """The share of a class that gets one of some labels, with its interval."""
        weights, predicted = self._class(label)
        return share_of(np.isin(predicted, called), weights, confidence)

    def _class(self, label: Any) -> tuple[FloatArray, Any]:
        """Weights of a class's rows, and what they are called."""
        return self.rows.masses(label), self.predicted[self.rows.index(label)]


def confusion(
    rows: LabelledRows,
    test: LabelledRows | None,
    folds: int,
    rng: np.random.Generator,
) -> Confusion:
    """Classify rows that the fit didn't see.

    Parameters
    ----------
    rows : LabelledRows
        Those that the classifier was fitted with.
    test : LabelledRows or None
    folds : int
        In how many parts rows are left out in turn. 0 takes the rows that were held
        out of the fit.
    rng : Generator
    """
    if test is not None:
        return Confusion(test, test.predicted(rows.classifier), "test")
    found = _cross_validated(rows, folds, rng) if folds > 1 else None
    if found is not None:
        return found
    few = rows
    if rows.groups is None:
        held = [rows.classifier.calibration_index_, rows.classifier.choice_index_]
        few = rows.take(np.sort(np.concatenate(held)))
    return Confusion(few, few.predicted(rows.classifier), "held out")


def _cross_validated(
    rows: LabelledRows, folds: int, rng: np.random.Generator
) -> Confusion | None:
    """Rows left out in turn; None where no refit is certified."""
    fold = np.empty(len(rows.y), dtype=int)
    for label in rows.labels:
        index = rows.index(label)
        fold[index] = rng.permutation(len(index)) % folds
    predicted = np.empty(len(rows.y), dtype=rows.classifier.classes_.dtype)
    measured = np.zeros(len(rows.y), dtype=bool)
    for k in range(folds):
        left_out: IntArray = np.flatnonzero(fold == k)
        others = rows.take(np.flatnonzero(fold != k))
        # A group that can't be certified leaves the others theirs.
        more = {} if rows.groups is None else {"on_infeasible": "reject_all"}
        refitted = others.refitted(**more)
        if refitted is not None and len(left_out):
            left_out = left_out[_comparable(rows.take(left_out), refitted)]
            predicted[left_out] = rows.take(left_out).predicted(refitted)
            measured[left_out] = True
    kept = np.flatnonzero(measured)
    if not all((rows.y[kept] == label).any() for label in rows.labels):
        return None
    return Confusion(rows.take(kept), predicted[kept], "cross-validation")


def _comparable(rows: LabelledRows, refitted: Any) -> BoolArray:
    """Which rows a refit tells something about.

    Where groups have thresholds, a fit to fewer rows may have none for a small group.
    """
    if rows.groups is None:
        return np.ones(len(rows.y), dtype=bool)
    before, after = rows.classifier.thresholds_, refitted.thresholds_
    return np.array(
        [
            np.isinf(before.get(group, before.get(None, np.inf)))
            or np.isfinite(after.get(group, after.get(None, np.inf)))
            for group in rows.groups.tolist()
        ],
        dtype=bool,
    )
