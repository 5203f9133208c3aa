"""What a class's rows weigh: by a model φ, by design, as complete cases, or one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from missratio._base.blocks import any_by_row, inverse_where_positive
from missratio._base.hints import listed
from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.missingness import (
    Missingness,
    drawn_together,
    joint_weight,
    read_inclusion,
    refuse_misplaced,
)
from missratio.rows.source import RowBlock

ClassModel = Missingness | Literal["ignore"] | None


@dataclass(frozen=True)
class Weighing:
    """Why rows or entries weigh 1{observed}/P(observed), and how much, if it is known.

    Without anything said, rows are complete and weigh one each. That they are complete
    is seen to where they are summed up.

    Parameters
    ----------
    model : Missingness, or None
        φ, by which weights are 1{observed}/(1 − φ).
    weights : ndarray of shape (n_rows,) or (n_rows, n_columns), or None
        Weights that are written down, 0 where missing.
    by_entry : bool
        Whether single entries are missing, rather than whole rows.
    corrects : bool
        Whether weights make up for what is missing, so that they average to one.
        Complete cases stand for themselves only.
    groups : ndarray of int of shape (n_columns,), or None
        Columns with equal numbers are there or missing together, so that several have
        the probability of one: all, where rows were drawn whole, and the indicators of
        a category.
    by_design : bool
        Whether weights are one over the probabilities of a draw.
    """

    model: Missingness | None = None
    weights: FloatArray | None = None
    by_entry: bool = False
    corrects: bool = True
    groups: IntArray | None = None
    by_design: bool = False

    @property
    def plain(self) -> bool:
        """Whether rows are complete and weigh one each."""
        return self.model is None and self.weights is None and not self.by_entry

    def weigh(self, block: RowBlock) -> FloatArray | None:
        """Weights of a block's rows or entries, 0 where missing; None if `plain`."""
        if self.weights is not None:
            return self.weights[block.start : block.start + len(block.rows)]
        if self.model is not None:
            rows = block.rows.astype(np.float64, copy=False)
            return self.model.block_weights(rows, block.start)
        return (~np.isnan(block.rows)).astype(np.float64) if self.by_entry else None

    def take(self, chosen: BoolArray | slice) -> Weighing:
        """The same for some of the rows."""
        weights = None if self.weights is None else self.weights[chosen]
        return replace(self, weights=weights)


PLAIN = Weighing(corrects=False)


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
    drawn = inclusion is not None and bool(((inclusion > 0) & (inclusion < 1)).any())
    if isinstance(model, Missingness) and not drawn:
        return Weighing(model, by_entry=not model.rowwise, groups=model.groups)
    if inclusion is None or (model is None and (inclusion == 1.0).all()):
        return PLAIN if model is None else Weighing(by_entry=True, corrects=False)
    if model is not None:
        raise weighed_twice(label)
    if inclusion.ndim == 2 and (inclusion == inclusion[:, :1]).all():
        # Rows that are there or not as a whole.
        inclusion = inclusion[:, 0]
    groups, by_entry = None, inclusion.ndim == 2
    if by_entry:
        together = drawn_together(inclusion)
        # What was always observed weighs one, however often it counts.
        lossy = (inclusion < 1.0).any(axis=0)
        if len(np.unique(together[lossy])) < np.count_nonzero(lossy):
            groups = together
    weights = inverse_where_positive(inclusion)
    return Weighing(weights=weights, by_entry=by_entry, groups=groups, by_design=True)


def weighed_twice(label: Any) -> ValueError:
    """A class, or all rows for None, has a model of missingness and look-ups too."""
    whose = "X" if label is None else f"Class {label!r}"
    return ValueError(
        f"{whose} has a missingness model and inclusion probabilities: its rows can't "
        "be weighed twice. Leave out one of them."
    )


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
    if missingness is None:
        return None
    if isinstance(missingness, str):
        return "ignore"
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
        if len(lossy) != 1:
            which = (
                f"classes {listed(lossy)} have some" if lossy else "no class has any"
            )
            raise ValueError(
                "A missingness model by itself is that of the class that has blanks, "
                f"and here {which}. Say which class it is for: "
                f"missingness={{{known[-1]!r}: model}}."
            )
        return {lossy[0]: missingness}
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
        What is there or missing together counts once.

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


def only_columns(required: BoolArray) -> BoolArray | IntArray:
    """The column that each feature needs where it needs no other, else as given."""
    if (required.sum(axis=1) == 1).all():
        return np.asarray(required.argmax(axis=1))
    return required
