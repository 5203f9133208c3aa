"""Categories among columns of numbers: indicators that go missing together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from missratio._base.blocks import rows_with_nan
from missratio._base.hints import listed
from missratio._base.typing import FloatArray, IntArray
from missratio.learning._from_table import shared_masks
from missratio.learning._scores import ScoredTable

# Fewer missing rows may be the same by chance.
FEWEST_SHARED = 5


@dataclass(frozen=True)
class Category:
    """Indicators of one category's levels, by their places in the table.

    Parameters
    ----------
    columns : tuple of int
    inputs : tuple of int
        Those that tell levels apart: without those that never vary, and without the
        last one where every row has one of them.
    """

    columns: tuple[int, ...]
    inputs: tuple[int, ...]


def find_categories(table: FloatArray) -> list[Category]:
    """Columns that are missing in the same rows, and where observed one-hot.

    That is, each is 0 or 1, and at most one of them is 1 in any row.

    Parameters
    ----------
    table : ndarray of shape (n_rows, n_columns)
    """
    missing = np.isnan(table)
    shared = shared_masks(missing)
    found = []
    for first in np.flatnonzero(shared.sum(axis=1) > 1).tolist():
        columns = np.flatnonzero(shared[first])
        seen = ~missing[:, first]
        if first != columns[0] or (~seen).sum() < FEWEST_SHARED or not seen.any():
            continue
        rows = table[seen][:, columns]
        if not _one_hot(rows):
            continue
        category = _category(columns, rows)
        if category.inputs:
            found.append(category)
    return found


def named_categories(
    table: FloatArray,
    answers: FloatArray,
    columns: Sequence[IntArray],
    names: Sequence[str],
) -> list[Category]:
    """Categories that are known, those of them with missing values.

    Parameters
    ----------
    table, answers : ndarray of shape (n_rows, n_columns)
        What was observed, and what was looked up.
    columns : sequence of ndarray of int
        The indicators of each.
    names : sequence of str
        Of all columns, for messages.
    """
    found = []
    for places in columns:
        missing = np.isnan(table[:, places])
        lost = missing.any(axis=1)
        if not lost.any():
            continue
        given = answers[:, places]
        rows = np.concatenate([table[~lost][:, places], given[~rows_with_nan(given)]])
        whose = listed([names[j] for j in places])
        if not missing[lost].all() or not _one_hot(rows):
            raise ValueError(
                f"Columns {whose} must be the indicators of one category: 0 or 1, at "
                "most one of them 1 in a row, and all of them missing or none."
            )
        category = _category(places, rows)
        if not category.inputs:
            raise ValueError(
                f"The category of columns {whose} has one level where it is known, and "
                "missing values: nothing says of which level these are. Leave the "
                "columns out, or look some of them up."
            )
        found.append(category)
    return found


def _one_hot(rows: FloatArray) -> bool:
    whole = ((rows == 0.0) | (rows == 1.0)).all()
    return bool(whole) and rows.sum(axis=1).max(initial=0.0) <= 1.0


def _category(columns: IntArray, rows: FloatArray) -> Category:
    """Indicators, and those that tell levels apart in rows where they are observed."""
    inputs = columns[rows.any(axis=0) & ~rows.all(axis=0)]
    if len(rows) and rows.sum(axis=1).min() == 1.0:
        inputs = inputs[:-1]
    return Category(tuple(columns.tolist()), tuple(inputs.tolist()))


def shadows_of(
    category: Category, scored: ScoredTable, names: tuple[str, ...]
) -> dict[str, FloatArray]:
    """What the other columns say of a category: values, and which are missing."""
    shadows = {}
    for j, name in enumerate(names):
        if j in category.columns:
            continue
        shadows[name] = scored.values[:, j]
        if scored.missing[:, j].any():
            shadows[f"missing {name}"] = scored.missing[:, j].astype(np.float64)
    return {name: each for name, each in shadows.items() if np.ptp(each) > 0.0}
