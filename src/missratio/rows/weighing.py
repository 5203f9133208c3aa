"""What a class's rows weigh: by a model φ, by design, as complete cases, or one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from missratio._base.blocks import any_by_row, inverse_where_positive
from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.missingness import Missingness, drawn_together
from missratio.rows.source import RowBlock, weighed_twice

ClassModel = Missingness | Literal["ignore"] | None


class Weighing(ABC):
    """The weights 1{observed}/P(observed) of rows or of single entries.

    Attributes
    ----------
    by_entry : bool
        Whether single entries are missing, rather than whole rows.
    maximum : float, or None
        ‖φ‖∞, the largest probability of being missing, where it is known.
    corrects : bool
        Whether weights make up for what is missing, so that they average to one.
    """

    by_entry: bool = False
    maximum: float | None = None
    corrects: bool = True

    @property
    def groups(self) -> IntArray | None:
        """Columns with equal numbers are there or missing together; None if none."""
        return None

    @abstractmethod
    def weigh(self, block: RowBlock) -> FloatArray | None:
        """Weights of shape (n_rows,) or (n_rows, n_columns), 0 where missing.

        None stands for ones, and for rows that are complete.
        """

    def take(self, chosen: BoolArray | slice) -> Weighing:
        """The same for some of the rows."""
        return self


class Unweighted(Weighing):
    """Complete rows, which weigh one each. That they are complete is seen to later."""

    maximum = 0.0
    corrects = False

    def weigh(self, block: RowBlock) -> None:
        """None: NaN is found in what is summed up."""
        return


class CompleteCases(Weighing):
    """One where observed: what is missing is left out."""

    by_entry = True
    corrects = False

    def weigh(self, block: RowBlock) -> FloatArray | None:
        """1{observed}, entry by entry."""
        observed = ~np.isnan(block.rows)
        return None if observed.all() else observed.astype(np.float64)


@dataclass(frozen=True)
class ModelWeighing(Weighing):
    """1{observed}/(1 − φ), evaluated within a block."""

    model: Missingness

    @property
    def by_entry(self) -> bool:  # type: ignore[override]
        """As the model says."""
        return not self.model.rowwise

    @property
    def maximum(self) -> float | None:  # type: ignore[override]
        """As the model says."""
        return self.model.maximum

    @property
    def groups(self) -> IntArray | None:
        """As the model says."""
        return self.model.groups

    def weigh(self, block: RowBlock) -> FloatArray:
        """Weigh by the model."""
        rows = block.rows.astype(np.float64, copy=False)
        return self.model.block_weights(rows, block.start)


@dataclass(frozen=True)
class KnownWeights(Weighing):
    """Weights that are there already: of rows, or of entries.

    Parameters
    ----------
    weights : ndarray of shape (n_rows,) or (n_rows, n_columns)
        0 where missing.
    maximum : float, or None
    corrects : bool
    by_design : bool
        Whether they are one over the probabilities of a draw.
    groups : ndarray of int of shape (n_columns,), or None
        Columns with equal numbers are there or missing together, so that several have
        the probability of one: all, where rows were drawn whole, and the indicators of
        a category.
    """

    weights: FloatArray
    maximum: float | None = None
    corrects: bool = True
    by_design: bool = False
    groups: IntArray | None = None

    @property
    def by_entry(self) -> bool:  # type: ignore[override]
        """Whether there is a weight for each entry."""
        return self.weights.ndim == 2

    def weigh(self, block: RowBlock) -> FloatArray:
        """The weights of the block's rows."""
        return self.weights[block.place]

    def take(self, chosen: BoolArray | slice) -> Self:
        """The weights of some rows."""
        return replace(self, weights=self.weights[chosen])


def as_weighing(
    model: ClassModel, inclusion: FloatArray | None, label: Any
) -> Weighing:
    """How a class's rows are weighed.

    Parameters
    ----------
    model : Missingness, "ignore" or None
    inclusion : ndarray of shape (n_rows,) or (n_rows, n_columns), or None
        The probability with which each of the class's rows or entries is in the table
        by design: 1 where it was observed, 0 where it is missing.
    label : object
        The class, for messages.
    """
    if inclusion is None or (model is None and (inclusion == 1.0).all()):
        if isinstance(model, Missingness):
            return ModelWeighing(model)
        return Unweighted() if model is None else CompleteCases()
    if isinstance(model, Missingness) and not ((inclusion > 0) & (inclusion < 1)).any():
        return ModelWeighing(model)
    if model is not None:
        raise weighed_twice(label)
    if inclusion.ndim == 2 and (inclusion == inclusion[:, :1]).all():
        # Rows that are there or not as a whole.
        inclusion = inclusion[:, 0]
    weights = inverse_where_positive(inclusion)
    groups = None
    if inclusion.ndim == 2:
        together = drawn_together(inclusion)
        # What was always observed weighs one, however often it counts.
        lossy = (inclusion < 1.0).any(axis=0)
        if len(np.unique(together[lossy])) < np.count_nonzero(lossy):
            groups = together
    return KnownWeights(weights, by_design=True, groups=groups)


def check_inclusion(inclusion: ArrayLike, X: FloatArray) -> FloatArray:
    """Inclusion probabilities of the rows or entries of X, 0 where it has NaN.

    What was drawn and not found has NaN and a probability between 0 and 1: it is left
    out, as if it were missing still. A row that is left out may have values.

    Parameters
    ----------
    inclusion : array-like of shape (n_rows,) or (n_rows, n_columns)
    X : ndarray of shape (n_rows, n_columns)
    """
    checked = np.array(inclusion, dtype=np.float64)
    if checked.shape not in (X.shape[:1], X.shape):
        raise ValueError(
            f"inclusion must have shape {X.shape[:1]}, for whole rows, or {X.shape}, "
            f"for single entries: got {checked.shape}."
        )
    if not ((checked >= 0.0) & (checked <= 1.0)).all():
        raise ValueError(
            "inclusion must hold probabilities in [0, 1]: 1 where a value was "
            "observed, the share looked up where it was looked up, 0 where it is "
            "missing."
        )
    missing = np.isnan(X)
    what, lost = "entry", missing
    if checked.ndim == 1:
        what, lost = "row", any_by_row(missing)
    _refuse_cells((checked == 1.0) & lost, f"is 1 but the {what} has NaN")
    _refuse_cells((checked == 0.0) & ~lost, f"is 0 but the {what} has no NaN")
    checked[lost] = 0.0
    return checked


def _refuse_cells(wrong: BoolArray, what: str) -> None:
    if wrong.any():
        at = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise ValueError(
            f"inclusion at {at} {what} ({np.count_nonzero(wrong)} such). A value has "
            "inclusion 0 where it is still missing (NaN), and 1 where it was "
            "observed."
        )


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
    if missingness is None:
        return None
    if isinstance(missingness, str):
        return "ignore"
    model = missingness.get(label)
    return None if model is None else model.bound(names)


def check_missingness(missingness: Any, labels: Any) -> None:
    """Refuse what is not None, "ignore" or a mapping from these labels to models."""
    if missingness is None or (
        isinstance(missingness, str) and missingness == "ignore"
    ):
        return
    known = [label.item() if hasattr(label, "item") else label for label in labels]
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


def weights_of_features(
    weights: FloatArray,
    required: BoolArray | IntArray,
    groups: IntArray | None = None,
) -> FloatArray:
    """Each feature's weight: the product over the columns that it needs.

    Parameters
    ----------
    weights : ndarray of shape (..., n_columns)
    required : ndarray of bool of shape (n_features, n_columns), or of int (n_features,)
        The columns that each feature needs, or the only one.
    groups : ndarray of int of shape (n_columns,), optional
        As of `Weighing`; what is there or missing together counts once.

    Returns
    -------
    ndarray of shape (..., n_features)
    """
    if required.ndim == 1:
        own = np.array_equal(required, np.arange(weights.shape[-1]))
        return weights if own else weights[..., required]
    if groups is not None:
        parts = [
            joint_weight(weights[..., needed], groups[needed]) for needed in required
        ]
        return np.stack(parts, axis=-1)
    product = np.ones((*weights.shape[:-1], len(required)))
    for j, needed in enumerate(required):
        for column in np.flatnonzero(needed):
            product[..., j] *= weights[..., column]
    return product


def joint_weight(weights: FloatArray, groups: IntArray | None) -> FloatArray:
    """What a row's entries weigh together, over the last axis.

    The product over groups of the largest weight in each, or 0 where one is missing:
    of what was drawn together, entries that were not lost weigh one.

    Parameters
    ----------
    weights : ndarray of shape (..., n_columns)
        0 where missing.
    groups : ndarray of int of shape (n_columns,), or None
        As of `Weighing`.
    """
    if groups is None:
        return np.asarray(weights.prod(axis=-1))
    product = np.ones(weights.shape[:-1])
    for group in np.unique(groups):
        own = weights[..., groups == group]
        product *= np.where((own > 0.0).all(axis=-1), own.max(axis=-1), 0.0)
    return product


def only_columns(required: BoolArray) -> BoolArray | IntArray:
    """The column that each feature needs where it needs no other, else as given."""
    if (required.sum(axis=1) == 1).all():
        return np.asarray(required.argmax(axis=1))
    return required
