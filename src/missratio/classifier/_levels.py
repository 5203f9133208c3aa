"""What a threshold was chosen from, and thresholds at other levels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from missratio.threshold import CalibrationSample, Rule, Selection

if TYPE_CHECKING:
    from missratio.classifier._certify import Trust


@dataclass(frozen=True)
class Levels:
    """What a threshold was chosen from, so that it can be chosen at any level α.

    Parameters
    ----------
    sample : CalibrationSample
        The calibration rows, as the rule sees them.
    trust : Trust
    rule : Rule
    delta : float
        The part of δ that is the rule's.
    rng : Generator
        As the rule found it.
    """

    sample: CalibrationSample
    trust: Trust
    rule: Rule
    delta: float
    rng: np.random.Generator

    def select(self, alphas: Sequence[float]) -> list[Selection]:
        """The thresholds that the rule certifies at some levels.

        Parameters
        ----------
        alphas : sequence of float
        """
        return self.rule.select_levels(self.sample, alphas, self.delta, self.rng)
