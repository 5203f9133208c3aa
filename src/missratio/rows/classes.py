"""One class's rows with what they weigh, and what is said of the weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from missratio._base.blocks import rows_with_nan
from missratio._base.reading import refuse_infinity
from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.exceptions import DataError, Message, Remedy
from missratio.missingness import contradictions, warn_of_contradiction
from missratio.rows.source import (
    BLOCK_ELEMENTS,
    MemorySource,
    RowBlock,
    WeightSums,
    first_found,
    merge_sums,
    refuse_nan,
    weighted_sums,
    weights_or_ones,
)
from missratio.rows.weighing import (
    CompleteCases,
    KnownWeights,
    ModelWeighing,
    Unweighted,
    Weighing,
    joint_weight,
    weights_of_features,
)
from missratio.weights import SampleSize, warn_if_concentrated, worst_case_sample_size

Normalization = Literal["hajek", "horvitz-thompson", "regression"]


@dataclass(frozen=True, slots=True)
class ClassRows:
    """One class's rows, and why they weigh what they do.

    Parameters
    ----------
    label : object
        The class, for messages.
    source : MemorySource or StreamedSource
        Its rows, with weights of their own.
    weighing : Weighing
    normalize : {"hajek", "horvitz-thompson", "regression"}
        As the estimator has it. What it comes to, here alone, is `self_normalised`.
    names : sequence of str, or None
        Of the columns, for messages.
    adjusted : ndarray of shape (n_rows, n_features), or None
        Terms whose mean takes the place of a weighted mean, where they are known.
    where : str, or None
        Where the rows lie, for messages, if they are a block of a larger table.
    """

    label: Any
    # Or what answers the same of rows elsewhere: a `StreamedSource` or `TensorSource`.
    source: MemorySource
    weighing: Weighing
    normalize: Normalization
    names: Sequence[str] | None = None
    adjusted: FloatArray | None = None
    where: str | None = None

    @property
    def n_rows(self) -> int:
        """How many rows there are, missing ones included."""
        return self.source.n_rows

    @property
    def self_normalised(self) -> bool:
        """Whether weighted sums are divided by the sum of the weights (Hájek).

        So it is for all but Horvitz and Thompson's, and for complete cases even there:
        those stand for themselves only, and share the weight.
        """
        return self.normalize != "horvitz-thompson" or not self.weighing.corrects

    @property
    def own_total(self) -> float:
        """The sum of the rows' own weights: their number, where they have none."""
        own = self.source.weights
        return float(self.n_rows) if own is None else float(own.sum())

    def divisor(self, mass: FloatArray) -> FloatArray:
        """What weighted sums are divided by, given the sums of the weights."""
        return mass if self.self_normalised else np.full_like(mass, self.own_total)

    # Passes over the rows.

    def feature_sums(self, required: BoolArray | IntArray) -> WeightSums:
        """Sums of every feature over all rows in which it is observed, in one pass.

        Parameters
        ----------
        required : ndarray of bool of shape (n_features, n_columns), or of int
            The columns that each feature needs, or the only one.
        """
        sums = getattr(self.source, "feature_sums", None)
        if sums is None:
            origin = self._origin()
            sums = self.source.fold(
                lambda block: self.block_feature_sums(block, required, origin),
                merge_sums,
                self._elements,
            )
        self._check_any(sums.count)
        self._check_own_weights()
        if self.adjusted is None and not (sums.count > 0).all():
            raise self._never_observed(required[sums.count == 0])
        return sums

    def _never_observed(self, required: BoolArray | IntArray) -> DataError:
        """By the columns that some features need, or the only ones."""
        columns, how = np.unique(required), ""
        if required.ndim == 2:
            columns = np.flatnonzero(required.any(axis=0))
            how = " together" if required.sum(axis=1).max() > 1 else ""
        return DataError(
            Message(
                f"Class {{label!r}}: feature(s) [{{columns}}] are never observed{how}.",
                label=self.label,
                columns=tuple(columns[:10].tolist()),
                remedies=(Remedy.DROP_COLUMNS, "bring rows in which they are"),
            )
        )

    def block_feature_sums(
        self,
        block: RowBlock,
        required: BoolArray | IntArray,
        origin: FloatArray | None,
    ) -> WeightSums:
        """The same over the rows of a block."""
        weights = self.weigh(block)
        if weights is not None and weights.ndim == 2:
            weights = weights_of_features(weights, required, self.groups)
        with np.errstate(over="ignore", invalid="ignore"):
            found = weighted_sums(block.features, weights, block.weights, origin)
        if not np.isfinite(found.sums.sum()):
            self._look_closely(block)
        return found

    def block_complete_sums(self, block: RowBlock) -> WeightSums:
        """Sums of complete rows' weights over a block, without features."""
        weights = self._block_row_weights(block)
        seen = None if isinstance(weights, int) else weights
        return weighted_sums(np.empty((len(block.rows), 0)), seen, block.weights)

    def complete_sums(self) -> WeightSums:
        """Sums of complete rows' weights over all rows, in one pass at most."""
        sums: WeightSums | None = getattr(self.source, "complete_sums", None)
        if sums is None:
            sums = self.source.fold(self.block_complete_sums, merge_sums)
        if not self.weighing.by_entry:
            self._check_any(sums.count)
        return sums

    def complete_block(self, block: RowBlock) -> tuple[FloatArray, FloatArray | None]:
        """Features and weights of a block's complete rows; None for ones."""
        weights = self._block_row_weights(block)
        if isinstance(weights, int):
            return block.features, None
        seen = weights > 0.0
        if seen.all():
            return block.features, weights
        return block.features[seen], weights[seen]

    def _origin(self) -> FloatArray | None:
        """What to subtract before summing single-precision features: some row."""
        features = self.source.features
        if features.dtype == np.float64:
            return None
        few = self.peek()
        return np.asarray(np.nan_to_num(np.nanmedian(few, axis=0)), features.dtype)

    def peek(self) -> FloatArray:
        """Features of a few hundred rows from all over the class."""
        source = self.source.every(1 + self.n_rows // 256)
        return source.block(0, source.n_rows).features

    def some_observed(self, columns: IntArray) -> FloatArray:
        """Features of some row in which they are observed, each of one column.

        Features of one column are those of one row.
        """
        few = self.every(1 + self.n_rows // 256)
        for rows in (few, self):
            found, values = rows.source.fold(rows._first_observed(columns), first_found)
            if found.all():
                break
        return values

    def _first_observed(
        self, columns: IntArray
    ) -> Callable[[RowBlock], tuple[BoolArray, FloatArray]]:
        def work(block: RowBlock) -> tuple[BoolArray, FloatArray]:
            seen = np.ones(block.features.shape, dtype=bool)
            weights = self.weigh(block)
            if weights is not None:
                by_row = weights.ndim == 1
                seen = (weights[:, None] if by_row else weights[:, columns]) > 0.0
            if block.weights is not None:
                seen = seen & (block.weights > 0.0)[:, None]
            seen = np.broadcast_to(seen, block.features.shape)
            first = seen.argmax(axis=0)
            values = block.features[first, np.arange(len(first))]
            return np.asarray(seen.any(axis=0)), values

        return work

    @property
    def _elements(self) -> int:
        """How many numbers a block holds: more where there are no weights to make."""
        times = 4 if isinstance(self.weighing, Unweighted) else 1
        return times * BLOCK_ELEMENTS

    def weigh(self, block: RowBlock) -> FloatArray | None:
        """Weights of a block's rows or entries; None for ones."""
        try:
            return self.weighing.weigh(block)
        except ValueError as error:
            self.check_no_infinity(block)
            message = Message(
                "Class {label!r}: {text}", label=self.label, facts={"text": str(error)}
            )
            raise DataError(message) from error

    def whole_row_weights(self) -> FloatArray | None:
        """Weights of complete rows, 0 for others; None where all are ones.

        Entries are missing independently given the row: a row is complete with the
        product of the probabilities, and weighs the product of its entries' weights.
        """
        found = self.source.fold(
            self._block_row_weights, weights_or_ones, self._elements
        )
        weights = None if isinstance(found, int) else found
        if weights is not None and not self.weighing.by_entry:
            self._check_any(weights)
        self._check_own_weights()
        return weights

    def _block_row_weights(self, block: RowBlock) -> FloatArray | int:
        if isinstance(self.weighing, KnownWeights) and not self.weighing.by_entry:
            return self.weighing.weigh(block)
        with np.errstate(over="ignore", invalid="ignore"):
            plain = np.isfinite(block.rows.sum())
        if isinstance(self.weighing, Unweighted):
            if not plain:
                self._look_closely(block)
            return len(block.rows)
        if not plain:
            self.check_no_infinity(block)
        if not self.weighing.by_entry:
            weights = self.weigh(block)
            assert weights is not None
            return weights
        complete = ~rows_with_nan(block.rows)
        if isinstance(self.weighing, CompleteCases):
            return len(complete) if complete.all() else complete.astype(np.float64)
        return self._products(block, complete)

    def _products(self, block: RowBlock, complete: BoolArray) -> FloatArray:
        """Products of the weights of complete rows' entries."""
        product = np.zeros(len(block.rows))
        if isinstance(self.weighing, KnownWeights):
            entries = self.weighing.weigh(block)[complete]
        elif complete.any():
            part = replace(block, rows=block.rows[complete], features=block.features)
            entries = self.weigh(part)  # type: ignore[assignment]
        else:
            return product
        with np.errstate(over="ignore"):
            product[complete] = joint_weight(entries, self.groups)
        if not np.isfinite(product).all():
            row = self.source.row_number(block.start + int(product.argmax()))
            raise ValueError(
                f"Class {self.label!r}: the product of the entry weights overflows at "
                f"row {row}: its missing probabilities are too close to 1. Use fewer "
                "features, or fit them one at a time."
            )
        return product

    def all_weights(
        self, required: BoolArray | IntArray | None = None
    ) -> FloatArray | None:
        """Weights of all rows or entries, or of one feature; None for ones."""
        if required is None and isinstance(self.weighing, KnownWeights):
            return self.weighing.weights

        def work(block: RowBlock) -> FloatArray | int:
            weights = self.weigh(block)
            if weights is None:
                return len(block.rows)
            if weights.ndim == 2 and required is not None:
                weights = weights_of_features(weights, required, self.groups)[:, 0]
            return weights.T

        found = self.source.fold(work, weights_or_ones)
        return None if isinstance(found, int) else np.ascontiguousarray(found.T)

    @property
    def groups(self) -> IntArray | None:
        """Columns with equal numbers are there or missing together; None if none."""
        return self.weighing.groups

    def known(self) -> ClassRows:
        """The same with its weights written down, for many passes over few rows."""
        if isinstance(self.weighing, KnownWeights):
            return self
        weights = self.all_weights()
        if weights is None:
            return replace(self, weighing=Unweighted())
        kept = KnownWeights(
            weights,
            self.weighing.maximum,
            self.weighing.corrects,
            groups=self.weighing.groups,
        )
        return replace(self, weighing=kept)

    def take(self, chosen: BoolArray) -> ClassRows:
        """Some of the rows."""
        adjusted = None if self.adjusted is None else self.adjusted[chosen]
        return replace(
            self,
            source=self.source.take(chosen),
            weighing=self.weighing.take(chosen),
            adjusted=adjusted,
        )

    def every(self, stride: int) -> ClassRows:
        """Every stride-th row."""
        return replace(
            self,
            source=self.source.every(stride),
            weighing=self.weighing.take(slice(None, None, stride)),
            adjusted=None,
        )

    def complete_rows(self, weights: FloatArray | None) -> ClassRows:
        """The rows with a positive weight, all their weights multiplied into one."""
        own = self.source.weights
        if own is not None:
            weights = own if weights is None else weights * own
        if weights is None:
            return replace(self, weighing=Unweighted(), adjusted=None)
        seen = weights > 0.0
        source = replace(self.source, weights=None)
        if not seen.all():
            source, weights = source.take(seen), weights[seen]
        return replace(
            self, source=source, weighing=KnownWeights(weights), adjusted=None
        )

    # What is refused.

    def _check_any(self, count: FloatArray) -> None:
        """Refuse a class of which nothing is observed."""
        if not count.any():
            raise ValueError(
                f"Class {self.label!r} has no observed row among its {self.n_rows}: "
                "bring rows in which something is observed."
            )

    def _check_own_weights(self) -> None:
        """Refuse a class without weight."""
        own = self.source.weights
        if own is not None and not own.any():
            raise ValueError(
                f"sample_weight is zero in all rows of class {self.label!r}: a ratio "
                "needs rows of both classes."
            )

    def check_no_infinity(self, block: RowBlock) -> None:
        """Refuse infinities."""
        refuse_infinity(
            block.rows, lambda row: self.source.row_number(block.start + row)
        )

    def _look_closely(self, block: RowBlock) -> None:
        """Refuse what made a sum not finite."""
        self.check_no_infinity(block)
        if isinstance(self.weighing, Unweighted) and np.isnan(block.rows).any():
            refuse_nan(self.source, self.label, self.names, self.where)


def effective_size(rows: ClassRows, sums: WeightSums) -> SampleSize:
    """The effective size, of the feature with the least where they differ."""
    kish = sums.kish
    worst = int(kish.argmin())
    observed = int(sums.count[worst])
    if not rows.weighing.corrects:
        largest = 1.0 - observed / rows.n_rows
    elif rows.weighing.maximum is not None:
        largest = rows.weighing.maximum
    else:
        largest = max(0.0, 1.0 - 1.0 / sums.largest[worst])
    worst_case = worst_case_sample_size(rows.n_rows, largest)
    if not rows.weighing.corrects:
        worst_case = float(observed)
    return SampleSize(rows.n_rows, observed, float(kish[worst]), worst_case)


def warn_of_concentration(
    rows: ClassRows,
    sums: WeightSums,
    required: BoolArray | IntArray | None,
    names: Callable[[], Any],
    stacklevel: int,
) -> None:
    """Warn where a few rows carry the weight, once, for the worst feature.

    The sums tell where that can be; only there the weights are looked at again.
    """
    worst = int(np.argmax(sums.squares / sums.total**2 * sums.count))
    few = max(1, sums.count[worst] // 20)
    # The most that so many rows can weigh together, given the largest, and Σw².
    most = min(few * sums.largest[worst], np.sqrt(few * sums.squares[worst]))
    if most < sums.total[worst] / 2.0:
        return
    if not isinstance(rows.source, MemorySource):
        # Those of the rows drawn into memory tell as much.
        warn_of_concentration(rows.every(1), sums, required, names, stacklevel + 1)
        return
    about = Message("Class {label!r}", label=rows.label)
    if required is None:
        weights = rows.whole_row_weights()
    else:
        weights = rows.all_weights(required[[worst]])
        if rows.weighing.by_entry:
            about = Message(
                "Class {label!r}, feature {columns}",
                label=rows.label,
                columns=(worst,),
                names=(str(names()[worst]),),
            )
    if weights is not None:
        warn_if_concentrated(weights, about, stacklevel=stacklevel + 1)


def single_sums(weights: FloatArray | None, rows: ClassRows) -> WeightSums:
    """The sums of whole rows' weights, without features."""
    empty = np.empty((rows.n_rows, 0))
    return weighted_sums(empty, weights, rows.source.weights)


# As many rows find what is worth a warning.
MOST_ROWS = 20_000


def warn_if_contradicted(rows: ClassRows, complete: bool, stacklevel: int) -> None:
    """Warn where rows contradict φ; rows in memory, some of them where they are many.

    Parameters
    ----------
    rows : ClassRows
    complete : bool
        Whether products of the columns' weights are used, and so to be checked.
    stacklevel : int
        As for `warnings.warn`; 2 is the caller of this function.
    """
    if not isinstance(rows.weighing, ModelWeighing):
        return
    if not isinstance(rows.source, MemorySource):
        return
    few = rows.source.every(1 + rows.n_rows // MOST_ROWS)
    table = few.block(0, few.n_rows).rows
    model = rows.weighing.model
    checks = contradictions(table, model, complete=complete, names=rows.names)
    warn_of_contradiction(checks, rows.label, stacklevel + 1)
