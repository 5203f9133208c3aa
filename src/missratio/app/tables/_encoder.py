"""Columns as a matrix of numbers: numbers as they are, categories as indicators."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from missratio._base.hints import did_you_mean, listed
from missratio._base.threads import one_blas_thread, share
from missratio._base.typing import FloatArray, IntArray
from missratio._files import Cells, NotNumbersError
from missratio._files.numbers import Mark
from missratio.app.tables._missing import BLOCK_ROWS
from missratio.exceptions import TableError

SHOWN = 8
BLANK = ""
"""The level of a missing category, where that is a level of its own."""


def _numbered(row: int) -> str:
    return f"row {row + 1}"


@dataclass(frozen=True)
class TableColumn:
    """A column of a table.

    Parameters
    ----------
    name : str
    levels : tuple of str, or None
        Categories, the reference first; None for a column of numbers.
    """

    name: str
    levels: tuple[str, ...] | None = None

    @property
    def width(self) -> int:
        """How many columns of the matrix it takes."""
        return 1 if self.levels is None else len(self.levels) - 1

    @property
    def encoded_names(self) -> list[str]:
        """What these are called."""
        if self.levels is None:
            return [self.name]
        return [f"{self.name}={level or '(blank)'}" for level in self.levels[1:]]


@dataclass(frozen=True)
class Encoder:
    """Rows of a table as rows of numbers.

    Numbers stay as they are, NaN where missing, and come first. A category is a one in
    the column of its level, and zeros for the first level, the reference. One that is
    missing, or that was never seen, is NaN in all of them: such a row can't be scored.

    Parameters
    ----------
    columns : tuple of TableColumn
        Numbers first.
    cells : Cells
    """

    columns: tuple[TableColumn, ...]
    cells: Cells

    @property
    def width(self) -> int:
        """How many columns the matrix has."""
        return sum(column.width for column in self.columns)

    @property
    def names(self) -> list[str]:
        """The columns of the table that are used."""
        return [column.name for column in self.columns]

    @property
    def n_numeric(self) -> int:
        """How many of them are numbers."""
        return sum(column.levels is None for column in self.columns)

    @property
    def encoded_names(self) -> list[str]:
        """The columns of the matrix."""
        return [name for column in self.columns for name in column.encoded_names]

    @property
    def indicators(self) -> dict[str, IntArray]:
        """The columns of the matrix of each category, by its name."""
        ends = np.cumsum([column.width for column in self.columns]).tolist()
        return {
            column.name: np.arange(end - column.width, end)
            for column, end in zip(self.columns, ends, strict=True)
            if column.levels is not None
        }

    def with_marks(self, marks: tuple[Mark, ...]) -> Encoder:
        """The same for a file with other decimal marks."""
        return replace(self, cells=replace(self.cells, marks=marks))

    def encode(
        self,
        table: Any,
        first_row: int = 0,
        known: Mapping[str, FloatArray] = MappingProxyType({}),
        place: Callable[[int], str] = _numbered,
    ) -> FloatArray:
        """The matrix of a table or record batch.

        Parameters
        ----------
        table : PyArrow table or record batch
            With the columns needed, in any order.
        first_row : int
            The place of its first row, for messages.
        known : mapping from str to ndarray
            Columns of numbers that were read already.
        place : callable
            Where a row is, from its number, for messages.

        Returns
        -------
        ndarray of shape (n_rows, width)
        """
        import pyarrow

        parts: list[FloatArray] = []
        for column in self.columns:
            if column.name in known:
                parts.append(known[column.name])
                continue
            cells = flat(table.column(column.name))
            try:
                if column.levels is not None:
                    parts.extend(self._indicators(column, cells))
                    continue
                parts.append(
                    self._numbers(column, cells, lambda row: place(first_row + row))
                )
            except pyarrow.ArrowException as error:
                kind = "numbers" if column.levels is None else "texts"
                raise TableError(
                    f"Column {column.name!r} holds {kind}: it is of type {cells.type}. "
                    f"Make {kind} of it, as they were when the model was fitted."
                ) from error
        X, infinite = stacked(parts, len(table))
        if infinite:
            raise self._not_finite(X, infinite[0], lambda row: place(first_row + row))
        return X

    def _numbers(
        self, column: TableColumn, cells: Any, place: Callable[[int], str]
    ) -> FloatArray:
        try:
            return self.cells.numbers(cells)
        except NotNumbersError as error:
            doubt = f" {error.doubt}" if error.doubt else ""
            raise TableError(
                f"Column {column.name!r} holds numbers: {error.text!r} in "
                f"{place(error.row)} is not one.{doubt} Correct it, or leave it blank "
                "if it is missing."
            ) from error

    def _indicators(self, column: TableColumn, cells: Any) -> list[FloatArray]:
        import pyarrow
        from pyarrow import compute

        assert column.levels is not None
        levels = column.levels
        texts = self.cells.texts(cells)
        if pyarrow.types.is_boolean(cells.type):
            # Files spell them as they like: True, TRUE or true.
            levels = tuple(level.lower() for level in levels)
        if BLANK in levels:
            texts = compute.fill_null(texts, BLANK)
        found = compute.index_in(texts, value_set=pyarrow.array(levels))
        codes = compute.fill_null(found, -1).to_numpy(zero_copy_only=False)
        unknown = codes < 0
        return [
            np.where(unknown, np.nan, codes == place) for place in range(1, len(levels))
        ]

    def _not_finite(
        self, X: FloatArray, start: int, place: Callable[[int], str]
    ) -> TableError:
        """The first infinite cell, which is in a block that begins at a row."""
        row, j = (np.argwhere(np.isinf(X[start:]))[0] + (start, 0)).tolist()
        return TableError(
            f"Column {self.encoded_names[j]!r} must be finite: got {X[row, j]} in "
            f"{place(row)}. Correct it, or leave it blank if it is missing."
        )

    def check_columns(
        self,
        found: Sequence[str],
        allowed: Sequence[str],
        remedy: str = "Copy them to the output (--keep), or leave them out (--drop).",
    ) -> None:
        """Refuse a table that lacks columns, or has others.

        Parameters
        ----------
        found : sequence of str
            The columns of the table.
        allowed : sequence of str
            Those that may be there as well.
        remedy : str
            What to do about others.
        """
        absent = [name for name in self.names if name not in found]
        if absent:
            free = [name for name in found if name not in self.names]
            hint = did_you_mean(absent[0], free) if len(absent) == 1 else ""
            raise TableError(
                f"The model needs {len(self.names)} columns, and the table lacks "
                f"{listed(absent, SHOWN)}.{hint} Add what is absent, or rename columns."
            )
        extra = [name for name in found if name not in {*self.names, *allowed}]
        if extra:
            raise TableError(
                "The table has columns that the model doesn't know: "
                f"{listed(extra, SHOWN)}. {remedy}"
            )


def level_codes(indicators: FloatArray) -> FloatArray:
    """The places of levels, by indicators of all but the first; NaN where missing.

    Parameters
    ----------
    indicators : ndarray of shape (n_rows, n_levels - 1)
    """
    codes: FloatArray = indicators @ np.arange(1.0, indicators.shape[1] + 1.0)
    return codes


def level_indicators(codes: FloatArray, width: int) -> FloatArray:
    """Indicators of all levels but the first, by places; NaN where missing.

    Parameters
    ----------
    codes : ndarray of shape (n_rows,)
    width : int
        How many indicators.
    """
    found = np.asarray(codes[:, None] == np.arange(1.0, width + 1.0), dtype=np.float64)
    found[np.isnan(codes)] = np.nan
    return found


def flat(column: Any) -> Any:
    """A column without chunks."""
    import pyarrow

    return (
        column.combine_chunks() if isinstance(column, pyarrow.ChunkedArray) else column
    )


def stacked(parts: Sequence[FloatArray], n_rows: int) -> tuple[FloatArray, list[int]]:
    """Columns side by side, and where blocks of rows begin that have an infinity."""
    X = np.empty((n_rows, len(parts)))

    def fill(start: int) -> bool:
        block = X[start : start + BLOCK_ROWS]
        for place, part in enumerate(parts):
            block[:, place] = part[start : start + BLOCK_ROWS]
        with np.errstate(over="ignore", invalid="ignore"):
            return not np.isfinite(block.sum()) and bool(np.isinf(block).any())

    starts = range(0, n_rows, BLOCK_ROWS)
    with one_blas_thread(X.size) as threads:
        found = share(fill, starts, threads)
    return X, [start for start, infinite in zip(starts, found, strict=True) if infinite]
