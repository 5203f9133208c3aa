"""Which of several estimators serves bounds on several classes best."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from missratio._base.typing import FloatArray, IntArray
from missratio.classifier._asked import Asked
from missratio.classifier._choosing import Choice, ChoosingRows, choose
from missratio.classifier._class_scores import ClassScores, Training
from missratio.classifier._class_table import ClassTable
from missratio.classifier._comparison import PowerComparison
from missratio.classifier._decisions import Decision, UnorderedDecision
from missratio.classifier._scores import scorable
from missratio.classifier._search import CandidateSearch
from missratio.missingness import Missingness

CROWDED = "bounded classes may leave each other no room"


class ClassSearch(CandidateSearch):
    """The candidate with the least cross-validated error under bounds on some classes.

    As `PowerSearch`, for a `MulticlassNeymanPearsonClassifier`. Of each candidate's
    scores of rows left out, offsets and thresholds are chosen as that classifier
    chooses them; what counts then is the mean error of the classes without a bound, and
    of all classes where they are ordered or all have one. A candidate with which
    bounded classes may leave each other no room counts as wrong that often.

    Parameters
    ----------
    candidates : mapping from str to estimator
        Each for several classes, or for two, which is fitted to each class and the
        largest. Of equal ones the first is taken.
    alpha : mapping from int to float
        The bounds, by the class's position among the sorted labels.
    delta : float, default=0.05
    order : sequence of int or None, default=None
        The positions of the classes, the most severe first, where they are ordered.
    certifying : float, default=1.0
        How many rows will certify a bound, for each row of the class to fit on.
    missingness : mapping from int to Missingness, optional
        Why values are missing, by position.
    deployment, folds, seconds, most_rows, random_state, on_candidate
        As for `PowerSearch`.

    Attributes
    ----------
    comparison_ : PowerComparison
    scores_ : ClassScores
        Of the winner, fitted to all rows.
    classes_ : ndarray of int

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.ensemble import HistGradientBoostingClassifier
    >>> from sklearn.linear_model import LogisticRegression
    >>> import missratio as mr
    >>> from missratio.classifier import ClassSearch
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(0, s, (400, 2)) for s in (0.3, 1.5, 6.0)])
    >>> y = np.repeat(["a", "b", "c"], 400)
    >>> compared = {"line": LogisticRegression(),
    ...             "trees": HistGradientBoostingClassifier(max_iter=20)}
    >>> search = ClassSearch(compared, alpha={0: 0.2}, random_state=0)
    >>> clf = mr.MulticlassNeymanPearsonClassifier(search, {"a": 0.2}, random_state=0)
    >>> clf.fit(X, y).scores_.estimators[0].comparison_.chosen
    'trees'
    """

    def __init__(
        self,
        candidates: Mapping[str, Any],
        alpha: Mapping[int, float],
        delta: float = 0.05,
        order: Sequence[int] | None = None,
        certifying: float = 1.0,
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
        self.delta = delta
        self.order = order
        self.certifying = certifying
        self.missingness = missingness
        self.deployment = deployment
        self.folds = folds
        self.seconds = seconds
        self.most_rows = most_rows
        self.random_state = random_state
        self.on_candidate = on_candidate

    def fit(
        self, X: Any, y: ArrayLike, inclusion: ArrayLike | None = None, **params: Any
    ) -> Self:
        """Compare the candidates, and fit the best to all rows.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_columns)
            NaN where a value is missing.
        y : array-like of int of shape (n_rows,)
            Positions of the classes, from 0.
        inclusion : array-like, optional
            Where values were looked up, with which probability.
        **params : dict
            For the candidates' fits.

        Returns
        -------
        Self
        """
        codes = np.asarray(y)
        self.classes_ = np.unique(codes)
        labels = self.classes_.tolist()
        if labels != list(range(len(labels))):
            raise ValueError(
                f"y must hold the labels 0, 1, …, got {labels}. Give the search to a "
                "MulticlassNeymanPearsonClassifier, which takes any."
            )
        given, drawn = self._drawn(X, codes, inclusion)
        table = ClassTable(X, codes, labels, self.missingness, drawn, self.deployment)
        rows = _ClassRows(table, given, params)
        start = time.process_time()
        found, best, used, _ = self._compare(rows)
        bounded = np.isin(codes[used], list(self.alpha))
        asked = Asked(self.alpha, self.delta, self.order, labels)
        self.comparison_ = PowerComparison(
            chosen=best,
            candidates=tuple(found),
            alpha=None,
            folds=int(self.folds),
            controlled_rows=int(bounded.sum()),
            other_rows=int((~bounded).sum()),
            seconds=time.process_time() - start,
            budget=float(self.seconds),
            compared=tuple(map(str, counted(asked))),
        )
        self.scores_ = rows.fit(self.candidates[best], np.arange(len(codes)))
        return self

    def decision_function(self, X: Any) -> FloatArray:
        """The winner's log-scores of each class; of two classes their difference.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_columns)

        Returns
        -------
        ndarray of shape (n_rows, n_classes), or (n_rows,)
        """
        check_is_fitted(self, "scores_")
        scores = self.scores_.of(X, np.ones(X.shape[0], dtype=bool))
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def predict(self, X: Any) -> Any:
        """The class with the largest score.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_columns)

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        check_is_fitted(self, "scores_")
        scores = self.scores_.of(X, np.ones(X.shape[0], dtype=bool))
        return self.classes_[np.argmax(scores, axis=1)]

    def _indistinct(self, rows: Any, index: IntArray) -> str:
        """Nothing: each candidate says which class has no row to measure it on."""
        return ""

    def _measured(
        self, rows: Any, index: IntArray, scores: FloatArray
    ) -> tuple[float | None, float | None, float, str]:
        """The mean share of classes that get their own, under the bounds."""
        asked = Asked(self.alpha, self.delta, self.order, self.classes_.tolist())
        choice = rows.choice(index, scores, asked, self.certifying)
        if not choice.is_possible:
            return None, None, np.inf, "a class has no row to measure it on"
        decision, levels = choose(choice, asked.undecided())
        certain = 1.0
        if isinstance(decision, UnorderedDecision):
            certain = choice.certain(decision)
        decision = choice.with_thresholds(decision, levels)
        shares = [
            _share(choice.rows[position], decision, position)
            for position in counted(asked)
        ]
        mean = float(np.mean([share for share, _ in shares]))
        error = float(np.sqrt(sum(var for _, var in shares))) / len(shares)
        return mean, error, 1.0 - certain * mean, "" if certain > 0.5 else CROWDED

    def __sklearn_tags__(self) -> Any:
        """Several classes, by their positions; missing values are welcome."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def counted(asked: Asked) -> tuple[int, ...]:
    """The classes whose errors candidates are compared by."""
    decision = asked.undecided()
    free = decision.free if isinstance(decision, UnorderedDecision) else ()
    return free or tuple(range(len(asked.labels)))


def _share(
    rows: ChoosingRows, decision: Decision, position: int
) -> tuple[float, float]:
    """The weighted share of a class's rows that get their own, and its variance."""
    right = decision.decide(rows.scores) == position
    masses = rows.weights / rows.weights.sum()
    # Rounding must not make it more than all of them.
    share = min(float(masses @ right), 1.0)
    return share, float(np.sum(masses**2 * (right - share) ** 2))


@dataclass(frozen=True)
class _ClassRows:
    """Rows of several classes that candidates are fitted to."""

    table: ClassTable
    inclusion: FloatArray | None
    params: dict[str, Any]

    @property
    def labels(self) -> IntArray:
        """The class of each row."""
        return self.table.codes

    def fit(self, candidate: Any, index: IntArray) -> ClassScores:
        """A candidate, fitted to some rows."""
        return Training(self.table, index, self.inclusion, self.params).fit(candidate)

    def scores(
        self, fitted: ClassScores, index: IntArray, deployment: str
    ) -> FloatArray:
        """Log-scores of each class of some rows; NaN for those without."""
        X = self.table.take(index)
        return fitted.of(X, scorable(X, deployment))

    def choice(
        self, index: IntArray, scores: FloatArray, asked: Asked, certifying: float
    ) -> Choice:
        """The rows to choose by, and what those to calibrate on should be worth."""
        rows, worth = [], {}
        for position in range(len(asked.labels)):
            mine = ChoosingRows.few(np.flatnonzero(self.labels[index] == position))
            weights = self.table.weights(position, index[mine])
            rows.append(ChoosingRows.of(scores[mine], weights))
            if position in asked.positions:
                share = rows[-1].effective / max(len(mine), 1)
                n_rows = certifying * float((self.labels == position).sum())
                worth[position] = round(share * n_rows)
        return Choice(tuple(rows), asked.levels, worth, asked.part)
