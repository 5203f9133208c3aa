"""Two samples of which rows or entries may be missing, and what complete rows weigh."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from missratio._base.blocks import inverse_where_positive, take_rows
from missratio._base.reading import column_names, read_floats
from missratio._base.typing import FloatArray, IntArray
from missratio.missingness import row_probability
from missratio.ratio import check_columns, stack_samples
from missratio.rows import (
    ClassModel,
    check_inclusion,
    check_missingness,
    class_model,
)
from missratio.weights import complete_row_weights

Inclusion = tuple[ArrayLike | None, ArrayLike | None] | None


class ConfidenceInterval(NamedTuple):
    """The ends of an interval."""

    low: float
    high: float


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

    @cached_property
    def rows(self) -> IntArray:
        """The places of complete rows."""
        return np.flatnonzero(self.weights)

    @cached_property
    def complete(self) -> FloatArray:
        """Complete rows."""
        return self.table[self.rows]

    @cached_property
    def shares(self) -> FloatArray:
        """The weights of complete rows, of sum one."""
        return np.asarray(self.weights[self.rows] / self.weights.sum())

    def mean(self, values: FloatArray) -> float:
        """The weighted mean (Hájek's) of values of complete rows."""
        return float(self.shares @ values)

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
    numerator, denominator = missingness.get(1), missingness.get(0)
    if numerator is denominator:
        return True
    if type(numerator) is not type(denominator) or not is_dataclass(numerator):
        return False
    return all(
        np.array_equal(getattr(numerator, each.name), getattr(denominator, each.name))
        for each in fields(numerator)
    )


def with_missingness(estimator: Any, missingness: Any) -> Any:
    """A clone of an estimator that is told of φ."""
    fresh = clone(estimator)
    return fresh if missingness is None else fresh.set_params(missingness=missingness)


def fit_some(
    samples: Samples, kept: Sequence[IntArray], estimator: Any, missingness: Any
) -> Any:
    """Fit a clone to some rows of both samples."""
    fitted = with_missingness(estimator, missingness)
    pairs = list(zip(samples, kept, strict=True))
    X, y = stack_samples(*(sample.take(rows) for sample, rows in pairs))
    if all(sample.inclusion is None for sample in samples):
        return fitted.fit(X, y)
    parts = []
    for sample, rows in pairs:
        known = np.ones(len(sample)) if sample.inclusion is None else sample.inclusion
        parts.append(known[rows])
    if any(part.ndim == 2 for part in parts):
        # A row that was drawn whole has the probability of its row in every entry.
        width = samples[0].table.shape[1]
        parts = [p if p.ndim == 2 else np.tile(p[:, None], (1, width)) for p in parts]
    return fitted.fit(X, y, inclusion=np.concatenate(parts))
