"""A first pass over large Parquet files: kinds, categories, labels, what is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio._files import (
    Cells,
    NotNumbersError,
    RowGroup,
    is_number,
    is_text,
    whole_numbers,
)
from missratio.app.tables._columns import MOST_LEVELS, ColumnReader, Misfit
from missratio.app.tables._encoder import Encoder, TableColumn, flat
from missratio.app.tables._labelled import Wanted
from missratio.app.tables._large import batches
from missratio.exceptions import TableError

# Texts of a column that are counted before it is known that they are too many.
_COUNTED = 50 * MOST_LEVELS


@dataclass
class ColumnSurvey:
    """What is known of a column after some batches.

    Parameters
    ----------
    texts : Counter
        How often each text was found; no more are counted than it takes to see that
        they are too many for categories.
    n_missing : Counter
        Missing cells, by the label of their row.
    misfit : Misfit or None
        Cells that aren't numbers.
    low, high : float
        The range of the numbers.
    """

    texts: Counter[str] = field(default_factory=Counter)
    n_missing: Counter[str] = field(default_factory=Counter)
    misfit: Misfit | None = None
    n_known: int = 0
    low: float = np.inf
    high: float = -np.inf

    def add(self, column: Any, cells: Cells, row: int, labels: _Labels) -> BoolArray:
        """Look at another batch; which of its cells are missing."""
        missing: BoolArray = np.zeros(len(column), dtype=bool)
        if is_text(column.type):
            texts = cells.texts(column)
            missing = texts.is_null().to_numpy(zero_copy_only=False)
            if len(self.texts) <= _COUNTED:
                for item in texts.value_counts().to_pylist():
                    if item["values"] is not None:
                        self.texts[item["values"]] += item["counts"]
        try:
            numbers = cells.numbers(column)
        except NotNumbersError as error:
            self._misfit(error, row)
        else:
            missing = np.isnan(numbers)
            self._range(numbers[~missing])
        self.n_known += int((~missing).sum())
        labels.count(missing, self.n_missing)
        return missing

    def _misfit(self, error: NotNumbersError, row: int) -> None:
        before = self.misfit or Misfit(error.doubt, row + error.row, error.text, 0)
        self.misfit = Misfit(
            before.doubt or error.doubt,
            before.row,
            before.text,
            before.n_wrong + error.n_wrong,
        )

    def _range(self, numbers: FloatArray) -> None:
        if len(numbers):
            self.low = min(self.low, float(numbers.min()))
            self.high = max(self.high, float(numbers.max()))


@dataclass(frozen=True)
class _Labels:
    """The labels of a batch, as codes."""

    codes: IntArray
    spellings: list[str]

    @classmethod
    def of(cls, column: Any, cells: Cells) -> _Labels:
        coded = cells.texts(column).dictionary_encode()
        codes = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        return cls(codes, coded.dictionary.to_pylist())

    def count(self, chosen: Any, into: Counter[str]) -> None:
        """Count rows by their labels; those without one count nowhere."""
        codes = self.codes[chosen]
        counts = np.bincount(codes[codes >= 0], minlength=len(self.spellings))
        for spelling, count in zip(self.spellings, counts.tolist(), strict=True):
            if count:
                into[spelling] += count


@dataclass(frozen=True)
class Survey:
    """What a first pass found.

    Parameters
    ----------
    encoder : Encoder
    counts : dict from str to int
        Rows of each label.
    incomplete : dict from str to int
        Of these, how many miss a cell.
    missing : dict from str to dict
        Missing cells of each column, by label.
    n_unlabelled : int
    notes : list of str
    """

    encoder: Encoder
    counts: dict[str, int]
    incomplete: dict[str, int]
    missing: dict[str, dict[str, int]]
    n_unlabelled: int
    notes: list[str]


def survey_columns(
    path: Path,
    groups: Sequence[RowGroup],
    schema: Any,
    wanted: Wanted,
    on_group: Callable[[], None] = lambda: None,
) -> Survey:
    """Read all rows once."""
    names = [n for n in schema.names if n != wanted.target and n not in wanted.drop]
    if not names:
        raise TableError(f"{path} has no column but the target: bring features.")
    cells = Cells(tuple(wanted.missing_values))
    found = {name: ColumnSurvey() for name in names}
    counts: Counter[str] = Counter()
    incomplete: Counter[str] = Counter()
    n_unlabelled = 0
    usable = [
        n for n in names if is_number(kind := schema.field(n).type) or is_text(kind)
    ]
    for group in groups:
        for row, batch in batches(group, [*usable, wanted.target]):
            labels = _Labels.of(flat(batch.column(wanted.target)), cells)
            n_unlabelled += int((labels.codes < 0).sum())
            labels.count(slice(None), counts)
            gaps = np.zeros(len(batch), dtype=bool)
            for name in usable:
                column, start = flat(batch.column(name)), group.start + row
                gaps |= found[name].add(column, cells, start, labels)
            labels.count(gaps, incomplete)
        on_group()
    reader = ColumnReader(
        path, lambda row: f"row {row + 1}", cells, wanted.categorical,
        wanted.blank_level,
    )  # fmt: skip
    columns = reader.judged(
        names, lambda name: _judged(reader, schema.field(name).type, name, found[name])
    )
    return Survey(
        Encoder(tuple(columns), cells),
        dict(counts),
        {label: incomplete[label] for label in counts},
        {label: _missing(found, label) for label in counts},
        n_unlabelled,
        reader.notes,
    )


def _missing(found: dict[str, ColumnSurvey], label: str) -> dict[str, int]:
    """How many values of each lossy column a class misses."""
    counts = {name: column.n_missing[label] for name, column in found.items()}
    return {name: count for name, count in counts.items() if count}


def _judged(
    reader: ColumnReader, kind: Any, name: str, found: ColumnSurvey
) -> TableColumn:
    """What a column holds, by the rules that hold for tables in memory."""
    forced = name in reader.categorical
    reader.check_kind(kind, name)
    if not found.n_known:
        raise reader.without_values(name)
    if forced and is_number(kind):
        raise TableError(
            f"column {name!r} is of numbers, and --categorical takes texts where a "
            "table is read in passes. Make texts of it."
        )
    if not forced:
        if found.misfit is None:
            if found.low == found.high:
                raise reader.constant(name, f"{found.low:g}")
            return TableColumn(name)
        reader.check_misfit(name, found.misfit, found.n_known)
    n_missing = sum(found.n_missing.values())
    return TableColumn(name, reader.levels(found.texts, n_missing, name))


def label_values(spellings: Sequence[str]) -> dict[str, Any]:
    """Labels as a table in memory has them: whole numbers where all of them are."""
    numbers = whole_numbers(spellings)
    return dict(zip(spellings, spellings if numbers is None else numbers, strict=True))
