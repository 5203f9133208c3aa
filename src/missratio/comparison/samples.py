"""Two samples of which rows or entries may be missing, and what complete rows weigh."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from missratio._base.blocks import inverse_where_positive, take_rows
from missratio._base.reading import column_names, read_floats
from missratio._base.typing import FloatArray, IntArray
from missratio.missingness import Missingness, row_probability
from missratio.ratio import check_columns, stack_samples
from missratio.rows import (
    ClassModel,
    check_inclusion,
    check_missingness,
    class_model,
)
from missratio.weights import complete_row_weights

Inclusion = tuple[ArrayLike | None, ArrayLike | None] | None


@dataclass(frozen=True)
class ComparedSample:
    """Rows of one sample.

    Parameters
    ----------
    given : array-like or dataframe of shape (n_rows, n_columns)
        As the user has them.
    table : ndarray of shape (n_rows, n_columns)
    weights : ndarray of shape (n_rows,)
        1/P(complete), and 0 for a row with a missing value.
    model : Missingness, "ignore" or None
        Why values are missing, for these columns.
    inclusion : ndarray, or None
        Probabilities by design.
    """

    given: Any
    table: FloatArray
    weights: FloatArray
    model: ClassModel
    inclusion: FloatArray | None

    def __len__(self) -> int:
        return len(self.weights)

    def take(self, chosen: IntArray) -> Any:
        """Some rows, as the user has them."""
        return take_rows(self.given, chosen)


Samples = tuple[ComparedSample, ComparedSample]


def read_samples(X1: Any, X0: Any, missingness: Any, inclusion: Inclusion) -> Samples:
    """The numerator's and the denominator's sample, checked."""
    check_missingness(missingness, [0, 1])
    given = (None, None) if inclusion is None else inclusion
    if not isinstance(given, tuple) or len(given) != 2:
        raise TypeError(
            "inclusion must be a tuple of the numerator's and the denominator's "
            f"probabilities, either of them None; got {type(inclusion).__name__}."
        )
    samples = [
        _read(X, label, class_model(missingness, label, column_names(X)), each)
        for X, label, each in ((X1, 1, given[0]), (X0, 0, given[1]))
    ]
    check_columns(X1, X0)
    return samples[0], samples[1]


def _read(
    X: Any, label: int, model: ClassModel, inclusion: ArrayLike | None
) -> ComparedSample:
    table = read_floats(X, f"X{label}")
    if not len(table):
        raise ValueError(f"X{label} has no rows.")
    if inclusion is None:
        weights = complete_row_weights(table, model)
        known = None
    elif model is not None:
        raise ValueError(
            f"Sample X{label} has a missingness model and inclusion probabilities: its "
            "rows can't be weighed twice. Leave out the one or the other."
        )
    else:
        known = check_inclusion(inclusion, table)
        product = known if known.ndim == 1 else row_probability(known)
        weights = inverse_where_positive(product)
    if np.count_nonzero(weights) < 2:
        raise ValueError(
            f"X{label} has {np.count_nonzero(weights)} complete row(s) of "
            f"{len(table)}; at least 2 are needed."
        )
    return ComparedSample(X, table, weights, model, known)


def missing_alike(missingness: Any, inclusion: Inclusion) -> bool:
    """Whether both samples lose values for the same reason, as far as is known."""
    if inclusion is not None and any(each is not None for each in inclusion):
        return False
    if not isinstance(missingness, Mapping):
        return True
    return _same(missingness.get(1), missingness.get(0))


def _same(own: Missingness | None, other: Missingness | None) -> bool:
    if own is other:
        return True
    if type(own) is not type(other) or not is_dataclass(own):
        return False
    return all(
        np.array_equal(getattr(own, each.name), getattr(other, each.name))
        for each in fields(own)
    )


def fit_some(
    samples: Samples,
    kept: list[IntArray],
    estimator: Any,
    missingness: Any,
) -> Any:
    """Fit a clone to some rows of both samples."""
    fitted = clone(estimator)
    if missingness is not None:
        fitted.set_params(missingness=missingness)
    X, y = stack_samples(
        *(take_rows(each.given, rows) for each, rows in zip(samples, kept, strict=True))
    )
    if all(each.inclusion is None for each in samples):
        return fitted.fit(X, y)
    shapes = [each.table.shape for each in samples]
    parts = [
        np.ones(shape) if each.inclusion is None else each.inclusion
        for each, shape in zip(samples, shapes, strict=True)
    ]
    if any(part.ndim == 2 for part in parts):
        parts = [
            part if part.ndim == 2 else np.broadcast_to(part[:, None], shape)
            for part, shape in zip(parts, shapes, strict=True)
        ]
    chosen = [part[rows] for part, rows in zip(parts, kept, strict=True)]
    return fitted.fit(X, y, inclusion=np.concatenate(chosen))
