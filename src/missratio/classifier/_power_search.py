"""Which of several estimators has the most power, by training rows left out in turn."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from missratio._base.blocks import take_rows
from missratio._base.typing import FloatArray, IntArray
from missratio.classifier._comparison import (
    PowerComparison,
    measured_power,
    too_few,
)
from missratio.classifier._scores import complete_mask, scorable, score_rows
from missratio.classifier._search import CandidateSearch
from missratio.classifier._training import fit_estimator
from missratio.missingness import Missingness, RowInclusion
from missratio.weights import complete_row_weights


class PowerSearch(CandidateSearch):
    """The candidate with the most cross-validated power at α, fitted to all its rows.

    Leaves rows out in turn, fits each candidate to the others, and scores those left
    out. A candidate's power is the share of class 1 above the threshold that a share α
    of class 0 is above; rows are weighted by 1/(1 − φ) where rows to be classified are
    complete. With fewer than three rows of class 0, by their effective number, above
    such a threshold nothing is compared, and the first candidate is taken. Inside a
    `NeymanPearsonClassifier` it sees the rows to fit on and no
    calibration row, so the certificate holds whichever candidate is taken.

    Parameters
    ----------
    candidates : mapping from str to estimator
        With `decision_function` or `predict_proba`. Of equal ones the first is taken.
    alpha : float, default=0.05
    missingness : mapping from {0, 1} to Missingness, optional
        Why values are missing; reaches the candidates as `NeymanPearsonClassifier` does
        it.
    deployment : {"complete", "as-observed"}, default="complete"
        Rows to be classified are complete, or lose values as these did.
    folds : int, default=5
        In how many parts rows are left out.
    seconds : float, default=60.0
        A candidate that would take the comparison beyond this time, of the processor,
        is left out of it. The first is compared in any case.
    most_rows : int, default=5000
        Of each class, so many rows at most are compared on; the winner is fitted to
        all.
    random_state : int, Generator or None, default=None
        For the draw of the parts.
    on_candidate : callable, optional
        Told the name of each candidate before it is tried.

    Attributes
    ----------
    comparison_ : PowerComparison
        What was measured, and which candidate was taken.
    estimator_ : estimator
        The winner, fitted to all rows.
    classes_ : ndarray of shape (2,)

    Examples
    --------
    >>> import numpy as np
    >>> import missratio as mr
    >>> from missratio.classifier import PowerSearch
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(0, 1, (500, 2)), rng.normal(0, 3, (500, 2))])
    >>> y = np.repeat([0, 1], 500)
    >>> curved = mr.FDivergenceRatio("js", basis="polynomial")
    >>> search = PowerSearch({"line": mr.KLIEP(), "curve": curved}, random_state=0)
    >>> clf = mr.NeymanPearsonClassifier(search, random_state=0).fit(X, y)
    >>> clf.estimator_.comparison_.chosen
    'curve'
    """

    def __init__(
        self,
        candidates: Mapping[str, Any],
        alpha: float = 0.05,
        missingness: Mapping[int, Missingness] | None = None,
        deployment: Literal["complete", "as-observed"] = "complete",
        folds: int = 5,
        seconds: float = 60.0,
        most_rows: int = 5_000,
        random_state: Any = None,
        on_candidate: Callable[[str], None] | None = None,
    ) -> None:
        self.candidates = candidates
        self.alpha = alpha
        self.missingness = missingness
        self.deployment = deployment
        self.folds = folds
        self.seconds = seconds
        self.most_rows = most_rows
        self.random_state = random_state
        self.on_candidate = on_candidate

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        inclusion: ArrayLike | None = None,
        **params: Any,
    ) -> Self:
        """Compare the candidates, and fit the best to all rows.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_columns)
            NaN where a value is missing.
        y : array-like of shape (n_rows,)
            Labels 0, of the controlled class, and 1.
        inclusion : array-like, optional
            Where values were looked up, with which probability.
        **params : dict
            For the candidates' fits.

        Returns
        -------
        Self
        """
        labels = np.asarray(y)
        self.classes_ = np.unique(labels)
        if self.classes_.tolist() != [0, 1]:
            raise ValueError(
                f"y must hold the labels 0 and 1, got {self.classes_.tolist()}. Give "
                "the search to a NeymanPearsonClassifier, which takes any two."
            )
        given, drawn = self._drawn(X, labels, inclusion)
        rows = _Rows(X, labels, self.missingness, given, drawn, params)
        self.comparison_ = self._compared(rows)
        best = self.candidates[self.comparison_.chosen]
        self.estimator_ = rows.fit(best, np.arange(len(labels)))
        return self

    def decision_function(self, X: Any) -> FloatArray:
        """The winner's scores.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_columns)

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        check_is_fitted(self, "estimator_")
        return score_rows(self.estimator_, X, np.ones(X.shape[0], dtype=bool), 1.0)

    def predict(self, X: Any) -> Any:
        """Class 1 where the score is positive.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_columns)

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        return (self.decision_function(X) > 0.0).astype(int)

    def _compared(self, rows: _Rows) -> PowerComparison:
        start = time.process_time()
        found, best, used, note = self._compare(rows)
        sizes = [int((rows.labels[used] == label).sum()) for label in (0, 1)]
        return PowerComparison(
            chosen=best,
            candidates=tuple(found),
            alpha=float(self.alpha),
            folds=int(self.folds),
            controlled_rows=sizes[0],
            other_rows=sizes[1],
            seconds=time.process_time() - start,
            budget=float(self.seconds),
            note=note,
        )

    def _indistinct(self, rows: Any, index: IntArray) -> str:
        """Whether too few rows are complete."""
        weights = rows.weights(self.deployment)[index]
        whole = "complete rows" if self.deployment == "complete" else "rows"
        return too_few(rows.labels[index] == 1, weights, self.alpha, whole)

    def _measured(
        self, rows: Any, index: IntArray, scores: FloatArray
    ) -> tuple[float | None, float | None, float, str]:
        """The power at error α."""
        weights = rows.weights(self.deployment)[index]
        power, error = measured_power(
            scores, rows.labels[index] == 1, weights, self.alpha
        )
        return power, error, np.inf if power is None else -power, ""

    def __sklearn_tags__(self) -> Any:
        """Two classes, labelled 0 and 1; missing values are welcome."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.allow_nan = True
        return tags


@dataclass(frozen=True)
class _Rows:
    """The rows that candidates are fitted to, and why values of them are missing."""

    X: Any
    labels: IntArray
    missingness: Mapping[int, Missingness] | None
    inclusion: FloatArray | None
    drawn: RowInclusion | None
    params: dict[str, Any]

    def fit(self, candidate: Any, index: IntArray) -> Any:
        """A clone of a candidate, fitted to some rows."""
        inclusion, drawn = self.inclusion, self.drawn
        return fit_estimator(
            candidate,
            take_rows(self.X, index),
            self.labels[index],
            np.arange(len(index)),
            self.missingness,
            0,
            {
                name: _safe_indexing(value, index) if np.ndim(value) else value
                for name, value in self.params.items()
            },
            None if inclusion is None else inclusion[index],
            None if drawn is None else drawn.take(index),
        )

    def scores(self, fitted: Any, index: IntArray, deployment: str) -> FloatArray:
        """Scores of some rows; −∞ for those that can't be scored."""
        X = take_rows(self.X, index)
        return score_rows(fitted, X, scorable(X, deployment), 1.0)

    def weights(self, deployment: str) -> FloatArray:
        """What each row stands for among rows to be classified."""
        weights = np.ones(len(self.labels))
        if deployment == "as-observed":
            return weights
        for label in (0, 1):
            mine = np.flatnonzero(self.labels == label)
            rows, model = take_rows(self.X, mine), (self.missingness or {}).get(label)
            if model is not None:
                weights[mine] = complete_row_weights(rows, model)
            elif self.drawn is not None:
                weights[mine] = self.drawn.take(mine).weights
            else:
                weights[mine] = complete_mask(rows)
        return weights
