"""Whether chains have settled, as data and as a figure."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np

from missratio._typing import FloatArray
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
        """Gelman and Rubin's R̂ of each column's mean, over the later half of rounds.

        √((W (L − 1)/L + B/L)/W) with B and W the variances between and within chains of
        length L; a single chain is cut in two. Near 1 where chains have settled, and
        rough where rounds are few. NaN where there are fewer than four rounds.
        """
        later = self.mean[:, self.mean.shape[1] // 2 :]
        if len(later) == 1:
            length = later.shape[1] // 2
            later = np.concatenate([later[:, :length], later[:, -length:]])
        length = later.shape[1]
        if length < 2:
            return np.full(later.shape[2], np.nan)
        within = later.var(axis=1, ddof=1).mean(axis=0)
        between = length * later.mean(axis=1).var(axis=0, ddof=1)
        still = within == 0.0
        ratio = (length - 1 + between / np.where(still, 1.0, within)) / length
        settled: FloatArray = np.where(
            still, np.where(between == 0.0, 1.0, np.inf), np.sqrt(ratio)
        )
        return settled

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
