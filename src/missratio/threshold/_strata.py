"""Look-ups as a calibration sample, and the rule that goes with them.

What it tests, and why that is enough, is said in `_look_up_test`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from missratio._base.typing import FloatArray, IntArray
from missratio.threshold._bets import largest_tail, mixture
from missratio.threshold._look_up_test import (
    ExactTest,
    Law,
    OneStratum,
    TwoStrata,
    highest_count,
    planned_draws,
)
from missratio.threshold._rules import Rule, Selection, bisect_tail
from missratio.threshold._sample import CalibrationSample, LookUps

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
