"""Labels and scores of a batch of rows, by any model of a table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.app.modelfile import (
    FrameModel,
    GroupedTableModel,
    MulticlassTableModel,
    TableModel,
)
from missratio.app.workflow._measured import (
    Measured,
    MeasuredClasses,
    MeasuredErrors,
    MeasuredGroups,
)

SCORE = "score"


@dataclass(frozen=True, eq=False)
class Labelled:
    """What rows get.

    Parameters
    ----------
    codes : ndarray of int of shape (n_rows,)
        Places of their labels.
    scores : dict from str to ndarray of shape (n_rows,)
        By the name of the column that they are written to.
    unscored : ndarray of bool of shape (n_rows,)
        Rows without a score.
    notes : dict from int to str
        Why rows that have a score got a label that it doesn't tell of, by their place.
    """

    codes: IntArray
    scores: dict[str, FloatArray]
    unscored: BoolArray
    notes: dict[int, str] = field(default_factory=dict)


class Labelling(ABC):
    """How a model labels rows."""

    @property
    @abstractmethod
    def labels(self) -> list[Any]:
        """The labels that rows may get."""

    @property
    @abstractmethod
    def columns(self) -> list[str]:
        """The columns of scores."""

    @abstractmethod
    def of(self, X: FloatArray, groups: list[Any] | None = None) -> Labelled:
        """What encoded rows get.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_encoded)
        groups : list of str or None, optional
            What the table has in the column of groups.
        """

    @abstractmethod
    def measured(self) -> MeasuredErrors:
        """A count of errors, empty yet."""


@dataclass(frozen=True, eq=False)
class TwoClasses(Labelling):
    """The other class above a threshold, and the controlled class elsewhere."""

    model: TableModel

    @property
    def labels(self) -> list[Any]:
        """The controlled class, and the other."""
        return [self.model.certificate.controlled_class, self.model.other_class]

    @property
    def columns(self) -> list[str]:
        """One column."""
        return [SCORE]

    def of(self, X: FloatArray, groups: list[Any] | None = None) -> Labelled:
        """What encoded rows get."""
        scores, above = self.model.score(X)
        return Labelled(above.astype(np.intp), {SCORE: scores}, scores == -np.inf)

    def measured(self) -> Measured:
        """The two errors."""
        return Measured(self.model)


@dataclass(frozen=True, eq=False)
class SeveralClasses(Labelling):
    """One of several classes."""

    model: MulticlassTableModel

    @property
    def labels(self) -> list[Any]:
        """The classes, sorted."""
        classes: list[Any] = self.model.classes_.tolist()
        return classes

    @property
    def columns(self) -> list[str]:
        """One for each class."""
        return [f"{SCORE}_{label}" for label in self.labels]

    def of(self, X: FloatArray, groups: list[Any] | None = None) -> Labelled:
        """What encoded rows get."""
        codes, scores = self.model.decide(X)
        by_class = dict(zip(self.columns, scores.T, strict=True))
        return Labelled(codes, by_class, np.isnan(scores[:, 0]))

    def measured(self) -> MeasuredClasses:
        """The errors of every class."""
        return MeasuredClasses(self.model)


@dataclass(frozen=True, eq=False)
class Groups(Labelling):
    """The other class above the threshold of a row's group."""

    model: GroupedTableModel

    @property
    def labels(self) -> list[Any]:
        """The controlled class, and the other."""
        return [self.model.fallback, self.model.other_class]

    @property
    def columns(self) -> list[str]:
        """One column."""
        return [SCORE]

    def of(self, X: FloatArray, groups: list[Any] | None = None) -> Labelled:
        """What encoded rows get; those of a group without a threshold say so."""
        model = self.model
        texts = [None] * len(X) if groups is None else groups
        members = model.members(texts)
        scores, above = model.score(X, members)
        lost = np.flatnonzero(np.isposinf(model.limits(len(X), members)))
        notes = {int(row): self._note(texts[row], members[row]) for row in lost}
        unscored = scores == -np.inf
        return Labelled(above.astype(np.intp), {SCORE: scores}, unscored, notes)

    def measured(self) -> MeasuredGroups:
        """The two errors of each group."""
        return MeasuredGroups(self.model)

    def _note(self, text: Any, member: Any) -> str:
        """Why a row has no threshold."""
        column = self.model.group_column
        if text is None:
            return f"{column!r} is missing, and each group has its own threshold"
        if member is None:
            return f"group {text!r} of {column!r} is new, and has no threshold"
        return f"group {text!r} has no certified threshold"


def labelling_of(model: FrameModel) -> Labelling:
    """How a model labels rows."""
    if isinstance(model, GroupedTableModel):
        return Groups(model)
    if isinstance(model, MulticlassTableModel):
        return SeveralClasses(model)
    assert isinstance(model, TableModel)
    return TwoClasses(model)
