"""What is chosen before any certifying row is seen: offsets of classes, and levels.

Held-out rows that take no part in a certificate stand for those to come. Nothing here
can break a guarantee; what it decides is the power.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.special import ndtr

from missratio._base.typing import FloatArray, IntArray
from missratio.classifier._decisions import (
    Decision,
    OrderedDecision,
    UnorderedDecision,
)
from missratio.threshold import binomial_bound, binomial_tail
from missratio.weights import effective_sample_size

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
