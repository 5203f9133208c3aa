"""The values that a column takes, and how conditional models see them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from scipy.special import ndtri

from missratio._base.typing import FloatArray, IntArray

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
    models then suit it as they suit normal ones (a Gaussian copula). A value that makes
    up a tenth of the column, such as zero among amounts, is a matter of its own: F is
    the distribution of the others, and models also see whether it is that value.

    Parameters
    ----------
    values, scores : ndarray of shape (n_levels,)
        Sorted values, and their scores.
    inverse : ndarray of int of shape (65536,)
        F⁻¹(Φ(score)), as places, on an even grid of scores.
    spike : int or None
        The place of the value that makes up a tenth or more, and the most.
    ties : bool
        Whether another makes up a tenth of the rest.
    """

    values: FloatArray
    scores: FloatArray
    inverse: IntArray
    spike: int | None
    ties: bool

    @classmethod
    def build(
        cls, observed: FloatArray, weights: FloatArray
    ) -> tuple[NumericLevels, IntArray]:
        """The levels of observed values, and each one's place among them."""
        values, places = np.unique(observed, return_inverse=True)
        mass = np.bincount(places, weights).astype(np.float64)
        spike = None
        if mass.max() >= _TIED_SHARE * mass.sum() and len(values) > 1:
            spike = int(np.argmax(mass))
            mass[spike] = 0.0
        ties = bool(mass.max() >= _TIED_SHARE * mass.sum())
        return cls(values, *_scores(mass, spike), spike, ties), places

    def reweighted(self, places: IntArray, weights: FloatArray) -> NumericLevels:
        """The same levels with F by other weights of the observed values."""
        mass = np.bincount(places, weights, len(self.values)).astype(np.float64)
        if self.spike is not None:
            mass[self.spike] = 0.0
        scores, inverse = _scores(mass, self.spike)
        return replace(self, scores=scores, inverse=inverse)

    @property
    def width(self) -> int:
        """One number, or two where there is a spike."""
        return 1 if self.spike is None else 2

    def regressors(self, places: IntArray) -> FloatArray:
        """The scores of levels, and whether they are the spike."""
        if self.spike is None:
            return self.scores[places][:, None]
        return np.column_stack([self.scores[places], places == self.spike])

    def nearest(self, scores: FloatArray) -> IntArray:
        """The levels F⁻¹(Φ(score)) of scores, as places; never the spike."""
        cell = (scores + _LARGEST) * _CELLS
        return self.inverse[np.clip(cell, 0, _GRID - 1).astype(np.intp)]

    def encode(self, values: FloatArray) -> FloatArray:
        """Scores, linear between levels and constant beyond them, and the spike."""
        scores = np.interp(values, self.values, self.scores)
        if self.spike is None:
            return scores[:, None]
        return np.column_stack([scores, values == self.values[self.spike]])


def _scores(mass: FloatArray, spike: int | None) -> tuple[FloatArray, IntArray]:
    """Normal scores of levels by their masses, and the inverse on a grid."""
    upper = np.cumsum(mass)
    scores = ndtri(np.clip((upper - mass / 2.0) / upper[-1], _TAIL, 1.0 - _TAIL))
    if spike is not None:
        others = np.delete(scores, spike)
        scores[spike] = np.clip(scores[spike], others.min(), others.max())
    edges = ndtri(upper[:-1] / upper[-1])
    inverse = np.searchsorted(edges, (np.arange(_GRID) + 0.5) / _CELLS - _LARGEST)
    return scores, inverse


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
