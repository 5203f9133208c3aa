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

With several strata of incomplete rows, drawn with different probabilities, bets take
over (`largest_tail`): they need E[1/q·drawn] = 1 alone, and drawing without replacement
only makes their capital smaller, because the indicators of a simple random sample are
negatively associated.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.signal import fftconvolve
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
LEVEL_STEPS = 11
# By how much the share looked up may differ from what was expected, either way.
LEEWAY = 1.5
# What g is made for where nothing is known beforehand: half of the rows incomplete, and
# one of these shares looked up.
USUAL_SHARES = (0.05, 0.1, 0.2, 0.4, 0.8)


def highest_count(n_rows: int, alpha: float, delta: float) -> int:
    """The largest number of rows above a threshold that matters under error α."""
    return int(binom.isf(FLOOR * delta, n_rows, alpha)) + 1


class OneStratum:
    """What looked-up rows say of B, the incomplete rows above: k ~ Hyp(size, B, drawn).

    Parameters
    ----------
    size, drawn : int
    highest : int
        The largest number of rows above that matters.
    """

    def __init__(self, size: int, drawn: int, highest: int) -> None:
        self.size, self.drawn = size, drawn
        self.top = min(size, highest + 1)

    def levels(self, most_rows: float) -> list[int]:
        """Counts k for the grid, the closer the fewer they are: by their roots."""
        most = min(self.drawn, np.ceil(most_rows * self.drawn / max(self.size, 1)))
        roots = np.linspace(0.0, np.sqrt(most), GRID)
        return [int(k) for k in np.unique(np.round(roots**2))]

    def tail(self, k: int) -> FloatArray:
        """P(count ≤ k | B = b) for b = 0, …, top; it falls in b.

        One more row above makes the count pass k where it was k and that row is among
        the drawn ones: P falls by P(Hyp = k)·(drawn − k)/(size − b).
        """
        size, drawn = self.size, self.drawn
        tail = np.ones(self.top + 1)
        b: IntArray = np.arange(k, self.top)
        b = b[size - b > drawn - k]
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


def planned_draws(
    n_rows: int, highest: int, expected: tuple[float, float] | None
) -> list[OneStratum]:
    """The draws that a conditional level is made for.

    `expected` are the share of rows that are incomplete, and of these that are looked
    up, as other rows have them.
    """
    if expected is None:
        size, shares = n_rows // 2, [*USUAL_SHARES]
    else:
        size, share = round(expected[0] * n_rows), expected[1]
        shares = [share / LEEWAY, share, share * LEEWAY] if share < 1.0 else [1.0]
    counts = {min(round(share * size), size) for share in shares}
    return [OneStratum(size, drawn, highest) for drawn in sorted(counts)]


class ExactTest:
    """Whether counts above a threshold rule out an error of α or more.

    Parameters
    ----------
    n_rows : int
        Complete and incomplete ones.
    law : OneStratum
        The law of the count, given how many rows were drawn.
    planned : list of OneStratum
        The draws that the conditional level is made for.
    alpha, delta : float
    """

    def __init__(
        self,
        n_rows: int,
        law: OneStratum,
        planned: list[OneStratum],
        alpha: float,
        delta: float,
    ) -> None:
        self.law = law
        self.level = conditional_level(n_rows, planned, alpha, delta)

    def passes(self, complete: int, drawn: int) -> bool:
        """Whether so few rows above are unlikely under every error of α or more."""
        tail = self.law.tail(drawn)
        # Rows that were seen above are above for certain: there the tail is one.
        b = np.arange(min(drawn, len(tail) - 1), len(tail))
        allowed = self.level[np.minimum(complete + b, len(self.level) - 1)]
        # Any b beyond the table has a smaller tail than its last entry, where the level
        # is down to its floor.
        return bool((tail[b] <= allowed).all())


def conditional_level(
    n_rows: int, planned: list[OneStratum], alpha: float, delta: float
) -> FloatArray:
    """The function g on 0, 1, …, and its floor beyond."""
    highest, floor = highest_count(n_rows, alpha, delta), FLOOR * delta
    size = highest + 1
    masses = binom.pmf(np.arange(size), n_rows, alpha)
    beyond = floor * float(binom.sf(highest, n_rows, alpha))
    # 1. The shapes, functions of b, and what part of the level each may use up: the
    # fewer incomplete rows are above, the more power there is anyway.
    shapes, parts = [], []
    for each in planned:
        levels = each.levels(n_rows * alpha)
        for level in levels:
            shape = np.zeros(size)
            tail = each.tail(level)[:size]
            shape[: len(tail)] = tail
            shapes.append(shape)
        # Each row above stands for size/drawn rows.
        above = np.array(levels, dtype=np.float64) * each.size / max(each.drawn, 1)
        part = np.minimum(0.5 + 0.6 * above / (n_rows * alpha), 1.0)
        parts.append(part / part.max())
    share = np.concatenate(parts)[:, None]
    # 2. E of every shape at every shift: a function of N = b + shift, one below.
    products = fftconvolve(masses[None], np.array(shapes)[:, ::-1], axes=1)
    means = products[:, size - 1 :] + (np.cumsum(masses) - masses) + beyond

    def envelope(shifts: list[int]) -> FloatArray:
        level = np.full(size, floor)
        for shape, shift in zip(shapes, shifts, strict=True):
            if shift >= 0:
                level[:shift] = 1.0
                np.maximum(level[shift:], shape[: size - shift], out=level[shift:])
        return level

    def spent(shifts: list[int]) -> float:
        return float(masses @ envelope(shifts)) + beyond

    def largest_shifts(level: float) -> list[int]:
        counts: list[int] = np.count_nonzero(means <= share * level, axis=1).tolist()
        return [count - 1 for count in counts]

    # 3. The largest level of the shapes at which E g ≤ δ.
    low, high = 0.0, delta
    if spent(largest_shifts(high)) <= delta:
        low = high
    for _ in range(LEVEL_STEPS if low < high else 0):
        middle = (low + high) / 2
        if spent(largest_shifts(middle)) <= delta:
            low = middle
        else:
            high = middle
    # 4. What rounding left over goes to one shape after another.
    shifts = largest_shifts(low)
    for place in reversed(range(len(shifts))):
        more = [*shifts]
        more[place] += 1
        if spent(more) <= delta:
            shifts = more
    return np.append(envelope(shifts), floor)


def looked_up_sample(
    scores: ArrayLike,
    inclusion: ArrayLike,
    strata: ArrayLike | None = None,
    *,
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
    expected : tuple of float, optional
        The share of rows that are incomplete, and of these that are looked up, in other
        rows, such as those of training. The rule has the most power where these rows
        are like them. Shares of these rows themselves would cost the exact level.

    Returns
    -------
    CalibrationSample
        With the weight M/m for each of m rows that were drawn from a stratum of M.
    """
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
    stratum = _checked_strata(probability, strata)
    n_strata = int(stratum.max(initial=0))
    incomplete = np.bincount(stratum, minlength=n_strata + 1)[1:]
    observed = probability > 0.0
    lost = int(np.isnan(values[observed]).sum())
    if expected is not None and not all(0.0 <= share <= 1.0 for share in expected):
        raise ValueError(f"expected must hold two shares in [0, 1]: got {expected}.")
    lookups = LookUps(stratum[observed], incomplete, lost, expected)
    worth = np.ones(n_strata + 1)
    np.divide(incomplete, lookups.drawn, out=worth[1:], where=lookups.drawn > 0)
    seen = values[observed]
    return CalibrationSample(
        np.where(np.isnan(seen), np.inf, seen),
        worth[lookups.stratum],
        len(values),
        float(worth.max()),
        lookups=lookups,
    )


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

    Exact for incomplete rows of one stratum, by bets for several.
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
        lookups = sample.lookups
        if np.count_nonzero(lookups.incomplete) > 1:
            bettable = _with_unseen(sample)
            bets = mixture(0.0, alpha, bettable.bound)
            n_tail = largest_tail(bettable, bets, alpha, delta)
            return self._finite(self._from_tail(bettable, n_tail, alpha))
        sizes = int(lookups.incomplete.sum()), int(lookups.drawn.sum())
        test = exact_test(sample.n_rows, *sizes, lookups.expected, alpha, delta)
        # How many complete and looked-up rows score above a threshold.
        of_draw = lookups.stratum > 0
        groups = [np.sort(sample.values[chosen]) for chosen in (~of_draw, of_draw)]

        def passes(n_tail: int) -> bool:
            threshold = sample.scores[n_tail]
            complete, drawn = (
                len(scores) - int(np.searchsorted(scores, threshold, side="right"))
                for scores in groups
            )
            return test.passes(complete, drawn)

        n_tail = bisect_tail(passes, sample.n_scored - 1)
        return self._finite(self._from_tail(sample, n_tail, alpha))

    def _finite(self, chosen: Selection) -> Selection:
        """None for a threshold that only rows which were not found exceed."""
        certified = chosen.threshold is not None and chosen.threshold < np.inf
        return chosen if certified else replace(chosen, threshold=None)


def exact_test(
    n_rows: int,
    size: int,
    drawn: int,
    expected: tuple[float, float] | None,
    alpha: float,
    delta: float,
) -> ExactTest:
    """The test for a draw of so many of `size` incomplete rows."""
    highest = highest_count(n_rows, alpha, delta)
    planned = planned_draws(n_rows, highest, expected)
    return ExactTest(n_rows, OneStratum(size, drawn, highest), planned, alpha, delta)


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

    def passes(drawn: int) -> bool:
        shares = size / sample.n_rows, drawn / max(size, 1)
        test = exact_test(sample.n_rows, size, drawn, shares, alpha, delta)
        return test.passes(0, lost)

    if not passes(size):
        return None
    return lost + bisect_left(range(lost, size), True, key=passes)


def _with_unseen(sample: CalibrationSample) -> CalibrationSample:
    """Rows of strata that nothing was drawn from, as errors above every threshold."""
    assert sample.lookups is not None
    assert sample.masses is not None
    unseen = int(sample.lookups.incomplete[sample.lookups.drawn == 0].sum())
    values = np.append(sample.values, np.full(unseen, np.inf))
    masses = np.append(sample.masses, np.ones(unseen))
    return CalibrationSample(values, masses, sample.n_rows, sample.bound)
