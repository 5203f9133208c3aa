"""One class's rows of a table that is read block by block, and what a first pass tells.

A first pass over all rows finds the labels, counts each class, draws some of its rows
into memory (for pilots, bases and calibration) and, where features are the columns,
sums them up. What a class weighs is decided within each block, so that nothing as long
as the table is ever held.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from missratio._base.typing import FloatArray
from missratio.rows.classes import ClassRows, Normalization
from missratio.rows.labelled import (
    LabelledBlock,
    LabelledSource,
    check_label_count,
    check_label_types,
)
from missratio.rows.source import MemorySource, RowBlock, WeightSums, merge_sums
from missratio.rows.weighing import as_weighing, class_model

_Result = TypeVar("_Result")

# So many numbers of each class are drawn into memory, about.
DRAWN_NUMBERS = 8_000_000

Evaluate = Callable[[FloatArray], FloatArray]


class PartlyDrawn:
    """Rows that lie elsewhere, of which some were drawn into memory."""

    drawn: MemorySource
    n_rows: int

    @property
    def table(self) -> FloatArray:
        """The rows drawn."""
        return self.drawn.table

    @property
    def features(self) -> FloatArray:
        """Their basis features."""
        return self.drawn.features

    @property
    def size(self) -> int:
        """How many numbers the features of all rows are."""
        return self.n_rows * int(self.features.shape[1])

    def every(self, stride: int) -> MemorySource:
        """Some rows in memory: every stride-th, or all that were drawn if fewer."""
        times = stride * self.drawn.n_rows // max(self.n_rows, 1)
        return self.drawn.every(max(1, times))

    def row_number(self, row: int) -> int:
        """Where a row is, for messages."""
        return row


@dataclass(frozen=True)
class StreamedSource(PartlyDrawn):
    """The rows of one class, read from a source of labelled rows.

    On another process, where work on its blocks is done, it is only a name.

    Parameters
    ----------
    labelled : LabelledSource, or None on another process
    label : object
    n_rows : int
    drawn : MemorySource
        Rows drawn into memory, with their features.
    evaluate : callable, or None
        From rows to basis features; None where those are the columns.
    feature_sums, complete_sums : WeightSums, or None
        Of the features, and of complete rows, where the first pass found them.
    """

    labelled: LabelledSource | None
    label: Any
    n_rows: int
    drawn: MemorySource
    evaluate: Evaluate | None = None
    feature_sums: WeightSums | None = None
    complete_sums: WeightSums | None = None
    weights: None = None

    def __reduce__(self) -> tuple[Any, ...]:
        none = MemorySource.of(self.table[:0], self.features[:0])
        return type(self), (None, self.label, self.n_rows, none)

    def fold(
        self,
        work: Callable[[RowBlock], _Result],
        merge: Callable[[Sequence[_Result]], _Result],
        elements: int = 0,
    ) -> _Result:
        """Work on the class's rows in every block, and merge in their order.

        Blocks are as the source cuts them.
        """
        assert self.labelled is not None
        on_class = _OnClass(self.label, self.evaluate, work)
        found: _Result = self.labelled.fold(on_class, _MergeSome(merge))
        assert found is not None
        return found


@dataclass(frozen=True)
class _OnClass:
    """Work on one class's rows of a block; None where it has none."""

    label: Any
    evaluate: Evaluate | None
    work: Callable[[RowBlock], Any]

    def __call__(self, block: LabelledBlock) -> Any:
        part = block.of_class(self.label)
        if not len(part):
            return None
        features = part if self.evaluate is None else self.evaluate(part)
        return self.work(RowBlock(part, features, None, block.start))


@dataclass(frozen=True)
class _MergeSome:
    """Merge what is there; None where nothing is."""

    merge: Callable[[Sequence[Any]], Any]

    def __call__(self, parts: Sequence[Any]) -> Any:
        some = [part for part in parts if part is not None]
        return self.merge(some) if some else None


@dataclass(frozen=True)
class _Found:
    """What was found of one label's rows."""

    n_rows: int
    drawn: tuple[FloatArray, ...]
    feature_sums: WeightSums | None
    complete_sums: WeightSums | None


@dataclass(frozen=True)
class _Survey:
    """The first pass over a block."""

    missingness: Any
    names: tuple[str, ...]
    share: float
    linear: bool
    normalize: Normalization

    def __call__(self, block: LabelledBlock) -> dict[Any, _Found]:
        block.check_no_infinity(self.names)
        labels = np.unique(block.labels)
        check_label_count(len(labels), block.where)
        return {label.item(): self._found(block, label.item()) for label in labels}

    def _found(self, block: LabelledBlock, label: Any) -> _Found:
        part = block.of_class(label)
        # Rows are drawn by lot, which depends on where the block lies alone.
        rng = np.random.default_rng([block.start, len(part)])
        drawn = part[rng.random(len(part)) < self.share]
        if not self.linear:
            return _Found(len(part), (drawn,), None, None)
        source = MemorySource.of(part, part)
        rows = class_rows(
            source, label, self.missingness, self.normalize, self.names, block.where
        )
        whole = RowBlock(part, part, None, block.start)
        return _Found(
            len(part),
            (drawn,),
            rows.block_feature_sums(whole, np.arange(part.shape[1]), None),
            rows.block_complete_sums(whole),
        )


def _merge_found(parts: Sequence[dict[Any, _Found]]) -> dict[Any, _Found]:
    merged = {}
    for label in dict.fromkeys(label for part in parts for label in part):
        own = [part[label] for part in parts if label in part]
        sums = [each.feature_sums for each in own if each.feature_sums is not None]
        complete = [
            each.complete_sums for each in own if each.complete_sums is not None
        ]
        merged[label] = _Found(
            sum(each.n_rows for each in own),
            tuple(rows for each in own for rows in each.drawn),
            merge_sums(sums) if sums else None,
            merge_sums(complete) if complete else None,
        )
    return merged


def class_rows(
    source: Any,
    label: Any,
    missingness: Any,
    normalize: Normalization,
    names: Sequence[str] | None,
    where: str | None = None,
) -> ClassRows:
    """One class's rows, and what they weigh by its missingness model."""
    model = class_model(missingness, label, names)
    weighing = as_weighing(model, None, label)
    return ClassRows(label, source, weighing, normalize, names, None, where)


def survey(
    labelled: LabelledSource,
    missingness: Any,
    normalize: Normalization,
    *,
    linear: bool,
) -> Mapping[Any, StreamedSource]:
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
    width = max(len(labelled.names), 1)
    share = min(1.0, DRAWN_NUMBERS / width / max(labelled.n_rows, 1))
    work = _Survey(missingness, labelled.names, share, linear, normalize)
    found = labelled.fold(work, _merge_found)
    check_label_types(found)
    if len(found) != 2:
        shown = sorted(found, key=str)[:10]
        raise ValueError(
            f"The rows have {len(found)} class(es), {shown}: a ratio needs two, the "
            "numerator and the denominator."
        )
    sources = {}
    for label in sorted(found):
        # What is joined isn't kept in pieces as well.
        own = found.pop(label)
        rows = np.concatenate(own.drawn)
        sources[label] = StreamedSource(
            labelled,
            label,
            own.n_rows,
            MemorySource.of(rows, rows),
            None,
            own.feature_sums,
            own.complete_sums,
        )
    return sources


def with_features(source: StreamedSource, evaluate: Evaluate) -> StreamedSource:
    """The same class with basis features, evaluated block by block."""
    rows = source.drawn.table
    drawn = MemorySource.of(rows, evaluate(rows))
    return replace(source, drawn=drawn, evaluate=evaluate)
