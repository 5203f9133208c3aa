"""Which missing cells of a table to look up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from missratio.app.tables import LabelledTable
from missratio.exceptions import TableError
from missratio.learning import QueryPlan, plan_queries


def plan_table(
    table: LabelledTable,
    *,
    per_feature: int,
    rowwise: bool,
    classes: Sequence[Any] | None,
    ids: Sequence[Any] | None,
    seed: int,
) -> QueryPlan:
    """Draw missing cells of a table's columns of numbers, as `plan_queries` does.

    Parameters
    ----------
    table : LabelledTable
    per_feature : int
    rowwise : bool
    classes : sequence, or None
    ids : sequence, or None
        The user's key of each row of the file.
    seed : int
    """
    frame = table.numeric_frame()
    if not frame.num_columns:
        raise TableError("There is no column of numbers to ask about.")
    keys = None if ids is None else [ids[row] for row in table.rows.tolist()]
    try:
        return plan_queries(
            frame,
            table.y,
            per_feature=per_feature,
            rowwise=rowwise,
            classes=classes,
            ids=keys,
            random_state=seed,
        )
    except ValueError as error:
        raise TableError(str(error)) from error
