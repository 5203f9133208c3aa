"""Residuals of observed entries, lent to missing ones."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from missratio._typing import FloatArray, IntArray
from missratio.imputation._levels import NumericLevels

KEPT_DONORS = 10_000
TRIES = 100
CANDIDATES = 500


@dataclass(frozen=True)
class Donors:
    """Draws from p(z_j | z_−j, missing) ∝ p(z_j | z_−j) φ_j(z_j).

    A donor is an entry where column j is observed. Its residual, drawn with probability
    ∝ 1/(1 − φ_j) and added to the location predicted for a missing entry, proposes a
    value from p(z_j | z_−j). The proposal is accepted with probability φ_j/max φ_j, so
    that what is accepted has exactly the tilted law. Over the entries that did go
    missing, this takes n proposals or fewer on average, n being the number of rows.

    Parameters
    ----------
    levels : NumericLevels
        Of the column.
    tilt : ndarray of shape (n_levels,)
        φ_j/max φ_j.
    marginal : ndarray of shape (n_levels,)
        Cumulative law of the missing entries as a whole, for an entry none of whose
        proposals can go missing.
    location, residual : ndarray of shape (n_donors,)
        The donors, sorted by location where `n_nearest` is given.
    cumulative : ndarray of shape (n_donors + 1,)
        Sums of their weights, from 0.
    n_nearest : int or None
        How many of the donors, those with the nearest locations, an entry has; None
        for all.
    """

    levels: NumericLevels
    tilt: FloatArray
    marginal: FloatArray
    location: FloatArray
    residual: FloatArray
    cumulative: FloatArray
    n_nearest: int | None

    @classmethod
    def build(
        cls,
        levels: NumericLevels,
        tilt: FloatArray,
        marginal: FloatArray,
        location: FloatArray,
        residual: FloatArray,
        weights: FloatArray,
        n_nearest: int | None,
    ) -> Donors:
        """Sum the donors' weights, in the order of their locations if need be."""
        if n_nearest is not None:
            order = np.argsort(location, kind="stable")
            location, residual = location[order], residual[order]
            weights = weights[order]
        cumulative = np.concatenate([[0.0], np.cumsum(weights)])
        total = np.cumsum(marginal)
        return cls(levels, tilt, total, location, residual, cumulative, n_nearest)

    def draw(self, location: FloatArray, rng: np.random.Generator) -> IntArray:
        """A level for each entry with a predicted location."""
        first, last = self._windows(location)
        drawn = np.empty(len(location), dtype=np.intp)
        waiting = np.arange(len(location))
        for _ in range(TRIES):
            if not len(waiting):
                return drawn
            proposed = self._propose(location, first, last, rng)
            drawn[waiting] = proposed
            refused = rng.random(len(waiting)) >= self.tilt[proposed]
            waiting = waiting[refused]
            location, first, last = location[refused], first[refused], last[refused]
        drawn[waiting] = self._choose(location, first, last, rng)
        return drawn

    def thinned(self, rng: np.random.Generator) -> Donors:
        """With at most `KEPT_DONORS` donors, chosen at random."""
        n_donors = len(self.location)
        if n_donors <= KEPT_DONORS:
            return self
        kept = np.sort(rng.choice(n_donors, KEPT_DONORS, replace=False))
        weights = np.diff(self.cumulative)[kept]
        nearest = self.n_nearest
        if nearest is not None:
            nearest = max(1, nearest * KEPT_DONORS // n_donors)
        return replace(
            self,
            location=self.location[kept],
            residual=self.residual[kept],
            cumulative=np.concatenate([[0.0], np.cumsum(weights)]),
            n_nearest=nearest,
        )

    def _windows(self, location: FloatArray) -> tuple[IntArray, IntArray]:
        """The donors of each entry, from the first to before the last."""
        n_donors = len(self.location)
        n_nearest = min(self.n_nearest or n_donors, n_donors)
        if n_nearest == n_donors:
            first = np.zeros(len(location), dtype=np.intp)
        else:
            # Amid donors that tie with the entry, as those in one leaf of a tree do.
            rank = np.searchsorted(self.location, location)
            rank = (rank + np.searchsorted(self.location, location, side="right")) // 2
            first = np.clip(rank - n_nearest // 2, 0, n_donors - n_nearest)
        return first, first + n_nearest

    def _propose(
        self,
        location: FloatArray,
        first: IntArray,
        last: IntArray,
        rng: np.random.Generator,
    ) -> IntArray:
        below = self.cumulative[first]
        mark = below + rng.random(len(location)) * (self.cumulative[last] - below)
        donor = np.searchsorted(self.cumulative, mark, side="right") - 1
        donor = np.clip(donor, first, last - 1)
        return self.levels.nearest(location + self.residual[donor])

    def _choose(
        self,
        location: FloatArray,
        first: IntArray,
        last: IntArray,
        rng: np.random.Generator,
    ) -> IntArray:
        """One of many proposals, with probability ∝ φ, where few are accepted."""
        drawn = np.empty(len(location), dtype=np.intp)
        for i in range(len(location)):
            repeated = np.full(CANDIDATES, i)
            proposed = self._propose(
                location[repeated], first[repeated], last[repeated], rng
            )
            mass = np.cumsum(self.tilt[proposed])
            if mass[-1] > 0.0:
                drawn[i] = proposed[draw_from(mass, 1, rng)[0]]
            else:
                drawn[i] = draw_from(self.marginal, 1, rng)[0]
        return drawn


def draw_from(cumulative: FloatArray, size: int, rng: np.random.Generator) -> IntArray:
    """Places drawn with the probabilities that sums of masses imply."""
    mark = rng.random(size) * cumulative[-1]
    place = np.searchsorted(cumulative, mark, side="right")
    # Should rounding take a mark to the very end: the last place with any mass.
    last = np.searchsorted(cumulative, cumulative[-1])
    result: IntArray = np.minimum(place, last)
    return result
