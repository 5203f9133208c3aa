"""A table with the answers in it, and the probability that each came to be there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from missratio._base.blocks import any_by_row
from missratio._base.hints import listed
from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.learning._plan_cells import MissingCells
from missratio.missingness.arrays import as_numeric_array, with_values

if TYPE_CHECKING:
    from missratio.learning._plan_answers import Revealed

_SHOWN = 5


def fill_table(revealed: Revealed, X: Any) -> tuple[Any, FloatArray]:
    """What `Revealed.fill` gives.

    Parameters
    ----------
    X : array-like or dataframe of shape (n_rows, n_features)
    """
    cells = MissingCells.of(X)
    if cells.fingerprint != revealed.fingerprint:
        raise ValueError(
            "The answers are those of another table. X must be what it was when the "
            "plan was made: the same rows and columns, and the same cells missing."
        )
    answered = np.zeros(cells.missing.shape, dtype=bool)
    inclusion = np.where(cells.missing, 0.0, 1.0)
    for code in range(len(revealed.classes)):
        rows = np.flatnonzero(revealed.codes == code)
        of_class = _by_row if revealed.rowwise[code] else _by_entry
        answered[rows], inclusion[rows] = of_class(revealed, cells.missing, code, rows)
    values = np.array(as_numeric_array(X), dtype=np.float64)
    values[answered] = revealed.table[answered]
    return with_values(X, values), inclusion


def _by_row(
    revealed: Revealed, missing: BoolArray, code: int, rows: IntArray
) -> tuple[BoolArray, FloatArray]:
    """Which entries of a class's rows were found with all of their row, and how likely.

    Returns entries found and inclusion probabilities, of shape (n_rows, n_columns).
    """
    lost = missing[rows]
    incomplete = any_by_row(lost)
    answered = incomplete & ~any_by_row(lost & np.isnan(revealed.table[rows]))
    ended = answered | any_by_row(revealed.not_found[rows])
    order = np.where(incomplete, revealed.order[rows].max(axis=1), 0)
    drawn = _drawn(order, ended, _class_name(revealed, code))
    n_found, n_pool = int((answered & drawn).sum()), int(incomplete.sum())
    share = n_found / max(n_pool, 1)
    inclusion = np.where(lost, np.where(drawn, share, 0.0)[:, None], 1.0)
    return lost & (answered & drawn)[:, None], inclusion


def _by_entry(
    revealed: Revealed, missing: BoolArray, code: int, rows: IntArray
) -> tuple[BoolArray, FloatArray]:
    """The same where single entries were drawn, of every feature by itself."""
    lost = missing[rows]
    answered = ~np.isnan(revealed.table[rows])
    ended = answered | revealed.not_found[rows]
    order = revealed.order[rows]
    inclusion = np.where(lost, 0.0, 1.0)
    for column, feature in enumerate(revealed.feature_names):
        pool = np.flatnonzero(lost[:, column])
        name = ", ".join(
            filter(None, [_class_name(revealed, code), f"feature {feature!r}"])
        )
        drawn = _drawn(order[pool, column], ended[pool, column], name)
        found = np.count_nonzero(answered[pool, column][drawn])
        inclusion[pool[drawn], column] = found / max(len(pool), 1)
    return answered & (inclusion > 0.0), inclusion


def _class_name(revealed: Revealed, code: int) -> str:
    label = revealed.classes[code]
    return "" if label is None else f"class {label!r}"


def _drawn(order: IntArray, ended: BoolArray, name: str) -> BoolArray:
    """Which of a pool were drawn: all up to the last answer, in drawing order.

    Raises
    ------
    ValueError
        If a line before the last answer was taken out: its row is not known then.
    """
    last = int(order[ended].max(initial=0))
    drawn = (order > 0) & (order <= last)
    absent = sorted(set(range(1, last + 1)) - set(order[drawn].tolist()))
    if absent:
        shown = listed(absent[:_SHOWN])
        of = f" of {name}" if name else ""
        raise ValueError(
            f"Lines were taken out of the plan{of} before its last answer: draw "
            f"{shown}. Put them back, blank or with 'not found' if nothing was found."
        )
    return drawn
