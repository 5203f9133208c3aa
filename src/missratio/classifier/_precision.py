"""A promise about precision, at a share of the other class that is known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from missratio._base.typing import IntArray
from missratio.classifier._bounded import Score
from missratio.classifier._choosing import ChoosingRows
from missratio.classifier._class_table import ClassTable
from missratio.classifier._group_promises import CONTROLLED, OTHER
from missratio.classifier._grouped_certificate import KeptPromise
from missratio.classifier._trust import ScoredRows, Trust
from missratio.exceptions import NoCertificateError
from missratio.threshold import (
    CalibrationSample,
    Rule,
    binomial_bound,
    binomial_tail,
    make_rule,
)

# Parts of α that the error may be certified at, so that the precision is kept.
SHARES = tuple(2.0 ** -(step / 2) for step in range(13))
TOLERANCE = 1e-4


@dataclass(frozen=True)
class PrecisionPromise:
    """P(other class | classified as it) ≥ p, with probability 1 − δ.

    With the error at most a, and the power at least b on rows of the other class that
    had no part in the choice of the threshold, the precision at prevalence π is at
    least πb / (πb + (1 − π)a).

    Parameters
    ----------
    precision, prevalence : float
        p and π.
    delta : float
        The promise's part of δ.
    """

    precision: float
    prevalence: float
    delta: float

    def at(self, error: float, power: float) -> float:
        """The precision at an error and a power."""
        found = self.prevalence * power
        return found / (found + (1.0 - self.prevalence) * error) if found else 0.0

    def choose_level(
        self,
        table: ClassTable,
        chosen: IntArray,
        held: IntArray,
        alpha: float,
        score: Score,
    ) -> float:
        """The largest level at which the precision should be kept.

        By rows that take no part in the certificate; where none should do, the one
        that comes closest.
        """
        rows = []
        for position in (CONTROLLED, OTHER):
            index = ChoosingRows.few(table.rows_of(position, chosen))
            scores, weights = score(table.take(index)), table.weights(position, index)
            rows.append((scores, ChoosingRows.of(scores, weights), weights > 0.0))
        n_rows = [len(table.rows_of(k, held)) for k in (CONTROLLED, OTHER)]
        expected = {}
        for share in SHARES:
            level = share * alpha
            allowed = binomial_tail(n_rows[CONTROLLED], level, self.delta)
            if allowed < 0:
                continue
            scores, own, seen = rows[CONTROLLED]
            limit = own.threshold(scores[seen], allowed / n_rows[CONTROLLED])
            scores, own, seen = rows[OTHER]
            missed = own.share(scores[seen] <= limit)
            worst = binomial_bound(
                n_rows[OTHER], int(np.ceil(missed * n_rows[OTHER])), self.delta
            )
            expected[level] = self.at(level, 1.0 - worst)
        good = [level for level, found in expected.items() if found >= self.precision]
        if good:
            return float(max(good))
        return max(expected, key=lambda level: expected[level], default=alpha)

    def keep(
        self,
        table: ClassTable,
        held: IntArray,
        threshold: float,
        error: float,
        score: Score,
        rule: str | Rule,
    ) -> KeptPromise:
        """What precision is certified at a threshold.

        Parameters
        ----------
        table : ClassTable
        held : ndarray of int
            Rows that calibrate, of either class.
        threshold : float
            Chosen by rows of the controlled class.
        error : float
            What the error is certified to be at most.
        score : callable
        rule : str or Rule

        Raises
        ------
        NoCertificateError
            Where it is less than was promised.
        """
        index = table.rows_of(OTHER, held)
        rows, model = table.take(index), table.model(OTHER, index)
        draws = np.random.default_rng(0).uniform(size=len(index))
        # A row is missed where its negative score is above all those below −threshold.
        missed = -score(rows)
        limit = np.nextafter(-threshold, -np.inf)
        sample = ScoredRows(rows, missed, draws).sample(Trust(model))
        name = rule
        if rule == "auto":
            weighted = "flipped-betting" if sample.bound is None else "counting"
            name = "binomial" if model is None else weighted
        worst = error_bound_at(sample, make_rule(name), limit, self.delta)
        found = self.at(error, 1.0 - worst)
        estimated = self.at(error, 1.0 - sample.estimated_error(limit))
        if found < self.precision:
            raise NoCertificateError(
                f"A precision of {self.precision:g} can't be certified at a prevalence "
                f"of {self.prevalence:g}: {found:.3g} can, with an error of at most "
                f"{error:.3g} and a power of at least {1.0 - worst:.3g} on "
                f"{len(index)} rows. Lower it, bring more rows, or take an estimator "
                "that tells the classes apart."
            )
        return KeptPromise(
            "precision",
            None,
            self.precision,
            found,
            estimated,
            len(index),
            self.delta,
            threshold,
        )


def error_bound_at(
    sample: CalibrationSample, rule: Rule, threshold: float, delta: float
) -> float:
    """An upper bound on P(score > threshold) that holds with probability 1 − δ.

    By inverting a rule: the least level at which it certifies this threshold. A rule
    that is wrong with probability δ at the true error is wrong here with no more.

    Parameters
    ----------
    sample : CalibrationSample
        Rows that had no part in the choice of the threshold.
    rule : Rule
        Fixed before their scores were seen, and monotone in the level.
    threshold : float
    delta : float
    """

    def certifies(level: float) -> bool:
        chosen = rule.select(sample, level, delta).threshold
        return chosen is not None and chosen <= threshold

    low, high = 0.0, 1.0 - TOLERANCE
    if not sample.n_observed or not certifies(high):
        return 1.0
    while high - low > TOLERANCE:
        middle = (low + high) / 2.0
        low, high = (low, middle) if certifies(middle) else (middle, high)
    return high
