"""The paper's simulated experiments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from missratio._typing import FloatArray
from missratio.datasets import Simulation
from missratio.ratio import KLIEP, fit_batch
from missratio.reproduce._columns import fit_columns
from missratio.reproduce._experiment import (
    CC_KLIEP,
    M_KLIEP,
    TRUE_RATIO,
    Conditions,
)
from missratio.threshold import binomial_tail

ALPHA, DELTA = 0.1, 0.1


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


# A further curve is a function here, and its name among an experiment's methods.
METHODS: dict[str, Callable[[Draws], Score]] = {
    M_KLIEP: weighted,
    CC_KLIEP: complete_case,
    TRUE_RATIO: TrueScore,
}


def thresholds(scores: FloatArray, alpha: float, delta: float) -> FloatArray:
    """Each run's order statistic by the binomial rule (the paper's Algorithm 2).

    Parameters
    ----------
    scores : ndarray of shape (n_runs, n_rows)
        Of the calibration rows.
    alpha, delta : float

    Returns
    -------
    ndarray of shape (n_runs,)
        Infinite where there are too few rows.
    """
    n_rows = scores.shape[1]
    n_tail = binomial_tail(n_rows, alpha, delta)
    if n_tail < 0:
        return np.full(len(scores), np.inf)
    place = n_rows - 1 - n_tail
    return np.asarray(np.partition(scores, place, axis=1)[:, place])


def certified_power(score: Score) -> FloatArray:
    """The power of each run's classifier at its certified threshold.

    Scores are continuous here, so that ≥ (published) and > (corrected) are one.
    """
    cut = thresholds(score.calibration_scores(), ALPHA, DELTA)
    return score.power(cut)


def squared_distance(score: Score) -> FloatArray:
    """‖θ̂ − θ̃‖² of each run, where the true log ratio is linear in θ̃."""
    assert isinstance(score, LinearScore)
    truth = score.draws.simulation.coef
    assert truth is not None
    return np.asarray(((score.coef - truth) ** 2).sum(axis=1))


@dataclass(frozen=True)
class Simulated:
    """Known laws, of which class 1 loses rows or entries.

    Parameters
    ----------
    name : str
        What seeds the draws.
    simulation : callable
        From a point to its `Simulation`.
    n_rows : callable
        From a point to the rows of each sample.
    outcome : callable
        What is measured of the scores that a method learned.
    naive_bayes : bool
        Whether ratios are fitted column by column.
    """

    name: str
    simulation: Callable[[float], Simulation]
    n_rows: Callable[[float], int]
    outcome: Callable[[Score], FloatArray] = certified_power
    naive_bayes: bool = False

    def unavailable(self) -> str | None:
        """It can be run anywhere."""
        return None

    def fingerprint(self, conditions: Conditions) -> str:
        """It depends on nothing else."""
        del conditions
        return ""

    def draw(self, point: float, runs: range, conditions: Conditions) -> Draws:
        """The samples of some runs at a point."""
        generators = [
            conditions.generator(self.name, f"{point:g}", number) for number in runs
        ]
        return Draws.draw(
            self.simulation(point),
            self.n_rows(point),
            generators,
            naive_bayes=self.naive_bayes,
        )

    def measure(
        self,
        points: Sequence[float],
        runs: range,
        methods: Sequence[str],
        conditions: Conditions,
    ) -> dict[str, FloatArray]:
        """Fit and measure some runs; as of `Procedure`."""
        drawn = [self.draw(point, runs, conditions) for point in points]
        return {
            method: np.stack(
                [self.outcome(METHODS[method](draws)) for draws in drawn], axis=1
            )
            for method in methods
        }
