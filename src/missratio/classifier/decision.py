"""How scores of several classes become a label, one threshold for each bounded class.

What a certificate needs is the same for unordered classes and for ordered ones: for
each bounded class k a number h_k(x) such that a row x of class k is wrong exactly when
h_k(x) > t_k, where t_k is the one threshold that is chosen on rows of class k and h_k
is fixed before these rows are seen. Any rule for one threshold then bounds the error of
class k, and thresholds of other classes have no part in it.

Offsets of classes, and levels, are chosen before any certifying row is seen: held-out
rows that take no part in a certificate stand for those to come. None of this can break
a guarantee; what it decides is the power.
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
    def positions(self) -> tuple[int, ...]:
        """The bounded classes, in the order in which thresholds are chosen."""
        return self.undecided().bounded

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
        """The decision before anything is chosen."""
        if self.order is not None:
            return ordered([self.labels.index(label) for label in self.order])
        bounded = [self.labels.index(label) for label in self.alpha]
        return unordered(len(self.labels), bounded)

    def alone(self) -> Decision:
        """The decision as if no class had a threshold yet.

        What earlier classes will take isn't known then.
        """
        decision = self.undecided()
        for position in decision.bounded:
            decision = decision.with_threshold(position, -np.inf)
        return decision

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
        for label, level in self.alpha.items():
            self._check_label(label, "alpha")
            check_levels(level, self.delta)
        if self.order is not None:
            self._check_order(list(self.order))

    def _check_order(self, order: list[Any]) -> None:
        for label in order:
            self._check_label(label, "order")
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

    def _check_label(self, label: Any, parameter: str) -> None:
        if label not in self.labels:
            hint = another_type(label, self.labels)
            if not hint:
                hint = did_you_mean(str(label), [str(known) for known in self.labels])
            raise ValueError(
                f"{parameter} names a class {label!r}, but the classes are "
                f"{self.labels}.{hint}"
            )
