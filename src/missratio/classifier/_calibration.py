"""What a threshold was chosen from, and thresholds at other levels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from missratio.classifier._rounding import Rounding
from missratio.classifier._trust import Trust
from missratio.threshold import CalibrationSample, Rule, Selection


@dataclass(frozen=True)
class Calibration:
    """What a threshold was chosen from, so that it can be chosen at any level α.

    Parameters
    ----------
    sample : CalibrationSample
        The calibration rows, as the rule sees them.
    trust : Trust
        How far their weights are trusted.
    rule : Rule
        Fixed before their scores were seen.
    delta : float
        The part of δ that is the rule's.
    rounding : Rounding
        How far thresholds are moved up, so that rounding can't lift a row above them.
    others : tuple of Calibration
        The same rows under other φ that a learned model leaves possible. A threshold
        is certified by all of them.
    """

    sample: CalibrationSample
    trust: Trust
    rule: Rule
    delta: float
    rounding: Rounding = field(default_factory=Rounding)
    others: tuple[Calibration, ...] = ()

    def select(self, alphas: Sequence[float]) -> list[Selection]:
        """The thresholds that the rule certifies at some levels.

        Parameters
        ----------
        alphas : sequence of float
        """
        found = [self.rule.select_levels(self.sample, alphas, self.delta)]
        found += [other.select(alphas) for other in self.others]
        strictest = [max(each, key=_asked) for each in zip(*found, strict=True)]
        return [
            replace(chosen, threshold=self.rounding.moved(chosen.threshold))
            if chosen.threshold is not None
            else chosen
            for chosen in strictest
        ]

    def forecast(self, sample: CalibrationSample) -> Calibration:
        """The same with other rows, under the φ that asks most at α alone."""
        return replace(self, sample=sample, others=())


def _asked(chosen: Selection) -> float:
    """The threshold; infinite where none is certified."""
    return math.inf if chosen.threshold is None else chosen.threshold
