"""Several bounded classes: their scores, how these decide, and certificates.

How scores of several classes become a label, one threshold for each bounded class.

What a certificate needs is the same for unordered classes and for ordered ones: for
each bounded class k a number h_k(x) such that a row x of class k is wrong exactly when
h_k(x) > t_k, where t_k is the one threshold that is chosen on rows of class k and h_k
is fixed before these rows are seen. Any rule for one threshold then bounds the error of
class k, and thresholds of other classes have no part in it.

What is chosen before any certifying row is seen: offsets of classes, and levels.

Held-out rows that take no part in a certificate stand for those to come. Nothing here
can break a guarantee; what it decides is the power.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.special import logsumexp, ndtr
from sklearn.base import clone
from sklearn.utils import get_tags

from missratio._base.blocks import in_double, take_rows
from missratio._base.hints import check_number
from missratio._base.storable import storable
from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.classifier.certificate import Certificate, assumptions, tested
from missratio.classifier.certify import (
    certify,
    choose_cap,
    expected_error,
    warn_of_repeated_rows,
)
from missratio.classifier.planner import infeasible
from missratio.classifier.promise import Calibration, Promise, ScoredRows, Trust
from missratio.classifier.scores import probabilities, score_rows
from missratio.classifier.training import (
    calibration_model,
    fit_estimator,
    missingness_parameters,
)
from missratio.exceptions import DataError, Message, NoCertificateError, Remedy
from missratio.missingness import (
    Missingness,
    MissingnessCheck,
    RowInclusion,
    missingness_check,
    refuse_contradiction,
)
from missratio.rows import weighed_twice
from missratio.threshold import binomial_bound, binomial_tail, make_rule
from missratio.weights import complete_row_weights, effective_sample_size

Models = Mapping[Any, Missingness]


@dataclass(frozen=True)
class ClassTable:
    """Rows of several classes.

    Parameters
    ----------
    X : array, sparse matrix or dataframe of shape (n_rows, n_columns)
    codes : ndarray of int of shape (n_rows,)
        Positions of the rows' classes among the labels.
    labels : list
    models : mapping from class to Missingness, or None
    drawn : RowInclusion or None
        By what draw rows are there, where values were looked up.
    deployment : {"complete", "as-observed"}
    """

    X: Any
    codes: IntArray
    labels: list[Any]
    models: Models | None
    drawn: RowInclusion | None
    deployment: str

    def rows_of(self, position: int, index: IntArray) -> IntArray:
        """The rows of one class among some rows."""
        found: IntArray = index[self.codes[index] == position]
        return found

    def take(self, index: IntArray) -> Any:
        """Some rows."""
        return take_rows(self.X, index)

    def model(self, position: int, index: IntArray) -> Missingness | None:
        """Why rows of one class are missing; None where none is, or it doesn't matter.

        Raises
        ------
        UnexplainedMissingError
            Where some are missing and nothing says why.
        """
        if self.deployment != "complete" or self.by_design(index):
            return None
        return calibration_model(self.take(index), self.models, self.labels[position])

    def by_design(self, index: IntArray) -> bool:
        """Whether some of these rows were looked up, or left out of a draw."""
        return self.drawn is not None and self.drawn.take(index).by_design

    def weights(self, position: int, index: IntArray) -> FloatArray:
        """What rows of one class stand for, where complete rows are meant."""
        if self.drawn is not None and self.by_design(index):
            return self.drawn.weights[index]
        model = self.model(position, index)
        if model is None:
            return np.ones(len(index))
        return complete_row_weights(self.take(index), model)

    def split(
        self,
        bounded: Sequence[int],
        choice_size: float,
        calibration_size: float,
        rng: np.random.Generator,
    ) -> tuple[IntArray, IntArray, IntArray]:
        """Rows to fit on, to choose by and to calibrate on, class by class.

        Parameters
        ----------
        bounded : sequence of int
            The classes that calibrate.
        choice_size, calibration_size : float
            Shares of a class's rows. With one bounded class of two
            nothing has to be chosen.
        rng : Generator
        """
        shares = {"choice_size": choice_size, "calibration_size": calibration_size}
        for name, share in shares.items():
            check_number(name, share)
        for name, share in shares.items():
            if not 0.0 < share < 1.0 or choice_size + calibration_size >= 1.0:
                raise ValueError(
                    f"{name}={share!r}: choice_size and calibration_size are shares "
                    "between 0 and 1 that leave some rows to fit on."
                )
        if len(self.labels) == 2 and len(bounded) == 1:
            choice_size = 0.0
        # Whether a class's losses are explained is a matter of all its rows, so that
        # no seed decides it.
        for position in range(len(self.labels)) if choice_size else bounded:
            self.model(position, np.flatnonzero(self.codes == position))
        parts: tuple[list[IntArray], ...] = ([], [], [])
        for position in range(len(self.labels)):
            own = rng.permutation(np.flatnonzero(self.codes == position))
            held = calibration_size if position in bounded else 0.0
            ends = np.round(np.cumsum([held, choice_size]) * len(own)).astype(np.intp)
            calibrating, choosing, fitting = np.split(own, ends)
            for part, rows in zip(parts, (fitting, choosing, calibrating), strict=True):
                part.append(rows)
            if not len(fitting):
                raise ValueError(
                    f"Class {self.labels[position]!r} has {len(own)} row(s): too few "
                    "to be split into rows to fit on, to choose by and to calibrate on."
                )
        fitted, chosen, calibrated = (np.sort(np.concatenate(part)) for part in parts)
        return fitted, chosen, calibrated


# The logarithm of the least positive number: log-scores are kept this side of −∞.
LEAST_LOG = -745.0


@storable()
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


@storable()
@dataclass(frozen=True)
class UnorderedDecision:
    """A bounded class, unless a free one beats it by more than its threshold.

    1. Among the bounded classes the one with the largest score plus offset wins; it is
       a class k, say. Among the free ones likewise; it is u, say.
    2. The row gets u if score_u + offset_u − score_k − offset_k > t_k, else k.

    A row of class k is wrong where another bounded class won in step 1, whatever the
    thresholds (h_k = ∞), and otherwise where its margin in step 2 is above t_k.

    Parameters
    ----------
    bounded : tuple of int
        Positions of the classes whose errors are bounded.
    offsets : ndarray of shape (n_classes,)
    thresholds : ndarray of shape (n_classes,)
        Of the bounded classes; the others are not used.
    fallback : int
        The class of a row without scores.
    """

    bounded: tuple[int, ...]
    offsets: FloatArray
    thresholds: FloatArray
    fallback: int

    @property
    def free(self) -> tuple[int, ...]:
        """Positions of the classes whose errors are not bounded."""
        every = range(len(self.offsets))
        return tuple(position for position in every if position not in self.bounded)

    def scores(self, class_scores: FloatArray, position: int) -> FloatArray:
        """h_k of rows, k being the class at a position.

        Parameters
        ----------
        class_scores : ndarray of shape (n_rows, n_classes)
        position : int
        """
        winner, _, margin = self.contest(class_scores)
        scores = np.where(winner == position, margin, np.inf)
        unscored = -np.inf if position == self.fallback else np.inf
        return np.where(np.isnan(class_scores[:, 0]), unscored, scores)

    def lead(self, class_scores: FloatArray, position: int) -> FloatArray:
        """By how much another bounded class leads one; rows above 0 are taken by it."""
        tilted = class_scores + self.offsets
        others = [other for other in self.bounded if other != position]
        lead = tilted[:, others].max(axis=1) - tilted[:, position]
        unscored = -np.inf if position == self.fallback else np.inf
        return np.where(np.isnan(lead), unscored, lead)

    def contest(
        self, class_scores: FloatArray
    ) -> tuple[IntArray, IntArray, FloatArray]:
        """The bounded class that wins, the free one, and by how much this one leads.

        Where all classes are bounded none leads: the margin is 0.
        """
        tilted = class_scores + self.offsets
        winner = np.array(self.bounded)[np.argmax(tilted[:, self.bounded], axis=1)]
        if not self.free:
            return winner, winner, np.zeros(len(winner))
        rival = np.array(self.free)[np.argmax(tilted[:, self.free], axis=1)]
        places = np.arange(len(winner))
        return winner, rival, tilted[places, rival] - tilted[places, winner]

    def decide(self, class_scores: FloatArray) -> IntArray:
        """Positions of the classes that rows get."""
        winner, rival, margin = self.contest(class_scores)
        chosen = np.where(margin > self.thresholds[winner], rival, winner)
        return np.where(np.isnan(class_scores[:, 0]), self.fallback, chosen)

    def with_threshold(self, position: int, threshold: float) -> UnorderedDecision:
        """The same with another threshold of one class."""
        return replace(self, thresholds=_set(self.thresholds, position, threshold))


@storable()
@dataclass(frozen=True)
class OrderedDecision:
    """The most severe class whose threshold a row doesn't exceed.

    At step k a row that no earlier class took is passed on where
    log Σ_{j after k} exp(score_j) − score_k > t_k, and gets class k otherwise. A row of
    class k is under-classified where it is passed on at step k: not where an earlier
    class took it (h_k = −∞). Thresholds of earlier classes are chosen on other rows,
    those of their own classes, so h_k is fixed before rows of class k are seen.

    Parameters
    ----------
    order : tuple of int
        Positions of the classes, the most severe first.
    thresholds : ndarray of shape (n_classes,)
    """

    order: tuple[int, ...]
    thresholds: FloatArray

    @property
    def bounded(self) -> tuple[int, ...]:
        """Positions of the classes whose errors are bounded: all but the last."""
        return self.order[:-1]

    @property
    def fallback(self) -> int:
        """The class of a row without scores: then it isn't under-classified."""
        return self.order[0]

    def scores(self, class_scores: FloatArray, position: int) -> FloatArray:
        """h_k of rows, k being the class at a position."""
        place = self.order.index(position)
        passed = np.isfinite(class_scores[:, 0])
        for earlier in self.order[:place]:
            passed &= self._passed(class_scores, earlier)
        scores = np.full(len(class_scores), -np.inf)
        scores[passed] = self._step(class_scores[passed], position)
        return scores

    def decide(self, class_scores: FloatArray) -> IntArray:
        """Positions of the classes that rows get."""
        chosen = np.full(len(class_scores), self.order[-1])
        for position in reversed(self.order[:-1]):
            chosen[~self._passed(class_scores, position)] = position
        return np.where(np.isnan(class_scores[:, 0]), self.fallback, chosen)

    def with_threshold(self, position: int, threshold: float) -> OrderedDecision:
        """The same with another threshold of one class."""
        return replace(self, thresholds=_set(self.thresholds, position, threshold))

    def _passed(self, class_scores: FloatArray, position: int) -> BoolArray:
        passed: BoolArray = (
            self._step(class_scores, position) > self.thresholds[position]
        )
        return passed

    def _step(self, class_scores: FloatArray, position: int) -> FloatArray:
        later = self.order[self.order.index(position) + 1 :]
        less: FloatArray = logsumexp(class_scores[:, later], axis=1)
        return less - class_scores[:, position]


Decision = UnorderedDecision | OrderedDecision


def unordered(n_classes: int, bounded: Sequence[int]) -> UnorderedDecision:
    """The decision before anything was chosen: every row gets a bounded class."""
    nothing = np.zeros(n_classes), np.full(n_classes, np.inf)
    return UnorderedDecision(tuple(bounded), *nothing, fallback=bounded[0])


def ordered(order: Sequence[int]) -> OrderedDecision:
    """The decision before anything was chosen: every row gets the most severe class."""
    return OrderedDecision(tuple(order), np.full(len(order), np.inf))


def _set(values: FloatArray, position: int, value: float) -> FloatArray:
    changed = values.copy()
    changed[position] = value
    return changed


# Offsets that are tried for one class at a time, and how often all are gone through.
CANDIDATES = 48
SWEEPS = 4
# Parts of α that an ordered class may be certified at, to leave later ones room.
SHARES = (1.0, 0.75, 0.5, 0.25)
# What another offset must gain: an untouched one is right for well-calibrated scores.
GAIN = 0.01
# Levels that are tried for classes whose rows are weighted.
LEVELS: tuple[float, ...] = tuple(np.geomspace(0.01, 0.95, 30).tolist())
# Rows of one class that are looked at: more make no difference to a choice.
MOST_ROWS = 1000


@dataclass(frozen=True)
class ChoosingRows:
    """Scored rows of one class.

    Parameters
    ----------
    scores : ndarray of shape (n_rows, n_classes)
    weights : ndarray of shape (n_rows,)
        0 for a row that is missing.
    """

    scores: FloatArray
    weights: FloatArray

    @classmethod
    def of(cls, scores: FloatArray, weights: FloatArray) -> ChoosingRows:
        """Leave out missing rows."""
        return cls(scores[weights > 0.0], weights[weights > 0.0])

    @staticmethod
    def few(index: IntArray) -> IntArray:
        """Rows to look at, where there are more than enough."""
        places = np.linspace(0, len(index) - 1, min(len(index), MOST_ROWS))
        return index[places.astype(np.intp)]

    def joined(self, more: ChoosingRows) -> ChoosingRows:
        """These rows and others of the class."""
        return ChoosingRows(
            np.concatenate([self.scores, more.scores]),
            np.concatenate([self.weights, more.weights]),
        )

    def share(self, which: Any) -> float:
        """The weighted share of rows of a kind; 1 where there is no row."""
        total = float(self.weights.sum())
        return float(self.weights @ which) / total if total else 1.0

    @property
    def effective(self) -> float:
        """How many rows the weights are worth (Kish)."""
        return float(effective_sample_size(self.weights))

    def threshold(self, scores: FloatArray, share: float) -> float:
        """The smallest threshold with at most this share above it."""
        order = np.argsort(-scores)
        tail = np.cumsum(self.weights[order]) / max(float(self.weights.sum()), 1e-300)
        place = int(np.searchsorted(tail, share, side="right"))
        return float(scores[order][min(place, len(scores) - 1)]) if len(scores) else 0.0


def mistaken(rows: Sequence[ChoosingRows]) -> tuple[float, float]:
    """The mean share of rows whose class has not the largest score; its error."""
    shares, variance = [], 0.0
    for position, each in enumerate(rows):
        scores = np.nan_to_num(each.scores, nan=-np.inf)
        shares.append(each.share(scores.argmax(axis=1) != position))
        variance += shares[-1] * (1.0 - shares[-1]) / max(each.effective, 1.0)
    return float(np.mean(shares)), math.sqrt(variance) / len(rows)


@dataclass(frozen=True)
class Choice:
    """What there is to choose by.

    Parameters
    ----------
    rows : tuple of ChoosingRows
        By position of the class.
    levels : mapping from int to float
        α of each bounded class.
    certifying : mapping from int to int
        How many rows, worth as much as one without weights, are to certify it.
    delta : float
        Each class's part of δ.
    expected : mapping from int to callable
        For classes whose rows are weighted, the error that should be certified at a
        level.
    """

    rows: tuple[ChoosingRows, ...]
    levels: Mapping[int, float]
    certifying: Mapping[int, int]
    delta: float
    expected: Mapping[int, Callable[[float], float]] = field(default_factory=dict)

    @property
    def is_possible(self) -> bool:
        """Whether there are rows of every class to choose by."""
        return all(len(rows.weights) for rows in self.rows)

    def allowed(self, position: int, level: float | None = None) -> float:
        """The share of wrong rows that should still be certified at a level."""
        alpha = self.levels[position] if level is None else level
        if position in self.expected:
            return self.expected[position](alpha)
        n_rows = max(self.certifying[position], 1)
        return max(binomial_tail(n_rows, alpha, self.delta), 0) / n_rows

    def least_level(self, position: int, share: float) -> float:
        """The least level that should be certified where so many rows are wrong."""
        if position not in self.expected:
            n_rows = max(self.certifying[position], 1)
            return binomial_bound(n_rows, math.ceil(share * n_rows), self.delta)
        reached = [self.expected[position](level) for level in LEVELS]
        enough = np.flatnonzero(np.maximum.accumulate(reached) >= share)
        return LEVELS[int(enough[0])] if len(enough) else 1.0

    def confusion(self, decision: UnorderedDecision, position: int) -> float:
        """The share of a bounded class's rows that another bounded class takes."""
        rows = self.rows[position]
        return rows.share(decision.scores(rows.scores, position) == np.inf)

    def certain(self, decision: UnorderedDecision) -> float:
        """The probability that bounded classes leave each other enough room.

        Certifying rows are confused more often than these by chance; the square root
        of a share has a variance that hardly depends on it. Borders are blurred, as few
        rows lie near them.
        """
        probability = 1.0
        for position in decision.bounded if len(decision.bounded) > 1 else ():
            rows = self.rows[position]
            lead = decision.lead(rows.scores, position)
            size = max(rows.effective, 1.0)
            finite = lead[np.isfinite(lead)]
            width = float(np.std(finite)) * size**-0.2 if len(finite) else 0.0
            confused = rows.share(ndtr(lead / width) if width else lead > 0.0)
            # Never quite 0 or 1, or a few rows would be taken for certain.
            share = (confused * size + 0.5) / (size + 1.0)
            certifying = max(self.certifying[position], 1)
            variance = 0.25 * (1.0 - share) * (1.0 / size + 1.0 / certifying)
            room = math.sqrt(self.allowed(position)) - math.sqrt(share)
            probability *= float(ndtr(room / math.sqrt(variance)))
        return probability

    def with_thresholds(
        self, decision: Decision, levels: Mapping[int, float] | None = None
    ) -> Decision:
        """Thresholds that should be about those to come."""
        for position in decision.bounded:
            rows = self.rows[position]
            share = self.allowed(position, None if levels is None else levels[position])
            scores = decision.scores(rows.scores, position)
            decision = decision.with_threshold(position, rows.threshold(scores, share))
        return decision

    def mean_error(self, decision: Decision, positions: tuple[int, ...]) -> float:
        """The mean over some classes of the share of their rows that is wrong."""
        return float(
            np.mean(
                [
                    rows.share(decision.decide(rows.scores) != position)
                    for position, rows in enumerate(self.rows)
                    if position in positions
                ]
            )
        )

    def cost(self, decision: UnorderedDecision) -> float:
        """The expected error of the free classes; 1 where nothing is certified."""
        certain, error = self.certain(decision), 0.0
        if decision.free:
            error = self.mean_error(self.with_thresholds(decision), decision.free)
        return 1.0 - certain + certain * error


def choose_offsets(choice: Choice, decision: UnorderedDecision) -> UnorderedDecision:
    """Offsets with the least expected cost: room for all bounds, and little free error.

    One class at a time is given the best of many offsets, until none changes.
    """
    best, cost = decision, choice.cost(decision)
    for _ in range(SWEEPS):
        before = cost
        for group in (decision.bounded, decision.free):
            for position in group[1:]:
                offsets = candidate_offsets(choice, best, group, position)
                tried = [_with_offset(best, position, each) for each in offsets]
                costs = [choice.cost(each) for each in tried]
                if costs and min(costs) < cost - GAIN:
                    cost = min(costs)
                    best = tried[costs.index(cost)]
        if cost == before:
            break
    return best


def _with_offset(
    decision: UnorderedDecision, position: int, offset: float
) -> UnorderedDecision:
    offsets = decision.offsets.copy()
    offsets[position] = offset
    return replace(decision, offsets=offsets)


def candidate_offsets(
    choice: Choice, decision: UnorderedDecision, group: tuple[int, ...], position: int
) -> list[float]:
    """Offsets of one class that change who wins within its group.

    Halfway between those at which a row changes hands, so that no row is on the border.
    """
    others = [other for other in group if other != position]
    borders = []
    for member in group:
        scores = choice.rows[member].scores
        tilted = scores + decision.offsets
        borders.append(tilted[:, others].max(axis=1) - scores[:, position])
    known = np.unique(np.concatenate(borders))
    if not len(known):
        return []
    between = (known[:-1] + known[1:]) / 2.0
    offsets = np.array([known[0] - 1.0, *between, known[-1] + 1.0])
    places = np.linspace(0, len(offsets) - 1, min(len(offsets), CANDIDATES))
    few: list[float] = offsets[places.astype(np.intp)].tolist()
    return few


def choose_levels(choice: Choice, decision: OrderedDecision) -> dict[int, float]:
    """Levels at which ordered classes are certified: α, or less for an earlier class.

    What a class passes on, later ones have to place: less of it may leave them more
    room. The mean error of all classes decides.
    """
    levels = dict(choice.levels)

    def cost(tried: Mapping[int, float]) -> float:
        every = tuple(range(len(choice.rows)))
        return choice.mean_error(choice.with_thresholds(decision, tried), every)

    best = cost(levels)
    for _ in range(SWEEPS):
        before = best
        # The last step's level has no later class to leave room for.
        for position in decision.bounded[:-1]:
            for share in SHARES:
                tried = {**levels, position: share * choice.levels[position]}
                if choice.allowed(position, tried[position]) == 0.0:
                    continue
                if (found := cost(tried)) < best:
                    levels, best = tried, found
        if best == before:
            break
    return levels


def choose(choice: Choice, decision: Decision) -> tuple[Decision, dict[int, float]]:
    """How scores become labels, and at which levels classes are certified.

    Parameters
    ----------
    choice : Choice
    decision : Decision
        Before anything was chosen.
    """
    levels = dict(choice.levels)
    if not choice.is_possible:
        return decision, levels
    if isinstance(decision, OrderedDecision):
        return decision, choose_levels(choice, decision)
    return choose_offsets(choice, decision), levels


Score = Callable[[Any], FloatArray]


@dataclass(frozen=True)
class BoundedClass:
    """Rows of a class that a bound is promised for.

    Parameters
    ----------
    promise : Promise
        At the class's part of δ. Its `other` lists the labels that are wrong.
    fallback : object
        The label of rows that can't be scored.
    rows, training : array or dataframe
        Rows to calibrate on, and others of the class.
    model : Missingness or None
    drawn : RowInclusion or None
        By what draw the rows to calibrate on are there.
    """

    promise: Promise
    fallback: Any
    rows: Any
    training: Any
    model: Missingness | None
    drawn: RowInclusion | None

    @classmethod
    def among(
        cls,
        table: ClassTable,
        promise: Promise,
        fallback: Any,
        calibrating: IntArray,
        own: IntArray | None = None,
    ) -> BoundedClass:
        """The rows of a table that a promise about one class is made with.

        Parameters
        ----------
        table : ClassTable
        promise : Promise
            Its `controlled` is the class.
        fallback : object
        calibrating : ndarray of int
            All rows that calibrate, of any class.
        own : ndarray of int, optional
            Those that the promise is about, where it is about some of the class only.
        """
        position = table.labels.index(promise.controlled)
        every = np.flatnonzero(table.codes == position)
        if own is None:
            own = table.rows_of(position, calibrating)
        others = np.setdiff1d(every, calibrating)
        by_design = table.by_design(every)
        if by_design and promise.controlled in (table.models or {}):
            raise weighed_twice(promise.controlled)
        return cls(
            promise,
            fallback,
            table.take(own),
            table.take(others),
            None if by_design else table.model(position, own),
            table.drawn.besides(own, others) if by_design and table.drawn else None,
        )

    @property
    def label(self) -> Any:
        """The class."""
        return self.promise.controlled

    @property
    def n_rows(self) -> int:
        """How many rows calibrate."""
        return int(self.rows.shape[0])

    def chosen_cap(self, score: Score, other: Any) -> Trust | None:
        """The cap on weights that promises most power; None where none is needed.

        Parameters
        ----------
        score : callable
            Gives h_k of rows, before anything was chosen.
        other : array or dataframe
            Rows of classes that are wrong, which take no part in calibration.
        """
        if self.model is None:
            return None
        promise = replace(self.promise, caps=True)
        training, detected = (ScoredRows(X, score(X)) for X in (self.training, other))
        return choose_cap(promise, self.model, training, detected, self.n_rows)

    def with_cap(self, trust: Trust | None) -> BoundedClass:
        """The same, certified with a cap."""
        if trust is None:
            return self
        return replace(self, promise=replace(self.promise, cap=trust.cap))

    def at(self, delta: float) -> BoundedClass:
        """The same, certified with another probability."""
        return replace(self, promise=replace(self.promise, delta=delta))

    def expected(self, score: Score) -> Callable[[float], float] | None:
        """The error that should be certified at a level, where rows are weighted.

        None where they count the same, or the rule can't tell.

        Parameters
        ----------
        score : callable
            Gives h_k of rows, before anything was chosen.
        """
        if self.model is None:
            return None
        training = ScoredRows(self.training, score(self.training))
        return expected_error(self.promise, self.model, training, self.n_rows)

    def refuse_too_few_rows(self) -> None:
        """Refuse a level that so few rows can't certify, whatever their scores."""
        if self.drawn is not None:
            return
        alpha, delta, bound = self.promise.alpha, self.promise.delta, 1.0
        if self.model is not None:
            known = self.model.weight_bound(
                self.rows.shape[1], self.promise.odds_factor
            )
            if known is None:
                return
            bound = known
        rule = make_rule(self.promise.rule, complete=self.model is None)
        needed = rule.least_rows(alpha, delta, bound)
        if needed is None or needed <= self.n_rows:
            return
        raise NoCertificateError(
            Message(
                "alpha={alpha:g} for class {label!r} can't be certified at its part "
                "{delta:.3g} of delta: {rows} rows would calibrate, and rule {rule!r} "
                "needs {needed} or more.",
                label=self.label,
                remedies=(
                    Remedy.RAISE_LEVELS,
                    "bring more rows of that class",
                    Remedy.CALIBRATE_MORE,
                    "bound fewer classes",
                ),
                facts={
                    "alpha": alpha,
                    "delta": delta,
                    "rows": self.n_rows,
                    "rule": rule.name,
                    "needed": needed,
                },
            )
        )

    def certify(
        self, score: Score, level: float, rng: np.random.Generator
    ) -> tuple[Certificate, Calibration]:
        """Choose the threshold above which a row of the class is wrong.

        Parameters
        ----------
        score : callable
            Gives h_k of rows; fixed before these rows are seen.
        level : float
            What to certify, α or less.
        rng : Generator
            For rules that draw.

        Returns
        -------
        certificate : Certificate
            Its threshold is infinite where none is certified.
        """
        checks: tuple[MissingnessCheck, ...] = ()
        scored = ScoredRows(self.rows, score(self.rows))
        training = None
        if self.model is not None:
            # A group may have no row at all.
            if self.n_rows:
                checks = missingness_check(
                    self.rows,
                    self.model,
                    complete=True,
                    odds_factor=self.promise.odds_factor,
                )
            tests = getattr(self.model, "checks", ())
            factor = self.promise.odds_factor
            refuse_contradiction(checks, self.label, tests, factor)
            training = ScoredRows(self.training, score(self.training))
            scored = scored.drawn(rng)
        if self.drawn is not None:
            scored = replace(scored, inclusion=self.drawn)
        warn_of_repeated_rows(self.rows, self.training)
        promise = replace(self.promise, alpha=level)
        found, calibration = certify(promise, scored, training, None, self.model, score)
        assumed = assumptions(
            self.label,
            promise.deployment,
            self.model,
            promise.odds_factor,
            promise.cap,
            looked_up=self.drawn is not None,
            fallback=self.fallback,
        )
        certificate = replace(
            found,
            alpha=self.promise.alpha,
            # No threshold below ∞ leaves few enough rows above it.
            certified=found.certified and bool(found.threshold < np.inf),
            checks=tested(self.model, checks),
            assumptions=assumed,
        )
        return certificate, calibration

    def too_few_rows(self, calibration: Calibration, rule: str) -> NoCertificateError:
        """Why nothing was certified, where only the number of rows is to blame."""
        error = infeasible(calibration, self.label, self.promise.alpha, rule)
        remedies = tuple(r for r in error.remedies if r != Remedy.REJECT_ALL)
        return NoCertificateError(replace(error.message, remedies=remedies))
