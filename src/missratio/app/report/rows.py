"""The rows that a report is about, and the columns of their table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import ArrayLike

from missratio._base.blocks import any_by_row, take_rows
from missratio._base.reading import as_array, as_frame
from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.app.modelfile import certificates_of
from missratio.classifier import complete_mask, known_labels
from missratio.learning import LearnedMissingness
from missratio.missingness import BlockMissingness, Missingness, RowInclusion
from missratio.weights import complete_row_weight_edges


@dataclass(frozen=True)
class LabelledRows:
    """Rows of all classes, and the classifier that a report is about.

    Parameters
    ----------
    classifier : classifier
        Fitted, of any kind that has a certificate.
    X : array or dataframe of shape (n_rows, n_columns)
    y : ndarray of shape (n_rows,)
    weights : ndarray of shape (n_rows,)
        What each row stands for where complete rows are meant; 1 where rows to be
        classified lose values as these did.
    inclusion : ndarray of shape (n_rows,) or (n_rows, n_columns), optional
        Where values were looked up, with what probability each row or entry is in X.
    before : array or dataframe of shape (n_rows, n_columns), optional
        X without the values looked up, where that is another table.
    groups : ndarray of object of shape (n_rows,), optional
        The group of each row, where groups have promises of their own.
    """

    classifier: Any
    X: Any
    y: Any
    weights: FloatArray
    inclusion: FloatArray | None = None
    before: Any = None
    groups: Any = None

    @classmethod
    def read(
        cls,
        classifier: Any,
        X: Any,
        y: ArrayLike,
        inclusion: FloatArray | None = None,
        *,
        before: Any = None,
        groups: Any = None,
    ) -> LabelledRows:
        """Check rows against what the classifier was fitted with, and weigh them."""
        if not hasattr(X, "columns"):
            X = as_array(X)
        labels = known_labels(y, X, classifier.classes_)
        if groups is not None:
            groups = np.asarray(groups, dtype=object)
        weights = np.ones(len(labels))
        rows = cls(classifier, X, labels, weights, inclusion, before, groups)
        if classifier.deployment == "complete":
            for label in set(labels[~rows.complete].tolist()):
                index, model = rows.index(label), rows.model(label)
                weights[index] = rows.complete[index]
                if model is not None:
                    mine = rows.rows(label)
                    low, _ = complete_row_weight_edges(mine, model, delta=None)
                    weights[index] = low
                elif rows.drawn is not None:
                    weights[index] = rows.drawn.weights[index]
        return rows

    @cached_property
    def bounded(self) -> tuple[Any, ...]:
        """The labels of the classes whose errors are bounded."""
        every = certificates_of(self.classifier)
        return tuple(dict.fromkeys(promise.controlled_class for promise in every))

    @cached_property
    def labels(self) -> tuple[Any, ...]:
        """All labels, those of bounded classes first."""
        every = self.classifier.classes_.tolist()
        return *self.bounded, *(label for label in every if label not in self.bounded)

    @property
    def controlled(self) -> Any:
        """The label of the controlled class."""
        return self.labels[0]

    @property
    def other(self) -> Any:
        """The label of the other class."""
        return self.labels[1]

    def index(self, label: Any) -> IntArray:
        """Where rows of a class are."""
        return np.flatnonzero(self.y == label)

    def rows(self, label: Any) -> Any:
        """The rows of a class."""
        return take_rows(self.X, self.index(label))

    def take(self, index: IntArray) -> LabelledRows:
        """Some of the rows."""
        names = ("X", "y", "weights", "inclusion", "before", "groups")
        parts = {name: getattr(self, name) for name in names}
        taken = {k: take_rows(v, index) for k, v in parts.items() if v is not None}
        return replace(self, **taken)

    def sampled(self, most: int, rng: np.random.Generator) -> LabelledRows:
        """At most so many rows of each class, drawn at random, in their order."""
        chosen = [
            index if len(index) <= most else rng.choice(index, most, replace=False)
            for index in map(self.index, self.labels)
        ]
        return self.take(np.sort(np.concatenate(chosen)))

    def predicted(self) -> Any:
        """What the classifier calls the rows."""
        if not len(self.y):
            return self.y
        more = () if self.groups is None else (self.groups,)
        return self.classifier.predict(self.X, *more)

    @property
    def as_found(self) -> LabelledRows:
        """The rows without what was looked up."""
        if self.before is None:
            return self
        return replace(self, X=self.before, inclusion=None, before=None)

    @cached_property
    def drawn(self) -> RowInclusion | None:
        """The draw by which whole rows are there; None where none was looked up."""
        if self.inclusion is None:
            return None
        return RowInclusion.of(self.inclusion, self.complete, self.X.shape[1], self.y)

    @cached_property
    def complete(self) -> BoolArray:
        """Which rows have no missing value."""
        return complete_mask(self.X)

    def model(self, label: Any) -> Missingness | None:
        """Why rows of a class are missing; None where no model was given."""
        models = self.classifier._models() or {}
        model: Missingness | None = models.get(label)
        return model


def narrowed(model: Any, end: int) -> Any:
    """A model with what was stated at the mildest (0) or steepest end of its range."""
    if isinstance(model, BlockMissingness):
        return replace(model, base=narrowed(model.base, end))
    return model.narrowed(end) if isinstance(model, LearnedMissingness) else model


@dataclass(frozen=True)
class Names:
    """What the features are called, and which columns of a table they come from.

    Parameters
    ----------
    features : sequence of str
    origins : sequence of str
        The original column of each feature: several of one, where it has categories.
    blank : frozenset of int
        The places of features that say that their column is blank.
    """

    features: Sequence[str]
    origins: Sequence[str]
    blank: frozenset[int] = frozenset()

    @cached_property
    def members(self) -> dict[str, list[int]]:
        """The original columns, and the places of the features of each."""
        places: dict[str, list[int]] = {}
        for j, origin in enumerate(self.origins):
            places.setdefault(origin, []).append(j)
        return places

    def missing(self, X: Any) -> BoolArray:
        """Which rows lack which original columns, (n, n_columns)."""
        values, missing = numbers(X)
        for j in self.blank:
            missing[:, j] |= values[:, j] == 1.0
        every = (missing[:, places].any(axis=1) for places in self.members.values())
        return np.column_stack([*every])

    def blanks(self, X: Any) -> BoolArray:
        """Which rows lack something."""
        return any_by_row(self.missing(X))


def numbers(X: Any) -> tuple[FloatArray, BoolArray]:
    """The numbers of a table, NaN where there are none, and what is missing of it."""
    frame = as_frame(X)
    if frame is None:
        array = as_array(X)
        if array.dtype.kind in "fiub":
            values = np.asarray(array, dtype=np.float64)
            return values, np.isnan(values)
        lost = [[x is None or x != x for x in row] for row in array.tolist()]
        return np.full(array.shape, np.nan), np.array(lost, dtype=bool)
    values, missing = np.full(frame.shape, np.nan), np.empty(frame.shape, dtype=bool)
    for j, name in enumerate(frame.columns):
        series = frame.get_column(name)
        missing[:, j] = series.is_null().to_numpy()
        if series.dtype.is_numeric() or series.dtype == nw.Boolean:
            values[:, j] = series.cast(nw.Float64).fill_null(np.nan).to_numpy()
            missing[:, j] |= np.isnan(values[:, j])
    return values, missing
