"""How scores of several classes become a label, one threshold for each bounded class.

What a certificate needs is the same for unordered classes and for ordered ones: for
each bounded class k a number h_k(x) such that a row x of class k is wrong exactly when
h_k(x) > t_k, where t_k is the one threshold that is chosen on rows of class k and h_k
is fixed before these rows are seen. Any rule for one threshold then bounds the error of
class k, and thresholds of other classes have no part in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import logsumexp

from missratio._base.typing import BoolArray, FloatArray, IntArray


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
