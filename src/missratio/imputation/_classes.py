"""Which rows are imputed together, and by which model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from missratio._base.blocks import any_by_row
from missratio._base.hints import listed
from missratio._base.reading import read_labels
from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.imputation._columns import SHOWN
from missratio.missingness import Missingness
from missratio.rows import check_missingness, weighed_twice

Models = Mapping[Any, Missingness | None] | Missingness | Literal["ignore"]


class IncompleteClass(NamedTuple):
    """Rows that are imputed together, some of them incomplete.

    Parameters
    ----------
    label : object
        None where all rows are one population.
    rows : ndarray of int
    model : Missingness or None
        None: what is missing is a random part of each column, or some was looked up.
    inclusion : ndarray of shape (n_rows, n_columns), or None
        With which probability the entries of these rows are there, where some were
        drawn and looked up.
    """

    label: Any
    rows: IntArray
    model: Missingness | None
    inclusion: FloatArray | None = None


def incomplete_classes(
    missing: BoolArray,
    y: ArrayLike | None,
    missingness: Models | None,
    names: Sequence[str],
    inclusion: FloatArray | None = None,
) -> list[IncompleteClass]:
    """Find the classes with missing values, each with its model or its look-ups.

    Parameters
    ----------
    missing : ndarray of bool of shape (n, d)
    y : array-like of shape (n,), or None
    missingness : mapping, Missingness, "ignore" or None
    names : sequence of str
        Of the columns, for messages.
    inclusion : ndarray of shape (n,) or (n, d), or None
        As `check_inclusion` gives it.
    """
    labels = None if y is None else read_labels(y, missing)
    if isinstance(missingness, Missingness):
        missingness = missingness.bound(names)
    ignored = isinstance(missingness, str) and missingness == "ignore"
    if ignored or isinstance(missingness, Missingness):
        model = missingness if isinstance(missingness, Missingness) else None
        if inclusion is not None and _looked_up(inclusion).any():
            raise weighed_twice(None)
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
    return _by_label(missing, labels, models, names, inclusion)


def _by_label(
    missing: BoolArray,
    labels: Any,
    models: Mapping[Any, Missingness | None],
    names: Sequence[str],
    inclusion: FloatArray | None,
) -> list[IncompleteClass]:
    incomplete = any_by_row(missing)
    found = []
    for label in [None] if labels is None else np.unique(labels).tolist():
        of_class = np.ones_like(incomplete) if labels is None else labels == label
        if not (incomplete & of_class).any():
            continue
        model = models.get(label)
        rows = np.flatnonzero(of_class)
        own = None if inclusion is None else inclusion[rows]
        if own is not None and _looked_up(own).any():
            if model is not None:
                raise weighed_twice(label)
            entries = _by_entry(own, missing[rows], label)
            found.append(IncompleteClass(label, rows, None, entries))
            continue
        if model is None:
            whose = "X" if label is None else f"Class {label!r}"
            columns = columns_missing(missing[of_class], names)
            raise ValueError(
                f"{whose} has missing values (NaN) in column(s) {columns} and no "
                f"missingness model. Say why they are missing, missingness="
                f"{{{1 if label is None else label!r}: model}}, look some of them up "
                "(inclusion=...), or impute whatever the reason by "
                'missingness="ignore".'
            )
        found.append(IncompleteClass(label, rows, model))
    return found


def _looked_up(inclusion: FloatArray) -> BoolArray:
    """Which rows or entries were drawn and found."""
    return (inclusion > 0.0) & (inclusion < 1.0)


def _by_entry(inclusion: FloatArray, missing: BoolArray, label: Any) -> FloatArray:
    """Inclusion probabilities of the entries of a class, by those of its rows too.

    What a drawn row had lost is known where all that are missing still miss the same.
    """
    whose = "" if label is None else f" of class {label!r}"
    patterns = np.unique(missing[any_by_row(missing)], axis=0)
    if len(patterns) == 1 and patterns.all():
        raise ValueError(
            f"Incomplete rows{whose} have no value at all, and there is nothing to "
            "impute them from. Leave the imputer out: weights serve instead, and any "
            "ratio takes inclusion, and NeymanPearsonClassifier for any estimator."
        )
    if inclusion.ndim == 2:
        return inclusion
    if len(patterns) > 1:
        raise ValueError(
            f"inclusion of whole rows doesn't say which values{whose} were looked up, "
            f"and incomplete rows miss {len(patterns)} different sets of columns. Give "
            "the inclusion of entries, of shape (n_rows, n_columns), as "
            "revealed.fill(X) does."
        )
    return np.where(patterns[0], inclusion[:, None], 1.0)


def columns_missing(missing: BoolArray, names: Sequence[str]) -> str:
    """Name the columns with missing entries, for a message."""
    columns = np.flatnonzero(missing.any(axis=0)).tolist()
    return listed([names[j] for j in columns], SHOWN)
