"""One run in the plane: its points, and where each method draws the line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from missratio._typing import FloatArray
from missratio.reproduce._experiment import Conditions
from missratio.reproduce._scores import METHODS, Draws, LinearScore
from missratio.reproduce._simulated import ALPHA, DELTA, Simulated, thresholds

FAR = 1e3
BISECTIONS = 60


@dataclass(frozen=True)
class Boundary:
    """The x₁ at which a score crosses its threshold, as a function of x₂.

    Parameters
    ----------
    simulated : Simulated
        A procedure in the plane whose log ratios are monotone in x₁.
    point : float
        Of its axis.
    """

    simulated: Simulated
    point: float

    def unavailable(self) -> str | None:
        """It can be run anywhere."""
        return None

    def fingerprint(self, conditions: Conditions) -> str:
        """It depends on nothing else."""
        del conditions
        return ""

    def draw(self, runs: range, conditions: Conditions) -> Draws:
        """The samples of some runs."""
        return self.simulated.draw(self.point, runs, conditions)

    def measure(
        self,
        points: Sequence[float],
        runs: range,
        methods: Sequence[str],
        conditions: Conditions,
    ) -> dict[str, FloatArray]:
        """The boundary of each run at the heights x₂; as of `Procedure`."""
        draws = self.draw(runs, conditions)
        return {
            method: boundary(draws, method, np.asarray(points, dtype=np.float64))
            for method in methods
        }


def boundary(draws: Draws, method: str, heights: FloatArray) -> FloatArray:
    """Solve score(x₁, x₂) = threshold for x₁, for each run and height x₂.

    Returns
    -------
    ndarray of shape (n_runs, n_heights)
    """
    score = METHODS[method](draws)
    cut = thresholds(score.calibration_scores(), ALPHA, DELTA)[:, None]
    if isinstance(score, LinearScore):
        slope, height = score.coef[:, :1], score.coef[:, 1:]
        return np.asarray((cut - height * heights) / slope)
    low = np.full((len(cut), len(heights)), -FAR)
    high = -low
    falls = _log_ratio(draws, low, heights) > _log_ratio(draws, high, heights)
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        above = (_log_ratio(draws, middle, heights) > cut) == falls
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return np.asarray(0.5 * (low + high))


def _log_ratio(draws: Draws, x1: FloatArray, heights: FloatArray) -> FloatArray:
    x2 = np.broadcast_to(heights, x1.shape)
    rows = np.stack([x1.ravel(), x2.ravel()], axis=1)
    return draws.simulation.log_ratio(rows).reshape(x1.shape)
