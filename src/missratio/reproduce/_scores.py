"""What each curve of the simulated experiments learns, many runs at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from missratio._base.typing import FloatArray
from missratio.basis import PolynomialBasis
from missratio.datasets import Simulation
from missratio.datasets._simulation import spread_points
from missratio.missingness import FunctionMissingness, Missingness, corrupt
from missratio.ratio import KLIEP, KLIEPCV, NaiveBayesRatio, fit_batch
from missratio.reproduce._beyond import trees
from missratio.reproduce._experiment import (
    CC_KLIEP,
    JOINT,
    M_KLIEP,
    PRODUCTS,
    TRUE_RATIO,
    WEIGHTED_TREES,
)
from missratio.reproduce._fits import (
    WeightedRows,
    naive_bayes_coef,
    stacked,
    weighted_naive_bayes,
)

LOG2_POINTS = 14


@dataclass(frozen=True)
class Draws:
    """The samples of a batch of runs, of shape (n_runs, n_rows, n_columns).

    Parameters
    ----------
    simulation : Simulation
    naive_bayes : bool
        Whether ratios are fitted column by column.
    complete : ndarray
        Class 1 before it lost anything.
    numerator : ndarray
        Class 1, NaN where it lost a row or an entry.
    denominator, calibration : ndarray
        Class 0: to fit a ratio, and to choose its threshold.
    """

    simulation: Simulation
    naive_bayes: bool
    complete: FloatArray
    numerator: FloatArray
    denominator: FloatArray
    calibration: FloatArray

    @classmethod
    def draw(
        cls,
        simulation: Simulation,
        n_rows: int,
        generators: Sequence[np.random.Generator],
        *,
        naive_bayes: bool,
    ) -> Draws:
        """Draw all samples of each run from its own generator."""
        phi = simulation.missingness[1]
        shape = (len(generators), n_rows, simulation.n_features)
        complete, numerator, denominator, calibration = np.empty((4, *shape))
        for run, rng in enumerate(generators):
            complete[run] = simulation.numerator.sample(n_rows, rng)
            denominator[run] = simulation.denominator.sample(n_rows, rng)
            numerator[run] = corrupt(complete[run], phi, rng)
            calibration[run] = simulation.denominator.sample(n_rows, rng)
        return cls(
            simulation, naive_bayes, complete, numerator, denominator, calibration
        )


@dataclass(frozen=True)
class SimulatedScore(ABC):
    """What a method learned, in every run of a batch."""

    draws: Draws

    @abstractmethod
    def at(self, run: int, rows: FloatArray) -> FloatArray:
        """What a run's model makes of rows."""

    @abstractmethod
    def power(self, cut: FloatArray) -> FloatArray:
        """P(score(Z¹) > cut) for each run's threshold."""

    def calibration_scores(self) -> FloatArray:
        """The scores of the calibration rows, of shape (n_runs, n_rows)."""
        calibration = enumerate(self.draws.calibration)
        return np.stack([self.at(run, rows) for run, rows in calibration])


@dataclass(frozen=True)
class LinearScore(SimulatedScore):
    """Scores θᵀz. Their power has a closed form under mixtures of normal laws."""

    coef: FloatArray

    def at(self, run: int, rows: FloatArray) -> FloatArray:
        """θᵀz of the rows."""
        return np.asarray(rows @ self.coef[run])

    def power(self, cut: FloatArray) -> FloatArray:
        """P(θᵀZ¹ > cut), exactly."""
        return self.draws.simulation.numerator.tail(self.coef, cut)


@dataclass(frozen=True)
class LearnedScore(SimulatedScore):
    """Scores of a model for each run, whose power is that at evenly spread points."""

    models: Sequence[Any]

    def at(self, run: int, rows: FloatArray) -> FloatArray:
        """The model's decision function."""
        return np.asarray(self.models[run].decision_function(rows))

    def power(self, cut: FloatArray) -> FloatArray:
        """P(score(Z¹) > cut), from points that all runs share."""
        rows, masses = spread_points(self.draws.simulation.numerator, LOG2_POINTS)
        beyond = [masses @ (self.at(run, rows) > c) for run, c in enumerate(cut)]
        return np.array(beyond)


@dataclass(frozen=True)
class TrueScore(SimulatedScore):
    """The logarithm of the true ratio."""

    def at(self, run: int, rows: FloatArray) -> FloatArray:
        """The true log ratio, which is the same in all runs."""
        del run
        return self.draws.simulation.log_ratio(rows)

    def power(self, cut: FloatArray) -> FloatArray:
        """P(log r(Z¹) > cut), exactly or from points that all runs share."""
        return self.draws.simulation.ratio_tail(cut)


def weighted(draws: Draws) -> SimulatedScore:
    """M-KLIEP with φ known, by the printed objective: sums are divided by n."""
    phi = draws.simulation.missingness
    if draws.naive_bayes:
        by_run = _side_by_side(phi[1], len(draws.numerator))
        return _by_column(draws, weighted_naive_bayes(by_run))
    estimator = KLIEP(missingness=phi, normalize="horvitz-thompson")
    fits = fit_batch(estimator, draws.numerator, draws.denominator)
    return LinearScore(draws, fits.coef)


def complete_case(draws: Draws) -> SimulatedScore:
    """CC-KLIEP: what is observed is taken for the whole."""
    if draws.naive_bayes:
        return _by_column(draws, NaiveBayesRatio(missingness="ignore"))
    estimator = KLIEP(missingness="ignore")
    fits = fit_batch(estimator, draws.numerator, draws.denominator)
    return LinearScore(draws, fits.coef)


def _by_column(draws: Draws, ratio: NaiveBayesRatio) -> LinearScore:
    """Naive Bayes of all runs, their columns side by side."""
    numerator = WeightedRows.side_by_side(list(draws.numerator))
    denominator = WeightedRows.side_by_side(list(draws.denominator))
    coef = naive_bayes_coef(ratio, numerator, denominator)
    return LinearScore(draws, coef.reshape(len(draws.numerator), -1))


def _side_by_side(phi: Missingness, n_runs: int) -> Missingness:
    """φ of single entries for the columns of many runs."""

    def probability(X: FloatArray) -> FloatArray:
        rows = X.reshape(len(X) * n_runs, -1)
        return phi.missing_probability(rows).reshape(X.shape)

    return FunctionMissingness(probability, rowwise=False)


def joint(draws: Draws) -> SimulatedScore:
    """M-KLIEP of all columns at once, the penalty chosen by cross-validation."""
    models = _fitted(draws, "linear")
    return LinearScore(draws, np.stack([model.coef_ for model in models]))


def with_products(draws: Draws) -> SimulatedScore:
    """The same with squares and products."""
    basis = PolynomialBasis(2, interactions="all")
    return LearnedScore(draws, _fitted(draws, basis))


def _fitted(draws: Draws, basis: Any) -> list[KLIEPCV]:
    phi = draws.simulation.missingness
    samples = zip(draws.numerator, draws.denominator, strict=True)
    return [
        KLIEPCV(basis, missingness=phi, random_state=0).fit(*stacked(*pair))
        for pair in samples
    ]


def weighted_trees(draws: Draws) -> SimulatedScore:
    """Boosted trees on the rows that are left, weighted by 1/(1 − φ)."""
    phi, models = draws.simulation.missingness[1], []
    for numerator, denominator in zip(draws.numerator, draws.denominator, strict=True):
        left = numerator[~np.isnan(numerator).any(axis=1)]
        weights = np.ones(len(left) + len(denominator))
        weights[: len(left)] = 1.0 / (1.0 - phi.missing_probability(left))
        models.append(trees().fit(*stacked(left, denominator), sample_weight=weights))
    return LearnedScore(draws, models)


# A further curve is a function here, and its name among an experiment's methods.
METHODS: dict[str, Callable[[Draws], SimulatedScore]] = {
    M_KLIEP: weighted,
    CC_KLIEP: complete_case,
    TRUE_RATIO: TrueScore,
    JOINT: joint,
    PRODUCTS: with_products,
    WEIGHTED_TREES: weighted_trees,
}
