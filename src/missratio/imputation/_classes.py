"""Which rows are imputed together, and by which model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_consistent_length, column_or_1d

from missratio._base.blocks import any_by_row
from missratio._base.typing import BoolArray, IntArray
from missratio.missingness import Missingness
from missratio.missingness.arrays import listed
from missratio.rows import check_missingness

Models = Mapping[Any, Missingness | None] | Missingness | Literal["ignore"]


class IncompleteClass(NamedTuple):
    """Rows that are imputed together, some of them incomplete.

    Parameters
    ----------
    label : object
        None where all rows are one population.
    rows : ndarray of int
    model : Missingness or None
        None: what is missing is a random part of each column.
    """

    label: Any
    rows: IntArray
    model: Missingness | None


def incomplete_classes(
    missing: BoolArray,
    y: ArrayLike | None,
    missingness: Models | None,
    names: Sequence[str],
) -> list[IncompleteClass]:
    """Find the classes with missing values, each with its model.

    Parameters
    ----------
    missing : ndarray of bool of shape (n, d)
    y : array-like of shape (n,), or None
    missingness : mapping, Missingness, "ignore" or None
    names : sequence of str
        Of the columns, for messages.
    """
    labels = None if y is None else np.asarray(column_or_1d(y, warn=True))
    if labels is not None:
        check_consistent_length(missing, labels)
    if isinstance(missingness, Missingness):
        missingness = missingness.bound(names)
    ignored = isinstance(missingness, str) and missingness == "ignore"
    if ignored or isinstance(missingness, Missingness):
        model = missingness if isinstance(missingness, Missingness) else None
        rows = np.arange(len(missing))
        return [IncompleteClass(None, rows, model)] if missing.any() else []
    check_missingness(missingness, [0, 1] if labels is None else np.unique(labels))
    if not missing.any():
        return []
    if labels is None and missingness is not None:
        raise ValueError(
            "missingness is a mapping from class to model, and X has missing values: y "
            "must say which class a row belongs to. Give y, or one model for all rows."
        )
    given = missingness if isinstance(missingness, Mapping) else {}
    models = {
        label: None if model is None else model.bound(names)
        for label, model in given.items()
    }
    return _by_label(missing, labels, models, names)


def _by_label(
    missing: BoolArray,
    labels: Any,
    models: Mapping[Any, Missingness | None],
    names: Sequence[str],
) -> list[IncompleteClass]:
    incomplete = any_by_row(missing)
    found = []
    for label in [None] if labels is None else np.unique(labels).tolist():
        of_class = np.ones_like(incomplete) if labels is None else labels == label
        if not (incomplete & of_class).any():
            continue
        model = models.get(label)
        if model is None:
            whose = "X" if label is None else f"Class {label!r}"
            columns = columns_missing(missing[of_class], names)
            raise ValueError(
                f"{whose} has missing values (NaN) in column(s) {columns} and no "
                f"missingness model. Say why they are missing, missingness="
                f"{{{1 if label is None else label!r}: model}}, or impute whatever the "
                'reason by missingness="ignore".'
            )
        found.append(IncompleteClass(label, np.flatnonzero(of_class), model))
    return found


def columns_missing(missing: BoolArray, names: Sequence[str]) -> str:
    """Name the columns with missing entries, for a message."""
    columns = np.flatnonzero(missing.any(axis=0)).tolist()
    return listed([repr(names[j]) for j in columns])
