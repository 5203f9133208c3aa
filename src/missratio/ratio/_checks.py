"""What a joint fit refuses, and what it reports of its rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from sklearn.utils.validation import validate_data

from missratio._typing import FloatArray, IntArray
from missratio.engine import Sample
from missratio.exceptions import DataError, Message, Remedy
from missratio.ratio._base import BaseRatio
from missratio.ratio._rows import ClassRows
from missratio.weights import SampleSize, effective_sample_size


def stack_samples(X1: Any, X0: Any) -> tuple[Any, Any]:
    """Two tables as one labelled table."""
    frames = [nw.from_native(X, eager_only=True, pass_through=True) for X in (X1, X0)]
    labels = np.repeat([1, 0], [len(X1), len(X0)])
    if all(isinstance(frame, nw.DataFrame) for frame in frames):
        return nw.concat(frames, how="vertical").to_native(), labels
    tables = [np.asarray(X) for X in (X1, X0)]
    check_widths(*tables)
    return np.concatenate(tables), labels


def read_two_samples(
    estimator: BaseRatio, X1: Any, X0: Any
) -> tuple[FloatArray, FloatArray]:
    """Validate a numerator and a denominator table of the same columns."""
    tables = [
        validate_data(
            estimator,
            X,
            reset=True,
            dtype=[np.float64, np.float32],
            ensure_all_finite=False,
        )
        for X in (X1, X0)
    ]
    check_widths(*tables)
    validate_data(estimator, X1, reset=False, skip_check_array=True)
    estimator.classes_ = np.array([0, 1])
    return tables[0], tables[1]


def check_widths(X1: Any, X0: Any) -> None:
    """Refuse tables of different widths."""
    if np.ndim(X1) == np.ndim(X0) == 2 and X1.shape[1] != X0.shape[1]:
        raise ValueError(
            f"X1 has {X1.shape[1]} columns and X0 has {X0.shape[1]}: both samples must "
            "have the same columns."
        )


def check_rank(
    denominator: Sample,
    rows: ClassRows,
    named: Callable[[IntArray], tuple[tuple[int, ...], tuple[str, ...]]],
    penalty: FloatArray,
) -> None:
    """Refuse, where there is no penalty, what can't have a single optimum.

    `named` gives positions and names of some of the features, for messages.
    """
    n_rows, n_features = denominator.n_rows, int((penalty == 0.0).sum())
    if n_rows <= n_features:
        raise DataError(
            Message(
                "Class {label!r} has {n_rows} observed rows (n_samples = {n_rows}) for "
                "{n_features} features: without a penalty there is no finite optimum.",
                label=rows.label,
                remedies=(Remedy.PENALTY, Remedy.FEWER_FEATURES, Remedy.MORE_ROWS),
                facts={"n_rows": n_rows, "n_features": n_features},
            )
        )
    constant = constant_features(denominator)
    constant = constant[penalty[constant] == 0.0]
    if len(constant):
        raise constant_error(rows.label, *named(constant))


def constant_error(
    label: Any, columns: tuple[int, ...], names: tuple[str, ...]
) -> DataError:
    """The error of features that are the same in all rows of a class."""
    return DataError(
        Message(
            "Feature(s) [{columns}] are constant over the observed rows of class "
            "{label!r}: their coefficients are not determined.",
            label=label,
            columns=columns,
            names=names,
            remedies=(Remedy.DROP_COLUMNS, Remedy.PENALTY),
        )
    )


def constant_features(sample: Sample) -> IntArray:
    """Features with one value only over all rows of a sample."""
    few = sample.peek()
    suspects = np.flatnonzero((few[0] == few[0, 0]).all(axis=0))
    for start in range(0, sample.n_rows, 65_536):
        if not len(suspects):
            break
        block, _ = sample.block(start, start + 65_536)
        same = (block[0][:, suspects] == few[0, 0, suspects]).all(axis=0)
        suspects = suspects[same]
    return suspects


def class_size(rows: ClassRows, weights: FloatArray | None) -> SampleSize:
    """The effective size of a class; of its worst feature under partial missingness."""
    if weights is None or weights.ndim == 1:
        return rows.size(weights)
    worst = int(np.argmin(effective_sample_size(weights, axis=0)))
    return rows.size(np.ascontiguousarray(weights[:, worst]))


def feature_sizes(
    rows: ClassRows, weights: FloatArray | None, n_features: int
) -> FloatArray:
    """Kish's effective number of rows behind each feature's mean."""
    if weights is None:
        return np.full(n_features, float(rows.n_rows))
    size = np.asarray(effective_sample_size(weights, axis=0))
    return np.broadcast_to(size, (n_features,)).copy()
