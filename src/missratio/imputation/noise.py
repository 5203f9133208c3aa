"""Where draws take their randomness from: a generator, or the row itself.

A score has to be a function of the row alone. Were the noise of a new row to depend on
its place in the batch, rows scored one at a time would have another law than the rows
that the threshold was calibrated on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from missratio._base.typing import FloatArray, IntArray

Keys = NDArray[np.uint64]
# The multipliers and shifts of SplitMix64.
_STEP = 0x9E3779B97F4A7C15
_FIRST, _SECOND = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_WORD = 2**64
_BLOCK = 8192


@dataclass(frozen=True)
class DrawnNoise:
    """A generator's numbers in the order in which entries come."""

    rng: np.random.Generator
    size: int

    def uniform(self) -> FloatArray:
        """The next number of each entry, in [0, 1)."""
        return self.rng.random(self.size)

    def below(self, end: int) -> IntArray:
        """The next number of each entry, among 0, …, end − 1."""
        return self.rng.integers(end, size=self.size)

    def chosen(self, entries: IntArray) -> DrawnNoise:
        """The noise of some of the entries, from here on."""
        return DrawnNoise(self.rng, len(entries))

    def spread(self, entry: int, count: int) -> DrawnNoise:
        """As many streams as wanted."""
        return DrawnNoise(self.rng, count)


class RowNoise:
    """Numbers that are a function of the row: SplitMix64, started from its content."""

    def __init__(self, keys: Keys, turn: int = 0) -> None:
        self._keys = keys
        self._turn = turn

    @classmethod
    def of(cls, table: FloatArray, seed: Any) -> RowNoise:
        """Noise of the rows of a table."""
        start = seed.generate_state(1, np.uint64)[0]
        keys = np.full(len(table), start, dtype=np.uint64)
        for column in table.T:
            values = column + 0.0
            values[np.isnan(values)] = np.nan
            keys ^= values.view(np.uint64)
            _mix(keys)
        return cls(keys)

    def stream(self, *place: int) -> RowNoise:
        """Noise for another purpose, independent of this one."""
        keys = self._keys.copy()
        for number in place:
            keys += np.uint64(_STEP * (number + 1) % _WORD)
            _mix(keys)
        return RowNoise(keys)

    def uniform(self) -> FloatArray:
        """The next number of each entry, in [0, 1)."""
        self._turn += 1
        words = self._keys + np.uint64(_STEP * self._turn % _WORD)
        _mix(words)
        words >>= np.uint64(11)
        numbers: FloatArray = words * np.float64(2.0**-53)
        return numbers

    def below(self, end: int) -> IntArray:
        """The next number of each entry, among 0, …, end − 1."""
        # The product is rounded, so that it might reach the end.
        return np.minimum((self.uniform() * end).astype(np.intp), end - 1)

    def chosen(self, entries: IntArray) -> RowNoise:
        """The noise of some of the entries, from here on."""
        return RowNoise(self._keys[entries], self._turn)

    def spread(self, entry: int, count: int) -> RowNoise:
        """As many streams as wanted, from one entry's."""
        keys = self._keys[entry] + np.arange(count, dtype=np.uint64) * np.uint64(_FIRST)
        _mix(keys)
        return RowNoise(keys)


def _mix(words: Keys) -> None:
    """SplitMix64's bijection, which makes near words far, in place."""
    # In blocks that fit the cache.
    for start in range(0, len(words), _BLOCK):
        block = words[start : start + _BLOCK]
        block ^= block >> np.uint64(30)
        block *= np.uint64(_FIRST)
        block ^= block >> np.uint64(27)
        block *= np.uint64(_SECOND)
        block ^= block >> np.uint64(31)


Noise = DrawnNoise | RowNoise
