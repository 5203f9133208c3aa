"""A certified classifier with the columns of its table, as `missratio fit` makes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from missratio._base.storable import storable
from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio._files.cells import canonical
from missratio.app.tables.columns import Encoder, as_arrow, as_frame
from missratio.classifier import (
    Certificate,
    GroupedNeymanPearsonClassifier,
    MulticlassNeymanPearsonClassifier,
    NeymanPearsonClassifier,
)

TWO_CLASSES, SEVERAL_CLASSES, GROUPS = "two classes", "several classes", "groups"
KINDS: dict[str, type] = {
    TWO_CLASSES: NeymanPearsonClassifier,
    SEVERAL_CLASSES: MulticlassNeymanPearsonClassifier,
    GROUPS: GroupedNeymanPearsonClassifier,
}
"""The kinds of certified classifiers, which a model file can hold."""


def kind_of(classifier: Any) -> str | None:
    """Which kind of promise a classifier makes; None for one that makes none."""
    return next((k for k, cls in KINDS.items() if isinstance(classifier, cls)), None)


def certificates_of(classifier: Any) -> tuple[Certificate, ...]:
    """The certificate of each promise of a fitted classifier."""
    whole = classifier.certificate_
    return (whole,) if isinstance(whole, Certificate) else whole.certificates


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
    ranges : ndarray of shape (n_numeric, 2)
        The least and the largest value of each column of numbers, to three digits.
    """

    file: str
    sha256: str
    rows: dict[Any, int]
    missing: dict[Any, dict[str, int]]
    ranges: FloatArray = field(default_factory=lambda: np.empty((0, 2)), compare=False)


class TablePromise(NamedTuple):
    """A bound on the error of a class, or of its rows of a group where one is named."""

    label: Any
    group: Any
    alpha: float
    delta: float


class Decisions(NamedTuple):
    """What rows get."""

    codes: IntArray
    """Places of their labels among the model's `labels`."""
    scores: FloatArray
    """Of shape (n_rows, n_columns): one, or one for each of several classes."""
    unscored: BoolArray
    """Rows without a score."""
    notes: dict[int, str]
    """Why rows got a label that their score doesn't tell of, by their place."""


@storable()
@dataclass(frozen=True, eq=False)
class TableModel:
    """A certified classifier of the rows of a table.

    Parameters
    ----------
    classifier : classifier
        Fitted to the matrix that the encoder makes of a table: a
        `NeymanPearsonClassifier`, a `MulticlassNeymanPearsonClassifier` or a
        `GroupedNeymanPearsonClassifier`.
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
    rest : tuple of str
        Labels that the other class stands for, where it is all but the controlled one.
    group_column : str, optional
        The column that says which group each row is in; one of `dropped`, as it is not
        a feature.
    """

    classifier: Any
    encoder: Encoder
    target: str
    dropped: tuple[str, ...]
    method: str
    training: TrainingData
    report: str | None = None
    rest: tuple[str, ...] = field(kw_only=True, default=())
    group_column: str | None = field(kw_only=True, default=None)

    @property
    def kind(self) -> str:
        """What is promised: of "two classes", of "several classes", or to "groups"."""
        kind = kind_of(self.classifier)
        assert kind is not None
        return kind

    @property
    def certificate(self) -> Any:
        """What is guaranteed."""
        return self.classifier.certificate_

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels, sorted."""
        return np.asarray(self.classifier.classes_)

    @property
    def labels(self) -> list[Any]:
        """The labels that rows may get: of two, the controlled class first."""
        labels: list[Any] = self.classes_.tolist()
        if self.kind == SEVERAL_CLASSES:
            return labels
        return sorted(labels, key=lambda label: label != self.fallback)

    @property
    def other_class(self) -> Any:
        """Of two classes the one whose error isn't bounded."""
        return self.labels[1]

    @property
    def fallback(self) -> Any:
        """The label of a row that can't be scored."""
        if self.kind == SEVERAL_CLASSES:
            return self.certificate.fallback
        return certificates_of(self.classifier)[0].controlled_class

    @property
    def fallback_words(self) -> str:
        """What that label does to the guarantee, to end a sentence."""
        if self.kind != SEVERAL_CLASSES:
            return ", which keeps the guarantee"
        if self.certificate.order is not None:
            return ", the most severe class, which keeps the guarantee"
        return ": the guarantee is for rows that have a score"

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """The columns that a table must have, in any order."""
        return np.array(self.encoder.names, dtype=object)

    @property
    def score_columns(self) -> list[str]:
        """What scores are called: one, or one for each of several classes."""
        if self.kind != SEVERAL_CLASSES:
            return ["score"]
        return [f"score_{label}" for label in self.labels]

    @property
    def promises(self) -> list[TablePromise]:
        """The bounds that labelled rows can be held against."""
        certificates = certificates_of(self.classifier)
        # Each has an equal part of δ.
        part = self.certificate.delta / len(certificates)
        groups = getattr(self.certificate, "groups", [None] * len(certificates))
        return [
            TablePromise(each.controlled_class, group, each.alpha, part)
            for each, group in zip(certificates, groups, strict=True)
            # A group without a threshold has no error at all.
            if each.certified or self.kind != GROUPS
        ]

    def predict(self, X: Any) -> NDArray[Any]:
        """The label of each row of a dataframe, as `missratio predict` gives it.

        Parameters
        ----------
        X : dataframe of pandas, polars or PyArrow
            With the model's columns, in any order: numbers, and texts or categories;
            and with that of groups where each has a threshold of its own. A blank, NA,
            NaN or null is missing. The target and what was left out of the fit may be
            there.

        Returns
        -------
        ndarray of shape (n_rows,)
            `fallback` for a row that can't be scored, or whose group has no threshold.

        Examples
        --------
        >>> import missratio as mr
        >>> model = mr.load_model("model.skops")  # doctest: +SKIP
        >>> model.predict(frame)  # doctest: +SKIP
        array(['well', 'sick', 'well'], dtype='<U4')
        """
        encoded, groups = self.encode(X), None
        if (by := self.group_column) is not None:
            groups = self.encoder.with_marks(()).texts(as_arrow(X, [by]), by)
        labels = np.array(self.labels, dtype=self.classes_.dtype)
        return labels[self.decide(encoded, groups).codes]

    def score_samples(self, X: Any) -> FloatArray:
        """The score of each row of a dataframe, large where it is like `other_class`.

        Parameters
        ----------
        X : dataframe of pandas, polars or PyArrow
            As for `predict`.

        Returns
        -------
        ndarray of shape (n_rows,), or (n_rows, n_classes) of several classes
            A log density ratio, or what the method has in its place; −∞ for a row that
            can't be scored. Of several classes the log-scores of each, up to a common
            term, and NaN.
        """
        scores = self._scores(self.encode(X))
        return scores if self.kind == SEVERAL_CLASSES else scores[:, 0]

    def encode(self, X: Any) -> FloatArray:
        """The numbers that the classifier takes, of the rows of a dataframe.

        Parameters
        ----------
        X : dataframe of pandas, polars or PyArrow
            As for `predict`.

        Returns
        -------
        ndarray of shape (n_rows, encoder.width)
            Its columns as the estimator sees them.
        """
        remedy = "Leave them out, such as by X[model.feature_names_in_]."
        allowed = [self.target, *self.dropped]
        self.encoder.check_columns(as_frame(X).columns, allowed, remedy)
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

    def decide(
        self, X: FloatArray, groups: Sequence[str | None] | None = None
    ) -> Decisions:
        """What encoded rows get, and why.

        Parameters
        ----------
        X : ndarray of shape (n_rows, encoder.width)
        groups : sequence of str or None, optional
            What the table has in the column of groups.
        """
        scores = self._scores(X)
        if self.kind == SEVERAL_CLASSES:
            codes = self.classifier.decision_.decide(scores)
            return Decisions(codes, scores, np.isnan(scores[:, 0]), {})
        notes: dict[int, str] = {}
        if self.kind == TWO_CLASSES:
            limits = self.classifier.threshold_
        else:
            texts = [None] * len(X) if groups is None else groups
            members, thresholds = self.members(texts), self.classifier.thresholds_
            # A group that isn't known is None, which has no threshold.
            limits = np.array([thresholds.get(group, np.inf) for group in members])
            for row in np.flatnonzero(np.isposinf(limits)).tolist():
                named = f"group {texts[row]!r}"
                notes[row] = f"{named} has no certified threshold"
                if texts[row] is None:
                    why = "is missing, and each group has its own threshold"
                    notes[row] = f"{self.group_column!r} {why}"
                elif members[row] is None:
                    new = f"of {self.group_column!r} is new, and has no threshold"
                    notes[row] = f"{named} {new}"
        above = scores[:, 0] > limits
        return Decisions(above.astype(np.intp), scores, scores[:, 0] == -np.inf, notes)

    def _scores(self, X: FloatArray) -> FloatArray:
        """Scores of encoded rows in columns; −∞, or NaN of several, where none are."""
        # A category that was never seen, or a blank one, can't be scored, whatever an
        # estimator that takes NaN makes of it.
        unseen = np.asarray(np.isnan(X[:, self.encoder.n_numeric :]).any(axis=1))
        if self.kind == SEVERAL_CLASSES:
            scores = self.classifier.class_scores(self.named(X))
            return np.where(unseen[:, None], np.nan, scores)
        scores = self.classifier.score_samples(self.named(X))
        return np.where(unseen, -np.inf, scores)[:, None]

    def members(self, texts: Sequence[str | None]) -> list[Any]:
        """The groups that texts stand for; None for those that the model has not.

        Parameters
        ----------
        texts : sequence of str or None
        """
        every = getattr(self.classifier, "groups_", ())
        known = {canonical(group): group for group in every}
        return [None if x is None else known.get(canonical(x)) for x in texts]

    def wrong(self, codes: IntArray, label: Any) -> BoolArray:
        """Which rows of a bounded class got a label that they must not get.

        Parameters
        ----------
        codes : ndarray of int of shape (n_rows,)
            The places of their labels.
        label : object
            The class that they are of.
        """
        wrong: Sequence[Any] = [self.other_class]
        if self.kind == SEVERAL_CLASSES:
            wrong = self.certificate[label].other_class
        return np.isin(codes, [self.labels.index(other) for other in wrong])
