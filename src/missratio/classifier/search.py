"""Which of several estimators serves the bounds best, by rows left out in turn."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import StratifiedGroupKFold, check_cv
from sklearn.utils.validation import check_is_fitted

from missratio._base.blocks import take_rows
from missratio._base.callbacks import CallbackSupportMixin, run_tasks
from missratio._base.reading import as_array, as_frame, read_labels
from missratio._base.storable import storable
from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.classifier.base import few
from missratio.classifier.estimators import ChoosingRows, ClassTable, complete_mask
from missratio.classifier.multiclass import Choice, ClassBounds, choose_offsets
from missratio.missingness import Missingness, RowInclusion
from missratio.tensor import in_library_of, on_host
from missratio.weights import effective_sample_size

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
    note : str
        Why there is no power, or what is doubtful about it.
    """

    name: str
    power: float | None = None
    standard_error: float | None = None
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
    budget : float
        The processor's time that the comparison might take.
    compared : tuple of str
        Of several classes, those that the mean is over.
    note : str
        Why nothing was compared; empty where something was.
    """

    chosen: str
    candidates: tuple[CandidatePower, ...]
    alpha: float | None
    folds: int
    budget: float
    compared: tuple[str, ...] = ()
    note: str = ""

    @property
    def ranked(self) -> list[CandidatePower]:
        """The candidates whose power is known: what was taken, then by power."""

        def place(tried: CandidatePower) -> tuple[bool, bool, float]:
            return tried.name != self.chosen, bool(tried.note), -(tried.power or 0.0)

        return sorted((x for x in self.candidates if x.power is not None), key=place)


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
    controlled, mass = weights[~is_other], weights[is_other]
    if not controlled.any() or not mass.any():
        return None, None
    known = controlled > 0.0
    values = scores[~is_other][known]
    # Rounding leaves a little above the highest score.
    threshold = ChoosingRows(values, controlled[known]).threshold(values, alpha + 1e-12)
    share, above = mass / mass.sum(), scores[is_other] > threshold
    power = float(share[above].sum())
    return power, float(np.sqrt(np.sum(share**2 * (above - power) ** 2)))


# A candidate that can't be fitted is out of the comparison, and says why.
FAILURES = (ValueError, TypeError, ImportError, np.linalg.LinAlgError)
# A share of rows that get their class, its error, a cost, and a doubt.
Measured = tuple[float | None, float | None, float, str]
CROWDED = "bounded classes may leave each other no room"


@storable()
@dataclass(eq=False, repr=False)
class PowerSearch(CallbackSupportMixin, ClassifierMixin, BaseEstimator):
    """The candidate with the most cross-validated power, fitted to all its rows.

    Leaves rows out in turn, fits each candidate to the others, and scores those left
    out. Rows are weighted by 1/(1 − φ) where rows to be classified are complete. Inside
    a certified classifier it sees the rows to fit on and no calibration row, so the
    certificate holds whichever candidate is taken.

    With one α, a candidate's power is the share of class 1 above the threshold that a
    share α of class 0 is above. With fewer than three rows of class 0, by their
    effective number, above such a threshold nothing is compared, and the first
    candidate is taken.

    With bounds on some of several classes, offsets and thresholds are chosen as a
    `MulticlassNeymanPearsonClassifier` chooses them. What counts then is the mean error
    of the classes without a bound, and of all classes where they are ordered or all
    have one. A candidate with which bounded classes may leave each other no room counts
    as wrong that often.

    Parameters
    ----------
    candidates : mapping from str to estimator
        With `decision_function` or `predict_proba`. Of equal ones the first is taken.
    alpha : float or mapping from int to float, default=0.05
        The bound on the error of class 0; or bounds by the class's position among the
        sorted labels.
    delta : float, default=0.05
    order : sequence of int or None, default=None
        The positions of the classes, the most severe first, where they are ordered.
    certifying : float, default=1.0
        How many rows will certify a bound, for each row of the class to fit on.
    missingness : mapping from int to Missingness, optional
        Why values are missing, by position; reaches the candidates as
        `NeymanPearsonClassifier` does it.
    deployment : {"complete", "as-observed"}, default="complete"
        Rows to be classified are complete, or lose values as these did.
    cv : int, splitter or iterable of pairs, default=5
        In how many parts rows are left out, or which rows to fit on and to leave out,
        as scikit-learn has it.
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
    scores_ : ClassScores
        The winner, fitted to all rows.
    winner_ : estimator
        The candidate that was taken, not fitted.
    estimator_ : estimator
        The same, where one estimator is all that it is.
    classes_ : ndarray of int

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

    candidates: Mapping[str, Any]
    alpha: float | Mapping[int, float] = 0.05
    delta: float = 0.05
    order: Sequence[int] | None = None
    certifying: float = 1.0
    missingness: Mapping[int, Missingness] | None = None
    deployment: Literal["complete", "as-observed"] = "complete"
    cv: Any = 5
    seconds: float = 60.0
    most_rows: int = 5_000
    random_state: Any = None
    on_candidate: Callable[[str], None] | None = None

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        inclusion: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        **params: Any,
    ) -> Self:
        """Compare the candidates, and fit the best to all rows.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_columns)
            NaN where a value is missing.
        y : array-like of int of shape (n_rows,)
            Positions of the classes, from 0; of two, 0 is the controlled one.
        inclusion : array-like, optional
            Where values were looked up, with which probability.
        groups : array-like of shape (n_rows,), optional
            Rows of one group are left out together.
        **params : dict
            For the candidates' fits.

        Returns
        -------
        Self
            The fitted search.
        """
        if as_frame(X) is None and not issparse(X):
            X = as_array(on_host(X))
        codes = read_labels(on_host(y), X)
        self.classes_ = np.unique(codes)
        labels = self.classes_.tolist()
        single = not isinstance(self.alpha, Mapping)
        if labels != list(range(len(labels))) or (single and labels != [0, 1]):
            raise ValueError(
                f"y must hold the labels 0 and 1, or with several bounds 0, 1, …: got "
                f"{labels}. Give the search to a NeymanPearsonClassifier, or a "
                "MulticlassNeymanPearsonClassifier, which take any."
            )
        codes = codes.astype(np.intp)
        given = drawn = None
        if inclusion is not None:
            given = np.asarray(inclusion, dtype=np.float64)
            drawn = RowInclusion.of(given, complete_mask(X), X.shape[1], codes)
        table = ClassTable(
            X, codes, labels, self.missingness, self.deployment, given, drawn, params
        )
        self.comparison_ = self._compared(table, groups)
        self.winner_ = self.candidates[self.comparison_.chosen]
        self.scores_ = table.fit(self.winner_, np.arange(len(codes)))
        self.estimator_ = self.scores_.estimators[0]
        return self

    def decision_function(self, X: Any) -> FloatArray:
        """The winner's log-scores of each class; of two classes their difference.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_columns)

        Returns
        -------
        ndarray of shape (n_rows, n_classes), or (n_rows,)
            Those of the estimator that was chosen.
        """
        check_is_fitted(self, "scores_")
        scores = self.scores_.of(X, "as-observed")
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def predict(self, X: Any) -> Any:
        """The class with the largest score.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_columns)

        Returns
        -------
        ndarray of shape (n_rows,)
            A label for each row.
        """
        scores = self.decision_function(X)
        places = scores > 0.0 if scores.ndim == 1 else np.argmax(scores, axis=1)
        return in_library_of(X, self.classes_[places.astype(np.intp)])

    def _compared(self, table: ClassTable, groups: Any) -> PowerComparison:
        """What each candidate reached, and which is the best.

        Where nothing can be compared, that is the first.
        """
        if not self.candidates:
            raise ValueError("There are no candidates to choose from: name some.")
        start = time.process_time()
        # 1. Draw rows of each class, and deal them out to the parts.
        rng = np.random.default_rng(self.random_state)
        fold, cv = np.full(len(table.codes), -1), self.cv
        dealt = isinstance(cv, Integral) and groups is None
        for position in range(len(table.labels)):
            mine = rng.permutation(table.rows_of(position))[: self.most_rows]
            fold[mine] = np.arange(len(mine)) % cv if dealt else 0
        used = np.flatnonzero(fold >= 0)
        if dealt:
            parts = [(used[fold[used] != k], used[fold[used] == k]) for k in range(cv)]
        else:
            cv = StratifiedGroupKFold(cv) if isinstance(cv, Integral) else cv
            splitter, codes = check_cv(cv, table.codes, classifier=True), table.codes
            members = None if groups is None else np.asarray(groups)[used]
            pairs = splitter.split(used[:, None], codes[used], members)
            parts = [(used[kept], used[left]) for kept, left in pairs]
        # 2. Try each candidate, as long as there is time; the first in any case.
        first, costs = next(iter(self.candidates)), dict[str, float]()
        measure: Callable[..., Measured]
        if isinstance(self.alpha, Mapping):
            bounds = ClassBounds(self.alpha, self.delta, self.order, table.labels)
            free = getattr(bounds.undecided(), "free", ())
            counted, note = free or tuple(range(len(table.labels))), ""
            measure = partial(self._under_bounds, table, bounds, counted)
        else:
            counted = ()
            measure, note = self._at_level(table, used, self.alpha)

        def tried(name: str) -> CandidatePower:
            costs[name], began = np.inf, time.process_time()
            left = np.inf if name == first else self.seconds - (began - start)
            if note or left <= 0.0:
                late = "there was no time left for it"
                why = "too few rows to compare" if note else late
                return CandidatePower(name, note=why)
            if self.on_candidate is not None:
                self.on_candidate(name)
            scores, why = [], ""
            for k, (kept, out) in enumerate(parts):
                try:
                    with warnings.catch_warnings(action="ignore"):
                        fitted = table.fit(self.candidates[name], kept)
                        rows = take_rows(table.X, out)
                        scores.append(fitted.of(rows, self.deployment))
                except FAILURES as error:
                    reason = " ".join(str(error).split()).split(". ")[0].rstrip(".")
                    why = f"it can't be fitted: {reason}"
                spent = time.process_time() - began
                needed = spent * len(parts) / (k + 1)
                if not why and needed > left and k + 1 < len(parts):
                    why = f"it would have taken about {needed:.2g} s"
                if why:
                    return CandidatePower(name, note=why)
            index = np.concatenate([out for _, out in parts])
            share, spread, costs[name], doubt = measure(index, np.concatenate(scores))
            return CandidatePower(name, share, spread, doubt)

        powers = run_tasks(self, "candidate", self.candidates, tried)
        # 3. Take the best; of equal ones, or where nothing was measured, the first.
        return PowerComparison(
            chosen=min(costs, key=lambda name: costs[name]),
            candidates=tuple(powers),
            alpha=None if isinstance(self.alpha, Mapping) else float(self.alpha),
            folds=len(parts),
            budget=float(self.seconds),
            compared=tuple(map(str, counted)),
            note=note,
        )

    def _at_level(
        self, table: ClassTable, used: IntArray, alpha: float
    ) -> tuple[Callable[..., Measured], str]:
        """How scores of two classes are measured, and why rows can't tell, if so."""
        weights, complete = np.ones(len(used)), self.deployment == "complete"
        is_other, note = table.codes[used] == 1, ""
        for position in range(2):
            mine = is_other == position
            weights[mine] = table.weights(position, used[mine], lenient=True)
        # With fewer rows above the threshold, by their effective number (Kish), the
        # order of candidates is chance.
        for members, least, whose in (
            (is_other, FEWEST_OTHER, "the other class"),
            (~is_other, FEWEST_ABOVE / alpha, "the controlled class"),
        ):
            masses = weights[members]
            size = effective_sample_size(masses)
            if size < least:
                note = (
                    f"the {np.count_nonzero(masses)} {'complete ' * complete}rows of "
                    f"{whose} are worth {size:.0f} by their weights, and to tell "
                    f"methods apart at an error of {100.0 * alpha:.4g}% takes "
                    f"{math.ceil(least)} or more"
                )

        def measure(index: IntArray, scores: FloatArray) -> Measured:
            values = np.nan_to_num(scores[:, 1] - scores[:, 0], nan=-np.inf)
            at = np.searchsorted(used, index)
            power, error = measured_power(values, is_other[at], weights[at], alpha)
            return power, error, np.inf if power is None else -power, ""

        return measure, note

    def _under_bounds(
        self,
        table: ClassTable,
        bounds: ClassBounds,
        counted: tuple[int, ...],
        index: IntArray,
        scores: FloatArray,
    ) -> Measured:
        """The mean share of rows that get their class, its error, a cost, a doubt."""
        rows, worth = [], {}
        for position in range(len(table.labels)):
            mine = few(np.flatnonzero(table.codes[index] == position))
            rows.append(table.choosing(position, index[mine], scores[mine]))
            share = rows[-1].effective / max(len(mine), 1)
            n_rows = self.certifying * float((table.codes == position).sum())
            worth[position] = round(share * n_rows)
        choice = Choice(tuple(rows), bounds.levels, worth, bounds.part)
        if not choice.is_possible:
            return None, None, np.inf, "a class has no row to measure it on"
        decision = choose_offsets(choice, bounds.undecided())
        certain = choice.certain(decision)
        decision, shares, variance = choice.with_thresholds(decision), [], 0.0
        for position in counted:
            right = decision.decide(rows[position].scores) == position
            masses = rows[position].weights / rows[position].weights.sum()
            # Rounding must not make it more than all of them.
            shares.append(min(float(masses @ right), 1.0))
            variance += float(np.sum(masses**2 * (right - shares[-1]) ** 2))
        mean, error = float(np.mean(shares)), math.sqrt(variance) / len(shares)
        return mean, error, 1.0 - certain * mean, "" if certain > 0.5 else CROWDED

    def __sklearn_tags__(self) -> Any:
        """Classes by their positions; missing values are welcome."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = isinstance(self.alpha, Mapping)
        tags.input_tags.allow_nan = True
        return tags
