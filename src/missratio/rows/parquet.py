"""Rows in Parquet files, read again at every pass, a batch at a time."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from missratio._base.hints import listed
from missratio._base.threads import one_blas_thread, share
from missratio._files.cells import (
    NUMBERS,
    Cells,
    NotNumbersError,
    held_by,
    without_codes,
)
from missratio._files.parquet import RowGroup, find_row_groups
from missratio._files.tables import LONGEST_NAME
from missratio.rows.labelled import LabelledBlock, LabelledSource, check_label_count
from missratio.rows.source import Merge, Result

if TYPE_CHECKING:
    import pyarrow as pa

# A batch has this many numbers at most: 10 MB once it is a table of float64. More would
# take more memory, and with fewer threads wait more for the interpreter.
BATCH_NUMBERS = 1_310_720
SHOWN = 10


@dataclass(frozen=True)
class ParquetSource(LabelledSource):
    """Labelled rows of Parquet files, which may be larger than memory.

    Made by `scan_parquet`. Iterating over it gives blocks of rows, in the files' order,
    as often as one likes; no more than a few batches are held at a time.

    Parameters
    ----------
    groups : tuple of RowGroup
    target : str
        The column of labels.
    names : tuple of str
        The columns of numbers, in order.
    single : bool
        Whether all of them are of single precision, in all files.
    """

    groups: tuple[RowGroup, ...] = field(repr=False)
    target: str
    names: tuple[str, ...]
    single: bool = False

    @cached_property
    def n_rows(self) -> int:  # type: ignore[override]
        """How many rows the files have, as their footers say."""
        return sum(group.rows for group in self.groups)

    def __iter__(self) -> Iterator[LabelledBlock]:
        for group in self.groups:
            yield from self._read(group)

    def fold(
        self, work: Callable[[LabelledBlock], Result], merge: Merge[Result]
    ) -> Result:
        """Map work over blocks, threads sharing row groups, and merge in their order.

        How rows are cut depends on the files alone, and so do the digits.
        """

        def read(group: RowGroup) -> Result:
            return merge([work(block) for block in self._read(group)])

        with one_blas_thread(self.n_rows * len(self.names)) as threads:
            return merge(share(read, self.groups, threads))

    def _read(self, group: RowGroup) -> Iterator[LabelledBlock]:
        """The blocks of a row group."""
        wanted = (*self.names, self.target)
        size = max(1, BATCH_NUMBERS // len(self.names))
        dtype: Any = np.float32 if self.single else np.float64
        for row, batch in group.batches(wanted, size):
            *columns, labels = batch.columns
            # Columns stay together, as in the file: side by side takes longer.
            rows = np.empty((len(self.names), len(batch)), dtype).T
            for j, (name, column) in enumerate(zip(self.names, columns, strict=True)):
                if str(column.type) in ("float", "double"):
                    # Nulls become NaN.
                    rows[:, j] = column.to_numpy(zero_copy_only=False)
                    continue
                try:
                    rows[:, j] = Cells().numbers(column)
                except NotNumbersError as error:
                    raise ValueError(
                        f"Column {name!r} in {group.where}: {error} Leave it out by "
                        "columns=[…]."
                    ) from error
            marks = self._labels(labels, group.where)
            yield LabelledBlock(rows, marks, group.start + row, group.where)

    def _labels(self, column: pa.Array, where: str) -> Any:
        """Labels of a batch, each distinct one read once: texts may be long."""
        coded = without_codes(column).dictionary_encode()
        check_label_count(len(coded.dictionary), where)
        values = np.array(coded.dictionary.to_pylist())
        # NumPy's texts take as much memory in each row as the longest.
        if values.dtype.itemsize > 4 * LONGEST_NAME:
            raise ValueError(
                f"A label in {where} has more than {LONGEST_NAME:,} characters. Name "
                "the column of labels by target=…."
            )
        if values.dtype.kind == "O":
            # Decimals are objects.
            values = values.astype(np.float64)
        if column.null_count or (values.dtype.kind == "f" and np.isnan(values).any()):
            raise _without_label(self.target, where)
        return values[coded.indices]


def scan_parquet(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    target: str,
    columns: Sequence[str] | None = None,
) -> ParquetSource:
    """Labelled rows of Parquet files for fits in bounded memory.

    The files' footers are read now, their rows at every pass of a fit.

    Parameters
    ----------
    paths : path or iterable of paths
        Files, or folders, which are searched for files that end in ``.parquet``.
    target : str
        The column of labels.
    columns : sequence of str, optional
        The columns to fit; by default all but the target.

    Returns
    -------
    ParquetSource
        To be given to ``fit`` in the place of X, without y.

    Raises
    ------
    ValueError
        Where there is no file, or files differ in their columns or types.

    Examples
    --------
    >>> import missratio as mr
    >>> source = mr.scan_parquet("visits/", target="sick")  # doctest: +SKIP
    >>> ratio = mr.KLIEP().fit(source)  # doctest: +SKIP
    """
    schemas, groups = find_row_groups(paths)
    if not schemas:
        raise ValueError("The Parquet files that were named have no row.")
    first, schema = schemas[0]
    if isinstance(columns, str):
        raise TypeError(f"columns must be a list of names, got {columns!r}.")
    given = schema.names if columns is None else columns
    names = tuple(name for name in given if name != target)
    if not names:
        raise ValueError(f"{first} has no column besides {target!r} to fit.")
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise ValueError(f"columns names {listed(twice, SHOWN)} twice. Name each once.")
    for path, schema in schemas:
        lacking = [name for name in (*names, target) if name not in set(schema.names)]
        if lacking:
            raise ValueError(
                f"{path} lacks column(s) {listed(lacking, SHOWN)}; it has "
                f"{listed(schema.names, SHOWN)}. Name the labels by target=…, and the "
                "columns that all files have by columns=[…]."
            )
        for name in names:
            if (kind := held_by(schema.field(name).type)) not in (*NUMBERS, "nothing"):
                raise ValueError(
                    f"Column {name!r} of {path} holds {kind}, and a fit needs numbers. "
                    "Leave it out by columns=[…], or encode it."
                )
        labels, expected = (
            held_by(some.field(target).type) for some in (schema, schemas[0][1])
        )
        if labels == "nothing":
            raise _without_label(target, path)
        if labels not in (*NUMBERS, "text") or labels != expected:
            raise ValueError(
                f"The labels in column {target!r} are {labels} in {path}, and "
                f"{expected} in {first}. Write all as {', '.join(NUMBERS)} or text."
            )
    singles = ({str(s.field(name).type) for name in names} for _, s in schemas)
    return ParquetSource(groups, target, names, set().union(*singles) == {"float"})


def _without_label(target: str, where: str) -> ValueError:
    return ValueError(
        f"Column {target!r} lacks a label in {where}. Every row needs one."
    )
