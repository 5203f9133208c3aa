"""The law of missing entries by entries that were lost, drawn at random and looked up.

Nothing is assumed about why entries go missing. Models see beside the other columns
whether an entry had been lost, and missing ones are drawn as lost: so a shift of the
lost entries is learned from those that were looked up, and what both kinds have in
common from all of them. Once there are enough looked-up entries, slopes may differ too.
Residuals are lent by looked-up entries alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from missratio._base.typing import BoolArray, FloatArray, IntArray
from missratio.imputation._conditionals import Conditional, Entries
from missratio.imputation._noise import Noise

# A shift that is seen so much larger than a column of scores is hardly shrunk.
_SHIFT = 3.0
# Looked-up entries for each slope of their own: fewer cost more than they can bring.
_ENTRIES_PER_SLOPE = 10

FitLaw = Callable[[Entries, Conditional | None], Conditional]


@dataclass(frozen=True)
class LookedUpConditional:
    """Draws missing entries by a law that is told that they are lost.

    Parameters
    ----------
    law : Conditional
        Fitted to entries of which it was told whether they had been lost.
    slopes : bool
        Whether it may have slopes of its own for lost entries.
    """

    law: Conditional
    slopes: bool

    @classmethod
    def fit(
        cls,
        entries: Entries,
        probability: FloatArray,
        share: FloatArray,
        last: Conditional | None,
        fit_law: FitLaw,
    ) -> LookedUpConditional:
        """Fit to entries that were observed or looked up.

        Given which of the two an entry is, all weigh the same: the draw has no part in
        the law.

        Parameters
        ----------
        entries : Entries
        probability : ndarray of shape (n,)
            One minus the probability of being there: 0 for observed entries.
        share : ndarray of shape (n,)
            What each entry's row counts.
        last : Conditional or None
            That of the round before.
        fit_law : callable
            Fits a law to entries, from that of the round before.
        """
        lost = probability > 0.0
        enough = _ENTRIES_PER_SLOPE * entries.regressors.shape[1]
        slopes = bool(np.count_nonzero(lost) >= enough)
        entries = replace(
            entries,
            regressors=_with_status(entries.regressors, lost, slopes),
            weights=kish_scaled(share),
            # Of each one that was drawn, (1 − q)/q others were not.
            lent=share * probability / (1.0 - probability),
        )
        before = last.law if isinstance(last, cls) else None
        return cls(fit_law(entries, before), slopes)

    def draw(self, regressors: FloatArray, noise: Noise) -> IntArray:
        """A level for each row of what models see of the other columns."""
        lost = np.ones(len(regressors), dtype=bool)
        return self.law.draw(_with_status(regressors, lost, self.slopes), noise)

    def thinned(self, rng: np.random.Generator) -> LookedUpConditional:
        """With few enough donors to be kept."""
        return replace(self, law=self.law.thinned(rng))


def kish_scaled(weights: FloatArray) -> FloatArray:
    """Weights that sum to Kish's effective number of entries."""
    return np.asarray(weights * (weights.sum() / (weights**2).sum()))


def _with_status(regressors: FloatArray, lost: BoolArray, slopes: bool) -> FloatArray:
    """Regressors, whether an entry was lost, and their products where slopes differ."""
    parts = [regressors.T, _SHIFT * lost[None, :]]
    if slopes:
        parts.append(regressors.T * lost)
    # Column by column, in which order regressors lie.
    return np.concatenate(parts).T
