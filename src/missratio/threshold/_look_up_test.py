"""A threshold from looked-up rows, whatever made the others incomplete.

Of n rows of the controlled class some are complete; of the M incomplete ones m were
drawn by lot and looked up. For a threshold C let K be the number of complete rows that
score above it, B the number of incomplete ones that do, and k the number of the
looked-up ones that do. K and k are seen, B is not. Two facts, and no others, are used:

1. N = K + B is binomial: Bin(n, μ), with μ the type I error.
2. Given all scores, k is hypergeometric: Hyp(M, B, m). The lot makes it so.

Let g be a function that falls in N with E g(N) ≤ δ for N ~ Bin(n, α), the conditional
level. The threshold passes where

    P(Hyp(M, b, m) ≤ k) ≤ g(K + b)   for every b that is possible.

If μ ≥ α it passes with probability δ at most: at b = B the left side is a p-value given
the scores, so that this holds with probability g(N) at most, and E g(N) ≤ δ. Nothing is
said about φ, about how B depends on N, or about how m was chosen, as long as the values
had no part in it: a number fixed beforehand, a coin for every row, an answer sheet
filled in half-way, a split of the rows after the draw. More rows above C never turn
"fails" into "passes", so one test at the smallest threshold that passes is enough.

g must not depend on the M and m that came up: M goes with N where high rows are
incomplete more or less often than others, and m may have been chosen by M. It is made
for numbers M* and m* that other rows, those of training, let expect; without such rows,
for several numbers at once that are the same for every table.

Any such g is valid. The one taken is the upper envelope, over a grid of counts k, of
b ↦ P(Hyp(M*, b, m*) ≤ k) moved to the right by a number a(k): at k looked-up rows above
C it lets a(k) complete ones be above as well. Because m may come out otherwise, m*/1.5
and 1.5·m* have their part in the envelope. All a(k) use up the same level, chosen such
that E g(N) = δ but for rounding. Where nothing was expected to be incomplete, or all to
be looked up, and so it comes out, this is the binomial rule.

With two strata of incomplete rows, drawn with different probabilities, Σ k_s·M_s/m_s
takes the place of k, and the largest probability over all ways to divide b that of the
hypergeometric one. The weights are free. Where rows of the second stratum are there
because the columns that they do have predict low scores, one of them above C counts
twice. Nearly none is, and the worst division is then the one that puts all b into the
first stratum, which is smaller than all incomplete rows together and better known.

Beyond two strata, bets take over (`largest_tail`): they need E[1/q·drawn] = 1 alone,
and drawing without replacement only makes their capital smaller, because the indicators
of a simple random sample are negatively associated.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import gammaln
from scipy.stats import binom

from missratio._base.typing import FloatArray, IntArray

# The part of δ that g never falls below: keeps rounding in far tails out of the test.
FLOOR = 1e-5
# Of the counts of looked-up rows above a threshold, so many are on the grid.
GRID = 32
LEVEL_STEPS = 12
# By how much the share looked up may differ from what was expected, either way.
LEEWAY = 1.5
# What g is made for where nothing is known beforehand: half of the rows incomplete, and
# one of these shares looked up.
USUAL_SHARES = (0.05, 0.1, 0.2, 0.4, 0.8)


def highest_count(n_rows: int, alpha: float, delta: float) -> int:
    """The largest number of rows above a threshold that matters under error α."""
    return int(binom.isf(FLOOR * delta, n_rows, alpha)) + 1


class Law(ABC):
    """What looked-up rows say about B, the number of incomplete rows above."""

    @abstractmethod
    def statistic(self, counts: tuple[int, ...]) -> float:
        """The statistic of the looked-up rows above, by stratum."""

    @abstractmethod
    def tail(self, statistic: float) -> FloatArray:
        """P(statistic ≤ this | B = b) at most, for b = 0, 1, …; it falls in b."""

    @abstractmethod
    def first(self, counts: tuple[int, ...]) -> int:
        """The least that B can be."""


class OneStratum(Law):
    """One simple random sample: k ~ Hyp(size, B, drawn)."""

    def __init__(self, size: int, drawn: int, highest: int) -> None:
        self.size, self.drawn = size, drawn
        self.top = min(size, highest + 1)

    def levels(self, most_rows: float) -> list[float]:
        """Counts, the closer the fewer they are: by their roots."""
        most = min(self.drawn, np.ceil(most_rows * self.drawn / max(self.size, 1)))
        roots = np.linspace(0.0, np.sqrt(most), GRID)
        return [float(k) for k in np.unique(np.round(roots**2))]

    def statistic(self, counts: tuple[int, ...]) -> float:
        """The count itself."""
        return float(counts[0]) if counts else 0.0

    def rows(self, statistic: float) -> float:
        """Each stands for size/drawn rows."""
        return statistic * self.size / max(self.drawn, 1)

    def tail(self, statistic: float) -> FloatArray:
        """The distribution function, as a function of B."""
        return hypergeometric_tail(int(statistic), self.size, self.drawn, self.top)

    def first(self, counts: tuple[int, ...]) -> int:
        """The counts that were seen."""
        return counts[0] if counts else 0


def planned_draws(
    n_rows: int, highest: int, expected: tuple[float, float] | None
) -> list[OneStratum]:
    """The draws that a conditional level is made for.

    Parameters
    ----------
    n_rows, highest : int
    expected : tuple of float, or None
        The share of rows that are incomplete, and of these that are looked up, as other
        rows have them.
    """
    if expected is None:
        size, shares = n_rows // 2, [*USUAL_SHARES]
    else:
        size, share = round(expected[0] * n_rows), expected[1]
        shares = [share / LEEWAY, share, share * LEEWAY] if share < 1.0 else [1.0]
    counts = {min(round(share * size), size) for share in shares}
    return [OneStratum(size, drawn, highest) for drawn in sorted(counts)]


class TwoStrata(Law):
    """Two of them: Σ k_s·M_s/m_s, at the worst way to divide B among the strata.

    Parameters
    ----------
    first, second : tuple of int
        Size of a stratum, and how many were drawn.
    highest : int
    surprise : float
        By how much more a row of the second stratum counts than it stands for.
    """

    def __init__(
        self,
        first: tuple[int, int],
        second: tuple[int, int],
        highest: int,
        surprise: float = 1.0,
    ) -> None:
        # A stratum of which nothing was looked up may lie above as a whole.
        self.pairs = (first, second)
        self.tops = [min(size, highest + 1) for size, _ in self.pairs]
        self.worth = [max(size, 1) / max(drawn, 1) for size, drawn in self.pairs]
        self.worth[1] *= surprise
        self.most = [
            min(drawn, top)
            for (_, drawn), top in zip(self.pairs, self.tops, strict=True)
        ]

    @property
    def cost(self) -> float:
        """Multiplications for one value of the statistic."""
        return float(np.prod([top + 1.0 for top in self.tops])) * (self.most[0] + 1.0)

    @cached_property
    def _tables(self) -> list[FloatArray]:
        """P(k_s ≤ k | b), of shape (k, b), by stratum."""
        return [
            np.stack(
                [hypergeometric_tail(k, size, drawn, top) for k in range(most + 1)]
            )
            for (size, drawn), top, most in zip(
                self.pairs, self.tops, self.most, strict=True
            )
        ]

    def statistic(self, counts: tuple[int, ...]) -> float:
        """Incomplete rows above, as estimated."""
        return sum(k * w for k, w in zip(counts, self.worth, strict=True))

    def tail(self, statistic: float) -> FloatArray:
        """A convolution, then the largest over the ways to divide each b."""
        first, second = self._tables
        mass = np.diff(first, axis=0, prepend=0.0)
        k = np.arange(len(first))
        left = statistic - k * self.worth[0]
        reached = np.floor(left / self.worth[1] + 1e-9).astype(np.intp)
        reached = np.minimum(reached, len(second) - 1)
        chosen = np.where(reached[:, None] >= 0, second[np.maximum(reached, 0)], 0.0)
        joint = mass.T @ chosen
        tail = np.zeros(sum(self.tops) + 1)
        for b, row in enumerate(joint):
            np.maximum(tail[b : b + len(row)], row, out=tail[b : b + len(row)])
        return np.minimum(tail, 1.0)

    def first(self, counts: tuple[int, ...]) -> int:
        """The counts that were seen."""
        return sum(counts)


class ExactTest:
    """Whether counts above a threshold rule out an error of α or more.

    Parameters
    ----------
    n_rows : int
        Complete and incomplete ones.
    law : Law
        Of the draw as it came out.
    planned : list of OneStratum
        The draws that the conditional level is made for.
    alpha, delta : float
    """

    def __init__(
        self,
        n_rows: int,
        law: Law,
        planned: list[OneStratum],
        alpha: float,
        delta: float,
    ) -> None:
        self.law, self.delta = law, delta
        highest = highest_count(n_rows, alpha, delta)
        self._masses = binom.pmf(np.arange(highest + 1), n_rows, alpha)
        self._beyond = FLOOR * delta * float(binom.sf(highest, n_rows, alpha))
        self._shapes: list[FloatArray] = []
        all_parts = []
        for each in planned:
            levels = each.levels(n_rows * alpha)
            self._shapes += [each.tail(level) for level in levels]
            expected = np.array([each.rows(k) for k in levels]) / (n_rows * alpha)
            # The fewer incomplete rows are above, the more power there is anyway.
            parts = np.minimum(0.5 + 0.6 * expected, 1.0)
            all_parts.append(parts / parts.max())
        self._parts = np.concatenate(all_parts)
        self.level = self._conditional_level()

    def passes(self, complete: int, drawn: tuple[int, ...]) -> bool:
        """Whether so few rows above are unlikely under every error of α or more."""
        tail = self.law.tail(self.law.statistic(drawn))
        # Rows that were seen above are above for certain: there the tail is one.
        first = min(self.law.first(drawn), len(tail) - 1)
        b = np.arange(first, len(tail))
        allowed = self.level[np.minimum(complete + b, len(self.level) - 1)]
        # Any b beyond the table has a smaller tail than its last entry, where the level
        # is down to its floor.
        return bool((tail[b] <= allowed).all())

    def _conditional_level(self) -> FloatArray:
        """The function g on 0, 1, …, and its floor beyond."""
        # 1. The largest level of the shapes at which E g ≤ δ.
        means = self._means()
        low, high = 0.0, self.delta
        for step in range(LEVEL_STEPS):
            level = high if step == 0 else (low + high) / 2
            if self._mean(self._envelope(self._shifts(means, level))) <= self.delta:
                low = level
                if step == 0:
                    break
            else:
                high = level
        # 2. What rounding left over goes to one shape after another.
        shifts = self._shifts(means, low)
        for place in reversed(range(len(shifts))):
            more = [*shifts]
            more[place] += 1
            if self._mean(self._envelope(more)) <= self.delta:
                shifts = more
        return self._envelope(shifts)

    def _means(self) -> FloatArray:
        """E of every shape at every shift, of shape (n_shapes, n_shifts)."""
        size = len(self._masses)
        length = next_fast_len(2 * size)
        stacked = np.zeros((len(self._shapes), size))
        for row, shape in zip(stacked, self._shapes, strict=True):
            row[: len(shape)] = shape[:size]
        products = rfft(self._masses, length) * np.conj(rfft(stacked, length))
        below = np.cumsum(self._masses) - self._masses
        means: FloatArray = irfft(products, length)[:, :size] + below + self._beyond
        return means

    def _shifts(self, means: FloatArray, level: float) -> list[int]:
        """The largest shift of each shape at which its mean is at most its part."""
        small = means <= (self._parts * level)[:, None]
        return [int(count) - 1 for count in np.count_nonzero(small, axis=1)]

    def _mean(self, level: FloatArray) -> float:
        return float((self._masses * level[:-1]).sum()) + self._beyond

    def _envelope(self, shifts: list[int]) -> FloatArray:
        size = len(self._masses)
        level = np.full(size + 1, FLOOR * self.delta)
        for shape, shift in zip(self._shapes, shifts, strict=True):
            if shift >= 0:
                np.maximum(level[:-1], _moved(shape, shift, size), out=level[:-1])
        return level


def _moved(shape: FloatArray, shift: int, size: int) -> FloatArray:
    """A function of b as one of N = b + shift; one below, zero beyond its end."""
    moved = np.zeros(size)
    moved[:shift] = 1.0
    part = shape[: size - shift]
    moved[shift : shift + len(part)] = part
    return moved


def hypergeometric_tail(k: int, size: int, drawn: int, top: int) -> FloatArray:
    """P(Hyp(size, b, drawn) ≤ k) for b = 0, …, top.

    One more row above makes the count pass k where it was k and that row is among the
    drawn ones: P falls by P(Hyp = k)·(drawn − k)/(size − b).
    """
    tail = np.ones(top + 1)
    b: IntArray = np.arange(k, top)
    possible = size - b > drawn - k
    b = b[possible]
    log_mass = (
        _log_binomial(b, k)
        + _log_binomial(size - b, drawn - k)
        - _log_binomial(np.array(size), drawn)
    )
    fall = np.exp(log_mass) * (drawn - k) / (size - b)
    tail[k + 1 : k + 1 + len(b)] = np.maximum(1.0 - np.cumsum(fall), 0.0)
    tail[k + 1 + len(b) :] = 0.0
    return tail


def _log_binomial(n: IntArray, k: int) -> FloatArray:
    return np.asarray(gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0))
