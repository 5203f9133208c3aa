"""Rows with their labels, a block at a time: what a fit asks of a large table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial, wraps
from typing import Any, TypeVar, cast

import numpy as np

from missratio._base.blocks import gathered
from missratio._base.typing import FloatArray, IntArray

_Result = TypeVar("_Result")
MOST_LABELS = 20


@dataclass(frozen=True, slots=True)
class BlockColumns:
    """Columns of a block of rows, as a file has them, each an array of its own.

    Parameters
    ----------
    arrays : sequence of ndarray of shape (n_rows,)
    dtype : dtype
        What they are read as.
    """

    arrays: Sequence[FloatArray]
    dtype: Any

    def take(self, index: IntArray | None = None) -> FloatArray:
        """Some rows, or all. Columns stay together: side by side takes longer."""
        n_rows = len(self.arrays[0]) if index is None else len(index)
        table = np.empty((len(self.arrays), n_rows), dtype=self.dtype)
        for array, own in zip(self.arrays, table, strict=True):
            if index is None:
                own[:] = array
            else:
                # An index is in range: clipping only saves the check.
                array = array.astype(self.dtype, copy=False)
                np.take(array, index, out=own, mode="clip")
        return table.T

    def sum(self) -> float:
        """The sum of all numbers, which is finite where they are."""
        return float(sum(array.sum() for array in self.arrays))


@dataclass(frozen=True)
class LabelledBlock:
    """Consecutive rows and their labels.

    Parameters
    ----------
    table : ndarray of shape (n_rows, n_columns), or BlockColumns
        NaN where missing.
    labels : ndarray of shape (n_rows,)
    start : int
        The number of the first row among all rows of the source.
    where : str
        Where the rows lie, for messages.
    """

    table: FloatArray | BlockColumns
    labels: Any
    start: int
    where: str

    @cached_property
    def rows(self) -> FloatArray:
        """The rows, of shape (n_rows, n_columns)."""
        return self.table.take() if isinstance(self.table, BlockColumns) else self.table

    def of_class(self, label: Any) -> FloatArray:
        """The rows of one label: all of them as they are, where it has all."""
        chosen = self.labels == label
        if chosen.all():
            return self.rows
        index = np.flatnonzero(chosen)
        if isinstance(self.table, BlockColumns):
            return self.table.take(index)
        return gathered(self.table, index)

    def check_no_infinity(self, names: Sequence[str]) -> None:
        """Refuse infinities, and say where the first one lies."""
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(self.table.sum()):
                return
        infinite = np.isinf(self.rows)
        if not infinite.any():
            return
        row, column = np.argwhere(infinite)[0]
        raise ValueError(
            f"Column {names[column]!r} holds infinity in {self.where} (row "
            f"{self.start + int(row)} of all). Replace it by a null if the value is "
            "missing, or by a number."
        )


class LabelledSource(ABC):
    """Labelled rows that may be read again and again, in blocks.

    Attributes
    ----------
    names : tuple of str
        Of the columns.
    """

    names: tuple[str, ...]
    n_rows: int

    def split(self) -> Sequence[LabelledSource]:
        """The source in parts, for workers that read them themselves."""
        return [self]

    @abstractmethod
    def fold(
        self,
        work: Callable[[LabelledBlock], _Result],
        merge: Callable[[Sequence[_Result]], _Result],
    ) -> _Result:
        """Map work over all blocks of rows, and merge what it gives in their order.

        Parameters
        ----------
        work : callable
            From a block to its sums.
        merge : callable
            From sums to their sum; merging in groups must give the same.
        """


def is_collection(X: Any) -> bool:
    """Whether X is a Dask array or dataframe."""
    return type(X).__module__.partition(".")[0] in ("dask", "dask_expr")


def check_label_count(count: int, where: str) -> None:
    """Refuse a column of labels that has too many to be one."""
    if count > MOST_LABELS:
        raise ValueError(
            f"The labels in {where} have {count} values and more, and a ratio needs "
            "two classes. Name the column of labels by target=…, or keep the rows of "
            "two."
        )


def check_label_types(labels: Iterable[Any]) -> None:
    """Refuse labels that are text in some rows and numbers in others."""
    some = {isinstance(label, str): label for label in labels}
    if len(some) == 2:
        raise ValueError(
            f"The labels are text in some rows, such as {some[True]!r}, and numbers in "
            f"others, such as {some[False]!r}. Write all of them as one type."
        )


def as_source(X: Any, y: Any) -> LabelledSource | None:
    """X as a source where it is one, or a collection on a cluster; None elsewhere."""
    if isinstance(X, LabelledSource):
        if y is not None:
            raise ValueError(
                "y must be left out where X is a source: that has its labels with it."
            )
        return X
    if is_collection(X):
        from missratio.rows.cluster import of_collection

        return of_collection(X, y)
    return None


def refuse_source(estimator: Any, X: Any, remedy: str) -> None:
    """Refuse rows that are read block by block, or lie on a cluster."""
    if isinstance(X, LabelledSource) or is_collection(X):
        raise TypeError(
            f"{type(estimator).__name__} needs all rows in memory, and these are read "
            f"block by block. {remedy}"
        )


Method = TypeVar("Method", bound=Callable[..., Any])


def by_partition(method: Method) -> Method:
    """A method of rows that maps over the partitions of a Dask collection, lazily.

    For an array it gives a Dask array, for a dataframe a series with its index; for
    rows in memory it is the method itself.
    """

    @wraps(method)
    def call(self: Any, X: Any) -> Any:
        if isinstance(X, LabelledSource):
            raise TypeError(
                f"{method.__name__} takes tables, not a source of labelled rows. Read "
                "a file at a time, as by pyarrow.parquet.read_table(path), or give a "
                "Dask dataframe."
            )
        if not is_collection(X):
            return method(self, X)
        labels = method.__name__ == "predict"
        dtype = self.classes_.dtype if labels else np.dtype(np.float64)
        work = partial(_of_rows, partial(method, self), dtype)
        if hasattr(X, "columns"):
            import pandas as pd

            return X.map_partitions(
                _as_series, work, meta=pd.Series(np.empty(0, dtype))
            )
        # A block must hold whole rows.
        return X.rechunk({1: -1}).map_blocks(work, dtype=dtype, drop_axis=1)

    return cast(Method, call)


def _of_rows(work: Callable[[Any], Any], dtype: Any, rows: Any) -> Any:
    """Predictions for a partition, which may be empty."""
    return work(rows) if len(rows) else np.empty(0, dtype)


def _as_series(frame: Any, work: Callable[[Any], Any]) -> Any:
    """Predictions for a partition under its index."""
    import pandas as pd

    return pd.Series(work(frame), index=frame.index)
