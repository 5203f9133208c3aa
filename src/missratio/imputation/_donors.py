"""Residuals of observed entries, lent to missing ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from missratio._typing import FloatArray, IntArray
from missratio.imputation._levels import NumericLevels

Proposer = Callable[[FloatArray], FloatArray]
KEPT_DONORS = 10_000
TRIES = 100
CANDIDATES = 500
POOL = 4


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
        propose = self._proposer(rng)
        drawn = np.empty(len(location), dtype=np.intp)
        waiting = np.arange(len(location))
        for _ in range(TRIES):
            if not len(waiting):
                return drawn
            proposed = self.levels.nearest(location + propose(location))
            drawn[waiting] = proposed
            refused = rng.random(len(waiting)) >= self.tilt[proposed]
            waiting, location = waiting[refused], location[refused]
        for i, where in zip(waiting, location, strict=True):
            drawn[i] = self._choose(where, propose, rng)
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

    def _proposer(self, rng: np.random.Generator) -> Proposer:
        """Draws residuals for entries with predicted locations."""
        n_donors = len(self.location)
        if self.n_nearest is not None and self.n_nearest < n_donors:
            return lambda location: self._nearest_residual(location, rng)
        # To draw from a pool in which donors are as frequent as they weigh is faster
        # than to search their weights for each entry.
        share = self.cumulative / self.cumulative[-1]
        ends = np.floor(POOL * n_donors * share + rng.random()).astype(np.intp)
        pool = np.repeat(self.residual, np.diff(ends))
        return lambda location: pool[rng.integers(len(pool), size=len(location))]

    def _nearest_residual(
        self, location: FloatArray, rng: np.random.Generator
    ) -> FloatArray:
        assert self.n_nearest is not None
        # 1. The nearest donors by rank; amid those that tie with the entry, as all in
        #    one leaf of a tree do.
        rank = np.searchsorted(self.location, location)
        rank = (rank + np.searchsorted(self.location, location, side="right")) // 2
        most = len(self.location) - self.n_nearest
        first = np.clip(rank - self.n_nearest // 2, 0, most)
        last = first + self.n_nearest
        # 2. One of them, by its weight.
        below = self.cumulative[first]
        mark = below + rng.random(len(location)) * (self.cumulative[last] - below)
        donor = np.searchsorted(self.cumulative, mark, side="right") - 1
        return self.residual[np.clip(donor, first, last - 1)]

    def _choose(
        self, location: float, propose: Proposer, rng: np.random.Generator
    ) -> int:
        """One of many proposals, with probability ∝ φ, where few are accepted."""
        repeated = np.full(CANDIDATES, location)
        proposed = self.levels.nearest(repeated + propose(repeated))
        mass = np.cumsum(self.tilt[proposed])
        if mass[-1] > 0.0:
            return int(proposed[draw_from(mass, 1, rng)[0]])
        return int(draw_from(self.marginal, 1, rng)[0])


def draw_from(cumulative: FloatArray, size: int, rng: np.random.Generator) -> IntArray:
    """Places drawn with the probabilities that sums of masses imply."""
    mark = rng.random(size) * cumulative[-1]
    place = np.searchsorted(cumulative, mark, side="right")
    # Should rounding take a mark to the very end: the last place with any mass.
    last = np.searchsorted(cumulative, cumulative[-1])
    result: IntArray = np.minimum(place, last)
    return result
