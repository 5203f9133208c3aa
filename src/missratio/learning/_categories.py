"""Categories among columns of numbers: indicators that go missing together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from missratio._base.typing import FloatArray
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
        if not ((rows == 0.0) | (rows == 1.0)).all() or rows.sum(axis=1).max() > 1.0:
            continue
        inputs = columns[np.ptp(rows, axis=0) > 0.0]
        if rows.sum(axis=1).min() == 1.0:
            inputs = inputs[:-1]
        if len(inputs):
            found.append(Category(tuple(columns.tolist()), tuple(inputs.tolist())))
    return found


def shadows_of(
    category: Category, scored: ScoredTable, names: tuple[str, ...]
) -> dict[str, FloatArray]:
    """What the other columns say of a category: values, and which are missing.

    Parameters
    ----------
    category : Category
    scored : ScoredTable
    names : tuple of str
        Of all columns.
    """
    shadows = {}
    for j, name in enumerate(names):
        if j in category.columns:
            continue
        shadows[name] = scored.values[:, j]
        if scored.missing[:, j].any():
            shadows[f"missing {name}"] = scored.missing[:, j].astype(np.float64)
    return {name: each for name, each in shadows.items() if np.ptp(each) > 0.0}
