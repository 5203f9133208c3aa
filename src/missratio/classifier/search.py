"""Which of several estimators serves the bounds best, by rows left out in turn."""

from __future__ import annotations

import math
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from missratio._base.blocks import take_rows
from missratio._base.callbacks import CallbackSupportMixin, told
from missratio._base.storable import storable
from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.classifier.classes import (
    Choice,
    ChoosingRows,
    ClassScores,
    ClassTable,
    Decision,
    Training,
    UnorderedDecision,
    choose,
)
from missratio.classifier.multiclass import Asked
from missratio.classifier.scores import complete_mask, scorable, score_rows
from missratio.classifier.training import fit_estimator
from missratio.missingness import Missingness, RowInclusion
from missratio.weights import complete_row_weights, effective_sample_size

# Rows of the controlled class above the threshold, and rows of the other class, with
# fewer of which one candidate is as good as the next.
FEWEST_ABOVE, FEWEST_OTHER = 3.0, 10.0


@storable()
@dataclass(frozen=True)
class CandidatePower:
    """The power of a candidate on training rows left out in turn.

    Parameters
    ----------
    name : str
    power : float or None
        The weighted share of the other class above the threshold that a share α of the
        controlled class is above; of several classes the mean share that gets its own
        class. None where it wasn't measured.
    standard_error : float or None
        Of that share, the threshold taken as given.
    seconds : float
        What the candidate took of the processor.
    note : str
        Why there is no power, or what is doubtful about it.
    """

    name: str
    power: float | None = None
    standard_error: float | None = None
    seconds: float = 0.0
    note: str = ""


@storable()
@dataclass(frozen=True)
class PowerComparison:
    """What candidates were compared, and which was taken.

    Parameters
    ----------
    chosen : str
    candidates : tuple of CandidatePower
        In the order in which they were tried.
    alpha : float or None
        The error at which powers were compared; None for several bounded classes.
    folds : int
        In how many parts rows were left out.
    controlled_rows, other_rows : int
        Training rows of each class that took part; of several classes those with a
        bound together, and the others.
    seconds, budget : float
        The processor's time that the comparison took, and that it might take.
    compared : tuple of str
        Of several classes, those that the mean is over.
    note : str
        Why nothing was compared; empty where something was.
    """

    chosen: str
    candidates: tuple[CandidatePower, ...]
    alpha: float | None
    folds: int
    controlled_rows: int
    other_rows: int
    seconds: float
    budget: float
    compared: tuple[str, ...] = ()
    note: str = ""

    @property
    def ranked(self) -> list[CandidatePower]:
        """The candidates whose power is known: what was taken, then by power."""
        known = [each for each in self.candidates if each.power is not None]

        def place(each: CandidatePower) -> tuple[bool, bool, float]:
            return each.name != self.chosen, bool(each.note), -(each.power or 0.0)

        return sorted(known, key=place)


def too_few(is_other: BoolArray, weights: FloatArray, alpha: float, whole: str) -> str:
    """Why rows can't tell candidates apart at error α; empty where they can.

    With fewer than `FEWEST_ABOVE` rows of the controlled class above the threshold, by
    the effective number of rows (Kish), the order of candidates is chance.

    Parameters
    ----------
    is_other : ndarray of bool of shape (n_rows,)
    weights : ndarray of shape (n_rows,)
    alpha : float
    whole : str
        What rows with a weight are, in words.
    """
    for mine, whose, least in (
        (~is_other, "the controlled class", FEWEST_ABOVE / alpha),
        (is_other, "the other class", FEWEST_OTHER),
    ):
        own = weights[mine]
        size = float(effective_sample_size(own))
        if size < least:
            return (
                f"the {np.count_nonzero(own)} {whole} of {whose} are worth {size:.0f} "
                f"by their weights, and to tell methods apart at an error of "
                f"{100.0 * alpha:.4g}% takes {math.ceil(least)} or more"
            )
    return ""


def measured_power(
    scores: FloatArray, is_other: BoolArray, weights: FloatArray, alpha: float
) -> tuple[float | None, float | None]:
    """The power of scores at error α, with its standard error.

    Parameters
    ----------
    scores : ndarray of shape (n_rows,)
        −∞ for a row that can't be scored.
    is_other : ndarray of bool of shape (n_rows,)
        Which rows are not of the controlled class.
    weights : ndarray of shape (n_rows,)
        Not negative.
    alpha : float

    Returns
    -------
    power, standard_error : float or None
        None where a class has no weight.
    """
    threshold = _threshold(scores[~is_other], weights[~is_other], alpha)
    mass = weights[is_other]
    if threshold is None or not mass.sum():
        return None, None
    share = mass / mass.sum()
    above = scores[is_other] > threshold
    power = float(share[above].sum())
    return power, float(np.sqrt(np.sum(share**2 * (above - power) ** 2)))


def _threshold(scores: FloatArray, weights: FloatArray, alpha: float) -> float | None:
    """The lowest score that at most a share α of the weight is above."""
    kept = weights > 0.0
    if not kept.any():
        return None
    values, place = np.unique(scores[kept], return_inverse=True)
    mass = np.bincount(place, weights[kept])
    above = mass.sum() - np.cumsum(mass)
    # Rounding leaves a little above the highest score.
    allowed = above <= alpha * mass.sum() + 1e-12 * mass.sum()
    return float(values[np.argmax(allowed)])


# A candidate that can't be fitted is out of the comparison, and says why.
_FAILURES = (ValueError, TypeError, ImportError, np.linalg.LinAlgError)


class SearchRows(Protocol):
    """Rows that candidates are fitted to, and scored on."""

    @property
    def labels(self) -> IntArray:
        """The class of each row."""

    def fit(self, candidate: Any, index: IntArray) -> Any:
        """A candidate, fitted to some rows."""

    def scores(self, fitted: Any, index: IntArray, deployment: str) -> FloatArray:
        """Scores of some rows."""


class CandidateSearch(CallbackSupportMixin, ClassifierMixin, BaseEstimator, ABC):
    """Takes the best of some candidates, by rows left out in turn.

    Leaves rows out in turn, fits each candidate to the others, and scores those left
    out. What the best scores are is up to the subclass.
    """

    candidates: Mapping[str, Any]
    missingness: Mapping[int, Missingness] | None
    deployment: str
    folds: int
    seconds: float
    most_rows: int
    random_state: Any
    on_candidate: Callable[[str], None] | None

    @abstractmethod
    def _measured(
        self, rows: Any, index: IntArray, scores: FloatArray
    ) -> tuple[float | None, float | None, float, str]:
        """How good scores of rows left out are.

        Returns
        -------
        cost : float
            By which candidates are ranked, the least first.
        note : str
            Why there is no share, or a doubt about it.
        """

    @abstractmethod
    def _indistinct(self, rows: Any, index: IntArray) -> str:
        """Why these rows can't tell candidates apart; empty where they can."""

    def _drawn(
        self, X: Any, labels: IntArray, inclusion: ArrayLike | None
    ) -> tuple[FloatArray | None, RowInclusion | None]:
        """Inclusion probabilities as they were given, and as those of rows."""
        if inclusion is None:
            return None, None
        given = np.asarray(inclusion, dtype=np.float64)
        return given, RowInclusion.of(given, complete_mask(X), X.shape[1], labels)

    def _compare(
        self, rows: SearchRows
    ) -> tuple[list[CandidatePower], str, IntArray, str]:
        """What each candidate reached, the best's name, and the rows compared on.

        Last comes why nothing was compared, where that is so: then the best is the
        first.
        """
        if not self.candidates:
            raise ValueError("There are no candidates to choose from: name some.")
        start = time.process_time()
        # 1. Draw rows of each class, and deal them out to the parts.
        rng = np.random.default_rng(self.random_state)
        fold = np.full(len(rows.labels), -1)
        for label in np.unique(rows.labels).tolist():
            mine = rng.permutation(np.flatnonzero(rows.labels == label))
            mine = mine[: self.most_rows]
            fold[mine] = np.arange(len(mine)) % self.folds
        used = np.flatnonzero(fold >= 0)
        note = self._indistinct(rows, used)
        if note:
            found = [
                CandidatePower(name, note="too few rows to compare")
                for name in self.candidates
            ]
            return found, found[0].name, used, note
        # 2. Try each candidate, as long as there is time; the first in any case.
        first = next(iter(self.candidates))
        costs: dict[str, float] = {}

        def tried(name: str) -> CandidatePower:
            if self.on_candidate is not None:
                self.on_candidate(name)
            left = self.seconds - (time.process_time() - start)
            left = np.inf if name == first else left
            found, costs[name] = self._tried(name, rows, fold, left)
            return found

        found = told(self, "candidate", self.candidates, tried, len(self.candidates))
        # 3. Take the best; of equal ones, or where nothing was measured, the first.
        best = min(costs, key=lambda name: costs[name])
        return list(found), best, used, ""

    def _tried(
        self, name: str, rows: SearchRows, fold: IntArray, left: float
    ) -> tuple[CandidatePower, float]:
        """How good a candidate is on rows that it wasn't fitted on, and its cost."""
        if left <= 0.0:
            note = "there was no time left for it"
            return CandidatePower(name, note=note), np.inf
        start = time.process_time()
        out, scores = [], []
        for k in range(self.folds):
            kept = np.flatnonzero((fold >= 0) & (fold != k))
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    fitted = rows.fit(self.candidates[name], kept)
                    out.append(np.flatnonzero(fold == k))
                    scores.append(rows.scores(fitted, out[-1], self.deployment))
            except _FAILURES as error:
                spent = time.process_time() - start
                note = f"it can't be fitted: {_first_sentence(error)}"
                return CandidatePower(name, seconds=spent, note=note), np.inf
            spent = time.process_time() - start
            needed = spent * self.folds / (k + 1)
            if needed > left and k + 1 < self.folds:
                note = f"it would have taken about {needed:.2g} s"
                return CandidatePower(name, seconds=spent, note=note), np.inf
        share, spread, cost, note = self._measured(
            rows, np.concatenate(out), np.concatenate(scores)
        )
        spent = time.process_time() - start
        return CandidatePower(name, share, spread, spent, note), cost


def _first_sentence(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text.split(". ")[0].rstrip(".")


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
