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

Look-ups as a calibration sample, and the rule that goes with them.

What it tests, and why that is enough, is said in `_look_up_test`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import gammaln
from scipy.stats import binom

from missratio._base.storable import storable
from missratio._base.typing import FloatArray, IntArray
from missratio.threshold.betting import largest_tail, mixture
from missratio.threshold.rules import Rule, Selection, bisect_tail
from missratio.threshold.sample import CalibrationSample, LookUps

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
        The law of the counts, given how many rows were drawn.
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


# What one of the rows that were predicted to score low counts for, if it doesn't: more
# than its share, so that the worst way to divide rows above puts them elsewhere. By
# simulation, the power grows with it up to here.
SURPRISE = 2.0
# Beyond so many operations two strata are bet on instead.
LARGEST_PRODUCT = 10**8


def looked_up_sample(
    scores: ArrayLike,
    inclusion: ArrayLike,
    strata: ArrayLike | None = None,
    *,
    predicted: bool = False,
    expected: tuple[float, float] | None = None,
) -> CalibrationSample:
    """Calibration rows of which incomplete ones were looked up by lot.

    Parameters
    ----------
    scores : array-like of shape (n_rows,)
        NaN for a row that was drawn and not found: it counts as an error above every
        threshold. Scores of rows that were not drawn are not looked at.
    inclusion : array-like of shape (n_rows,)
        1 for a complete row, between 0 and 1 for one that was drawn, 0 for an
        incomplete one that was not.
    strata : array-like of int of shape (n_rows,), optional
        Of the incomplete rows; what is given for complete ones is not looked at. Rows
        must have been drawn with equal probability within each. None takes all rows
        for one stratum, which they are if all probabilities are the same.
    predicted : bool, default=False
        Whether the strata are two, the second of rows that were predicted to score low
        by what was known of them before the draw.
    expected : tuple of float, optional
        The share of rows that are incomplete, and of these that are looked up, in other
        rows, such as those of training. The rule has the most power where these rows
        are like them. Shares of these rows themselves would cost the exact level.

    Returns
    -------
    CalibrationSample
        With the weight M/m for each of m rows that were drawn from a stratum of M.
    """
    values, probability = _checked_rows(scores, inclusion)
    stratum = _checked_strata(probability, strata)
    n_strata = int(stratum.max(initial=0))
    incomplete = np.bincount(stratum, minlength=n_strata + 1)[1:]
    observed = probability > 0.0
    lost = int(np.isnan(values[observed]).sum())
    if expected is not None and not all(0.0 <= share <= 1.0 for share in expected):
        raise ValueError(f"expected must hold two shares in [0, 1]: got {expected}.")
    lookups = LookUps(stratum[observed], incomplete, lost, predicted, expected)
    worth = np.ones(n_strata + 1)
    np.divide(incomplete, lookups.drawn, out=worth[1:], where=lookups.drawn > 0)
    seen = values[observed]
    return CalibrationSample(
        np.where(np.isnan(seen), np.inf, seen),
        worth[lookups.stratum],
        len(values),
        float(worth.max()),
        ordered=False,
        lookups=lookups,
    )


def _checked_rows(
    scores: ArrayLike, inclusion: ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """A score and a probability for each row; complete rows have scores."""
    values = np.asarray(scores, dtype=np.float64)
    probability = np.asarray(inclusion, dtype=np.float64)
    if values.ndim != 1 or probability.shape != values.shape:
        raise ValueError(
            "scores and inclusion must hold one number for each row: got shapes "
            f"{values.shape} and {probability.shape}."
        )
    if not ((probability >= 0.0) & (probability <= 1.0)).all():
        raise ValueError(
            "inclusion must hold probabilities in [0, 1]: 1 for complete rows, the "
            "share looked up for rows that were drawn, 0 for the other incomplete ones."
        )
    complete = probability == 1.0
    if np.isnan(values[complete]).any():
        raise ValueError(
            "A complete calibration row has a score of NaN. Score complete rows, or "
            "give rows that can't be scored a score of −∞."
        )
    return values, probability


def _checked_strata(probability: FloatArray, strata: ArrayLike | None) -> IntArray:
    """0 for complete rows, 1, 2, … for the others."""
    incomplete = probability < 1.0
    stratum = np.zeros(len(probability), dtype=np.intp)
    drawn = np.unique(probability[incomplete & (probability > 0.0)])
    if strata is None:
        # Shares of the same draw may differ by rounding.
        if len(drawn) and drawn[-1] - drawn[0] > 1e-9:
            raise ValueError(
                f"Rows were drawn with {len(drawn)} different probabilities, from "
                f"{drawn[0]:.3g} to {drawn[-1]:.3g}, and nothing says from which part "
                "of the incomplete rows each was drawn. Give a classifier inclusion by "
                "entry, as revealed.fill does, and looked_up_sample the strata, those "
                "of rows that were not drawn included."
            )
        stratum[incomplete] = 1
        return stratum
    given = np.asarray(strata)
    if given.shape != probability.shape:
        raise ValueError(
            f"strata must hold one label for each row: got shape {given.shape} for "
            f"{len(probability)} rows."
        )
    stratum[incomplete] = 1 + np.unique(given[incomplete], return_inverse=True)[1]
    return stratum


@storable()
class LookUpRule(Rule):
    """The smallest threshold that looked-up rows certify; φ has no part in it.

    Exact for up to two strata of incomplete rows, by bets for more.
    """

    name = "look-ups"
    bound = "unused"

    def select(
        self, sample: CalibrationSample, alpha: float, delta: float
    ) -> Selection:
        """Choose by bisection: the test is monotone in the threshold."""
        if sample.lookups is None:
            raise ValueError(
                "The rule 'look-ups' needs to know how rows were drawn to be looked "
                "up. Give inclusion probabilities (revealed.fill), or choose a rule "
                "for rows with a model of missingness."
            )
        if sample.n_scored == 0:
            return Selection(None, self.name, alpha, sample.n_rows)
        test = make_test(sample, alpha, delta)
        if test is None:
            bettable = _with_unseen(sample)
            bets = mixture(0.0, alpha, bettable.bound)
            n_tail = largest_tail(bettable, bets, alpha, delta)
            return self._finite(self._from_tail(bettable, n_tail, alpha))
        counts = _Counts(sample)
        n_tail = bisect_tail(
            lambda tail: test.passes(*counts.above(tail)), sample.n_scored - 1
        )
        return self._finite(self._from_tail(sample, n_tail, alpha))

    def _finite(self, chosen: Selection) -> Selection:
        """None for a threshold that only rows which were not found exceed."""
        certified = chosen.threshold is not None and chosen.threshold < np.inf
        return chosen if certified else replace(chosen, threshold=None)


def fewest_look_ups(
    sample: CalibrationSample, alpha: float, delta: float
) -> int | None:
    """How many of the incomplete rows must be looked up to certify any threshold.

    None where all of them are too few, or there are several strata. Rows that were not
    found stay so, none of the others is taken to be above, and other rows are looked up
    to the same share.
    """
    assert sample.lookups is not None
    if len(sample.lookups.incomplete) != 1:
        return None
    size, lost = int(sample.lookups.incomplete[0]), sample.lookups.not_found
    highest = highest_count(sample.n_rows, alpha, delta)

    def passes(drawn: int) -> bool:
        law = OneStratum(size, drawn, highest)
        shares = size / sample.n_rows, drawn / max(size, 1)
        planned = planned_draws(sample.n_rows, highest, shares)
        return ExactTest(sample.n_rows, law, planned, alpha, delta).passes(0, (lost,))

    if not passes(size):
        return None
    low, high = lost - 1, size
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if passes(middle) else (middle, high)
    return high


def _with_unseen(sample: CalibrationSample) -> CalibrationSample:
    """Rows of strata that nothing was drawn from, as errors above every threshold."""
    assert sample.lookups is not None
    assert sample.masses is not None
    unseen = int(sample.lookups.incomplete[sample.lookups.drawn == 0].sum())
    values = np.append(sample.values, np.full(unseen, np.inf))
    masses = np.append(sample.masses, np.ones(unseen))
    return CalibrationSample(values, masses, sample.n_rows, sample.bound, ordered=False)


class _Counts:
    """How many rows of each stratum score above a threshold."""

    def __init__(self, sample: CalibrationSample) -> None:
        assert sample.lookups is not None
        self.sample = sample
        stratum = sample.lookups.stratum
        self.scores = [
            np.sort(sample.values[stratum == place])
            for place in range(len(sample.lookups.incomplete) + 1)
        ]

    def above(self, n_tail: int) -> tuple[int, tuple[int, ...]]:
        """Above the smallest threshold with at most n_tail rows above it."""
        threshold = self.sample.scores[n_tail]
        complete, *drawn = (
            len(scores) - int(np.searchsorted(scores, threshold, side="right"))
            for scores in self.scores
        )
        return complete, tuple(drawn)


def make_test(
    sample: CalibrationSample, alpha: float, delta: float
) -> ExactTest | None:
    """The exact test for a draw; None where there are too many strata for it."""
    assert sample.lookups is not None
    highest = highest_count(sample.n_rows, alpha, delta)
    pairs = [
        (int(size), int(drawn))
        for size, drawn in zip(
            sample.lookups.incomplete, sample.lookups.drawn, strict=True
        )
        if size
    ]
    law: Law
    if len(pairs) < 2:
        law = OneStratum(*(pairs[0] if pairs else (0, 0)), highest)
    elif len(pairs) == 2:
        surprise = SURPRISE if sample.lookups.predicted else 1.0
        two = TwoStrata(pairs[0], pairs[1], highest, surprise)
        if two.cost > LARGEST_PRODUCT:
            return None
        law = two
    else:
        return None
    planned = planned_draws(sample.n_rows, highest, sample.lookups.expected)
    return ExactTest(sample.n_rows, law, planned, alpha, delta)
