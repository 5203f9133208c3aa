"""The outline of a region of (level, slope) that may bend, or fall into parts.

Where the other columns say little of a slope, the moment equations have more than one
near-solution, and the slopes that they leave possible can be two intervals, or all. So
the region is not looked for along rays from the estimate but slope by slope: for each,
the level that fits best, and from there how far levels go either way.

Parameters at which a few rows have all the odds are never ruled out by sums over rows,
and don't count here: what is near the estimate is found along rays from it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from missratio._base.typing import BoolArray, FloatArray

Distance = Callable[[FloatArray], FloatArray]

# Slopes to try: about the estimate by standard errors, and all over the real line by
# standard deviations of the values; beyond the last a logistic function is a step.
NEAR = np.linspace(-6.0, 6.0, 19)
WIDE = np.sinh(np.linspace(-5.0, 5.0, 25))
LEVELS = np.array([-12.0, -4.0, -1.5, -0.5, 0.0, 0.5, 1.5, 4.0, 12.0])
REFINEMENTS = 2
BISECTIONS = 8
END_BISECTIONS = 4
FARTHEST = 2.0**10


def outline(
    distance: Distance,
    estimate: FloatArray,
    errors: FloatArray,
    limit: float,
) -> FloatArray:
    """Points (level, slope) on the boundary of where a distance is within a limit.

    Parameters
    ----------
    distance : callable
        Of points of shape (n_points, 2).
    estimate : ndarray of shape (2,)
        About which slopes are tried the most closely.
    errors : ndarray of shape (2,)
        Standard errors of level and slope, for the scale of the search.
    limit : float

    Returns
    -------
    ndarray of shape (n_points, 2)
        None of them where no slope that was tried is possible.
    """
    search = _Search(distance, float(estimate[0]), float(errors[0]), limit)
    # 1. Which of many slopes are possible at their best level.
    slopes = np.unique(np.append(estimate[1] + errors[1] * NEAR, WIDE))
    levels, inside = search.best(slopes)
    if not inside.any():
        return np.empty((0, 2))
    # 2. Where they end, more exactly.
    slopes, levels = search.with_ends(slopes, levels, inside)
    # 3. How far levels go for each, up and down.
    ends = [search.end(levels, slopes, sign) for sign in (-1.0, 1.0)]
    return np.concatenate([np.stack([end, slopes], axis=1) for end in ends])


class _Search:
    """Levels at which slopes are possible."""

    def __init__(
        self, distance: Distance, level: float, error: float, limit: float
    ) -> None:
        self.distance, self.limit = distance, limit
        self.level, self.error = level, error

    def best(self, slopes: FloatArray) -> tuple[FloatArray, BoolArray]:
        """The best level of each slope, and whether it is possible there."""
        step = np.full(len(slopes), self.error)
        levels = np.full(len(slopes), self.level)
        tried = LEVELS
        for _ in range(1 + REFINEMENTS):
            grid = levels[:, None] + step[:, None] * tried
            points = np.stack(
                [grid, np.broadcast_to(slopes[:, None], grid.shape)], axis=-1
            )
            found = self.distance(points.reshape(-1, 2)).reshape(grid.shape)
            place = found.argmin(axis=1)
            # The next grid spans the two neighbours of the best.
            beside = np.clip(place, 1, len(tried) - 2)
            gap = (tried[beside + 1] - tried[beside - 1]) / 2.0
            levels = np.take_along_axis(grid, place[:, None], axis=1)[:, 0]
            step, tried = step * gap, np.linspace(-1.0, 1.0, 5)
        return levels, found.min(axis=1) <= self.limit

    def with_ends(
        self, slopes: FloatArray, levels: FloatArray, inside: BoolArray
    ) -> tuple[FloatArray, FloatArray]:
        """Possible slopes, with the last of each stretch found by bisection."""
        change = np.flatnonzero(inside[1:] != inside[:-1])
        starts_inside = inside[change]
        near = np.where(starts_inside, slopes[change], slopes[change + 1])
        far = np.where(starts_inside, slopes[change + 1], slopes[change])
        level = np.where(starts_inside, levels[change], levels[change + 1])
        for _ in range(END_BISECTIONS if len(near) else 0):
            middle = (near + far) / 2.0
            found, within = self.best(middle)
            near, far = np.where(within, middle, near), np.where(within, far, middle)
            level = np.where(within, found, level)
        # What lies just beyond the end belongs to the outline.
        return (
            np.concatenate([slopes[inside], far]),
            np.concatenate([levels[inside], level]),
        )

    def end(self, levels: FloatArray, slopes: FloatArray, sign: float) -> FloatArray:
        """Just beyond the last possible level, from the best one up or down."""

        def within(distance: FloatArray) -> BoolArray:
            points = np.stack([levels + sign * distance, slopes], axis=1)
            return np.asarray(self.distance(points) <= self.limit)

        near, far = np.zeros(len(slopes)), np.full(len(slopes), self.error)
        going = np.ones(len(slopes), dtype=bool)
        while (going := going & (far < FARTHEST * self.error)).any():
            going &= within(far)
            near, far = np.where(going, far, near), np.where(going, 2.0 * far, far)
        for _ in range(BISECTIONS):
            middle = (near + far) / 2.0
            inside = within(middle)
            near, far = np.where(inside, middle, near), np.where(inside, far, middle)
        return levels + sign * far
