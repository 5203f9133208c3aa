"""What `learn_missingness` is given, checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from missratio._base.hints import did_you_mean
from missratio._base.reading import as_frame, column_name, float_blocks, joined
from missratio._base.typing import FloatArray, IntArray


def places_of(
    columns: Sequence[str | int], names: tuple[str, ...], parameter: str
) -> IntArray:
    """Where columns are, each once."""
    places = []
    for column in columns:
        known = column if isinstance(column, int) else None
        if isinstance(column, str) and column in names:
            known = names.index(column)
        if known is None or not 0 <= known < len(names):
            hint = did_you_mean(str(column), names)
            raise ValueError(f"{parameter}: X has no column {column!r}.{hint}")
        places.append(known)
    return np.unique(np.array(places, dtype=np.intp))


def always_places(columns: Sequence[str | int], names: tuple[str, ...]) -> IntArray:
    """Columns that are always observed; some, and not all."""
    places = places_of(columns, names, "always_observed")
    if not 0 < len(places) < len(names):
        raise ValueError(
            "always_observed must name one column or more, and leave one or more: got "
            f"{list(columns)} of {len(names)} columns."
        )
    return places


def always_observed_columns(
    table: NDArray[Any], places: IntArray, names: tuple[str, ...]
) -> dict[str, FloatArray]:
    """Columns that are always observed, by name."""
    values = table[:, places].astype(np.float64)
    lossy = np.isnan(values).any(axis=0)
    if lossy.any():
        found = [names[places[j]] for j in np.flatnonzero(lossy)]
        raise ValueError(
            f"Column(s) {joined(found)} have missing values: always_observed takes "
            "columns that have none."
        )
    return {names[j]: values[:, i] for i, j in enumerate(places.tolist())}


def check_columns(X: Any, revealed: Any, names: tuple[str, ...]) -> None:
    """Two dataframes are matched by place, so that names must be the same."""
    frame = as_frame(revealed)
    if frame is None or as_frame(X) is None:
        return
    found = tuple(map(str, frame.columns))
    if len(found) == len(names) and found != names:
        raise ValueError(
            f"revealed must have the columns of X, {joined(names)}, in their order: "
            f"got {joined(found)}."
        )


def check_answers(table: NDArray[Any], answers: NDArray[Any], source: Any) -> None:
    if table.shape != answers.shape:
        raise ValueError(
            f"revealed must have the shape of X: got {answers.shape} and {table.shape}."
            " Put NaN where nothing was looked up."
        )
    for rows, block in float_blocks(table, source):
        values = answers[rows]
        contradicted = ~np.isnan(block) & ~np.isnan(values)
        if contradicted.any() or np.isinf(values).any():
            bad = contradicted | np.isinf(values)
            row, column = np.argwhere(bad)[0]
            where = f"row {rows.start + row}, column {column_name(source, int(column))}"
            why = "isn't missing in X" if contradicted[row, column] else "is infinite"
            raise ValueError(
                f"revealed has {values[row, column]} at {where}, which {why}. Only "
                "cells that are missing can be revealed, by finite values."
            )
