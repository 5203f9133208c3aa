"""How scores of several classes become a label, one threshold for each bounded class.

What a certificate needs is the same for unordered classes and for ordered ones: for
each bounded class k a number h_k(x) such that a row x of class k is wrong exactly when
h_k(x) > t_k, where t_k is the one threshold that is chosen on rows of class k and h_k
is fixed before these rows are seen. Any rule for one threshold then bounds the error of
class k, and thresholds of other classes have no part in it.

Offsets of classes are chosen before any certifying row is seen: held-out rows that take
no part in a certificate stand for those to come. None of this can break a guarantee;
what it decides is the power.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.special import logsumexp, ndtr

from missratio._base.hints import another_type, did_you_mean
from missratio._base.storable import storable
from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.threshold import binomial_bound, binomial_tail, check_levels
from missratio.weights import effective_sample_size


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


def with_threshold(decision: Decision, position: int, threshold: float) -> Decision:
    """The same with another threshold of one class."""
    thresholds = decision.thresholds.copy()
    thresholds[position] = threshold
    return replace(decision, thresholds=thresholds)


# Offsets that are tried for one class at a time, and how often all are gone through.
CANDIDATES = 48
SWEEPS = 4
# What another offset must gain: an untouched one is right for well-calibrated scores.
GAIN = 0.01
# Levels that are tried for classes whose rows are weighted.
LEVELS: tuple[float, ...] = tuple(np.geomspace(0.01, 0.95, 30).tolist())


@dataclass(frozen=True)
class ChoosingRows:
    """Scored rows of one class, none of them missing.

    Parameters
    ----------
    scores : ndarray of shape (n_rows, n_classes)
    weights : ndarray of shape (n_rows,)
    """

    scores: FloatArray
    weights: FloatArray

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

    def allowed(self, position: int) -> float:
        """The share of wrong rows that should still be certified."""
        alpha = self.levels[position]
        if position in self.expected:
            return self.expected[position](alpha)
        n_rows = max(self.certifying[position], 1)
        return max(int(binomial_tail(n_rows, alpha, self.delta)), 0) / n_rows

    def least_level(self, position: int, share: float) -> float:
        """The least level that should be certified where so many rows are wrong."""
        if position not in self.expected:
            n_rows = max(self.certifying[position], 1)
            return binomial_bound(n_rows, math.ceil(share * n_rows), self.delta)
        reached = [self.expected[position](level) for level in LEVELS]
        enough = np.flatnonzero(np.maximum.accumulate(reached) >= share)
        return LEVELS[int(enough[0])] if len(enough) else 1.0

    def certain(self, decision: Decision) -> float:
        """The probability that bounded classes leave each other enough room.

        Certifying rows are confused more often than these by chance; the square root
        of a share has a variance that hardly depends on it. Borders are blurred, as few
        rows lie near them. Ordered classes always leave some.
        """
        probability = 1.0
        if isinstance(decision, OrderedDecision):
            return probability
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

    def with_thresholds(self, decision: Decision) -> Decision:
        """Thresholds that should be about those to come."""
        for position in decision.bounded:
            rows = self.rows[position]
            scores = decision.scores(rows.scores, position)
            threshold = rows.threshold(scores, self.allowed(position))
            decision = with_threshold(decision, position, threshold)
        return decision

    def mean_error(self, decision: Decision, positions: tuple[int, ...]) -> float:
        """The mean over some classes of the share of their rows that is wrong."""
        errors = [
            self.rows[k].share(decision.decide(self.rows[k].scores) != k)
            for k in positions
        ]
        return float(np.mean(errors))

    def cost(self, decision: UnorderedDecision) -> float:
        """The expected error of the free classes; 1 where nothing is certified."""
        certain, error = self.certain(decision), 0.0
        if decision.free:
            error = self.mean_error(self.with_thresholds(decision), decision.free)
        return 1.0 - certain + certain * error


def choose_offsets(choice: Choice, decision: Decision) -> Decision:
    """Offsets with the least expected cost: room for all bounds, and little free error.

    One class at a time is given the best of many offsets, until none changes. Ordered
    classes have none.
    """
    if isinstance(decision, OrderedDecision) or not choice.is_possible:
        return decision
    best, cost = decision, choice.cost(decision)
    for _ in range(SWEEPS):
        before = cost
        for group in (decision.bounded, decision.free):
            for position in group[1:]:
                tried = moved_offsets(choice, best, group, position)
                costs = [choice.cost(each) for each in tried]
                if costs and min(costs) < cost - GAIN:
                    cost = min(costs)
                    best = tried[costs.index(cost)]
        if cost == before:
            break
    return best


def moved_offsets(
    choice: Choice, decision: UnorderedDecision, group: tuple[int, ...], position: int
) -> list[UnorderedDecision]:
    """The decision with other offsets of one class, which change who wins its group.

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
    own = np.arange(len(decision.offsets)) == position
    return [
        replace(decision, offsets=np.where(own, offset, decision.offsets))
        for offset in offsets[places.astype(np.intp)]
    ]


@dataclass(frozen=True)
class ClassBounds:
    """ClassBounds on errors of several classes.

    Parameters
    ----------
    alpha : mapping from class to float
    delta : float
    order : sequence of classes, or None
        The most severe first.
    labels : list
        The classes that there are, sorted.
    """

    alpha: Mapping[Any, float]
    delta: float
    order: Sequence[Any] | None
    labels: list[Any]

    @property
    def part(self) -> float:
        """Each bounded class's part of δ."""
        return self.delta / len(self.alpha)

    @property
    def most(self) -> float:
        """What part of δ a class can have at most: all, if thresholds move together."""
        return self.delta if self.order is None else self.part

    @property
    def levels(self) -> dict[int, float]:
        """α of the bounded classes, by position."""
        return {self.labels.index(label): level for label, level in self.alpha.items()}

    @property
    def fallback(self) -> Any:
        """The class of a row that can't be scored."""
        return self.labels[self.undecided().fallback]

    def wrong(self, label: Any) -> tuple[Any, ...]:
        """The classes that a row of a bounded class must not get."""
        if self.order is None:
            return tuple(other for other in self.labels if other != label)
        return tuple(self.order)[list(self.order).index(label) + 1 :]

    def undecided(self) -> Decision:
        """The decision before anything is chosen: no row gets a free class."""
        unknown = np.full(len(self.labels), np.inf)
        if self.order is not None:
            return OrderedDecision(tuple(map(self.labels.index, self.order)), unknown)
        bounded = tuple(map(self.labels.index, self.alpha))
        offsets = np.zeros(len(self.labels))
        return UnorderedDecision(bounded, offsets, unknown, fallback=bounded[0])

    def alone(self) -> Decision:
        """The decision as if no class had a threshold yet.

        What earlier classes will take isn't known then.
        """
        return replace(self.undecided(), thresholds=np.full(len(self.labels), -np.inf))

    def check(self) -> None:
        """Refuse bounds that don't fit the classes."""
        if len(self.labels) < 2:
            raise ValueError(
                f"y has one class only, {self.labels[0]!r}: there is nothing to tell "
                "apart."
            )
        if not isinstance(self.alpha, Mapping) or not self.alpha:
            raise TypeError(
                "alpha must map classes to the bounds on their errors, such as "
                f"{{{self.labels[0]!r}: 0.05}}: got {self.alpha!r}."
            )
        named = [("alpha", label) for label in self.alpha]
        for parameter, label in [*named, *(("order", x) for x in self.order or ())]:
            if label not in self.labels:
                hint = another_type(label, self.labels)
                hint = hint or did_you_mean(str(label), map(str, self.labels))
                raise ValueError(
                    f"{parameter} names a class {label!r}, but the classes are "
                    f"{self.labels}.{hint}"
                )
        for level in self.alpha.values():
            check_levels(level, self.delta)
        if self.order is None:
            return
        order = list(self.order)
        if len(order) != len(self.labels) or len(set(order)) != len(order):
            raise ValueError(
                f"order must list each class once, the most severe first: got {order} "
                f"for the classes {self.labels}."
            )
        if set(self.alpha) != set(order[:-1]):
            raise ValueError(
                "With order, alpha has a bound for each class but the last, "
                f"{order[:-1]}: got {list(self.alpha)}."
            )
