"""What a threshold was chosen from, and thresholds at other levels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
    """

    sample: CalibrationSample
    trust: Trust
    rule: Rule
    delta: float

    def select(self, alphas: Sequence[float]) -> list[Selection]:
        """The thresholds that the rule certifies at some levels.

        Parameters
        ----------
        alphas : sequence of float
        """
        return self.rule.select_levels(self.sample, alphas, self.delta)
