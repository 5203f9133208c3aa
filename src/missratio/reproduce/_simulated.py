"""The paper's simulated experiments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from missratio._base.typing import FloatArray
from missratio.datasets import Simulation
from missratio.reproduce._experiment import Conditions, Procedure
from missratio.reproduce._fits import certified_threshold
from missratio.reproduce._scores import METHODS, Draws, LinearScore, SimulatedScore

ALPHA, DELTA = 0.1, 0.1


def thresholds(score: SimulatedScore) -> FloatArray:
    """Each run's threshold by the binomial rule (the paper's Algorithm 2)."""
    scores = score.calibration_scores()
    return np.array([certified_threshold(own, ALPHA, DELTA) for own in scores])


def certified_power(score: SimulatedScore) -> FloatArray:
    """The power of each run's classifier at its certified threshold.

    Scores are continuous here, so that ≥ (published) and > (corrected) are one.
    """
    return score.power(thresholds(score))


def certified_excess(
    score: SimulatedScore,
) -> list[Callable[[FloatArray], FloatArray]]:
    """For each run a function of rows: by how much they score above its threshold."""

    def excess(run: int, cut: float) -> Callable[[FloatArray], FloatArray]:
        return lambda rows: score.at(run, rows) - cut

    return [excess(run, cut) for run, cut in enumerate(thresholds(score))]


def squared_distance(score: SimulatedScore) -> FloatArray:
    """‖θ̂ − θ̃‖² of each run, where the true log ratio is linear in θ̃."""
    assert isinstance(score, LinearScore)
    truth = score.draws.simulation.coef
    assert truth is not None
    return np.asarray(((score.coef - truth) ** 2).sum(axis=1))


@dataclass(frozen=True)
class Simulated(Procedure):
    """Known laws, of which class 1 loses rows or entries.

    Parameters
    ----------
    name : str
        What seeds the draws.
    simulation : callable
        From a point to its `Simulation`.
    n_rows : callable
        From a point to the rows of each sample.
    outcome : callable
        What is measured of the scores that a method learned.
    naive_bayes : bool
        Whether ratios are fitted column by column.
    """

    name: str
    simulation: Callable[[float], Simulation]
    n_rows: Callable[[float], int]
    outcome: Callable[[SimulatedScore], FloatArray] = certified_power
    naive_bayes: bool = False

    def draw(self, point: float, runs: range, conditions: Conditions) -> Draws:
        """The samples of some runs at a point."""
        generators = [
            conditions.generator(self.name, f"{point:g}", number) for number in runs
        ]
        return Draws.draw(
            self.simulation(point),
            self.n_rows(point),
            generators,
            naive_bayes=self.naive_bayes,
        )

    def measure(
        self,
        points: Sequence[float],
        runs: range,
        methods: Sequence[str],
        conditions: Conditions,
    ) -> dict[str, FloatArray]:
        """Fit and measure some runs; as of `Procedure`."""
        drawn = [self.draw(point, runs, conditions) for point in points]
        return {
            method: np.stack(
                [self.outcome(METHODS[method](draws)) for draws in drawn], axis=1
            )
            for method in methods
        }
