"""One run in the plane: its points, and where each method draws the line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize.elementwise import find_root

from missratio._base.typing import FloatArray
from missratio.reproduce._experiment import Conditions, Procedure
from missratio.reproduce._scores import METHODS, Draws
from missratio.reproduce._simulated import Simulated, certified_excess

FAR = 1e3


@dataclass(frozen=True)
class Boundary(Procedure):
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
        return {method: boundary(draws, method, points) for method in methods}


def boundary(draws: Draws, method: str, heights: Sequence[float]) -> FloatArray:
    """Solve score(x₁, x₂) = threshold for x₁, for each run and height x₂.

    Returns
    -------
    ndarray of shape (n_runs, n_heights)
    """
    x2 = np.asarray(heights, dtype=np.float64)
    functions = certified_excess(METHODS[method](draws))
    return np.stack([_crossing(excess, x2) for excess in functions])


def _crossing(excess: Callable[[FloatArray], FloatArray], x2: FloatArray) -> FloatArray:
    def at(x1: FloatArray, x2: FloatArray) -> FloatArray:
        return excess(np.stack([x1, x2], axis=1))

    return np.asarray(find_root(at, (-FAR, FAR), args=(x2,)).x)
