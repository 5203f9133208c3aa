"""How each curve of the real-data experiments learns its scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from missratio._typing import FloatArray
from missratio.missingness import LogisticMissingness
from missratio.ratio import NaiveBayesRatio
from missratio.reproduce._beyond import BEYOND, NOTHING, RunScores, iterative
from missratio.reproduce._experiment import (
    CC_KLIEP,
    FULL_DATA,
    IMPUTATION,
    KNOWN,
    LEARNED,
    Conditions,
)
from missratio.reproduce._fits import (
    WeightedRows,
    learned_missingness,
    naive_bayes_coef,
    weighted_naive_bayes,
)
from missratio.reproduce._runs import RealRun


@dataclass(frozen=True)
class RunBatch:
    """Runs whose columns stand side by side in one table.

    Parameters
    ----------
    runs : sequence of RealRun
    """

    runs: Sequence[RealRun]

    @cached_property
    def numerator(self) -> WeightedRows:
        """Class 1 to fit with, NaN where lost."""
        return WeightedRows.side_by_side([run.numerator for run in self.runs])

    @cached_property
    def complete(self) -> WeightedRows:
        """Class 1 before it lost anything."""
        return WeightedRows.side_by_side([run.complete for run in self.runs])

    @cached_property
    def denominator(self) -> WeightedRows:
        """Class 0 to fit with."""
        return WeightedRows.side_by_side([run.denominator for run in self.runs])

    def fitted(self, ratio: NaiveBayesRatio) -> list[RunScores]:
        """Each run's scores by a ratio that is fitted to what is left of class 1."""
        return self.scores(naive_bayes_coef(ratio, self.numerator, self.denominator))

    def scores(self, coef: FloatArray) -> list[RunScores]:
        """Each run's scores by its own columns' coefficients."""
        own = coef.reshape(len(self.runs), -1)
        return [run.linear_scores(c) for run, c in zip(self.runs, own, strict=True)]


def full_data(batch: RunBatch, conditions: Conditions) -> list[RunScores]:
    """KLIEP on what nothing was lost from."""
    del conditions
    return batch.scores(
        naive_bayes_coef(NaiveBayesRatio(), batch.complete, batch.denominator)
    )


def known(batch: RunBatch, conditions: Conditions) -> list[RunScores]:
    """M-KLIEP with the true φ."""
    del conditions
    models = [run.missingness for run in batch.runs]
    intercept = np.concatenate([np.asarray(phi.intercept) for phi in models])
    slope = np.concatenate([np.asarray(phi.coef) for phi in models])
    return batch.fitted(weighted_naive_bayes(LogisticMissingness(intercept, slope)))


def learned(batch: RunBatch, conditions: Conditions) -> list[RunScores]:
    """M-KLIEP with φ learned from the values that were looked up."""
    phi = learned_missingness(
        np.concatenate([run.numerator for run in batch.runs], axis=1),
        np.concatenate([run.revealed for run in batch.runs], axis=1),
        corrected=conditions.corrects("learning"),
    )
    return batch.fitted(weighted_naive_bayes(phi))


def complete_case(batch: RunBatch, conditions: Conditions) -> list[RunScores]:
    """CC-KLIEP: each column's observed values are taken for all of them."""
    del conditions
    return batch.fitted(NaiveBayesRatio(missingness="ignore"))


def imputed(run: RealRun, conditions: Conditions) -> RunScores:
    """KLIEP on rows completed by scikit-learn's IterativeImputer.

    NaN where nothing is to be imputed.
    """
    del conditions
    if not run.is_lossy:
        return NOTHING
    numerator = WeightedRows.side_by_side([iterative(run)])
    denominator = WeightedRows.side_by_side([run.denominator])
    return run.linear_scores(
        naive_bayes_coef(NaiveBayesRatio(), numerator, denominator)
    )


def _alone(
    method: Callable[[RealRun, Conditions], RunScores],
) -> Callable[[RunBatch, Conditions], list[RunScores]]:
    """A method that takes runs one by one."""
    return lambda batch, conditions: [method(run, conditions) for run in batch.runs]


# A further curve is a function here, and its name among an experiment's methods.
METHODS: dict[str, Callable[[RunBatch, Conditions], list[RunScores]]] = {
    FULL_DATA: full_data,
    KNOWN: known,
    LEARNED: learned,
    CC_KLIEP: complete_case,
    IMPUTATION: _alone(imputed),
    **{name: _alone(method) for name, method in BEYOND.items()},
}
