"""A classifier with the columns of the table that it is for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from missratio._base.typing import BoolArray, FloatArray
from missratio.app.tables import Encoder, as_arrow, column_names
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
    rest : tuple of str
        Labels that the other class stands for, where it is all but the controlled one.
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
    rest: tuple[str, ...] = ()

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

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """The columns that a table must have, in any order."""
        return np.array(self.encoder.names, dtype=object)

    @property
    def classes_(self) -> NDArray[Any]:
        """The two labels."""
        classes: NDArray[Any] = self.classifier.classes_
        return classes

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
            The controlled class for a row that can't be scored.

        Examples
        --------
        >>> import missratio as mr
        >>> model = mr.load_model("model.skops")  # doctest: +SKIP
        >>> model.predict(frame)  # doctest: +SKIP
        array(['well', 'sick', 'well'], dtype='<U4')
        """
        _, above = self.score(self.encode(X))
        labels = np.array([self.certificate.controlled_class, self.other_class])
        return labels[above.astype(np.intp)]

    def score_samples(self, X: Any) -> FloatArray:
        """The score of each row of a dataframe, large where it is like `other_class`.

        Parameters
        ----------
        X : dataframe of pandas, polars or PyArrow
            As for `predict`.

        Returns
        -------
        ndarray of shape (n_rows,)
            A log density ratio, or what the method has in its place; −∞ for a row that
            can't be scored.
        """
        return self.score(self.encode(X))[0]

    def decision_function(self, X: Any) -> FloatArray:
        """How far each row's score is above the certified threshold.

        Parameters
        ----------
        X : dataframe of pandas, polars or PyArrow
            As for `predict`.

        Returns
        -------
        ndarray of shape (n_rows,)
            Above 0 where the label is `other_class`; −∞ for a row that can't be scored,
            and for every row where no threshold was certified.
        """
        scores = self.score_samples(X)
        threshold = self.classifier.threshold_
        if threshold == np.inf:
            return np.full(len(scores), -np.inf)
        return np.asarray(scores - threshold)

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
        scores = self.classifier.score_samples(self.named(X))
        # Rows with a category that was never seen can't be scored, whatever an
        # estimator that takes NaN makes of them.
        first = self.encoder.n_numeric
        if X.shape[1] > first:
            unseen = np.isnan(X[:, first:]).any(axis=1)
            scores = np.where(unseen, -np.inf, scores)
        return scores, scores > self.classifier.threshold_

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
