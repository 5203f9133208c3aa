"""Residuals of observed entries, lent to missing ones."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from missratio._base.typing import FloatArray, IntArray
from missratio.imputation._levels import NumericLevels
from missratio.imputation._noise import Noise

LEAST_DONORS = 100
LOCAL_SHARE = 20
KEPT_DONORS = 10_000
TRIES = 100
CANDIDATES = 500
POOL = 4


class _Waiting(NamedTuple):
    """Entries that wait for a value: their location, and the donors they may have.

    `spike` is the probability of the spike, and empty where there is none.
    """

    location: FloatArray
    spike: FloatArray
    first: IntArray
    last: IntArray

    def chosen(self, rows: IntArray) -> _Waiting:
        """Some of them."""
        spike = self.spike[rows] if len(self.spike) else self.spike
        return _Waiting(self.location[rows], spike, self.first[rows], self.last[rows])


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
        The donors, sorted by location where an entry has not all of them.
    cumulative : ndarray of shape (n_donors + 1,)
        Sums of their weights, from 0.
    n_nearest : int
        How many of the donors, those with the nearest locations, an entry has; all
        that tie with the entry, as those in one leaf of a tree do, are among them.
    pool : ndarray
        Residuals as frequent as their donors weigh, where an entry has all donors: to
        draw from them is faster than to search the weights for each entry.
    """

    levels: NumericLevels
    tilt: FloatArray
    marginal: FloatArray
    location: FloatArray
    residual: FloatArray
    cumulative: FloatArray
    n_nearest: int
    pool: FloatArray

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
        rng: np.random.Generator,
    ) -> Donors:
        """Sum the donors' weights, in the order of their locations if need be.

        Without `n_nearest` all are donors where the column is continuous. Where values
        tie, residuals depend on the location, and the nearest twentieth are, 100 at
        least.
        """
        n_donors = len(location)
        if n_nearest is None and levels.ties:
            n_nearest = max(LEAST_DONORS, n_donors // LOCAL_SHARE)
        n_nearest = min(n_nearest or n_donors, n_donors)
        if n_nearest < n_donors:
            order = np.argsort(location)
            location, residual = location[order], residual[order]
            weights = weights[order]
        cumulative = np.concatenate([[0.0], np.cumsum(weights)])
        total = np.cumsum(marginal)
        pool = np.zeros(0)
        if n_nearest == n_donors:
            pool = _pool(residual, cumulative, rng)
        return cls(levels, tilt, total, location, residual, cumulative, n_nearest, pool)

    def draw(
        self, location: FloatArray, spike: FloatArray | None, noise: Noise
    ) -> IntArray:
        """A level for each entry.

        Parameters
        ----------
        location : ndarray of shape (n,)
            Predicted; of entries with donors' residuals.
        spike : ndarray of shape (n,), or None
            The probability that an entry is the levels' spike instead.
        noise : Noise
            Of the entries.
        """
        entries = _Waiting(
            location, np.zeros(0) if spike is None else spike, *self._nearest(location)
        )
        drawn = np.empty(len(location), dtype=np.intp)
        waiting = np.arange(len(location))
        for _ in range(TRIES):
            if not len(waiting):
                return drawn
            proposed = self._propose(entries, noise)
            drawn[waiting] = proposed
            refused = np.flatnonzero(noise.uniform() >= self.tilt[proposed])
            waiting, entries = waiting[refused], entries.chosen(refused)
            noise = noise.chosen(refused)
        marks = noise.uniform()
        for k, i in enumerate(waiting):
            many = entries.chosen(np.full(CANDIDATES, k))
            proposed = self._propose(many, noise.spread(k, CANDIDATES))
            drawn[i] = self._choose(proposed, marks[k])
        return drawn

    def thinned(self, rng: np.random.Generator) -> Donors:
        """The same with at most `KEPT_DONORS` donors, chosen at random."""
        n_donors = len(self.location)
        if n_donors <= KEPT_DONORS:
            return self
        kept = np.sort(rng.choice(n_donors, KEPT_DONORS, replace=False))
        weights = np.diff(self.cumulative)[kept]
        return replace(
            self,
            location=self.location[kept],
            residual=self.residual[kept],
            cumulative=np.concatenate([[0.0], np.cumsum(weights)]),
            n_nearest=max(1, self.n_nearest * KEPT_DONORS // n_donors),
            pool=rng.permutation(self.pool)[: POOL * KEPT_DONORS],
        )

    def _nearest(self, location: FloatArray) -> tuple[IntArray, IntArray]:
        """The donors of each entry, from the first to before the last."""
        n_donors = len(self.location)
        if self.n_nearest == n_donors:
            first = np.zeros(len(location), dtype=np.intp)
            return first, np.full(len(location), n_donors)
        rank = np.searchsorted(self.location, location)
        first = np.clip(rank - self.n_nearest // 2, 0, n_donors - self.n_nearest)
        last = first + self.n_nearest
        if (self.location[1:] == self.location[:-1]).any():
            above = np.searchsorted(self.location, location, side="right")
            first, last = np.minimum(first, rank), np.maximum(last, above)
        return first, last

    def _propose(self, entries: _Waiting, noise: Noise) -> IntArray:
        """A level for each entry, as if it were not known to be missing."""
        if len(self.pool):
            residual = self.pool[noise.below(len(self.pool))]
        else:
            residual = self._nearest_residual(entries, noise)
        proposed = self.levels.nearest(entries.location + residual)
        if len(entries.spike):
            assert self.levels.spike is not None
            proposed[noise.uniform() < entries.spike] = self.levels.spike
        return proposed

    def _nearest_residual(self, entries: _Waiting, noise: Noise) -> FloatArray:
        below = self.cumulative[entries.first]
        above = self.cumulative[entries.last]
        mark = below + noise.uniform() * (above - below)
        donor = np.searchsorted(self.cumulative, mark, side="right") - 1
        return self.residual[np.clip(donor, entries.first, entries.last - 1)]

    def _choose(self, proposed: IntArray, mark: np.float64) -> int:
        """One of many proposals, with probability ∝ φ, where few are accepted."""
        mass = np.cumsum(self.tilt[proposed])
        if mass[-1] > 0.0:
            return int(proposed[draw_from(mass, np.array([mark]))[0]])
        return int(draw_from(self.marginal, np.array([mark]))[0])


def _pool(
    residual: FloatArray, cumulative: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Residuals as frequent as their donors weigh, `POOL` times as many as donors."""
    share = cumulative / cumulative[-1]
    ends = np.floor(POOL * len(residual) * share + rng.random()).astype(np.intp)
    return np.repeat(residual, np.diff(ends))


def draw_from(cumulative: FloatArray, uniform: FloatArray) -> IntArray:
    """Places drawn by uniform numbers, as likely as the masses that were summed."""
    mark = uniform * cumulative[-1]
    place = np.searchsorted(cumulative, mark, side="right")
    # Should rounding take a mark to the very end: the last place with any mass.
    last = np.searchsorted(cumulative, cumulative[-1])
    result: IntArray = np.minimum(place, last)
    return result
