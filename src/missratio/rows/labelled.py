"""Rows with their labels that are read block by block, and one class of them.

A first pass over all rows finds the labels, counts each class, draws some of its rows
into memory (for pilots, bases and calibration) and, where features are the columns,
sums them up. What a class weighs is decided within each block, so that nothing as long
as the table is ever held.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from missratio._base.blocks import take_rows
from missratio._base.reading import check_no_infinity, columns_named
from missratio._base.typing import FloatArray
from missratio.rows.classes import ClassRows, Normalization
from missratio.rows.source import (
    BlockWork,
    MemorySource,
    Merge,
    Result,
    RowBlock,
    Source,
    WeightSums,
)

DASK = ("dask", "dask_expr")
# About this many numbers of each class are drawn into memory.
DRAWN_NUMBERS = 8_000_000

Evaluate = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class LabelledBlock:
    """Consecutive rows and their labels.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_columns)
        NaN where missing.
    labels : ndarray of shape (n_rows,)
    start : int
        The number of the first row among all rows of the source.
    where : str
        Where the rows lie, for messages.
    """

    rows: FloatArray
    labels: Any
    start: int
    where: str

    def of_class(self, label: Any) -> FloatArray:
        """The rows of one label: all of them as they are, where it has all."""
        chosen = self.labels == label
        if chosen.all():
            return self.rows
        return np.asarray(take_rows(self.rows, np.flatnonzero(chosen)))

    def check_no_infinity(self, names: Sequence[str]) -> None:
        """Refuse infinities, and say where the first one lies."""

        def number(row: int) -> str:
            return f"{self.start + row} of all ({self.where})"

        with columns_named(names):
            check_no_infinity(self.rows, self.rows, number)


class LabelledSource(ABC):
    """Labelled rows that may be read again and again, in blocks.

    Attributes
    ----------
    names : tuple of str
        Of the columns.
    """

    names: tuple[str, ...]
    n_rows: int

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError(
            "A table is wanted here, not a source of labelled rows. Read a file at a "
            "time, as by pyarrow.parquet.read_table(path)."
        )

    @abstractmethod
    def fold(
        self, work: Callable[[LabelledBlock], Result], merge: Merge[Result]
    ) -> Result:
        """Map work over all blocks of rows, and merge what it gives in their order.

        Parameters
        ----------
        work : callable
            From a block to its sums.
        merge : callable
            From sums to their sum; merging in groups must give the same.
        """


@dataclass(frozen=True)
class ClassSource(Source):
    """The rows of one class, read from a source of labelled rows.

    On another process, where work on its blocks is done, it is only a name.

    Parameters
    ----------
    labelled : LabelledSource, or None on another process
    label : object
    n_rows : int
    table, features : ndarray of shape (n_drawn, n_columns) and (n_drawn, n_features)
        Rows drawn into memory, with their features.
    evaluate : callable, or None
        From rows to basis features; None where those are the columns.
    first_pass : pair of WeightSums, or None
        Of the features, and of complete rows, where the first pass found them.
    """

    labelled: LabelledSource | None
    label: Any
    n_rows: int
    table: FloatArray
    features: FloatArray
    evaluate: Evaluate | None = None
    first_pass: tuple[WeightSums, ...] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        none = self.table[:0], self.features[:0]
        return type(self), (None, self.label, self.n_rows, *none, self.evaluate)

    def fold(
        self, work: BlockWork[Result], merge: Merge[Result], elements: int = 0
    ) -> Result:
        """Work on the class's rows in every block, as the labelled source cuts them."""
        assert self.labelled is not None

        def on_class(block: LabelledBlock) -> Result | None:
            rows = block.of_class(self.label)
            if not len(rows):
                return None
            features = rows if self.evaluate is None else self.evaluate(rows)
            return work(RowBlock(rows, features, start=block.start))

        def merge_some(parts: Sequence[Any]) -> Any:
            some = [part for part in parts if part is not None]
            return merge(some) if some else None

        result: Result = self.labelled.fold(on_class, merge_some)
        return result

    def with_features(self, evaluate: Evaluate) -> ClassSource:
        """The same class with basis features, evaluated block by block."""
        return replace(self, features=evaluate(self.table), evaluate=evaluate)


# A label's number of rows, the drawn rows, and sums of features and complete rows.
_Survey = tuple[int, tuple[FloatArray, ...], tuple[WeightSums, ...]]


def survey(
    labelled: LabelledSource,
    missingness: Any,
    normalize: Normalization,
    *,
    linear: bool,
) -> Mapping[Any, ClassSource]:
    """One pass over all rows: the classes in the order of their labels.

    Parameters
    ----------
    labelled : LabelledSource
    missingness : mapping, "ignore" or None
        As an estimator has it.
    normalize
        Likewise.
    linear : bool
        Whether features are the columns, so that this pass can sum them up.
    """
    names = labelled.names
    share = min(1.0, DRAWN_NUMBERS / max(len(names), 1) / max(labelled.n_rows, 1))

    def work(block: LabelledBlock) -> dict[Any, _Survey]:
        block.check_no_infinity(names)
        surveyed: dict[Any, _Survey] = {}
        labels = np.unique(block.labels).tolist()
        check_label_count(len(labels), block.where)
        for label in labels:
            part = block.of_class(label)
            # Rows are drawn by lot, which depends on where the block lies alone.
            rng = np.random.default_rng([block.start, len(part)])
            drawn = part[rng.random(len(part)) < share]
            sums: tuple[WeightSums, ...] = ()
            if linear:
                how = (missingness, normalize, names, None, block.where)
                rows = ClassRows.of(MemorySource.of(part), label, *how)
                by_feature = rows.feature_sums(np.arange(len(names)), whole=False)
                sums = by_feature, rows.complete_sums()
            surveyed[label] = len(part), (drawn,), sums
        return surveyed

    surveyed = labelled.fold(work, _merge_labels)
    check_label_types(surveyed)
    if len(surveyed) != 2:
        shown = sorted(surveyed, key=str)[:10]
        raise ValueError(
            f"The rows have {len(surveyed)} class(es), {shown}: a ratio needs two, the "
            "numerator and the denominator."
        )
    sources = {}
    for label in sorted(surveyed):
        # What is joined isn't kept in pieces as well.
        n_rows, parts, sums = surveyed.pop(label)
        drawn = np.concatenate(parts)
        sources[label] = ClassSource(
            labelled, label, n_rows, drawn, drawn, first_pass=sums or None
        )
    return sources


def _merge_labels(parts: Sequence[dict[Any, _Survey]]) -> dict[Any, _Survey]:
    merged = {}
    for label in dict.fromkeys(label for part in parts for label in part):
        counts, drawn, sums = zip(*(p[label] for p in parts if label in p), strict=True)
        total = tuple(map(WeightSums.merged, zip(*sums, strict=True)))
        merged[label] = sum(counts), tuple(chain(*drawn)), total
    return merged


def check_label_count(count: int, where: str) -> None:
    """Refuse a column of labels that has too many to be one."""
    if count > 20:
        raise ValueError(
            f"The labels in {where} have {count} values and more: a ratio needs two "
            "classes. Name the column of labels by target=…."
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
    if type(X).__module__.partition(".")[0] in DASK:
        from missratio.rows.cluster import of_collection

        return of_collection(X, y)
    return None


def refuse_source(estimator: Any, X: Any, remedy: str) -> None:
    """Refuse rows that are read block by block, or lie on a cluster."""
    module = type(X).__module__.partition(".")[0]
    if isinstance(X, LabelledSource) or module in DASK:
        raise TypeError(
            f"{type(estimator).__name__} needs all rows in memory, and these are read "
            f"block by block. {remedy}"
        )
