"""Errors of the two kinds, with exact intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from inspect import signature
from typing import Any, NamedTuple, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import beta
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import MetadataRequest
from sklearn.utils.validation import check_consistent_length, column_or_1d

from missratio._base.hints import check_choice, check_probability, listed
from missratio._base.reading import read_labels
from missratio._base.typing import BoolArray, FloatArray


class Interval(NamedTuple):
    """A confidence interval for a probability."""

    low: float
    high: float


def exact_interval(
    n_events: float, n_rows: float, confidence: float = 0.95
) -> Interval:
    """Clopper and Pearson's interval for a probability, from n_events of n_rows.

    Parameters
    ----------
    n_events, n_rows : int
        Or numbers that are not whole, where weighted rows tell as much as so many.
    confidence : float, default=0.95

    Returns
    -------
    Interval
        Its ends `low` and `high`.

    Examples
    --------
    >>> from missratio.evaluation import exact_interval
    >>> interval = exact_interval(5, 100)
    >>> round(interval.low, 3), round(interval.high, 3)
    (0.016, 0.113)
    """
    if not 0 <= n_events <= n_rows or n_rows == 0:
        raise ValueError(
            f"n_events must lie between 0 and n_rows > 0, got {n_events} of {n_rows}."
        )
    check_probability("confidence", confidence)
    tail, rest = (1.0 - confidence) / 2.0, n_rows - n_events
    low = beta.ppf(tail, n_events, rest + 1) if n_events else 0.0
    high = beta.ppf(1.0 - tail, n_events + 1, rest) if rest else 1.0
    return Interval(float(low), float(high))


def weighted_share(
    events: BoolArray | FloatArray,
    weights: FloatArray,
    confidence: float = 0.95,
    doubt: float = 0.0,
) -> tuple[float, Interval]:
    """The weighted share of events (Hájek), and its interval.

    Events may be numbers, whose mean is a share, with a standard error of its own.

    The interval is Clopper and Pearson's where all rows count the same. Otherwise it is
    Korn and Graubard's: for as many equal rows as would have the share's variance. Rows
    of weight zero are left out, and there must be another.
    """
    events, weights = events[weights > 0.0], weights[weights > 0.0]
    n_rows = len(events)
    if events.dtype == bool and (weights == weights[0]).all():
        n_events = int(events.sum())
        return n_events / n_rows, exact_interval(n_events, n_rows, confidence)
    weights = weights / weights.sum()
    share = min(max(float(weights @ events), 0.0), 1.0)
    size = min(float(1.0 / (weights @ weights)), n_rows)
    variance = float((weights**2) @ (events - share) ** 2) + doubt**2
    # One row may have all the weight there is, as far as numbers go.
    if variance > 0.0:
        near = share
        if events.dtype != bool:
            # Numbers may have a mean of 0 or 1 by chance.
            near = float(np.clip(share, min(variance**0.5, 0.5), 1 - variance**0.5))
        size = min(size, near * (1.0 - near) / variance)
    return share, exact_interval(share * size, size, confidence)


class ErrorOptions(TypedDict, total=False):
    """The options of `type_i_error`, and the confidence of an interval."""

    controlled_class: Any
    sample_weight: ArrayLike | None
    confidence: float


def _as_other(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    of_controlled: bool,
    controlled_class: Any = 0,
    sample_weight: ArrayLike | None = None,
    confidence: float = 0.95,
) -> tuple[float, Interval]:
    """The weighted share of one class's rows that are classified as the other class."""
    truth, predicted = read_labels(y_true), np.asarray(column_or_1d(y_pred))
    check_consistent_length(truth, predicted, sample_weight)
    is_other = predicted != controlled_class
    known = not is_other.all() or (truth == controlled_class).any()
    labels = {controlled_class} if known else {*truth.tolist(), *predicted.tolist()}
    if len(labels) > 1:
        choices = listed(sorted(labels, key=repr), 5)
        raise ValueError(
            f"controlled_class={controlled_class!r} is not among the labels {choices}. "
            "Say which of them is to be controlled."
        )
    rows = (truth == controlled_class) == of_controlled
    weights = np.ones(len(truth))
    if sample_weight is not None:
        weights = np.asarray(column_or_1d(sample_weight), dtype=np.float64)
        if not ((weights >= 0.0) & np.isfinite(weights)).all():
            raise ValueError("sample_weight must be finite and not negative.")
    if not weights[rows].any():
        which = "the controlled" if of_controlled else "the other"
        raise ValueError(
            f"y_true has no row of {which} class with a positive weight "
            f"(controlled_class={controlled_class!r}): its error can't be measured."
        )
    return weighted_share(is_other[rows], weights[rows], confidence)


def type_i_error(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    controlled_class: Any = 0,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Share of the controlled class's rows that are classified as the other class.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_rows,)
    controlled_class : object, default=0
    sample_weight : array-like of shape (n_rows,), optional
        For rows that have lost values, to estimate the error on complete rows: the
        weights that `NeymanPearsonClassifier.row_weights` returns.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> from missratio import type_i_error
    >>> type_i_error([0, 0, 0, 0, 1], [0, 1, 0, 0, 1])
    0.25
    """
    return _as_other(y_true, y_pred, True, controlled_class, sample_weight)[0]


def type_ii_error(
    y_true: ArrayLike, y_pred: ArrayLike, **options: Unpack[ErrorOptions]
) -> float:
    """Share of the other class's rows that are classified as the controlled class.

    Parameters and result are those of `type_i_error`.

    Examples
    --------
    >>> from missratio import type_ii_error
    >>> type_ii_error([0, 0, 1, 1], [0, 1, 1, 0])
    0.5
    """
    return 1.0 - power(y_true, y_pred, **options)


def power(
    y_true: ArrayLike, y_pred: ArrayLike, **options: Unpack[ErrorOptions]
) -> float:
    """Share of the other class's rows that are recognised: one minus the type II error.

    Parameters and result are those of `type_i_error`.

    Examples
    --------
    >>> from missratio import power
    >>> power([0, 0, 1, 1, 1, 1], [0, 1, 1, 0, 1, 1])
    0.75
    """
    return _as_other(y_true, y_pred, False, **options)[0]


def type_i_interval(
    y_true: ArrayLike, y_pred: ArrayLike, **options: Unpack[ErrorOptions]
) -> Interval:
    """Confidence interval of the type I error, exact without weights.

    Its level is `confidence`, 0.95 unless it is given. With weights it is Korn and
    Graubard's, for as many rows as tell as much, and holds approximately. The other
    parameters are those of `type_i_error`.

    Examples
    --------
    >>> from missratio.evaluation import type_i_interval
    >>> low, high = type_i_interval([0] * 100, [0] * 95 + [1] * 5)
    >>> round(low, 3), round(high, 3)
    (0.016, 0.113)
    """
    return _as_other(y_true, y_pred, True, **options)[1]


def power_interval(
    y_true: ArrayLike, y_pred: ArrayLike, **options: Unpack[ErrorOptions]
) -> Interval:
    """Confidence interval of the power, of the kind that `type_i_interval` gives.

    Examples
    --------
    >>> from missratio.evaluation import power_interval
    >>> low, high = power_interval([1] * 100, [1] * 95 + [0] * 5)
    >>> round(low, 3), round(high, 3)
    (0.887, 0.984)
    """
    return _as_other(y_true, y_pred, False, **options)[1]


KINDS = {"type_i_error": type_i_error, "type_ii_error": type_ii_error, "power": power}


def error_scorer(kind: str, controlled_class: Any = None) -> ErrorScorer:
    """A scorer for cross-validation and grid search.

    Parameters
    ----------
    kind : {"type_i_error", "type_ii_error", "power"}
        Errors are negated, so that larger is better.
    controlled_class : object, optional
        None takes that of the classifier: its `controlled_class`, or the one class of
        several whose error is bounded; else the first of its classes.

    Returns
    -------
    ErrorScorer
        Called as scorer(classifier, X, y). Where a classifier is for complete rows and
        X has lost values, rows are weighted by its models of φ, and refused where it
        has none.

    Examples
    --------
    >>> import numpy as np
    >>> import missratio as mr
    >>> from sklearn.model_selection import cross_val_score
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(0, 1, (600, 2)), rng.normal(1.5, 1, (600, 2))])
    >>> y = np.repeat(["well", "sick"], 600)
    >>> clf = mr.NeymanPearsonClassifier(
    ...     mr.KLIEP(), alpha=0.1, controlled_class="well", random_state=0
    ... )
    >>> scores = cross_val_score(clf, X, y, scoring=mr.error_scorer("power"))
    >>> bool(scores.mean() > 0.6)
    True
    """
    check_choice("kind", kind, list(KINDS))
    return ErrorScorer(kind, controlled_class)


@dataclass(frozen=True)
class ErrorScorer:
    """A scorer of one of the errors, for complete rows.

    Parameters
    ----------
    kind : {"type_i_error", "type_ii_error", "power"}
    controlled_class : object, optional
        None takes that of the classifier.
    """

    kind: str
    controlled_class: Any = None

    def get_metadata_routing(self) -> MetadataRequest:
        """The groups of rows are asked for, where scikit-learn routes metadata.

        Returns
        -------
        MetadataRequest
            That asks for `groups`.
        """
        request = MetadataRequest(owner=self)
        request.score.add_request(param="groups", alias=True)
        return request

    def __call__(
        self, estimator: Any, X: Any, y: ArrayLike, groups: ArrayLike | None = None
    ) -> float:
        """The score: rows that lost values are weighted, or refused.

        Parameters
        ----------
        estimator : classifier
            Fitted; a pipeline's last step counts.
        X, y : array-like
        groups : array-like of shape (n_rows,), optional
            For a classifier whose `predict` takes them, as one with a threshold for
            each group does.

        Returns
        -------
        float
        """
        classifier, rows = estimator, X
        if isinstance(estimator, Pipeline):
            classifier = estimator[-1]
            if hasattr(classifier, "row_weights"):
                rows = estimator[:-1].transform(X)
        bounded = getattr(classifier, "alpha", None)
        bounded = [*bounded] if isinstance(bounded, Mapping) else []
        labels = self.controlled_class, getattr(classifier, "controlled_class", None)
        labels = *labels, *bounded, classifier.classes_[0]
        controlled = next(label for label in labels if label is not None)
        if self.controlled_class is None and len(bounded) > 1:
            raise ValueError(
                f"The errors of classes {listed(bounded)} are bounded. Say which is "
                f"meant, as by error_scorer({self.kind!r}, {controlled!r})."
            )
        weights, more = None, {}
        if hasattr(classifier, "row_weights"):
            weights = classifier.row_weights(rows, y)
        if groups is not None and "groups" in signature(classifier.predict).parameters:
            more = {"groups": groups}
        predicted = estimator.predict(X, **more)
        options = {"controlled_class": controlled, "sample_weight": weights}
        value = KINDS[self.kind](y, predicted, **options)
        return value if self.kind == "power" else -value
