"""One class's rows with what they weigh, and what is said of the weights.

Rows weigh 1{observed}/P(observed): by a model φ, by design, as complete cases, or one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from missratio._base.blocks import any_by_row, inverse_where_positive, rows_with_nan
from missratio._base.hints import listed
from missratio._base.reading import check_no_infinity
from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.exceptions import DataError, Message, Remedy, UnexplainedMissingError
from missratio.missingness import (
    Missingness,
    drawn_together,
    joint_weight,
    missingness_check,
    read_inclusion,
    refuse_misplaced,
    warn_of_contradiction,
)
from missratio.rows import source as limits
from missratio.rows.source import (
    BlockWork,
    MemorySource,
    Merge,
    Result,
    RowBlock,
    Source,
    WeightSums,
    weighted_sums,
)
from missratio.weights import SampleSize, warn_if_concentrated

ClassModel = Missingness | Literal["ignore"] | None
Normalization = Literal["hajek", "horvitz-thompson", "regression"]
# This many rows show what deserves a warning. Up to this many, φ's weights are kept.
MOST_CHECKED = 20_000


@dataclass(frozen=True)
class ClassRows:
    """One class's rows, and why they weigh what they do.

    Rows or entries weigh 1{observed}/P(observed). Without anything said, rows are
    complete and weigh one each. That they are complete is seen to where they are summed
    up.

    Parameters
    ----------
    label : object
        The class, for messages.
    source : Source
        Its rows, with their sample weights.
    normalize : {"hajek", "horvitz-thompson", "regression"}
        As the estimator has it. What it comes to, here alone, is `self_normalised`.
    names : sequence of str, or None
        Of the columns, for messages.
    where : str, or None
        Where the rows lie, for messages, if they are a block of a larger table.
    adjusted : ndarray of shape (n_rows, n_features), or None
        Terms whose mean takes the place of a weighted mean, where they are known.
    only_complete : bool
        Whether a pass leaves out incomplete rows, and gives each row one weight.
    model : Missingness, or None
        φ, by which weights are 1{observed}/(1 − φ).
    known : ndarray of shape (n_rows,) or (n_rows, n_columns), or None
        Weights that are written down, 0 where missing: those of a model, or without one
        those of a design.
    by_entry : bool
        Whether single entries are missing, rather than whole rows.
    corrects : bool
        Whether weights make up for what is missing, so that they average to one.
        Complete cases stand for themselves only.
    groups : ndarray of int of shape (n_columns,), or None
        Columns with equal numbers are there or missing together, so that several have
        the probability of one: all, where rows were drawn whole, and the indicators of
        a category.
    """

    label: Any
    source: Source
    normalize: Normalization
    names: Sequence[str] | None = None
    where: str | None = None
    adjusted: FloatArray | None = None
    only_complete: bool = False
    model: Missingness | None = None
    known: FloatArray | None = None
    by_entry: bool = False
    corrects: bool = False
    groups: IntArray | None = None

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
        """Rows that weigh what an estimator's missingness, or a design, says.

        A design is the probability with which each of the class's rows or entries is in
        the table: 1 where it was observed, 0 where it is missing.
        """
        label = label.item() if hasattr(label, "item") else label
        rows = cls(label, source, normalize, names, where)
        model = class_model(missingness, label, names)
        drawn = inclusion is not None and ((inclusion > 0) & (inclusion < 1)).any()
        if isinstance(model, Missingness) and not drawn:
            try:
                model.bound(names, source.table.shape[1])
            except ValueError as error:
                raise DataError.of_class(label, str(error)) from error
            by_entry, groups = not model.rowwise, model.groups
            rows = replace(
                rows, model=model, by_entry=by_entry, corrects=True, groups=groups
            )
            if isinstance(source, MemorySource) and source.n_rows <= MOST_CHECKED:
                # Where rows are many, φ is evaluated at each pass.
                rows = replace(rows, known=rows.weights())
        elif model is not None:
            if inclusion is not None:
                raise weighed_twice(label)
            rows = replace(rows, by_entry=True)
        elif inclusion is not None and not (inclusion == 1.0).all():
            if inclusion.ndim == 2 and (inclusion == inclusion[:, :1]).all():
                # Rows are there or missing as a whole.
                inclusion = inclusion[:, 0]
            groups, by_entry = None, inclusion.ndim == 2
            if by_entry:
                together = drawn_together(inclusion)
                # What was always observed weighs one, however often it counts.
                lossy = (inclusion < 1.0).any(axis=0)
                if len(np.unique(together[lossy])) < np.count_nonzero(lossy):
                    groups = together
            known = inverse_where_positive(inclusion)
            rows = replace(
                rows, known=known, by_entry=by_entry, corrects=True, groups=groups
            )
        return rows

    @property
    def plain(self) -> bool:
        """Whether rows are complete and weigh one each."""
        return self.model is None and self.known is None and not self.by_entry

    @property
    def self_normalised(self) -> bool:
        """Whether weighted sums are divided by the sum of the weights (Hájek).

        So it is for all but Horvitz and Thompson's, and for complete cases even there:
        those stand for themselves only, and share the weight.
        """
        return self.normalize != "horvitz-thompson" or not self.corrects

    @property
    def sample_weight_total(self) -> float:
        """The sum of the sample weights: the number of rows, where they have none."""
        weights = self.source.sample_weight
        return float(self.source.n_rows) if weights is None else float(weights.sum())

    def divisor(self, mass: FloatArray) -> FloatArray:
        """What weighted sums are divided by, given the sums of the weights."""
        if self.self_normalised:
            return mass
        return np.full_like(mass, self.sample_weight_total)

    # Passes over the rows.

    def fold(
        self, work: BlockWork[Result], merge: Merge[Result], elements: int = 0
    ) -> Result:
        """Work on blocks of rows and what they weigh, and merge the results in order.

        Parameters
        ----------
        work : callable
            From a `RowBlock` with its weights to something small.
        merge : callable
            From several results to one; called on results of results too.
        elements : int
            How many numbers a block holds, about; 0 for what suits the source.
        """

        def on_block(block: RowBlock) -> Any:
            if not self.only_complete:
                return work(replace(block, ipw=self.weigh(block)))
            weights = self._row_weights(block)
            if weights is not None:
                # Complete cases weigh one each.
                seen, start = weights > 0.0, block.start
                if not seen.all():
                    block = RowBlock(
                        block.rows[seen], block.features[seen], None, start
                    )
                    weights = weights[seen]
                block = replace(block, ipw=weights if self.corrects else None)
            return work(block) if len(block.rows) else None

        if not elements and self.plain:
            # Blocks may be larger where no weights are made.
            elements = 4 * limits.BLOCK_ELEMENTS
        total: Result = self.source.fold(on_block, merge, elements)
        return total

    def weigh(self, block: RowBlock) -> FloatArray | None:
        """Weights of a block's rows or entries, 0 where missing; None for ones."""
        if self.known is not None:
            return self.known[block.place]
        if self.model is None:
            missing = np.isnan(block.rows) if self.by_entry else None
            return None if missing is None else (~missing).astype(np.float64)
        try:
            rows = block.rows.astype(np.float64, copy=False)
            return self.model.block_weights(rows, block.start)
        except ValueError as error:
            self._refuse_odd(block)
            raise DataError.of_class(self.label, str(error)) from error

    def _row_weights(self, block: RowBlock) -> FloatArray | None:
        """Weights of a block's complete rows, 0 for others; None for ones.

        Entries are missing independently given the row: a row is complete with the
        product of the probabilities, and weighs the product of its entries' weights.
        """
        if self.by_entry or self.known is None or self.model is not None:
            self._refuse_odd(block)
        if not self.by_entry:
            return self.weigh(block)
        complete = ~rows_with_nan(block.rows)
        product = complete.astype(np.float64)
        if not (self.corrects and complete.any()):
            return product
        if self.known is None:
            rows = block.rows[complete]
            entries = self.weigh(RowBlock(rows, rows, start=block.start))
            assert entries is not None
        else:
            entries = self.known[block.place][complete]
        product[complete] = joint_weight(entries, self.groups)
        if not np.isfinite(product).all():
            row = self.source.row_number(block.start + int(product.argmax()))
            raise DataError.of_class(
                self.label,
                f"the product of the entry weights overflows at row {row}: its missing "
                "probabilities are too close to 1. Use fewer features, or fit them one "
                "at a time.",
            )
        return product

    # What passes tell.

    def feature_sums(
        self, required: BoolArray | IntArray, *, whole: bool = True
    ) -> WeightSums:
        """Sums of every feature over all rows in which it is observed, in one pass.

        Parameters
        ----------
        required : ndarray of bool of shape (n_features, n_columns), or of int
            The columns that each feature needs, or the only one.
        whole : bool, default=True
            Whether each feature must be observed in some row, as in a whole class.
        """

        def work(block: RowBlock) -> WeightSums:
            weights = block.ipw
            if weights is not None and weights.ndim == 2:
                weights = weights_of_features(weights, required, self.groups)
            with np.errstate(over="ignore", invalid="ignore"):
                part = weighted_sums(block.features, weights, block.sample_weight)
            if not np.isfinite(part.sums.sum()):
                self._refuse_odd(block)
            return part

        known, on_device = self.source.first_pass, self.source.feature_sums
        sums: WeightSums
        if on_device is not None:
            sums = on_device()
        else:
            sums = self.fold(work, WeightSums.merged) if known is None else known[0]
        if not whole:
            return sums
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
            empty = np.empty((len(block.rows), 0))
            return weighted_sums(empty, self._row_weights(block), block.sample_weight)

        return self.source.fold(work, WeightSums.merged)

    def complete_weights(self) -> FloatArray | None:
        """Weights of complete rows, 0 for others; None where all are ones."""
        weights = self.source.fold(self._row_weights, _concatenated)
        self._check_any(None if self.by_entry else weights)
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
            self._check_any(None if self.by_entry else sums.count)
            return replace(self, only_complete=True), sums
        weights = self.complete_weights()
        more, n_rows = source.sample_weight, source.n_rows
        sums = weighted_sums(np.empty((n_rows, 0)), weights, more)
        seen = np.ones(n_rows, dtype=bool) if weights is None else weights > 0.0
        if not self.corrects:
            # Complete cases weigh one each.
            weights = None
        if more is not None:
            weights = more if weights is None else weights * more
            seen &= more > 0.0
        source = replace(source, sample_weight=None)
        if not seen.all():
            source = source.take(seen)
            weights = None if weights is None else weights[seen]
        complete = ClassRows(self.label, source, self.normalize, self.names, self.where)
        return replace(complete, known=weights, corrects=weights is not None), sums

    def weights(self) -> FloatArray | None:
        """Weights of all rows or entries; None for ones."""
        if self.known is not None:
            return self.known
        return self.source.fold(self.weigh, _concatenated)

    def some_observed(self, columns: IntArray) -> FloatArray:
        """Features of some row in which they are observed, each of one column.

        Features of one column are those of one row.
        """
        for rows in (self.every(1 + self.source.n_rows // 256), self.every(1)):
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
        # Rows elsewhere are represented by those that were drawn.
        return np.asarray(np.nan_to_num(block.features[first, np.arange(len(first))]))

    # Some of the rows.

    def take(self, chosen: BoolArray) -> ClassRows:
        """Some of the rows, in memory."""
        assert isinstance(self.source, MemorySource)
        return self._some(self.source.take(chosen), chosen)

    def every(self, stride: int) -> ClassRows:
        """Every stride-th row, in memory."""
        return self._some(self.source.every(stride), slice(None, None, stride))

    def _some(self, source: Source, chosen: BoolArray | slice) -> ClassRows:
        known, adjusted = (
            None if values is None else values[chosen]
            for values in (self.known, self.adjusted)
        )
        return replace(self, source=source, known=known, adjusted=adjusted)

    # What is refused.

    def _check_any(self, count: FloatArray | None) -> None:
        """Refuse a class of which nothing is observed, or that has no weight."""
        if count is not None and not count.any():
            claim = (
                f"Class {{label!r}} has no observed row among its {self.source.n_rows}:"
                " bring rows in which something is observed."
            )
            raise DataError(Message(claim, label=self.label))
        weights = self.source.sample_weight
        if weights is not None and not weights.any():
            raise ValueError(
                f"sample_weight is zero in all rows of class {self.label!r}: a ratio "
                "needs rows of both classes."
            )

    def _refuse_odd(self, block: RowBlock) -> None:
        """Refuse infinities in a block, and NaN where nothing says why."""

        def number(row: int) -> int:
            return self.source.row_number(block.start + row)

        if check_no_infinity(block.rows, None, number) or not self.plain:
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
    kish, model, n_rows = sums.kish, rows.model, rows.source.n_rows
    worst = int(kish.argmin())
    observed = int(sums.count[worst])
    worst_case = float(observed)
    if rows.corrects:
        columns = rows.source.table.shape[1]
        largest = 1.0 if model is None else model.column_maxima(columns).max()
        if largest >= 1.0:
            largest = max(0.0, 1.0 - 1.0 / sums.largest[worst])
        worst_case = float(n_rows * (1.0 - largest))
    return SampleSize(n_rows, observed, float(kish[worst]), worst_case)


def warn_of_weights(
    rows: ClassRows,
    sums: WeightSums,
    required: BoolArray | IntArray | None,
    names: Callable[[], Any],
) -> None:
    """Warn where a few rows carry the weight, and where rows contradict φ.

    Parameters
    ----------
    rows : ClassRows
    sums : WeightSums
    required : ndarray of bool of shape (n_features, n_columns), or of int, or None
        The columns that each feature needs; None where rows weigh as one.
    names : callable
        Gives the features' names.
    """
    # 1. The largest weight and Σw² bound what few rows can weigh together. Weights are
    #    looked at only where that is half of all, for the worst feature, and rows
    #    elsewhere are represented by those that were drawn.
    worst = int(np.argmax(sums.squares / sums.total**2 * sums.count))
    few = max(1, sums.count[worst] // 20)
    most = min(few * sums.largest[worst], np.sqrt(few * sums.squares[worst]))
    if most >= sums.total[worst] / 2.0:
        here = rows if isinstance(rows.source, MemorySource) else rows.every(1)
        about = Message("Class {label!r}", label=rows.label)
        weights = here.complete_weights() if required is None else here.weights()
        if required is not None and rows.by_entry:
            assert weights is not None
            groups, needed = rows.groups, required[[worst]]
            weights = weights_of_features(weights, needed, groups)[:, 0]
            about = Message(
                "Class {label!r}, feature {columns}",
                label=rows.label,
                columns=(worst,),
                names=(str(names()[worst]),),
            )
        if weights is not None:
            warn_if_concentrated(weights, about)
    # 2. Rows in memory are compared with φ; if they are many, some of them.
    model = rows.model
    if model is None or not isinstance(rows.source, MemorySource):
        return
    if rows.source.n_rows > MOST_CHECKED:
        rows = rows.every(1 + rows.source.n_rows // MOST_CHECKED)
    weights, source = rows.weights(), rows.source
    assert weights is not None
    assert isinstance(source, MemorySource)
    complete, table = required is None, source.block().rows
    checks = missingness_check(
        table, model, complete=complete, names=rows.names, weights=weights
    )
    warn_of_contradiction(checks, rows.label)


# What an estimator is told of missingness.


def weighed_twice(label: Any) -> DataError:
    """A class, or all rows for None, has a model of missingness and look-ups too."""
    claim = "X" if label is None else "Class {label!r}"
    claim += (
        " has a missingness model and inclusion probabilities: its rows can't be "
        "weighed twice. Leave out one of them."
    )
    return DataError(Message(claim, label=label))


def check_inclusion(inclusion: ArrayLike, X: FloatArray) -> FloatArray:
    """Inclusion probabilities of the rows or entries of X, 0 where it has NaN.

    What was drawn and not found has NaN and a probability between 0 and 1: it is left
    out, as if it were missing still. A row that is left out may have values.

    Parameters
    ----------
    inclusion : array-like of shape (n_rows,) or (n_rows, n_columns)
    X : ndarray of shape (n_rows, n_columns)
    """
    checked = read_inclusion(inclusion, X.shape)
    missing = np.isnan(X)
    lost = missing if checked.ndim == 2 else any_by_row(missing)
    refuse_misplaced(checked, lost)
    checked[lost] = 0.0
    return checked


def class_model(
    missingness: Any, label: Any, names: Sequence[str] | None = None
) -> ClassModel:
    """The model of one class; None where there is none.

    Parameters
    ----------
    missingness : mapping, "ignore" or None
    label : object
    names : sequence of str, optional
        Of the table's columns, for a model that goes by them.
    """
    if missingness is None or isinstance(missingness, str):
        return None if missingness is None else "ignore"
    model = missingness.get(label)
    return None if model is None else model.bound(names)


def check_missingness(
    missingness: Any,
    labels: Any,
    y: Any = None,
    incomplete: Callable[[], BoolArray] | None = None,
) -> Any:
    """None, "ignore" or a mapping from these labels to models; all else is refused.

    A model by itself is that of the class that has blanks, where there is one.

    Parameters
    ----------
    missingness : mapping, Missingness, "ignore" or None
    labels : sequence
        The classes.
    y : ndarray of shape (n_rows,), optional
        The rows' labels.
    incomplete : callable, optional
        Gives which rows have a blank; it is asked for a model by itself.

    Returns
    -------
    mapping, "ignore" or None
    """
    if missingness is None or (
        isinstance(missingness, str) and missingness == "ignore"
    ):
        return missingness
    known = [label.item() if hasattr(label, "item") else label for label in labels]
    if isinstance(missingness, Missingness) and incomplete is not None:
        lossy = [label for label in known if incomplete()[y == label].any()]
        if len(lossy) == 1:
            return {lossy[0]: missingness}
        which = f"classes {listed(lossy)} have some" if lossy else "no class has any"
        meant = ", ".join(f"{label!r}: model" for label in lossy or known[-1:])
        raise ValueError(
            "A missingness model by itself is that of the class that has blanks, and "
            f"here {which}. Say which class it is for: missingness={{{meant}}}."
        )
    if not isinstance(missingness, Mapping):
        raise TypeError(
            'missingness must be None, "ignore" or a mapping from class to model, '
            f"such as {{{known[-1]!r}: LogisticMissingness(...)}}; got {missingness!r}."
        )
    for label, model in missingness.items():
        if label not in known:
            raise ValueError(
                f"missingness has a model for class {label!r}, but the classes are "
                f"{known}."
            )
        if model is not None and not isinstance(model, Missingness):
            raise TypeError(
                f"missingness of class {label!r} must be a Missingness model, such as "
                f"LogisticMissingness, or None; got {model!r}."
            )
    return missingness


def weights_of_features(
    weights: FloatArray, required: BoolArray | IntArray, groups: IntArray | None = None
) -> FloatArray:
    """Each feature's weight: the product over the columns that it needs.

    Parameters
    ----------
    weights : ndarray of shape (..., n_columns)
    required : ndarray of bool of shape (n_features, n_columns), or of int (n_features,)
        The columns that each feature needs, or the only one.
    groups : ndarray of int of shape (n_columns,), optional
        What is there or missing together counts once.

    Returns
    -------
    ndarray of shape (..., n_features)
    """
    if required.ndim == 1:
        same = np.array_equal(required, np.arange(weights.shape[-1]))
        return weights if same else weights[..., required]
    products = [
        joint_weight(weights[..., needed], None if groups is None else groups[needed])
        for needed in required
    ]
    return np.stack(products, axis=-1)


def only_columns(required: BoolArray) -> BoolArray | IntArray:
    """The column that each feature needs where it needs no other, else as given."""
    if (required.sum(axis=1) == 1).all():
        return np.asarray(required.argmax(axis=1))
    return required
