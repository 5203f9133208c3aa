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
from missratio.threshold.rules import Rule, Selection
from missratio.threshold.sample import CalibrationSample, LookUps


def hypergeometric_tail(size: int, drawn: int, k: int, most: int) -> FloatArray:
    """P(Hyp(size, b, drawn) ≤ k) for b = 0, …, and the size or `most`; it falls in b.

    One more row above makes the count pass k where it was k and that row is among the
    drawn ones: P falls by P(Hyp = k)·(drawn − k)/(size − b).
    """
    tail = np.ones(min(size, most) + 1)
    b: IntArray = np.arange(k, len(tail) - 1)
    b = b[size - b > drawn - k]
    # log of C(b, k)·C(size − b, drawn − k)/C(size, drawn)
    log_mass = gammaln(b + 1.0) - gammaln(k + 1.0) - gammaln(b - k + 1.0)
    log_mass += gammaln(size - b + 1.0) - gammaln(size - b - drawn + k + 1.0)
    log_mass += gammaln(size - drawn + 1.0) - gammaln(size + 1.0)
    log_mass += gammaln(drawn + 1.0) - gammaln(drawn - k + 1.0)
    fall = np.exp(log_mass) * (drawn - k) / (size - b)
    tail[k + 1 : k + 1 + len(b)] = np.maximum(1.0 - np.cumsum(fall), 0.0)
    tail[k + 1 + len(b) :] = 0.0
    return tail


class ExactTest:
    """Whether counts above a threshold rule out an error of α or more.

    Parameters
    ----------
    n_rows : int
        Complete and incomplete ones.
    size, drawn : int
        Incomplete ones, and how many of them were drawn.
    expected : tuple of float, or None
        The share of rows that are incomplete, and of these that are looked up, as other
        rows have them: the conditional level is made for these.
    alpha, delta : float
    """

    def __init__(
        self,
        n_rows: int,
        size: int,
        drawn: int,
        expected: tuple[float, float] | None,
        alpha: float,
        delta: float,
    ) -> None:
        self.size, self.drawn = size, drawn
        # Where nothing is known beforehand, g is made for half of the rows incomplete,
        # and one of several shares looked up.
        planned, shares = n_rows // 2, [0.05, 0.1, 0.2, 0.4, 0.8]
        if expected is not None:
            planned, share = round(expected[0] * n_rows), expected[1]
            # It may differ from what was expected by a factor of 1.5, either way.
            shares = [share / 1.5, share, share * 1.5] if share < 1.0 else [1.0]
        draws = sorted({min(round(share * planned), planned) for share in shares})
        self.level = conditional_level(n_rows, planned, draws, alpha, delta)

    def passes(self, complete: int, drawn: int) -> bool:
        """Whether so few rows above are unlikely under every error of α or more."""
        last = len(self.level) - 1
        tail = hypergeometric_tail(self.size, self.drawn, drawn, last)
        # Rows that were seen above are above for certain: there the tail is one.
        b = np.arange(min(drawn, len(tail) - 1), len(tail))
        allowed = self.level[np.minimum(complete + b, last)]
        # Any b beyond the table has a smaller tail than its last entry, where the level
        # is down to its floor.
        return bool((tail[b] <= allowed).all())


def conditional_level(
    n_rows: int, planned: int, draws: list[int], alpha: float, delta: float
) -> FloatArray:
    """The function g on 0, 1, …, and its floor beyond.

    It is made for so many incomplete rows, and for each of these numbers of draws.
    """
    # g never falls below a part of δ: that keeps rounding in far tails out of the test.
    floor = 1e-5 * delta
    # More rows above than these don't matter under an error of α.
    size = int(binom.isf(floor, n_rows, alpha)) + 2
    masses = binom.pmf(np.arange(size), n_rows, alpha)
    beyond = floor * float(binom.sf(size - 1, n_rows, alpha))
    # 1. The shapes, functions of b, and what part of the level each may use up: the
    # fewer incomplete rows are above, the more power there is anyway.
    shapes, parts = [], []
    for drawn in draws:
        # 32 counts k for the grid, the closer the fewer they are: by their roots.
        most = min(drawn, np.ceil(n_rows * alpha * drawn / max(planned, 1)))
        counts = np.unique(np.round(np.linspace(0.0, np.sqrt(most), 32) ** 2))
        for k in counts.astype(int).tolist():
            shape = np.zeros(size)
            tail = hypergeometric_tail(planned, drawn, k, size - 1)
            shape[: len(tail)] = tail
            shapes.append(shape)
        # Each row above stands for planned/drawn rows.
        above = counts * planned / max(drawn, 1)
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
    for _ in range(11 if low < high else 0):
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
    if np.isnan(values[probability == 1.0]).any():
        raise ValueError(
            "A complete calibration row has a score of NaN. Score complete rows, or "
            "give rows that can't be scored a score of −∞."
        )
    # 0 for complete rows, 1, 2, … for the others.
    observed, lossy = probability > 0.0, probability < 1.0
    stratum = lossy.astype(np.intp)
    if strata is None:
        drawn = probability[lossy & observed]
        # Shares of the same draw may differ by rounding.
        if len(drawn) and np.ptp(drawn) > 1e-9:
            raise ValueError(
                f"Rows were drawn with different probabilities, from {drawn.min():.3g} "
                f"to {drawn.max():.3g}, and nothing says from which incomplete rows. "
                "Give a classifier inclusion by entry, as revealed.fill does, and "
                "looked_up_sample the strata of all rows."
            )
    else:
        stratum[lossy] += np.unique(np.asarray(strata)[lossy], return_inverse=True)[1]
    n_strata, seen = int(stratum.max(initial=0)), values[observed]
    incomplete = np.bincount(stratum, minlength=n_strata + 1)[1:]
    lost = int(np.isnan(seen).sum())
    lookups = LookUps(stratum[observed], incomplete, lost, expected)
    worth = np.ones(n_strata + 1)
    np.divide(incomplete, lookups.drawn, out=worth[1:], where=lookups.drawn > 0)
    return CalibrationSample(
        np.where(np.isnan(seen), np.inf, seen),
        worth[lookups.stratum],
        len(values),
        float(worth.max()),
        lookups=lookups,
    )


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
        assert sample.lookups is not None
        lookups, drawn = sample.lookups, sample.lookups.drawn
        if np.count_nonzero(lookups.incomplete) > 1:
            # Rows of strata that nothing was drawn from are errors above every
            # threshold.
            unseen = int(lookups.incomplete[drawn == 0].sum())
            values = np.append(sample.values, np.full(unseen, np.inf))
            masses = np.append(sample.weights, np.ones(unseen))
            sample = CalibrationSample(values, masses, sample.n_rows, sample.bound)
            bets = mixture(0.0, alpha, sample.bound)
            n_tail = largest_tail(sample, bets, alpha, delta)
        else:
            sizes = int(lookups.incomplete.sum()), int(drawn.sum())
            test = ExactTest(sample.n_rows, *sizes, lookups.expected, alpha, delta)
            # How many complete and looked-up rows score above a threshold.
            was_drawn, scores = lookups.stratum > 0, sample.ranked.scores
            groups = [np.sort(sample.values[rows]) for rows in (~was_drawn, was_drawn)]

            def fails(n_tail: int) -> bool:
                above = (
                    len(group) - int(np.searchsorted(group, scores[n_tail], "right"))
                    for group in groups
                )
                return not test.passes(*above)

            n_scored = sample.ranked.n_scored
            n_tail = bisect_left(range(n_scored), True, key=fails) - 1
        chosen = self._from_tail(sample, n_tail, alpha)
        # Only rows that were not found exceed an infinite threshold.
        return replace(chosen, threshold=None) if chosen.threshold == np.inf else chosen


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
        test = ExactTest(sample.n_rows, size, drawn, shares, alpha, delta)
        return test.passes(0, lost)

    if not passes(size):
        return None
    return lost + bisect_left(range(lost, size), True, key=passes)
