"""One class's rows with what they weigh, and what is said of the weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from missratio._base.blocks import rows_with_nan
from missratio._base.reading import refuse_infinity
from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.exceptions import DataError, Message, Remedy, UnexplainedMissingError
from missratio.missingness import (
    contradictions,
    joint_weight,
    warn_of_contradiction,
)
from missratio.rows import source as limits
from missratio.rows.source import (
    MemorySource,
    Merge,
    Result,
    RowBlock,
    Source,
    WeightSums,
    weighted_sums,
)
from missratio.rows.weighing import (
    PLAIN,
    Weighing,
    as_weighing,
    class_model,
    weights_of_features,
)
from missratio.weights import (
    SampleSize,
    warn_if_concentrated,
    worst_case_sample_size,
)

Normalization = Literal["hajek", "horvitz-thompson"]
# As many rows find what is worth a warning. Of up to as many φ's weights are kept.
MOST_CHECKED = 20_000


@dataclass(frozen=True)
class ClassRows:
    """One class's rows, and why they weigh what they do.

    Parameters
    ----------
    label : object
        The class, for messages.
    source : Source
        Its rows, with their sample weights.
    weighing : Weighing
    normalize : {"hajek", "horvitz-thompson"}
        As the estimator has it. What it comes to, here alone, is `self_normalised`.
    names : sequence of str, or None
        Of the columns, for messages.
    where : str, or None
        Where the rows lie, for messages, if they are a block of a larger table.
    adjusted : ndarray of shape (n_rows, n_features), or None
        Terms whose mean takes the place of a weighted mean, where they are known.
    only_complete : bool
        Whether a pass leaves out incomplete rows, and gives each row one weight.
    """

    label: Any
    source: Source
    weighing: Weighing
    normalize: Normalization
    names: Sequence[str] | None = None
    where: str | None = None
    adjusted: FloatArray | None = None
    only_complete: bool = False

    @classmethod
    def of(
        cls,
        source: Source,
        label: Any,
        missingness: Any,
        normalize: Normalization,
        names: Sequence[str] | None = None,
        inclusion: FloatArray | None = None,
        where: str | None = None,
    ) -> ClassRows:
        """Rows that weigh what an estimator's missingness, or a design, says."""
        label = label.item() if hasattr(label, "item") else label
        model = class_model(missingness, label, names)
        weighing = as_weighing(model, inclusion, label)
        rows = cls(label, source, weighing, normalize, names, where)
        if weighing.model is None:
            return rows
        try:
            weighing.model.check_width(source.table.shape[1])
        except ValueError as error:
            raise ValueError(f"Class {label!r}: {error}") from error
        # Where rows are many, φ is evaluated at each pass.
        few = source.in_memory and source.n_rows <= MOST_CHECKED
        return rows.known() if few else rows

    @property
    def n_rows(self) -> int:
        """How many rows there are, missing ones included."""
        return int(self.source.n_rows)

    @property
    def self_normalised(self) -> bool:
        """Whether weighted sums are divided by the sum of the weights (Hájek).

        So it is for all but Horvitz and Thompson's, and for complete cases even there:
        those stand for themselves only, and share the weight.
        """
        return self.normalize != "horvitz-thompson" or not self.weighing.corrects

    @property
    def sample_weight_total(self) -> float:
        """The sum of the sample weights: the number of rows, where they have none."""
        weights = self.source.sample_weight
        return float(self.n_rows) if weights is None else float(weights.sum())

    def divisor(self, mass: FloatArray) -> FloatArray:
        """What weighted sums are divided by, given the sums of the weights."""
        if self.self_normalised:
            return mass
        return np.full_like(mass, self.sample_weight_total)

    @property
    def groups(self) -> IntArray | None:
        """Columns with equal numbers are there or missing together; None if none."""
        return self.weighing.groups

    # Passes over the rows.

    def fold(
        self,
        work: Callable[[RowBlock], Result],
        merge: Merge[Result],
        elements: int | None = None,
    ) -> Result:
        """Work on blocks of rows and what they weigh, and merge the results in order.

        Parameters
        ----------
        work : callable
            From a `RowBlock` with its weights to something small.
        merge : callable
            From several results to one; called on results of results too.
        elements : int, optional
            How many numbers a block holds, about.
        """

        def on_block(block: RowBlock) -> Any:
            if not self.only_complete:
                return work(replace(block, ipw=self._weigh(block)))
            block = self._complete(block)
            return work(block) if len(block.rows) else None

        if elements is None:
            # More where there are no weights to make.
            elements = limits.BLOCK_ELEMENTS * (4 if self.weighing.plain else 1)
        total: Result = self.source.fold(on_block, merge, elements)
        return total

    def known(self) -> ClassRows:
        """The same with φ's weights written down, for passes over rows in memory."""
        if self.weighing.model is None or self.weighing.weights is not None:
            return self
        weights = self.source.fold(self._weigh, _concatenated)
        return replace(self, weighing=replace(self.weighing, weights=weights))

    def _weigh(self, block: RowBlock) -> FloatArray | None:
        try:
            return self.weighing.weigh(block)
        except ValueError as error:
            self._refuse_odd(block)
            message = Message(
                "Class {label!r}: {text}", label=self.label, facts={"text": str(error)}
            )
            raise DataError(message) from error

    def _complete(self, block: RowBlock) -> RowBlock:
        """A block's complete rows, which complete cases weigh one each."""
        weights = self._row_weights(block)
        if weights is None:
            return block
        seen = weights > 0.0
        if not seen.all():
            block = RowBlock(block.rows[seen], block.features[seen], start=block.start)
            weights = weights[seen]
        return replace(block, ipw=weights if self.weighing.corrects else None)

    def _row_weights(self, block: RowBlock) -> FloatArray | None:
        """Weights of a block's complete rows, 0 for others; None for ones.

        Entries are missing independently given the row: a row is complete with the
        product of the probabilities, and weighs the product of its entries' weights.
        """
        weighing = self.weighing
        by_design = weighing.weights is not None and weighing.model is None
        if weighing.by_entry or not by_design:
            with np.errstate(over="ignore", invalid="ignore"):
                if not np.isfinite(block.rows.sum()):
                    self._refuse_odd(block)
        if not weighing.by_entry:
            return self._weigh(block)
        complete = ~rows_with_nan(block.rows)
        if not (weighing.corrects and complete.any()):
            return complete.astype(np.float64)
        if weighing.weights is not None:
            entries: FloatArray | None = weighing.weights[block.place][complete]
        else:
            rows = block.rows[complete]
            entries = self._weigh(RowBlock(rows, rows, start=block.start))
        assert entries is not None
        product = np.zeros(len(complete))
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

    # What passes tell.

    def sums(self, required: BoolArray | IntArray) -> WeightSums:
        """Sums of every feature over all rows in which it is observed, in one pass."""
        origin = None
        if self.source.features.dtype != np.float64:
            # Sums of single precision need features about zero: some row is subtracted.
            middle = np.nan_to_num(np.nanmedian(self.peek(), axis=0))
            origin = np.asarray(middle, self.source.features.dtype)

        def work(block: RowBlock) -> WeightSums:
            weights = block.ipw
            if weights is not None and weights.ndim == 2:
                weights = weights_of_features(weights, required, self.weighing.groups)
            with np.errstate(over="ignore", invalid="ignore"):
                found = weighted_sums(
                    block.features, weights, block.sample_weight, origin
                )
            if not np.isfinite(found.sums.sum()):
                self._refuse_odd(block)
            return found

        return self.fold(work, WeightSums.merged)

    def feature_sums(self, required: BoolArray | IntArray) -> WeightSums:
        """The same, of a class of which each feature is observed in some row.

        Parameters
        ----------
        required : ndarray of bool of shape (n_features, n_columns), or of int
            The columns that each feature needs, or the only one.
        """
        known = self.source.first_pass
        sums = self.sums(required) if known is None else known[0]
        self._check_any(sums.count)
        if self.adjusted is not None or (sums.count > 0).all():
            return sums
        lacking, how = required[sums.count == 0], ""
        columns = np.unique(lacking)
        if lacking.ndim == 2:
            columns = np.flatnonzero(lacking.any(axis=0))
            how = " together" if lacking.sum(axis=1).max() > 1 else ""
        raise DataError(
            Message(
                f"Class {{label!r}}: feature(s) [{{columns}}] are never observed{how}.",
                label=self.label,
                columns=tuple(columns[:10].tolist()),
                remedies=(Remedy.DROP_COLUMNS, "bring rows in which they are"),
            )
        )

    def complete_sums(self) -> WeightSums:
        """Sums of complete rows' weights over all rows, in one pass."""

        def work(block: RowBlock) -> WeightSums:
            weights = self._row_weights(block)
            return weighted_sums(
                np.empty((len(block.rows), 0)), weights, block.sample_weight
            )

        return self.source.fold(work, WeightSums.merged)

    def complete_weights(self) -> FloatArray | None:
        """Weights of complete rows, 0 for others; None where all are ones."""
        weights = self.source.fold(self._row_weights, _concatenated)
        self._check_any(None if self.weighing.by_entry else weights)
        return weights

    def complete(self) -> tuple[ClassRows, WeightSums]:
        """The complete rows with all that they weigh as one weight, and its sums.

        Rows in memory are chosen now; of others a pass leaves out what is incomplete.
        The sums are of the inverse-probability weights over all rows.
        """
        source = self.source
        if not isinstance(source, MemorySource):
            known = source.first_pass
            sums = self.complete_sums() if known is None else known[1]
            self._check_any(None if self.weighing.by_entry else sums.count)
            return replace(self, only_complete=True), sums
        # NaN and infinities show in the scores of large tables, and no pass looks for
        # them: that saves a tenth of a fit of complete rows.
        seen_in_scores = (
            source.size > limits.HELD_ELEMENTS
            and source.sample_weight is None
            and source.features is source.table
            and self.weighing.plain
            and bool(np.isfinite(self.peek()).all())
        )
        weights = None if seen_in_scores else self.complete_weights()
        empty = np.empty((self.n_rows, 0))
        sums = weighted_sums(empty, weights, source.sample_weight)
        seen = np.ones(self.n_rows, dtype=bool) if weights is None else weights > 0.0
        if not self.weighing.corrects:
            # Complete cases weigh one each.
            weights = None
        if (more := source.sample_weight) is not None:
            weights = more if weights is None else weights * more
            seen &= more > 0.0
        rows = replace(
            self,
            source=replace(source, sample_weight=None),
            weighing=PLAIN if weights is None else Weighing(weights=weights),
            adjusted=None,
        )
        return rows if seen.all() else rows.take(seen), sums

    def weights(
        self, required: BoolArray | IntArray | None = None
    ) -> FloatArray | None:
        """Weights of all rows or entries, or of one feature; None for ones."""
        if required is None and self.weighing.weights is not None:
            return self.weighing.weights

        def work(block: RowBlock) -> FloatArray | None:
            weights = block.ipw
            if weights is not None and weights.ndim == 2 and required is not None:
                weights = weights_of_features(weights, required, self.weighing.groups)[
                    :, 0
                ]
            return weights

        return self.fold(work, _concatenated)

    def peek(self) -> FloatArray:
        """Features of a few hundred rows from all over the class."""
        return self.source.every(1 + self.n_rows // 256).block().features

    def some_observed(self, columns: IntArray) -> FloatArray:
        """Features of some row in which they are observed, each of one column.

        Features of one column are those of one row.
        """
        for rows in (self.every(1 + self.n_rows // 256), self.every(1)):
            block = rows.source.every(1).block()
            seen, weights = np.ones(block.features.shape, dtype=bool), rows.weights()
            if weights is not None:
                by_row = weights.ndim == 1
                seen &= (weights[:, None] if by_row else weights[:, columns]) > 0.0
            if block.sample_weight is not None:
                seen &= (block.sample_weight > 0.0)[:, None]
            if seen.any(axis=0).all():
                break
        first = seen.argmax(axis=0)
        # Of rows elsewhere only those that were drawn are looked at.
        return np.asarray(np.nan_to_num(block.features[first, np.arange(len(first))]))

    # Some of the rows.

    def take(self, chosen: BoolArray) -> ClassRows:
        """Some of the rows, in memory."""
        return replace(
            self,
            source=self.source.take(chosen),
            weighing=self.weighing.take(chosen),
            adjusted=None if self.adjusted is None else self.adjusted[chosen],
        )

    def every(self, stride: int) -> ClassRows:
        """Every stride-th row, in memory."""
        return replace(
            self,
            source=self.source.every(stride),
            weighing=self.weighing.take(slice(None, None, stride)),
            adjusted=None,
        )

    # What is refused.

    def _check_any(self, count: FloatArray | None) -> None:
        """Refuse a class of which nothing is observed, or that has no weight."""
        if count is not None and not count.any():
            raise ValueError(
                f"Class {self.label!r} has no observed row among its {self.n_rows}: "
                "bring rows in which something is observed."
            )
        weights = self.source.sample_weight
        if weights is not None and not weights.any():
            raise ValueError(
                f"sample_weight is zero in all rows of class {self.label!r}: a ratio "
                "needs rows of both classes."
            )

    def _refuse_odd(self, block: RowBlock) -> None:
        """Refuse infinities in a block, and NaN where nothing says why."""
        refuse_infinity(
            block.rows, lambda row: self.source.row_number(block.start + row)
        )
        if not (self.weighing.plain and np.isnan(block.rows).any()):
            return
        lossy = self.source.fold(
            lambda part: np.isnan(part.rows).any(axis=0),
            lambda parts: np.any(parts, axis=0),
        )
        places, names = tuple(np.flatnonzero(lossy).tolist()), self.names
        raise UnexplainedMissingError(
            Message(
                "Class {label!r} has NaN in column(s) {columns}{where} and no "
                "missingness model.",
                label=self.label,
                columns=places,
                names=places if names is None else tuple(str(names[j]) for j in places),
                facts={"where": "" if self.where is None else f" in {self.where}"},
                remedies=(
                    Remedy.MODEL,
                    Remedy.COMPLETE_CASES,
                    "give inclusion probabilities where values were looked up",
                ),
            )
        )


def _concatenated(parts: Sequence[FloatArray | None]) -> FloatArray | None:
    """Weights of consecutive blocks as one array; None stays None."""
    arrays = [part for part in parts if part is not None]
    return np.concatenate(arrays) if arrays else None


def effective_size(rows: ClassRows, sums: WeightSums) -> SampleSize:
    """The effective size, of the feature with the least where they differ."""
    kish = sums.kish
    worst = int(kish.argmin())
    observed = int(sums.count[worst])
    if not rows.weighing.corrects:
        worst_case = float(observed)
    else:
        model = rows.weighing.model
        largest = None if model is None else model.maximum
        if largest is None:
            largest = max(0.0, 1.0 - 1.0 / sums.largest[worst])
        worst_case = worst_case_sample_size(rows.n_rows, largest)
    return SampleSize(rows.n_rows, observed, float(kish[worst]), worst_case)


def warn_of_concentration(
    rows: ClassRows,
    sums: WeightSums,
    required: BoolArray | IntArray | None,
    names: Callable[[], Any],
    stacklevel: int,
) -> None:
    """Warn where a few rows carry the weight, once, for the worst feature.

    The sums tell where that can be; only there the weights are looked at, of rows
    elsewhere those that were drawn into memory.
    """
    worst = int(np.argmax(sums.squares / sums.total**2 * sums.count))
    few = max(1, sums.count[worst] // 20)
    # The most that so many rows can weigh together, given the largest, and Σw².
    most = min(few * sums.largest[worst], np.sqrt(few * sums.squares[worst]))
    if most < sums.total[worst] / 2.0:
        return
    rows = rows if rows.source.in_memory else rows.every(1)
    about = Message("Class {label!r}", label=rows.label)
    if required is None:
        weights = rows.complete_weights()
    else:
        weights = rows.weights(required[[worst]])
        if rows.weighing.by_entry:
            about = Message(
                "Class {label!r}, feature {columns}",
                label=rows.label,
                columns=(worst,),
                names=(str(names()[worst]),),
            )
    if weights is not None:
        warn_if_concentrated(weights, about, stacklevel=stacklevel + 1)


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
    model = rows.weighing.model
    if model is None or not rows.source.in_memory:
        return
    stride = 1 + rows.n_rows // MOST_CHECKED
    few = (rows if stride == 1 else rows.every(stride)).known()
    assert few.weighing.weights is not None
    checks = contradictions(
        rows.source.every(stride).block().rows,
        model,
        weights=few.weighing.weights,
        complete=complete,
        names=rows.names,
    )
    if checks:
        warn_of_contradiction(checks, rows.label, stacklevel + 1)
