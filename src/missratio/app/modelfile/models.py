"""What every model of a table's rows has: its columns, and where they came from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from missratio._base.storable import storable
from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio._files.numbers import canonical
from missratio.app.tables import Encoder, as_arrow, column_names, flat
from missratio.classifier import (
    Certificate,
    GroupedCertificate,
    MulticlassCertificate,
    PowerComparison,
)
from missratio.uncertainty import RatioUncertainty


@storable()
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
    """A model of two classes: a row that can't be scored gets the controlled one.

    Parameters
    ----------
    rest : tuple of str
        Labels that the other class stands for, where it is all but the controlled one.
    """

    rest: tuple[str, ...] = field(kw_only=True, default=())

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


@storable(finite=("covariance",))
@dataclass(frozen=True, eq=False)
class TableModel(TwoClassModel):
    """A certified classifier of the rows of a table, as `missratio fit` makes it.

    Parameters
    ----------
    classifier, encoder, target, dropped, method, training, report, comparison
        As for every model of a table; the classifier is a NeymanPearsonClassifier.
    covariance : ndarray of shape (n_coefficients + 1, n_coefficients + 1), optional
        That of the ratio's coefficients and log normaliser, for standard errors.
    """

    covariance: FloatArray | None = None

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


@storable()
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


@storable()
@dataclass(frozen=True, eq=False)
class GroupedTableModel(TwoClassModel):
    """A classifier with a promise to each group, as `missratio fit --groups` makes it.

    Parameters
    ----------
    classifier, encoder, target, dropped, method, training, report, comparison
        As for every model of a table; the classifier is a
        GroupedNeymanPearsonClassifier.
    group_column : str
        The column that says which group each row is in; one of `dropped`, as it is not
        a feature.
    """

    group_column: str = field(kw_only=True)

    @property
    def certificate(self) -> GroupedCertificate:
        """What is guaranteed."""
        certificate: GroupedCertificate = self.classifier.certificate_
        return certificate

    @property
    def fallback(self) -> Any:
        """The label of a row without a score or a threshold: the controlled class."""
        return self.classifier.controlled_class

    @property
    def needs_groups(self) -> bool:
        """Whether a row's label depends on its group."""
        return not self.certificate.shared

    def predict(self, X: Any) -> NDArray[Any]:
        """The label of each row of a dataframe, as `missratio predict` gives it.

        Parameters
        ----------
        X : dataframe of pandas, polars or PyArrow
            With the model's columns, in any order, and that of groups. A blank, NA, NaN
            or null is missing. The target and what was left out of the fit may be
            there.

        Returns
        -------
        ndarray of shape (n_rows,)
            The controlled class for a row that can't be scored, or whose group has no
            threshold.
        """
        encoded, members = self.encode(X), None
        if self.needs_groups:
            table = as_arrow(X, [self.group_column])
            cells = self.encoder.with_marks(()).cells
            texts = cells.texts(flat(table.column(self.group_column)))
            members = self.members(texts.to_pylist())
        return self._labels(self.score(encoded, members)[1])

    def members(self, texts: Sequence[Any]) -> NDArray[Any]:
        """The groups that texts stand for; None for those that the model has not.

        Parameters
        ----------
        texts : sequence of str or None
        """
        known = {canonical(group): group for group in self.classifier.groups_}
        found = np.empty(len(texts), dtype=object)
        found[:] = [None if x is None else known.get(canonical(x)) for x in texts]
        return found

    def score(
        self, X: FloatArray, members: NDArray[Any] | None
    ) -> tuple[FloatArray, BoolArray]:
        """Scores of encoded rows, and which of them get the other class.

        Parameters
        ----------
        X : ndarray of shape (n_rows, encoder.width)
        members : ndarray of object of shape (n_rows,), or None
            Their groups; needed where each has a threshold of its own.

        Returns
        -------
        scores : ndarray of shape (n_rows,)
            −∞ for a row that can't be scored.
        above : ndarray of bool of shape (n_rows,)
        """
        scores = self._scores(X)
        return scores, scores > self.limits(len(X), members)

    def limits(self, n_rows: int, members: NDArray[Any] | None) -> FloatArray:
        """The threshold of each row; ∞ where its group has none.

        Parameters
        ----------
        n_rows : int
        members : ndarray of object of shape (n_rows,), or None
        """
        thresholds = self.classifier.thresholds_
        if not self.needs_groups:
            return np.full(n_rows, thresholds[None])
        assert members is not None
        # A group that isn't known is None, which has no threshold.
        return np.array([thresholds.get(group, np.inf) for group in members.tolist()])
