"""Labels and scores of a batch of rows, by a model of two classes or of several."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.app.modelfile import FrameModel, MulticlassTableModel, TableModel
from missratio.app.workflow._measured import (
    Measured,
    MeasuredClasses,
    MeasuredErrors,
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
    """

    codes: IntArray
    scores: dict[str, FloatArray]
    unscored: BoolArray


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
    def of(self, X: FloatArray) -> Labelled:
        """What encoded rows get."""

    @abstractmethod
    def measured(self) -> MeasuredErrors:
        """A count of errors, empty yet."""


@dataclass(frozen=True, eq=False)
class TwoClasses(Labelling):
    """The other class above a threshold, and the controlled class elsewhere.

    Parameters
    ----------
    model : TableModel
    """

    model: TableModel

    @property
    def labels(self) -> list[Any]:
        """The controlled class, and the other."""
        return [self.model.certificate.controlled_class, self.model.other_class]

    @property
    def columns(self) -> list[str]:
        """One column."""
        return [SCORE]

    def of(self, X: FloatArray) -> Labelled:
        """What encoded rows get."""
        scores, above = self.model.score(X)
        return Labelled(above.astype(np.intp), {SCORE: scores}, scores == -np.inf)

    def measured(self) -> Measured:
        """The two errors."""
        return Measured(self.model)


@dataclass(frozen=True, eq=False)
class SeveralClasses(Labelling):
    """One of several classes.

    Parameters
    ----------
    model : MulticlassTableModel
    """

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

    def of(self, X: FloatArray) -> Labelled:
        """What encoded rows get."""
        codes, scores = self.model.decide(X)
        by_class = dict(zip(self.columns, scores.T, strict=True))
        return Labelled(codes, by_class, np.isnan(scores[:, 0]))

    def measured(self) -> MeasuredClasses:
        """The errors of every class."""
        return MeasuredClasses(self.model)


def labelling_of(model: FrameModel) -> Labelling:
    """How a model labels rows."""
    if isinstance(model, MulticlassTableModel):
        return SeveralClasses(model)
    assert isinstance(model, TableModel)
    return TwoClasses(model)
