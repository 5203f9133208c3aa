"""A classifier of several classes with the columns of the table that it is for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.app.modelfile._frame import FrameModel
from missratio.classifier import MulticlassCertificate


@dataclass(frozen=True, eq=False)
class MulticlassTableModel(FrameModel):
    """A classifier of several classes, as `missratio fit` makes it.

    Parameters
    ----------
    classifier, encoder, target, dropped, method, training, report, comparison
        As for every model of a table; the classifier is a
        MulticlassNeymanPearsonClassifier.
    """

    @property
    def certificate(self) -> MulticlassCertificate:
        """What is guaranteed."""
        certificate: MulticlassCertificate = self.classifier.certificate_
        return certificate

    @property
    def fallback(self) -> Any:
        """The label of a row that can't be scored."""
        return self.certificate.fallback

    @property
    def fallback_words(self) -> str:
        """What that label does to the guarantee."""
        if self.certificate.order is not None:
            return ", the most severe class, which keeps the guarantee"
        return ": the guarantee is for rows that have a score"

    def predict(self, X: Any) -> NDArray[Any]:
        """The label of each row of a dataframe, as `missratio predict` gives it.

        Parameters
        ----------
        X : dataframe of pandas, polars or PyArrow
            With the model's columns, in any order: numbers, and texts or categories. A
            blank, NA, NaN or null is missing. The target and what was left out of the
            fit may be there.

        Returns
        -------
        ndarray of shape (n_rows,)
            `certificate.fallback` for a row that can't be scored.
        """
        positions, _ = self.decide(self.encode(X))
        labels: NDArray[Any] = self.classes_[positions]
        return labels

    def class_scores(self, X: Any) -> FloatArray:
        """The log-scores of each class, up to a common term, of a dataframe's rows.

        Parameters
        ----------
        X : dataframe of pandas, polars or PyArrow
            As for `predict`.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            NaN for a row that can't be scored.
        """
        return self.score(self.encode(X))

    def score(self, X: FloatArray) -> FloatArray:
        """The log-scores of each class of encoded rows; NaN where there are none.

        Parameters
        ----------
        X : ndarray of shape (n_rows, encoder.width)
        """
        scores: FloatArray = self.classifier.class_scores(self.named(X))
        scores[self.unseen(X)] = np.nan
        return scores

    def decide(self, X: FloatArray) -> tuple[IntArray, FloatArray]:
        """Which class encoded rows get, by its place among the labels, and why.

        Parameters
        ----------
        X : ndarray of shape (n_rows, encoder.width)

        Returns
        -------
        positions : ndarray of int of shape (n_rows,)
        scores : ndarray of shape (n_rows, n_classes)
            NaN for a row that can't be scored and gets `certificate.fallback`.
        """
        scores = self.score(X)
        return self.classifier.decision_.decide(scores), scores

    def wrong(self, positions: IntArray, label: Any) -> BoolArray:
        """Which rows of a bounded class get a class that they must not get.

        Parameters
        ----------
        positions : ndarray of int of shape (n_rows,)
            The classes that rows of the class got.
        label : object
        """
        found: BoolArray = np.isin(
            self.classes_[positions], list(self.certificate[label].other_class)
        )
        return found
