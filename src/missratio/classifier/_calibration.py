"""What a threshold was chosen from, and thresholds at other levels."""

from __future__ import annotations

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
    """

    sample: CalibrationSample
    trust: Trust
    rule: Rule
    delta: float
    rounding: Rounding = field(default_factory=Rounding)

    def select(self, alphas: Sequence[float]) -> list[Selection]:
        """The thresholds that the rule certifies at some levels.

        Parameters
        ----------
        alphas : sequence of float
        """
        return [
            replace(chosen, threshold=self.rounding.moved(chosen.threshold))
            if chosen.threshold is not None
            else chosen
            for chosen in self.rule.select_levels(self.sample, alphas, self.delta)
        ]
