"""Rows that are refused: infinities, and NaN where nothing says why."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from missratio._base.typing import BoolArray
from missratio.exceptions import Message, Remedy, UnexplainedMissingError
from missratio.rows._source import RowBlock, Source


def refuse_infinity(block: RowBlock, row_number: Callable[[int], int]) -> None:
    """Refuse infinities, by their row (as `row_number` has it) and column."""
    infinite = np.isinf(block.rows)
    if infinite.any():
        row, column = np.argwhere(infinite)[0]
        raise ValueError(
            f"Input X contains infinity at row {row_number(block.start + int(row))}, "
            f"column {column}. Replace it by NaN if the value is missing, or by a "
            "number."
        )


def weighed_twice(label: Any) -> ValueError:
    """A class, or all rows for None, has a model of missingness and look-ups too."""
    whose = "X" if label is None else f"Class {label!r}"
    return ValueError(
        f"{whose} has a missingness model and inclusion probabilities: its rows can't "
        "be weighed twice. Leave out one of them."
    )


def refuse_nan(
    source: Source, label: Any, names: Sequence[str] | None, where: str | None
) -> NoReturn:
    """Refuse a class that has NaN and no model, by its columns."""

    def lacking(block: RowBlock) -> BoolArray:
        return np.asarray(np.isnan(block.rows).any(axis=0))

    found = source.fold(lacking, lambda parts: np.any(parts, axis=0))
    places = tuple(np.flatnonzero(found).tolist())
    raise UnexplainedMissingError(
        Message(
            "Class {label!r} has NaN in column(s) {columns}{where} and no "
            "missingness model.",
            label=label,
            columns=places,
            names=places if names is None else tuple(str(names[j]) for j in places),
            facts={"where": "" if where is None else f" in {where}"},
            remedies=(
                Remedy.MODEL,
                Remedy.COMPLETE_CASES,
                "give inclusion probabilities where values were looked up",
            ),
        )
    )
