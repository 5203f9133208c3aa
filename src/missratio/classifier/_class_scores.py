"""One score for each class: how likely a row is under it, up to a common factor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import get_tags

from missratio._base.blocks import in_double, take_rows
from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.classifier._class_table import ClassTable, Models
from missratio.classifier._scores import probabilities, score_rows
from missratio.classifier._training import fit_estimator, missingness_parameters
from missratio.exceptions import DataError

# The logarithm of the least positive number: log-scores are kept this side of −∞.
LEAST_LOG = -745.0


@dataclass(frozen=True)
class ClassScores:
    """Fitted estimators, and the log-score of each class that they give a row.

    Parameters
    ----------
    estimators : tuple of estimator
        One that knows all classes; or one for each class but the reference, fitted to
        its rows (1) and to those of the reference (0).
    classes : tuple of int
        The class, by position, that each of several estimators is for.
    reference : int
        The position of the class that the others are compared with.
    n_classes : int
    """

    estimators: tuple[Any, ...]
    classes: tuple[int, ...]
    reference: int
    n_classes: int

    def of(self, X: Any, rows: BoolArray) -> FloatArray:
        """Scores of some rows; NaN for the others.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_columns)
        rows : ndarray of bool of shape (n_rows,)
            Which rows to score.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
        """
        scores = np.full((len(rows), self.n_classes), np.nan)
        if not rows.any():
            return scores
        if not self.classes:
            scores[rows] = _all_at_once(self.estimators[0], X, rows, scores.shape[1])
        else:
            scores[rows, self.reference] = 0.0
            for position, estimator in zip(self.classes, self.estimators, strict=True):
                scores[rows, position] = score_rows(estimator, X, rows, 1.0)[rows]
        scores[rows] = np.clip(
            np.nan_to_num(scores[rows], nan=LEAST_LOG), LEAST_LOG, -LEAST_LOG
        )
        return scores


def _all_at_once(estimator: Any, X: Any, rows: BoolArray, n_classes: int) -> FloatArray:
    chosen = in_double(X if rows.all() else take_rows(X, np.flatnonzero(rows)))
    if hasattr(estimator, "predict_proba"):
        probability = probabilities(estimator, chosen, n_classes)
        with np.errstate(divide="ignore"):
            return np.log(probability)
    if hasattr(estimator, "decision_function"):
        return np.asarray(estimator.decision_function(chosen), dtype=np.float64)
    raise TypeError(
        f"{estimator!r} has neither decision_function nor predict_proba: it can't "
        "score rows."
    )


@dataclass(frozen=True)
class Training:
    """Rows to fit on.

    Parameters
    ----------
    table : ClassTable
    rows : ndarray of int
    inclusion : ndarray of shape (n_rows,) or (n_rows, n_columns), or None
        The probabilities of a draw, for an estimator that takes them.
    params : dict
        Of the estimator's fit.
    """

    table: ClassTable
    rows: IntArray
    inclusion: FloatArray | None
    params: dict[str, Any]

    def fit(self, estimator: Any) -> ClassScores:
        """Fit one estimator to all classes, or one for each but a reference.

        Parameters
        ----------
        estimator : estimator
            One that only knows two classes, as density ratios do, is fitted to each
            class and the largest; of two classes the reference is the first.
        """
        n_classes = len(self.table.labels)
        counts = np.bincount(self.table.codes[self.rows], minlength=n_classes)
        reference = int(np.argmax(counts)) if n_classes > 2 else 0
        if n_classes > 2 and get_tags(estimator).classifier_tags.multi_class:
            every = {position: position for position in range(n_classes)}
            return ClassScores((self._fit(estimator, every),), (), 0, n_classes)
        others = tuple(k for k in range(n_classes) if k != reference)
        fitted = tuple(self._fit(estimator, {reference: 0, k: 1}) for k in others)
        return ClassScores(fitted, others, reference, n_classes)

    def _fit(self, estimator: Any, seen: dict[int, int]) -> Any:
        """Fit a clone that sees some classes, under other labels."""
        table = self.table
        renamed = {table.labels[position]: code for position, code in seen.items()}
        target = np.full(len(table.labels), -1)
        target[list(seen)] = list(seen.values())
        labels = target[table.codes]
        with _users_labels(renamed):
            return fit_estimator(
                _under_labels(estimator, renamed),
                table.X,
                labels,
                self.rows[labels[self.rows] >= 0],
                _renamed(table.models, renamed),
                None,
                self.params,
                self.inclusion,
                table.drawn,
            )


def _renamed(models: Models | None, codes: Mapping[Any, int]) -> Models | None:
    """Models under the labels that an estimator sees."""
    if models is None:
        return None
    return {code: models[label] for label, code in codes.items() if label in models}


def _under_labels(estimator: Any, codes: Mapping[Any, int]) -> Any:
    """A clone whose own models are under the labels that it will see."""
    estimator = clone(estimator)
    for name, value in missingness_parameters(estimator).items():
        if isinstance(value, Mapping):
            estimator.set_params(**{name: _renamed(value, codes)})
    return estimator


@contextmanager
def _users_labels(codes: Mapping[Any, int]) -> Iterator[None]:
    """Errors of an estimator under the users' labels."""
    try:
        yield
    except DataError as error:
        labels = {code: label for label, code in codes.items()}
        raise error.relabelled(labels) from error
