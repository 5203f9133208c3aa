"""The values that a column takes, and how conditional models see them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import ndtri

from missratio._typing import FloatArray, IntArray

_TAIL = 1e-9
_TIED_SHARE = 0.1
# To look up a level is several times faster than to search for it; the grid is finer
# than 0.0002 standard deviations.
_GRID = 2**16
_LARGEST = 6.0
_CELLS = _GRID / (2 * _LARGEST)


class Levels(Protocol):
    """The distinct observed values of one column, in order.

    An imputed value is always one of them, and is held as its place among them. A model
    of other columns sees `width` numbers for it.
    """

    @property
    def values(self) -> FloatArray:
        """The values, sorted."""

    @property
    def width(self) -> int:
        """How many numbers a model sees."""

    def regressors(self, places: IntArray) -> FloatArray:
        """What models see of levels, of shape (n, width)."""

    def encode(self, values: FloatArray) -> FloatArray:
        """What models see of values, of shape (n, width); NaN gives anything."""


@dataclass(frozen=True)
class NumericLevels:
    """Numbers, seen as normal scores Φ⁻¹(F(z)).

    F is the distribution of the complete column, estimated with weights 1/(1 − φ);
    where values tie it is taken halfway up its step. However skewed a column is, linear
    models then suit it as they suit normal ones (a Gaussian copula).

    Parameters
    ----------
    values, scores : ndarray of shape (n_levels,)
        Sorted values, and their scores.
    inverse : ndarray of int of shape (65536,)
        F⁻¹(Φ(score)), as places, on an even grid of scores.
    ties : bool
        Whether a single value makes up a tenth of the column.
    """

    values: FloatArray
    scores: FloatArray
    inverse: IntArray
    ties: bool

    @classmethod
    def build(
        cls, observed: FloatArray, weights: FloatArray
    ) -> tuple[NumericLevels, IntArray]:
        """The levels of observed values, and each one's place among them."""
        values, places = np.unique(observed, return_inverse=True)
        mass = np.bincount(places, weights)
        upper = np.cumsum(mass)
        middle = (upper - mass / 2.0) / upper[-1]
        scores = ndtri(np.clip(middle, _TAIL, 1.0 - _TAIL))
        edges = ndtri(upper[:-1] / upper[-1])
        inverse = np.searchsorted(edges, (np.arange(_GRID) + 0.5) / _CELLS - _LARGEST)
        ties = bool(mass.max() >= _TIED_SHARE * upper[-1])
        return cls(values, scores, inverse, ties), places

    @property
    def width(self) -> int:
        """One number."""
        return 1

    def regressors(self, places: IntArray) -> FloatArray:
        """The scores of levels."""
        return self.scores[places][:, None]

    def nearest(self, scores: FloatArray) -> IntArray:
        """The levels F⁻¹(Φ(score)) of scores, as places."""
        cell = (scores + _LARGEST) * _CELLS
        return self.inverse[np.clip(cell, 0, _GRID - 1).astype(np.intp)]

    def encode(self, values: FloatArray) -> FloatArray:
        """Scores, linear between levels and constant beyond them."""
        return np.interp(values, self.values, self.scores)[:, None]


@dataclass(frozen=True)
class CategoricalLevels:
    """Categories, seen as indicators of all but the first.

    Parameters
    ----------
    values : ndarray of shape (n_levels,)
    """

    values: FloatArray

    @property
    def width(self) -> int:
        """One number a category, but for the first."""
        return len(self.values) - 1

    def regressors(self, places: IntArray) -> FloatArray:
        """Indicators of levels."""
        seen = places[:, None] == np.arange(1, len(self.values))
        return np.asarray(seen, dtype=np.float64)

    def encode(self, values: FloatArray) -> FloatArray:
        """Indicators of values; all zero where there is no such level."""
        seen = values[:, None] == self.values[1:]
        return np.asarray(seen, dtype=np.float64)
