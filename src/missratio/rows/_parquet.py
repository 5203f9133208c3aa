"""Rows in Parquet files, read again at every pass, a batch at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote

import numpy as np

from missratio._base.hints import listed
from missratio._base.threads import one_blas_thread, share
from missratio._base.typing import FloatArray
from missratio.rows._labelled import BlockColumns, LabelledBlock, LabelledSource

if TYPE_CHECKING:
    import pyarrow as pa

_Result = TypeVar("_Result")

# A batch has this many numbers at most: 10 MB once it is a table of float64. More would
# take more memory, and with fewer threads wait more for the interpreter.
BATCH_NUMBERS = 1_310_720
SHOWN = 10


@dataclass(frozen=True)
class ParquetFile:
    """One file: its path, its partition's values and the rows of its row groups."""

    path: str
    partition: dict[str, str]
    group_rows: tuple[int, ...]


@dataclass(frozen=True)
class _Group:
    """One row group, and the number of its first row among all files' rows."""

    file: ParquetFile
    number: int
    start: int

    @property
    def where(self) -> str:
        return f"{self.file.path}, row group {self.number}"


@dataclass(frozen=True)
class ParquetSource(LabelledSource):
    """Labelled rows of Parquet files, which may be larger than memory.

    Made by `scan_parquet`. Iterating over it gives blocks of rows, in the files' order,
    as often as one likes; no more than a few batches are held at a time.

    Parameters
    ----------
    files : tuple of ParquetFile
    target : str
        The column of labels.
    names : tuple of str
        The columns of numbers, in order.
    single : bool
        Whether all of them are of single precision, in all files.
    only : tuple, optional
        The row groups to read; all by default.
    """

    files: tuple[ParquetFile, ...]
    target: str
    names: tuple[str, ...]
    single: bool = False
    only: tuple[_Group, ...] | None = None

    @cached_property
    def n_rows(self) -> int:  # type: ignore[override]
        """How many rows the files have, as their footers say."""
        return sum(group.file.group_rows[group.number] for group in self._groups)

    @cached_property
    def _groups(self) -> tuple[_Group, ...]:
        if self.only is not None:
            return self.only
        groups, start = [], 0
        for file in self.files:
            for number, rows in enumerate(file.group_rows):
                if rows:
                    groups.append(_Group(file, number, start))
                start += rows
        return tuple(groups)

    def split(self) -> Sequence[ParquetSource]:
        """A source for each row group, which know where their rows begin."""
        return [replace(self, only=(group,)) for group in self._groups]

    def on(self, client: Any) -> LabelledSource:
        """The same rows, read by the workers of a cluster.

        Parameters
        ----------
        client : distributed.Client
            Its workers must see the files under the same paths.
        """
        from missratio.rows._cluster import of_files

        return of_files(self, client)

    def __iter__(self) -> Iterator[LabelledBlock]:
        for group in self._groups:
            yield from self._read(group, threads=True)

    def fold(
        self,
        work: Callable[[LabelledBlock], _Result],
        merge: Callable[[Sequence[_Result]], _Result],
    ) -> _Result:
        """Map work over blocks, threads sharing row groups, and merge in their order.

        How rows are cut depends on the files alone, and so do the digits.
        """

        def fold_group(group: _Group) -> _Result:
            return merge([work(block) for block in self._read(group, threads=False)])

        with one_blas_thread(self.n_rows * len(self.names)) as threads:
            return merge(share(fold_group, self._groups, threads))

    def _read(self, group: _Group, *, threads: bool) -> Iterator[LabelledBlock]:
        """The blocks of a row group."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        partition = group.file.partition
        columns = [name for name in (*self.names, self.target) if name not in partition]
        rows = max(1, BATCH_NUMBERS // max(len(self.names), 1))
        start = group.start
        try:
            # Reading ahead would hold the row group, four times the memory.
            with pq.ParquetFile(group.file.path, pre_buffer=False) as file:
                batches = file.iter_batches(
                    batch_size=rows,
                    row_groups=[group.number],
                    columns=columns,
                    use_threads=threads,
                )
                for batch in batches:
                    yield self._block(batch, group, start)
                    start += batch.num_rows
        except (pa.ArrowException, OSError) as error:
            raise OSError(
                f"{group.where} can't be read: {error} Write the file again, or leave "
                "it out."
            ) from error

    def _block(self, batch: pa.RecordBatch, group: _Group, start: int) -> LabelledBlock:
        partition = group.file.partition
        arrays = [
            np.full(batch.num_rows, float(partition[name]))
            if name in partition
            else _numbers(batch.column(name))
            for name in self.names
        ]
        if self.target in partition:
            labels = np.full(batch.num_rows, _label(partition[self.target]))
        else:
            labels = _labels(batch.column(self.target), self.target, group.where)
        columns = BlockColumns(arrays, np.float32 if self.single else np.float64)
        return LabelledBlock(columns, labels, start, group.where)


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
        Folders named ``column=value`` (hive partitions) add a column.
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
    """
    files = _find(paths)
    schemas, found, singles = [], [], []
    for path, partition in files:
        schema, group_rows = _footer(path)
        schemas.append((path, {**_types(schema), **_partition_types(partition)}))
        singles.append({field.name for field in schema if str(field.type) == "float"})
        found.append(ParquetFile(path, partition, group_rows))
    known = schemas[0][1]
    if target not in known:
        raise ValueError(
            f"There is no target column {target!r} in {schemas[0][0]}; its columns are "
            f"{listed(known, SHOWN)}."
        )
    names = tuple(known if columns is None else columns)
    names = tuple(name for name in names if name != target)
    if not names:
        raise ValueError(f"{schemas[0][0]} has no column besides {target!r} to fit.")
    for path, types in schemas:
        _check_schema(path, types, names, target, schemas[0])
    single = all(own.issuperset(names) for own in singles)
    source = ParquetSource(tuple(found), target, names, single)
    if source.n_rows == 0:
        raise ValueError(f"The {len(files)} Parquet file(s) have no row.")
    return source


def _find(paths: Any) -> list[tuple[str, dict[str, str]]]:
    """Files in order, with their hive partitions."""
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    found = []
    for each in given:
        root = Path(each)
        if root.is_dir():
            files = sorted(root.rglob("*.parquet"))
            found += [
                (str(file), _partition(file.parent.relative_to(root).parts))
                for file in files
                if not any(
                    part.startswith((".", "_")) for part in file.relative_to(root).parts
                )
            ]
        elif root.is_file():
            found.append((str(root), {}))
        else:
            raise FileNotFoundError(
                f"There is no file or folder {root}. Name Parquet files, or folders "
                "that hold some."
            )
    if not found:
        raise ValueError(
            "There is no file that ends in .parquet in "
            f"{listed(map(str, given), SHOWN)}."
        )
    return found


def _partition(parts: Iterable[str]) -> dict[str, str]:
    """Values of the columns that folders are named for."""
    pairs = (part.partition("=") for part in parts if "=" in part)
    return {unquote(name): unquote(value) for name, _, value in pairs}


def _footer(path: str) -> tuple[pa.Schema, tuple[int, ...]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path, pre_buffer=False) as file:
            data = file.metadata
            groups = range(data.num_row_groups)
            return file.schema_arrow, tuple(data.row_group(g).num_rows for g in groups)
    except (pa.ArrowException, OSError) as error:
        raise OSError(
            f"{path} isn't a Parquet file that can be read: {error} Write it again, "
            "or leave it out."
        ) from error


def _types(schema: pa.Schema) -> dict[str, str]:
    return {field.name: _kind(field.type) for field in schema}


def _kind(type_: pa.DataType) -> str:
    """What a column holds: "integers", "floats", "truth values", "text" or its type."""
    import pyarrow.types as t

    if t.is_dictionary(type_):
        type_ = type_.value_type
    if t.is_integer(type_):
        return "integers"
    if t.is_floating(type_) or t.is_decimal(type_):
        return "floats"
    if t.is_boolean(type_):
        return "truth values"
    if t.is_string(type_) or t.is_large_string(type_):
        return "text"
    return str(type_)


NUMERIC = ("integers", "floats", "truth values")
LABELS = ("integers", "floats", "truth values", "text")


def _partition_types(partition: dict[str, str]) -> dict[str, str]:
    kinds = {int: "integers", float: "floats", str: "text"}
    return {name: kinds[type(_label(value))] for name, value in partition.items()}


def _label(value: str) -> int | float | str:
    """A folder's value: a number where it is one."""
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    return value


def _check_schema(
    path: str,
    types: dict[str, str],
    names: tuple[str, ...],
    target: str,
    reference: tuple[str, dict[str, str]],
) -> None:
    """Refuse a file that lacks columns, or has others in their place."""
    first, known = reference
    lacking = [name for name in (*names, target) if name not in types]
    if lacking:
        raise ValueError(
            f"{path} lacks column(s) {listed(lacking, SHOWN)}; it has "
            f"{listed(types, SHOWN)}. Name the columns that all files have by "
            "columns=[…]."
        )
    for name in names:
        if types[name] not in NUMERIC:
            raise ValueError(
                f"Column {name!r} of {path} holds {types[name]}, and a fit needs "
                "numbers. Leave it out by columns=[…], or encode it."
            )
    if types[target] not in LABELS or types[target] != known[target]:
        raise ValueError(
            f"The labels in column {target!r} are {types[target]} in {path} and "
            f"{known[target]} in {first}. Write them as one type: "
            f"{', '.join(LABELS)}."
        )


def _numbers(array: pa.Array) -> FloatArray:
    """A column as floats, NaN where it is null."""
    import pyarrow as pa
    import pyarrow.types as t

    if t.is_dictionary(array.type):
        array = array.dictionary_decode()
    if not t.is_floating(array.type) or t.is_float16(array.type):
        array = array.cast(pa.float64(), safe=False)
    if not array.null_count and len(array):
        # As `to_numpy`, which would let go of the interpreter for every column.
        dtype = np.dtype(array.type.to_pandas_dtype())
        start = array.offset * dtype.itemsize
        return np.frombuffer(array.buffers()[1], dtype, len(array), start)
    numbers: FloatArray = array.to_numpy(zero_copy_only=False)
    return numbers


def _labels(array: pa.Array, target: str, where: str) -> Any:
    import pyarrow.types as t

    if t.is_dictionary(array.type):
        array = array.dictionary_decode()
    labels = array.to_numpy(zero_copy_only=False)
    unknown = array.null_count or (labels.dtype.kind == "f" and np.isnan(labels).any())
    if unknown:
        raise ValueError(
            f"Column {target!r} lacks a label in {where}. Every row needs one."
        )
    return labels.astype(str) if labels.dtype.kind == "O" else labels
