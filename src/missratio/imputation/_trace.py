"""Whether chains have settled, as data and as a figure."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np

from missratio._base.typing import FloatArray
from missratio.imputation._chain import Chain

_PANELS_A_ROW = 4


@dataclass(frozen=True)
class ImputationTrace:
    """Means and spreads of the imputed values, round by round.

    Chains that have settled wander about one level, without a trend, and cross each
    other.

    Parameters
    ----------
    feature_names : tuple of str
        Of the incomplete columns.
    mean, spread : ndarray of shape (n_imputations, n_rounds, n_incomplete)
        Mean and standard deviation of what was imputed; of categories that are not
        numbers, those of their places.
    """

    feature_names: tuple[str, ...]
    mean: FloatArray
    spread: FloatArray

    @classmethod
    def build(cls, names: tuple[str, ...], chains: list[Chain]) -> ImputationTrace:
        """Put the chains of one population together."""
        return cls(
            names,
            np.stack([chain.mean for chain in chains]),
            np.stack([chain.spread for chain in chains]),
        )

    @property
    def r_hat(self) -> FloatArray:
        """Gelman and Rubin's R̂ of each column's mean, by halves of the later rounds.

        √((W (L − 1) + B)/(W L)) with W the variance within halves of length L and B
        that between the halves of a chain, times L; both averaged over chains. Chains
        are not compared with each other, since a bootstrap gives each a law of its own.
        Near 1 where chains have settled, and rough where they are few and short. NaN
        where there are fewer than seven rounds.
        """
        later = self.mean[:, self.mean.shape[1] // 2 :]
        length = later.shape[1] // 2
        if length < 2:
            return np.full(later.shape[2], np.nan)
        early, late = later[:, :length], later[:, -length:]
        within = (early.var(axis=1, ddof=1) + late.var(axis=1, ddof=1)).mean(axis=0) / 2
        gap = early.mean(axis=1) - late.mean(axis=1)
        between = length * (gap**2).mean(axis=0) / 2
        still = within == 0.0
        ratio = (length - 1 + between / np.where(still, 1.0, within)) / length
        moved: FloatArray = np.where(between == 0.0, 1.0, np.inf)
        return np.where(still, moved, np.sqrt(ratio))

    def plot(self, fig: Any = None) -> Any:
        """Draw the means, a panel for each column and a line for each imputation.

        Parameters
        ----------
        fig : matplotlib Figure, optional
            To draw on.

        Returns
        -------
        matplotlib Figure
        """
        import matplotlib.pyplot as plt

        count = len(self.feature_names)
        across = min(count, _PANELS_A_ROW)
        down = ceil(count / across)
        if fig is None:
            fig = plt.figure(figsize=(3 * across, 2 * down), layout="constrained")
        axes = fig.subplots(down, across, squeeze=False, sharex=True).ravel()
        rounds = np.arange(1, self.mean.shape[1] + 1)
        for k, (ax, name) in enumerate(zip(axes, self.feature_names, strict=False)):
            ax.plot(rounds, self.mean[:, :, k].T, lw=1)
            ax.set_title(f"{name}, R̂ = {self.r_hat[k]:.2f}", fontsize="small")
        for ax in axes[count:]:
            ax.set_visible(False)
        fig.supxlabel("round")
        fig.supylabel("mean of the imputed values")
        return fig
