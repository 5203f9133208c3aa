"""Large Parquet files: surveyed in a first pass, and read as numbers at every other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from missratio._base.threads import one_blas_thread, share
from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio._files import (
    Cells,
    NotNumbersError,
    RowGroup,
    find_files,
    in_order,
    is_number,
    is_text,
    whole_numbers,
)
from missratio.app.tables.columns import (
    MOST_LEVELS,
    ColumnReader,
    Encoder,
    Misfit,
    TableColumn,
    flat,
)
from missratio.app.tables.labelled import Wanted
from missratio.exceptions import TableError, UnreadableFileError
from missratio.rows import LabelledBlock, LabelledSource

_Result = TypeVar("_Result")
# A batch has this many cells at most.
BATCH_CELLS = 2_097_152


@dataclass(frozen=True)
class Spared:
    """Rows that take no part in a fit, drawn by a coin each, to measure it on."""

    seed: int
    shares: Mapping[Any, float]

    def of(self, labels: NDArray[Any], start: int) -> BoolArray:
        """Which rows of a batch are spared; the same at every pass."""
        rng = np.random.default_rng([self.seed, start, 2])
        coin = rng.random(len(labels))
        spared = np.zeros(len(labels), dtype=bool)
        for label, share_of_it in self.shares.items():
            spared |= (labels == label) & (coin < share_of_it)
        return spared


@dataclass(frozen=True)
class EncodedSource(LabelledSource):
    """Rows of Parquet files as numbers: categories are indicators, as in memory.

    Parameters
    ----------
    groups : tuple of RowGroup
    encoder : Encoder
    target : str
        The column of labels.
    labels : mapping from str to label
        What labels stand for; rows with others are left out.
    n_rows : int
        All rows of the files.
    spared : Spared, optional
        Rows to leave out, too.
    on_pass, on_group : callable, optional
        Told how many row groups a pass has, and that one is done.
    """

    groups: tuple[RowGroup, ...]
    encoder: Encoder
    target: str
    labels: Mapping[str, Any]
    n_rows: int
    spared: Spared | None = None
    on_pass: Callable[[int], None] | None = field(default=None, compare=False)
    on_group: Callable[[], None] | None = field(default=None, compare=False)

    @cached_property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]
        """The columns of numbers."""
        return tuple(self.encoder.encoded_names)

    def split(self) -> Sequence[EncodedSource]:
        """A source for each row group, for workers that read them themselves."""
        bare = replace(self, on_pass=None, on_group=None)
        return [replace(bare, groups=(group,), n_rows=group.rows)
                for group in self.groups]  # fmt: skip

    def fold(
        self,
        work: Callable[[LabelledBlock], _Result],
        merge: Callable[[Sequence[_Result]], _Result],
    ) -> _Result:
        """Map work over blocks, threads sharing row groups, and merge in their order.

        Parameters
        ----------
        work, merge : callable
            As for `LabelledSource`.
        """
        if self.on_pass is not None:
            self.on_pass(len(self.groups))

        def fold_group(group: RowGroup) -> _Result:
            found = merge([work(block) for block in self.blocks(group)])
            if self.on_group is not None:
                self.on_group()
            return found

        with one_blas_thread(self.n_rows * len(self.names)) as threads:
            return merge(share(fold_group, self.groups, threads))

    def blocks(
        self, group: RowGroup, *, spared: bool = False
    ) -> Iterator[LabelledBlock]:
        """The blocks of a row group: rows to fit on, or those spared."""
        for row, batch in batches(group, [*self.encoder.names, self.target]):
            texts = self.encoder.cells.texts(flat(batch.column(self.target)))
            labels, known = self._labels(texts)
            start = group.start + row
            if self.spared is not None:
                known &= self.spared.of(labels, start) == spared
            X = self.encoder.encode(batch, row, place=group.place)
            yield LabelledBlock(X[known], labels[known], start, group.where)

    def _labels(self, texts: Any) -> tuple[NDArray[Any], BoolArray]:
        """Labels of a batch, and which rows have one of those wanted."""
        coded = texts.dictionary_encode()
        spellings = coded.dictionary.to_pylist()
        meant = [self.labels.get(text) for text in spellings]
        some = next(iter(self.labels.values()))
        values = np.array([some if each is None else each for each in meant] + [some])
        is_known = np.array([each is not None for each in meant] + [False])
        codes = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        return values[codes], is_known[codes]

    def drawn(self) -> tuple[FloatArray, NDArray[Any]]:
        """The rows that are spared, and their labels, in one pass."""
        blocks = [
            block for group in self.groups for block in self.blocks(group, spared=True)
        ]
        return (
            np.concatenate([block.rows for block in blocks]),
            np.concatenate([block.labels for block in blocks]),
        )


def batches(group: RowGroup, columns: Sequence[str]) -> Iterator[tuple[int, Any]]:
    """Record batches of a row group, each with its first row in the group."""
    try:
        yield from group.batches(columns, max(1, BATCH_CELLS // len(columns)))
    except UnreadableFileError as error:
        raise TableError(str(error)) from error


def row_groups(path: Path) -> tuple[tuple[RowGroup, ...], Any]:
    """The row groups of a Parquet file or of a folder of them, and their schema."""
    try:
        found = find_files(path)
    except (OSError, ValueError) as error:
        raise TableError(str(error)) from error
    schema = _common_schema([(file.path, schema) for file, schema in found])
    groups = in_order(other for other, _ in found)
    if not groups:
        raise TableError(f"{path} has no rows: there is nothing to work on.")
    return groups, schema


def _common_schema(schemas: Sequence[tuple[str, Any]]) -> Any:
    """The columns of all files; refuse one with other columns or types.

    A column in which one file has no value at all may have any type in the others.
    """
    import pyarrow as pa

    first_file, first = schemas[0]
    known = {field.name: (field.type, first_file) for field in first}
    for file, schema in schemas[1:]:
        for name in [*known, *schema.names]:
            own = schema.field(name).type if name in schema.names else "absent"
            expected, where = known.get(name, ("absent", first_file))
            if expected == pa.null() and own != "absent":
                known[name] = own, file
            elif own not in (expected, pa.null()) or expected == "absent":
                raise TableError(
                    f"{file}: column {name!r} is {own}, and {expected} in {where}. "
                    "Files of one table must have the same columns, of the same types."
                )
    return pa.schema([(name, own) for name, (own, _) in known.items()])


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
            first = self.misfit or Misfit(error.doubt, row + error.row, error.text, 0)
            self.misfit = replace(
                first,
                doubt=first.doubt or error.doubt,
                n_wrong=first.n_wrong + error.n_wrong,
            )
        else:
            missing = np.isnan(numbers)
            known = numbers[~missing]
            self.low = float(known.min(initial=self.low))
            self.high = float(known.max(initial=self.high))
        self.n_known += int((~missing).sum())
        labels.count(missing, self.n_missing)
        return missing


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
        {
            label: {
                name: column.n_missing[label]
                for name, column in found.items()
                if column.n_missing[label]
            }
            for label in counts
        },
        n_unlabelled,
        reader.notes,
    )


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
