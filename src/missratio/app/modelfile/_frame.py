"""What every model of a table's rows has: its columns, and where they came from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from missratio._base.typing import BoolArray, FloatArray
from missratio.app.tables import Encoder, as_arrow, column_names
from missratio.classifier import PowerComparison


@dataclass(frozen=True)
class TrainingData:
    """Which table a model was fitted on.

    Parameters
    ----------
    file : str
        The file's name, without its folder.
    sha256 : str
        The digest of its content, as `sha256sum` gives it.
    rows : dict
        Rows of each class.
    missing : dict
        Missing cells of each class and column, where there are some.
    """

    file: str
    sha256: str
    rows: dict[Any, int]
    missing: dict[Any, dict[str, int]]


@dataclass(frozen=True, eq=False)
class FrameModel(ABC):
    """A certified classifier of the rows of a table.

    Parameters
    ----------
    classifier : classifier
        Fitted to the matrix that the encoder makes of a table.
    encoder : Encoder
        Column names and types.
    target : str
        The column of labels.
    dropped : tuple of str
        Columns of the training table that are not used.
    method : str
    training : TrainingData
    report : str, optional
        What `missratio report` shows, as JSON.
    comparison : PowerComparison, optional
        The methods that were compared, where the method was chosen so.
    """

    classifier: Any
    encoder: Encoder
    target: str
    dropped: tuple[str, ...]
    method: str
    training: TrainingData
    report: str | None = None
    comparison: PowerComparison | None = None

    @property
    @abstractmethod
    def certificate(self) -> Any:
        """What is guaranteed."""

    @property
    @abstractmethod
    def fallback(self) -> Any:
        """The label of a row that can't be scored."""

    @property
    @abstractmethod
    def fallback_words(self) -> str:
        """What that label does to the guarantee, to end a sentence."""

    @abstractmethod
    def predict(self, X: Any) -> NDArray[Any]:
        """The label of each row of a dataframe."""

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """The columns that a table must have, in any order."""
        return np.array(self.encoder.names, dtype=object)

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels."""
        classes: NDArray[Any] = self.classifier.classes_
        return classes

    def encode(self, X: Any) -> FloatArray:
        """The numbers that the classifier takes, of the rows of a dataframe.

        Parameters
        ----------
        X : dataframe of pandas, polars or PyArrow
            As for `predict`.

        Returns
        -------
        ndarray of shape (n_rows, encoder.width)
        """
        remedy = "Leave them out, such as by X[model.feature_names_in_]."
        allowed = [self.target, *self.dropped]
        self.encoder.check_columns(column_names(X), allowed, remedy)
        encoder = self.encoder.with_marks(())
        return encoder.encode(as_arrow(X, encoder.names))

    def named(self, X: FloatArray) -> Any:
        """Encoded rows as the classifier knows them: with names, if it was given some.

        Parameters
        ----------
        X : ndarray of shape (n_rows, encoder.width)
        """
        if not hasattr(self.classifier, "feature_names_in_"):
            return X
        import pyarrow

        names = self.encoder.encoded_names
        return pyarrow.table({name: X[:, j] for j, name in enumerate(names)})

    def unseen(self, X: FloatArray) -> BoolArray:
        """Which encoded rows have a category that was never seen, or a blank one.

        They can't be scored, whatever an estimator that takes NaN makes of them.

        Parameters
        ----------
        X : ndarray of shape (n_rows, encoder.width)
        """
        return np.asarray(np.isnan(X[:, self.encoder.n_numeric :]).any(axis=1))


@dataclass(frozen=True, eq=False)
class TwoClassModel(FrameModel):
    """A model of two classes: a row that can't be scored gets the controlled one."""

    @property
    def fallback_words(self) -> str:
        """What that label does to the guarantee."""
        return ", which keeps the guarantee"

    @property
    def other_class(self) -> Any:
        """The label of the class whose error isn't bounded."""
        labels = self.classifier.classes_.tolist()
        return next(label for label in labels if label != self.fallback)

    def _scores(self, X: FloatArray) -> FloatArray:
        """Scores of encoded rows; −∞ where there are none."""
        scores = self.classifier.score_samples(self.named(X))
        return np.where(self.unseen(X), -np.inf, scores)

    def _labels(self, above: BoolArray) -> NDArray[Any]:
        """The labels of rows, by which of them score above their threshold."""
        return np.array([self.fallback, self.other_class])[above.astype(np.intp)]
