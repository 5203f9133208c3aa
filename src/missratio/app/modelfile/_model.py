"""A classifier with the columns of the table that it is for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from missratio._typing import BoolArray, FloatArray
from missratio.app.tables import Encoder
from missratio.classifier import (
    Certificate,
    NeymanPearsonClassifier,
    PowerComparison,
)
from missratio.uncertainty import RatioUncertainty


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
class TableModel:
    """A certified classifier of the rows of a table, as `missratio fit` makes it.

    Parameters
    ----------
    classifier : NeymanPearsonClassifier
        Fitted to the matrix that the encoder makes of a table.
    encoder : Encoder
        Column names and types.
    target : str
        The column of labels.
    dropped : tuple of str
        Columns of the training table that are not used.
    method : str
    training : TrainingData
    covariance : ndarray of shape (n_coefficients + 1, n_coefficients + 1), optional
        That of the ratio's coefficients and log normaliser, for standard errors.
    report : str, optional
        What `missratio report` shows, as JSON.
    comparison : PowerComparison, optional
        The methods that were compared, where the method was chosen so.
    """

    classifier: NeymanPearsonClassifier
    encoder: Encoder
    target: str
    dropped: tuple[str, ...]
    method: str
    training: TrainingData
    covariance: FloatArray | None = None
    report: str | None = None
    comparison: PowerComparison | None = None

    @property
    def certificate(self) -> Certificate:
        """What is guaranteed."""
        certificate: Certificate = self.classifier.certificate_
        return certificate

    @property
    def other_class(self) -> Any:
        """The label of the class whose error isn't bounded."""
        labels = self.classifier.classes_.tolist()
        return next(x for x in labels if x != self.certificate.controlled_class)

    def score(self, X: FloatArray) -> tuple[FloatArray, BoolArray]:
        """Scores of encoded rows, and which of them get the other class.

        Parameters
        ----------
        X : ndarray of shape (n_rows, encoder.width)

        Returns
        -------
        scores : ndarray of shape (n_rows,)
            −∞ for a row that can't be scored.
        above : ndarray of bool of shape (n_rows,)
        """
        scores = self.classifier.score_samples(X)
        # Rows with a category that was never seen can't be scored, whatever an
        # estimator that takes NaN makes of them.
        first = self.encoder.n_numeric
        if X.shape[1] > first:
            unseen = np.isnan(X[:, first:]).any(axis=1)
            scores = np.where(unseen, -np.inf, scores)
        return scores, scores > self.classifier.threshold_

    def standard_errors(self, X: FloatArray) -> FloatArray:
        """Standard errors of the scores, log density ratios, of encoded rows.

        By the sandwich formula of `ratio_uncertainty`; a learned φ is allowed for.

        Parameters
        ----------
        X : ndarray of shape (n_rows, encoder.width)

        Returns
        -------
        ndarray of shape (n_rows,)
            NaN for a row that has a missing value.
        """
        if self.covariance is None:
            raise ValueError(
                "The model has no standard errors. Fit it with --standard-errors."
            )
        known = RatioUncertainty(self.classifier.estimator_, self.covariance, {})
        # A ratio fitted to complete rows takes no others.
        errors, complete = np.full(len(X), np.nan), ~np.isnan(X).any(axis=1)
        if complete.any():
            errors[complete] = known.log_ratio(X[complete])[1]
        return errors
