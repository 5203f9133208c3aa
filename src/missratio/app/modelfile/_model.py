"""A classifier of two classes with the columns of the table that it is for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from missratio._base.typing import BoolArray, FloatArray
from missratio.app.modelfile._frame import TwoClassModel
from missratio.classifier import Certificate
from missratio.uncertainty import RatioUncertainty


@dataclass(frozen=True, eq=False)
class TableModel(TwoClassModel):
    """A certified classifier of the rows of a table, as `missratio fit` makes it.

    Parameters
    ----------
    classifier, encoder, target, dropped, method, training, report, comparison
        As for every model of a table; the classifier is a NeymanPearsonClassifier.
    covariance : ndarray of shape (n_coefficients + 1, n_coefficients + 1), optional
        That of the ratio's coefficients and log normaliser, for standard errors.
    rest : tuple of str
        Labels that the other class stands for, where it is all but the controlled one.
    """

    covariance: FloatArray | None = None
    rest: tuple[str, ...] = ()

    @property
    def certificate(self) -> Certificate:
        """What is guaranteed."""
        certificate: Certificate = self.classifier.certificate_
        return certificate

    @property
    def fallback(self) -> Any:
        """The label of a row that can't be scored: the controlled class."""
        return self.certificate.controlled_class

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
        return self._labels(self.score(self.encode(X))[1])

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
        scores = self._scores(X)
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
