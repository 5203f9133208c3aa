"""From a labelled table to the two weighted samples of an objective."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from missratio._blocks import rows_with_nan
from missratio._threads import one_blas_thread, share
from missratio._typing import BoolArray, FloatArray, IntArray
from missratio.engine import BLOCK_ELEMENTS, Sample
from missratio.exceptions import Message, Remedy, UnexplainedMissingError
from missratio.missingness import Missingness
from missratio.weights import (
    SampleSize,
    inverse_probability_weights,
    row_weights,
    sample_size,
    warn_if_concentrated,
)

Normalization = Literal["hajek", "horvitz-thompson", "regression"]
ClassModel = Missingness | Literal["ignore"] | None
# Samples up to the first size are copied column by column, which numpy is fast along;
# up to the second row by row, so that the class lies together; larger ones stay put.
COLUMN_MAJOR_ELEMENTS = 262_144
COPIED_ELEMENTS = 8_000_000


@dataclass(frozen=True, slots=True)
class ClassRows:
    """One class's rows, and why they weigh what they do.

    Parameters
    ----------
    label : object
        The class, for messages.
    index : ndarray of int, or slice
        Its rows in the table; a slice where they are consecutive.
    n_rows : int
    weights : ndarray of shape (n_rows,) or (n_rows, n_columns), or None
        1{observed}/(1 − φ) by row or by entry; None where all are one.
    sample_weight : ndarray of shape (n_rows,), or None
    maximum : float, or None
        ‖φ‖∞ where the model knows it.
    normalize : {"hajek", "horvitz-thompson", "regression"}
    ignores : bool
        Whether complete cases are taken for the whole.
    sums : ndarray of shape (n_features,), or None
        The features' sums over all rows, where they are known.
    adjusted : ndarray of shape (n_rows, n_features), or None
        Terms whose mean takes the place of a weighted mean, where they are known.
    """

    label: Any
    index: IntArray | slice
    n_rows: int
    weights: FloatArray | None
    sample_weight: FloatArray | None
    maximum: float | None
    normalize: Normalization
    ignores: bool = False
    sums: FloatArray | None = None
    adjusted: FloatArray | None = None

    def total(self, weights: FloatArray | None) -> FloatArray:
        """What weighted sums are divided by, for weights of rows (or features)."""
        if weights is not None and self.normalize != "horvitz-thompson":
            return np.atleast_1d(weights.sum(axis=0))
        if self.sample_weight is not None:
            return np.atleast_1d(self.sample_weight.sum())
        return np.array([float(self.n_rows)])

    def combined(self, weights: FloatArray | None) -> FloatArray | None:
        """Times the sample weights."""
        if self.sample_weight is None:
            return weights
        if weights is None:
            return self.sample_weight
        if weights.ndim == 2:
            return weights * self.sample_weight[:, None]
        return weights * self.sample_weight

    def whole_row_weights(self) -> FloatArray | None:
        """Weights of complete rows, by the product over entries where need be."""
        weights = self.weights
        if weights is not None and weights.ndim == 2:
            weights = row_weights(weights)
        return weights

    def block(self, features: FloatArray, which: slice) -> FloatArray:
        """Some consecutive rows of the class."""
        if isinstance(self.index, slice):
            start = self.index.start
            return features[start + which.start : start + which.stop]
        return np.take(features, self.index[which], axis=0, mode="clip")

    def take(self, chosen: BoolArray) -> ClassRows:
        """Some of the rows."""
        index = self.index
        if isinstance(index, slice):
            index = np.arange(index.start, index.stop)
        own = self.sample_weight
        return replace(
            self,
            index=index[chosen],
            n_rows=int(np.count_nonzero(chosen)),
            weights=None if self.weights is None else self.weights[chosen],
            sample_weight=None if own is None else own[chosen],
            sums=None,
            adjusted=None if self.adjusted is None else self.adjusted[chosen],
        )

    def size(self, weights: FloatArray | None) -> SampleSize:
        """How much the weights leave of the sample."""
        if weights is None:
            n_rows = float(self.n_rows)
            return SampleSize(self.n_rows, self.n_rows, n_rows, n_rows)
        size = sample_size(weights, self.maximum)
        if self.ignores:
            return replace(size, worst_case=float(size.observed))
        return size


def read_class(
    X: FloatArray,
    index: IntArray | slice,
    label: Any,
    model: ClassModel,
    sample_weight: FloatArray | None,
    normalize: Normalization,
    *,
    complete: bool,
    names: Sequence[str] | None = None,
    sums: FloatArray | None = None,
) -> ClassRows:
    """Weigh one class's rows of a table.

    Parameters
    ----------
    X : ndarray of shape (n_all_rows, n_columns)
    index, label
        The class's rows, and its name for messages.
    model : Missingness, "ignore" or None
    sample_weight : ndarray of shape (n_all_rows,), or None
    normalize : {"hajek", "horvitz-thompson"}
    complete : bool
        Whether the whole table is known to hold no NaN.
    names : sequence of str, optional
        Of the columns, for messages.
    sums : ndarray of shape (n_features,), optional
        The features' sums over all rows.
    """
    n_rows = index.stop - index.start if isinstance(index, slice) else len(index)
    weights, maximum = None, 0.0 if model is None else None
    if isinstance(model, Missingness) or (model == "ignore" and not complete):
        try:
            weights = inverse_probability_weights(X[index], model)
        except ValueError as error:
            raise ValueError(f"Class {label!r}: {error}") from error
    elif not complete:
        _refuse_nan(X, index, label, names)
    if isinstance(model, Missingness):
        maximum = model.maximum
    else:
        # Complete cases stand for themselves only: they share the weight.
        normalize = "hajek"
    if weights is not None and not weights.any():
        raise ValueError(
            f"Class {label!r} has no observed row among its {n_rows}: bring rows in "
            "which something is observed."
        )
    if sample_weight is not None:
        sample_weight = sample_weight[index]
        if not sample_weight.any():
            raise ValueError(
                f"sample_weight is zero in all rows of class {label!r}: a ratio needs "
                "rows of both classes."
            )
    return ClassRows(
        label,
        index,
        n_rows,
        weights,
        sample_weight,
        maximum,
        normalize,
        ignores=model == "ignore",
        sums=sums,
    )


def _refuse_nan(
    X: FloatArray, index: IntArray | slice, label: Any, names: Sequence[str] | None
) -> None:
    # To look through all rows in their order is quicker than to gather the class's.
    lacking = rows_with_nan(X)[index]
    if not lacking.any():
        return
    columns = np.flatnonzero(np.isnan(X[index][lacking]).any(axis=0))
    places = tuple(columns.tolist())
    raise UnexplainedMissingError(
        Message(
            "Class {label!r} has NaN in column(s) {columns} and no missingness model.",
            label=label,
            columns=places,
            names=places if names is None else tuple(str(names[j]) for j in places),
            remedies=(Remedy.MODEL, Remedy.COMPLETE_CASES),
        )
    )


def class_model(missingness: Any, label: Any) -> ClassModel:
    """The model of one class; None where there is none."""
    if missingness is None:
        return None
    if isinstance(missingness, str):
        return "ignore"
    model: ClassModel = missingness.get(label)
    return model


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


def observed_sample(
    features: FloatArray, rows: ClassRows, centre: FloatArray
) -> tuple[Sample, FloatArray | None]:
    """A class's complete rows as a sample, and the weights of all its rows.

    The features are centred where the sample is a copy: where it is small.
    """
    whole = rows.whole_row_weights()
    weights = rows.combined(whole)
    index = rows.index
    total = rows.total(weights)
    if weights is not None:
        observed = weights > 0.0
        if not observed.any():
            raise ValueError(
                f"Class {rows.label!r} has no row in which everything is observed (of "
                f"{rows.n_rows}), and its joint fit needs complete rows. Use "
                "NaiveBayesRatio, fewer columns, or more rows."
            )
        if not observed.all():
            if isinstance(index, slice):
                index = np.arange(index.start, index.stop)
            index, weights = index[observed], weights[observed]
        weights = weights[None].astype(features.dtype, copy=False)
    return _as_sample(features, index, weights, total, centre), whole


def _as_sample(
    features: FloatArray,
    index: IntArray | slice,
    weights: FloatArray | None,
    total: FloatArray,
    centre: FloatArray,
) -> Sample:
    """Small samples as a centred copy, large ones in place."""
    n_rows = index.stop - index.start if isinstance(index, slice) else len(index)
    size = n_rows * features.shape[1]
    if size <= COLUMN_MAJOR_ELEMENTS:
        columns = np.array(features[index].T, order="C")
        columns -= centre[:, None]
        return Sample(columns.T[None], total, weights, centred=True)
    if size <= COPIED_ELEMENTS:
        copied = _copy_rows(features, index, centre)
        return Sample(copied[None], total, weights, centred=True)
    if isinstance(index, slice):
        return Sample(features[None, index], total, weights)
    return Sample(features[None], total, weights, index)


def _copy_rows(
    features: FloatArray, index: IntArray | slice, centre: FloatArray
) -> FloatArray:
    """Gather rows less a centre, in blocks that threads share."""
    if isinstance(index, slice):
        index = np.arange(index.start, index.stop)
    copied = np.empty((len(index), features.shape[1]), dtype=features.dtype)
    shift = centre.astype(features.dtype, copy=False)
    length = max(1, BLOCK_ELEMENTS // max(features.shape[1], 1))

    def gather(start: int) -> None:
        block = copied[start : start + length]
        chosen = index[start : start + length]
        np.take(features, chosen, axis=0, out=block, mode="clip")
        block -= shift

    with one_blas_thread(copied.size) as threads:
        share(gather, range(0, len(index), length), threads)
    return copied


def check_concentration(
    weights: FloatArray | None,
    label: Any,
    names: Callable[[], Any],
    stacklevel: int,
) -> None:
    """Warn where a few rows carry the weight, once, for the worst feature."""
    if weights is None:
        return
    if weights.ndim == 1:
        about = Message("Class {label!r}", label=label)
        warn_if_concentrated(weights, about, stacklevel=stacklevel + 1)
        return
    squares = (weights**2).sum(axis=0) / weights.sum(axis=0) ** 2
    worst = int(np.argmax(squares * (weights > 0.0).sum(axis=0)))
    about = Message(
        "Class {label!r}, feature {columns}",
        label=label,
        columns=(worst,),
        names=(str(names()[worst]),),
    )
    warn_if_concentrated(weights[:, worst], about, stacklevel=stacklevel + 1)
