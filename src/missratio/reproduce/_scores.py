"""What each curve of the simulated experiments learns, many runs at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from missratio._typing import FloatArray, IntArray
from missratio.basis import PolynomialBasis
from missratio.datasets import Simulation
from missratio.datasets._simulation import spread_points
from missratio.ratio import KLIEP, KLIEPCV, fit_batch
from missratio.reproduce._beyond import trees
from missratio.reproduce._columns import fit_columns
from missratio.reproduce._experiment import (
    CC_KLIEP,
    JOINT,
    M_KLIEP,
    PRODUCTS,
    TRUE_RATIO,
    WEIGHTED_TREES,
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
        complete, denominator, calibration = np.empty((3, *shape))
        uniform = np.empty(shape[:2] if phi.rowwise else shape)
        for run, rng in enumerate(generators):
            complete[run] = simulation.numerator.sample(n_rows, rng)
            denominator[run] = simulation.denominator.sample(n_rows, rng)
            uniform[run] = rng.random(uniform.shape[1:])
            calibration[run] = simulation.denominator.sample(n_rows, rng)
        rows = complete.reshape(-1, shape[2])
        lost = uniform < phi.missing_probability(rows).reshape(uniform.shape)
        mask = lost[..., None] if phi.rowwise else lost
        numerator = np.where(mask, np.nan, complete)
        return cls(
            simulation, naive_bayes, complete, numerator, denominator, calibration
        )

    @cached_property
    def log_ratios(self) -> FloatArray:
        """The true log ratios of the calibration rows."""
        rows = self.calibration.reshape(-1, self.simulation.n_features)
        return self.simulation.log_ratio(rows).reshape(self.calibration.shape[:2])


class Score(Protocol):
    """What a method learned, in every run of a batch."""

    def calibration_scores(self) -> FloatArray:
        """Of the calibration rows, of shape (n_runs, n_rows)."""
        ...

    def power(self, cut: FloatArray) -> FloatArray:
        """P(score(Z¹) > cut) for each run's threshold."""
        ...


@dataclass(frozen=True)
class LinearScore:
    """Scores θᵀz. Their power has a closed form under mixtures of normal laws."""

    draws: Draws
    coef: FloatArray

    def calibration_scores(self) -> FloatArray:
        """Of the calibration rows, of shape (n_runs, n_rows)."""
        return np.asarray((self.draws.calibration @ self.coef[..., None])[..., 0])

    def power(self, cut: FloatArray) -> FloatArray:
        """P(θᵀZ¹ > cut), exactly."""
        return self.draws.simulation.numerator.tail(self.coef, cut)


@dataclass(frozen=True)
class LearnedScore:
    """Scores of a model for each run, whose power is that at evenly spread points."""

    draws: Draws
    models: Sequence[Any]

    def calibration_scores(self) -> FloatArray:
        """Of the calibration rows, of shape (n_runs, n_rows)."""
        pairs = zip(self.models, self.draws.calibration, strict=True)
        return np.stack([model.decision_function(rows) for model, rows in pairs])

    def power(self, cut: FloatArray) -> FloatArray:
        """P(score(Z¹) > cut), from points that all runs share."""
        rows, masses = spread_points(self.draws.simulation.numerator, LOG2_POINTS)
        pairs = zip(self.models, cut, strict=True)
        return np.array([masses @ (m.decision_function(rows) > c) for m, c in pairs])


@dataclass(frozen=True)
class TrueScore:
    """The logarithm of the true ratio."""

    draws: Draws

    def calibration_scores(self) -> FloatArray:
        """Of the calibration rows, of shape (n_runs, n_rows)."""
        return self.draws.log_ratios

    def power(self, cut: FloatArray) -> FloatArray:
        """P(log r(Z¹) > cut), exactly or from points that all runs share."""
        return self.draws.simulation.ratio_tail(cut)


def weighted(draws: Draws) -> Score:
    """M-KLIEP with φ known, by the printed objective: sums are divided by n."""
    phi = draws.simulation.missingness
    if draws.naive_bayes:
        rows = draws.numerator.reshape(-1, draws.simulation.n_features)
        probability = phi[1].missing_probability(rows).reshape(draws.numerator.shape)
        mean = np.nansum(draws.numerator / (1.0 - probability), axis=1)
        return _by_column(draws, mean / draws.numerator.shape[1])
    estimator = KLIEP(missingness=phi, normalize="horvitz-thompson")
    fits = fit_batch(estimator, draws.numerator, draws.denominator)
    return LinearScore(draws, fits.coef)


def complete_case(draws: Draws) -> Score:
    """CC-KLIEP: what is observed is taken for the whole."""
    if draws.naive_bayes:
        return _by_column(draws, np.nanmean(draws.numerator, axis=1))
    estimator = KLIEP(missingness="ignore")
    fits = fit_batch(estimator, draws.numerator, draws.denominator)
    return LinearScore(draws, fits.coef)


def _by_column(draws: Draws, numerator_mean: FloatArray) -> LinearScore:
    values = draws.denominator.swapaxes(1, 2)
    return LinearScore(draws, fit_columns(numerator_mean, values))


def joint(draws: Draws) -> Score:
    """M-KLIEP of all columns at once, the penalty chosen by cross-validation."""
    models = _fitted(draws, "linear")
    return LinearScore(draws, np.stack([model.coef_ for model in models]))


def with_products(draws: Draws) -> Score:
    """The same with squares and products."""
    basis = PolynomialBasis(2, interactions="all")
    return LearnedScore(draws, _fitted(draws, basis))


def _fitted(draws: Draws, basis: Any) -> list[KLIEPCV]:
    phi = draws.simulation.missingness
    samples = zip(draws.numerator, draws.denominator, strict=True)
    return [
        KLIEPCV(basis, missingness=phi, random_state=0).fit(*_stacked(*pair))
        for pair in samples
    ]


def weighted_trees(draws: Draws) -> Score:
    """Boosted trees on the rows that are left, weighted by 1/(1 − φ)."""
    phi, models = draws.simulation.missingness[1], []
    for numerator, denominator in zip(draws.numerator, draws.denominator, strict=True):
        left = numerator[~np.isnan(numerator).any(axis=1)]
        weights = np.ones(len(left) + len(denominator))
        weights[: len(left)] = 1.0 / (1.0 - phi.missing_probability(left))
        models.append(trees().fit(*_stacked(left, denominator), sample_weight=weights))
    return LearnedScore(draws, models)


def _stacked(upper: FloatArray, lower: FloatArray) -> tuple[FloatArray, IntArray]:
    return np.concatenate([upper, lower]), np.repeat([1, 0], [len(upper), len(lower)])


# A further curve is a function here, and its name among an experiment's methods.
METHODS: dict[str, Callable[[Draws], Score]] = {
    M_KLIEP: weighted,
    CC_KLIEP: complete_case,
    TRUE_RATIO: TrueScore,
    JOINT: joint,
    PRODUCTS: with_products,
    WEIGHTED_TREES: weighted_trees,
}
