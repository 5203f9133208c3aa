"""Whether revealed values look as the fitted φ says that missing ones do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from missratio._typing import FloatArray
from missratio.learning._evidence import Evidence, fit_evidence


@dataclass(frozen=True)
class GoodnessOfFit:
    """Where the revealed values lie within the law that the model gives missing ones.

    If φ is right, missing values follow the observed ones tilted by the odds φ/(1 − φ).
    The ranks of the revealed ones within that law are then uniform.

    Parameters
    ----------
    feature_names : tuple of str
        Features that have missing values; for a rowwise model "rows", which are ranked
        by their fitted log-odds.
    ranks : tuple of ndarray
        Of the revealed values, in [0, 1] and sorted.
    statistic : ndarray of shape (n_features,)
        Kolmogorov and Smirnov's: the largest distance from uniform.
    p_value : ndarray of shape (n_features,)
        How often a table drawn from the fitted model, and fitted again, lies as far
        off. Few revealed values find only gross errors.
    """

    feature_names: tuple[str, ...]
    ranks: tuple[FloatArray, ...]
    statistic: FloatArray
    p_value: FloatArray

    def to_frame(self, backend: Any = "pandas") -> Any:
        """The test as a dataframe, a row for each feature.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}

        Returns
        -------
        dataframe
        """
        columns = {
            "feature": list(self.feature_names),
            "revealed": [len(ranks) for ranks in self.ranks],
            "statistic": self.statistic.tolist(),
            "p_value": self.p_value.tolist(),
        }
        return nw.from_dict(columns, backend=backend).to_native()


def goodness_of_fit(
    evidence: Sequence[Evidence],
    thetas: Sequence[FloatArray],
    names: Sequence[str],
    n_draws: int,
    rng: np.random.Generator,
) -> GoodnessOfFit:
    """Test each evidence against its fit, by tables that the fit would give.

    Parameters
    ----------
    evidence : sequence of Evidence
    thetas : sequence of ndarray
        Their parameters; slopes are used alone.
    names : sequence of str
    n_draws : int
    rng : Generator
    """
    ranks = [_ranks(e, theta) for e, theta in zip(evidence, thetas, strict=True)]
    statistic = np.array([_distance(found) for found in ranks])
    p_value = np.ones(len(ranks))
    for j, (found, theta) in enumerate(zip(evidence, thetas, strict=True)):
        if len(theta) == 1:
            # Only one value: nothing that could be off.
            continue
        drawn = [_redrawn(found, theta, rng) for _ in range(n_draws)]
        fits = fit_evidence(drawn, penalised=True)
        distances = [
            _distance(_ranks(e, other))
            for e, other in zip(drawn, fits.theta, strict=True)
        ]
        p_value[j] = (1 + np.sum(np.array(distances) >= statistic[j])) / (1 + n_draws)
    return GoodnessOfFit(tuple(names), tuple(ranks), statistic, p_value)


def _tilted_law(evidence: Evidence, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Scores, and how probable a missing row is to be where each observed one is."""
    score = theta[1:] @ evidence.values
    observed = score[evidence.n_revealed :]
    mass = evidence.mass[evidence.n_revealed :]
    weight = mass * np.exp(observed - observed.max(initial=0.0))
    return score, weight / weight.sum()


def _ranks(evidence: Evidence, theta: FloatArray) -> FloatArray:
    """Where revealed rows lie in the law of missing ones; ties in the middle."""
    score, weight = _tilted_law(evidence, theta)
    order = np.argsort(score[evidence.n_revealed :], kind="stable")
    sums = np.concatenate([[0.0], np.cumsum(weight[order])])
    observed = score[evidence.n_revealed :][order]
    revealed = score[: evidence.n_revealed]
    below = np.searchsorted(observed, revealed, side="left")
    up_to = np.searchsorted(observed, revealed, side="right")
    return np.sort((sums[below] + sums[up_to]) / 2.0)


def _distance(ranks: FloatArray) -> float:
    places = np.arange(len(ranks) + 1) / len(ranks)
    above = (places[1:] - ranks).max()
    return float(max(above, (ranks - places[:-1]).max()))


def _redrawn(
    evidence: Evidence, theta: FloatArray, rng: np.random.Generator
) -> Evidence:
    """The same evidence with other values revealed, drawn from the fitted law."""
    _, weight = _tilted_law(evidence, theta)
    chosen = rng.choice(len(weight), evidence.n_revealed, p=weight)
    values = evidence.values.copy()
    values[:, : evidence.n_revealed] = values[:, evidence.n_revealed + chosen]
    return replace(evidence, values=values)
