"""A source's rows cut in two: those to fit on, and some of the controlled class."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import narwhals.stable.v2 as nw
import numpy as np

from missratio._base.typing import FloatArray
from missratio.rows import LabelledBlock, LabelledSource, check_label_types

_Result = TypeVar("_Result")

# More calibration rows, or numbers in them, change no digit that matters.
MOST_ROWS = 1_000_000
MOST_NUMBERS = 8_000_000
# Rows of each class beside them, for rules that learn and for warnings.
SHOWN_ROWS = 20_000


@dataclass(frozen=True)
class Lot:
    """Which rows of the controlled class are held out: a coin for every row.

    It depends on the seed and on where a block begins alone, so that every pass finds
    the same rows.
    """

    controlled: Any
    share: float
    seed: int

    def held(self, block: LabelledBlock) -> Any:
        """A mask of the block's rows."""
        rng = np.random.default_rng([self.seed, block.start])
        drawn = rng.random(len(block.labels)) < self.share
        return drawn & (block.labels == self.controlled)


@dataclass(frozen=True)
class _Rest:
    """Work on the rows that aren't held out, the controlled class as 0."""

    work: Callable[[LabelledBlock], Any]
    lot: Lot

    def __call__(self, block: LabelledBlock) -> Any:
        rest = ~self.lot.held(block)
        labels = (block.labels[rest] != self.lot.controlled).astype(np.int64)
        return self.work(replace(block, table=block.rows[rest], labels=labels))


@dataclass(frozen=True)
class TrainingSource(LabelledSource):
    """The rows of a source that aren't held out; labels 0, controlled, and 1."""

    source: LabelledSource
    lot: Lot
    names: tuple[str, ...]
    n_rows: int

    def fold(
        self,
        work: Callable[[LabelledBlock], _Result],
        merge: Callable[[Sequence[_Result]], _Result],
    ) -> _Result:
        """As the source's."""
        found: _Result = self.source.fold(_Rest(work, self.lot), merge)
        return found


@dataclass(frozen=True)
class HeldRows:
    """What one pass over a source draws into memory.

    Parameters
    ----------
    labels : tuple
        In order.
    held : ndarray of shape (n_held, n_columns)
        Rows of the controlled class to calibrate on.
    training, other : ndarray
        Some of its other rows, and some of the other class.
    incomplete : bool
        Whether any row of the controlled class misses a value, drawn or not.
    """

    labels: tuple[Any, ...]
    held: FloatArray
    training: FloatArray
    other: FloatArray
    incomplete: bool

    def tables(self, names: Sequence[str]) -> list[Any]:
        """The three as tables that have the columns' names."""
        return [
            nw.from_numpy(rows, list(names), backend="pyarrow").to_native()
            for rows in (self.held, self.training, self.other)
        ]


@dataclass(frozen=True)
class _RowDraw:
    lot: Lot
    shown: float
    names: tuple[str, ...]

    def __call__(self, block: LabelledBlock) -> Any:
        block.check_no_infinity(self.names)
        held = self.lot.held(block)
        rng = np.random.default_rng([self.lot.seed, block.start, 1])
        shown = rng.random(len(held)) < self.shown
        own = block.labels == self.lot.controlled
        parts = (held, shown & own & ~held, shown & ~own)
        labels = tuple(np.unique(block.labels).tolist())
        incomplete = bool(np.isnan(block.rows[own]).any())
        return labels, incomplete, tuple([block.rows[part]] for part in parts)


def _merge(parts: Sequence[Any]) -> Any:
    labels = {label for own, _, _ in parts for label in own}
    check_label_types(labels)
    incomplete = any(own for _, own, _ in parts)
    rows = zip(*(own for _, _, own in parts), strict=True)
    joined = tuple([each for part in kind for each in part] for kind in rows)
    return tuple(sorted(labels)), incomplete, joined


def hold_out(
    source: LabelledSource, controlled: Any, size: float, seed: int
) -> tuple[TrainingSource, HeldRows]:
    """Hold rows of the controlled class out, in one pass.

    Parameters
    ----------
    source : LabelledSource
    controlled : object
        The controlled class; None for the label that is sorted first.
    size : float
        The share of its rows to calibrate on; less where that is more than a million.
    seed : int
    """
    if controlled is None:
        controlled = source.fold(_least_label, min)
    if not (isinstance(size, float) and 0.0 < size < 1.0):
        raise ValueError(
            f"calibration_size must be a share between 0 and 1 for a source, got "
            f"{size!r}: rows are drawn by a coin each."
        )
    most = min(MOST_ROWS, MOST_NUMBERS // max(len(source.names), 1))
    lot = Lot(controlled, min(size, most / max(source.n_rows, 1)), seed)
    shown = min(1.0, SHOWN_ROWS / max(source.n_rows, 1))
    draw = _RowDraw(lot, shown, source.names)
    labels, incomplete, rows = source.fold(draw, _merge)
    held, training, other = (np.concatenate(each) for each in rows)
    if not len(held):
        raise ValueError(
            f"No row of the controlled class {controlled!r} was drawn to calibrate on; "
            f"the labels are {list(labels)[:10]}. Raise calibration_size, or bring "
            "more rows."
        )
    rest = TrainingSource(source, lot, source.names, source.n_rows)
    return rest, HeldRows(labels, held, training, other, incomplete)


def _least_label(block: LabelledBlock) -> Any:
    return block.labels.min().item()


def refuse_in_memory(given: Mapping[str, Any]) -> None:
    """Refuse parameters of `fit` that go with a table in memory."""
    names = sorted(name for name, value in given.items() if value is not None)
    if names:
        raise ValueError(
            f"{names} go with a table in memory, and these rows are read block by "
            "block. Leave them out, or bring the rows into memory."
        )
