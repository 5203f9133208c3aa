"""How each curve of the real-data experiments learns its scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from missratio.missingness import LogisticMissingness
from missratio.ratio import NaiveBayesRatio
from missratio.reproduce._beyond import (
    BEYOND,
    NOTHING,
    RunScores,
    iterative,
)
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
    beside,
    learned_missingness,
    naive_bayes_coef,
    weighted_naive_bayes,
)
from missratio.reproduce._runs import RealRun


@dataclass(frozen=True)
class RunBatch:
    """Runs whose columns stand side by side in one table."""

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

    def scores(
        self, ratio: NaiveBayesRatio, numerator: WeightedRows
    ) -> list[RunScores]:
        """Fit a ratio, and score each run's rows by its own columns' coefficients."""
        coef = naive_bayes_coef(ratio, numerator, self.denominator)
        own = coef.reshape(len(self.runs), -1)
        return [run.linear_scores(c) for run, c in zip(self.runs, own, strict=True)]

    def weighted_scores(self, phi: LogisticMissingness) -> list[RunScores]:
        """M-KLIEP with a φ of all runs' columns."""
        return self.scores(weighted_naive_bayes(phi), self.numerator)

    @property
    def true_phi(self) -> LogisticMissingness:
        """The φ by which each run's class 1 lost values."""
        models = [run.missingness for run in self.runs]
        intercept = np.concatenate([np.asarray(phi.intercept) for phi in models])
        slope = np.concatenate([np.asarray(phi.coef) for phi in models])
        return LogisticMissingness(intercept, slope)

    def learned_phi(self, conditions: Conditions) -> LogisticMissingness:
        """The φ learned from each run's values that were looked up."""
        X = beside([run.numerator for run in self.runs])
        revealed = beside([run.revealed for run in self.runs])
        corrected = conditions.corrects("learning")
        return learned_missingness(X, revealed, corrected=corrected)


def imputed(run: RealRun, conditions: Conditions) -> RunScores:
    """KLIEP on rows completed by scikit-learn's IterativeImputer.

    NaN where nothing is to be imputed.
    """
    del conditions
    if not run.is_lossy:
        return NOTHING
    completed = WeightedRows.side_by_side([iterative(run)])
    return RunBatch([run]).scores(NaiveBayesRatio(), completed)[0]


def _one_by_one(
    method: Callable[[RealRun, Conditions], RunScores],
) -> Callable[[RunBatch, Conditions], list[RunScores]]:
    return lambda batch, conditions: [method(run, conditions) for run in batch.runs]


# A further curve is an entry here, and its name among an experiment's methods.
METHODS: dict[str, Callable[[RunBatch, Conditions], list[RunScores]]] = {
    FULL_DATA: lambda batch, _: batch.scores(NaiveBayesRatio(), batch.complete),
    KNOWN: lambda batch, _: batch.weighted_scores(batch.true_phi),
    LEARNED: lambda batch, conditions: batch.weighted_scores(
        batch.learned_phi(conditions)
    ),
    # Each column's observed values are taken for all of them.
    CC_KLIEP: lambda batch, _: batch.scores(
        NaiveBayesRatio(missingness="ignore"), batch.numerator
    ),
    IMPUTATION: _one_by_one(imputed),
    **{name: _one_by_one(method) for name, method in BEYOND.items()},
}
