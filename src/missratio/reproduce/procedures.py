"""How the numbers of an experiment come about: runs are drawn, fitted and measured."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, NamedTuple

import numpy as np
from scipy.optimize.elementwise import find_root

from missratio import datasets
from missratio._base.typing import FloatArray
from missratio.datasets import Simulation
from missratio.datasets.laws import spread_points
from missratio.missingness import LogisticMissingness, corrupt
from missratio.reproduce.methods import (
    METHODS,
    Conditions,
    RealTable,
    Run,
    Score,
    fits_of,
)
from missratio.threshold import BinomialRule, CalibrationSample

ALPHA, DELTA, REAL_DELTA = 0.1, 0.1, 0.05
LOG2_POINTS = 14
FAR = 1e3


class Procedure(ABC):
    """How the numbers of an experiment come about; by default from nothing else."""

    @abstractmethod
    def draw(self, point: float, number: int, conditions: Conditions) -> Run:
        """The samples of a run at a point, from a generator of its own."""

    @abstractmethod
    def outcome(
        self,
        run: Run,
        score: Score,
        points: Sequence[float],
        method: str,
        conditions: Conditions,
    ) -> float | FloatArray | list[float]:
        """What is measured at points that share a run's fit."""

    def unavailable(self) -> str | None:
        """Why it can't be run here, or None."""
        return None

    def fingerprint(self, _: Conditions) -> str:
        """What of the outside the numbers depend on, such as a data file."""
        return ""

    def measure(
        self,
        points: Sequence[float],
        runs: range,
        methods: Sequence[str],
        conditions: Conditions,
    ) -> dict[str, FloatArray]:
        """Run some runs at a point, or at points that share their fits.

        Curves of the same fits share them, too.

        Returns
        -------
        dict from method to ndarray of shape (n_runs, n_points)
            NaN where a method has nothing to do at a point.
        """
        values = {m: np.full((len(runs), len(points)), np.nan) for m in methods}
        for place, number in enumerate(runs):
            run = self.draw(points[0], number, conditions)
            fits = dict.fromkeys(map(fits_of, methods))
            scores = {fit: METHODS[fit](run, conditions) for fit in fits}
            for method in methods:
                score = scores[fits_of(method)]
                if score is not None:
                    values[method][place] = self.outcome(
                        run, score, points, method, conditions
                    )
        return values


def certified_threshold(scores: FloatArray, alpha: float, delta: float) -> float:
    """The binomial rule's order statistic of calibration rows (Algorithm 2).

    It is infinite where there are too few rows.
    """
    sample = CalibrationSample.build(scores)
    threshold = BinomialRule().select(sample, alpha, delta).threshold
    return np.inf if threshold is None else threshold


def certified_excess(run: Run, score: Score) -> Callable[[FloatArray], FloatArray]:
    """How much rows score above a run's threshold: zero where the line is drawn."""
    cut = certified_threshold(score.at(run.calibration), ALPHA, DELTA)
    return lambda rows: score.at(rows) - cut


def certified_power(run: Run, score: Score, _: Sequence[float] = ()) -> float:
    """The power of a simulated run's classifier at its certified threshold.

    It is exact, or that at evenly spread points. Scores are continuous here, so that ≥
    (published) and > (corrected) are one.
    """
    cut = certified_threshold(score.at(run.calibration), ALPHA, DELTA)
    if score.tail is not None:
        return float(score.tail(cut))
    assert isinstance(run.origin, Simulation)
    rows, masses = spread_points(run.origin.numerator, LOG2_POINTS)
    return float(masses @ (score.at(rows) > cut))


def squared_distance(run: Run, score: Score, _: Sequence[float]) -> float:
    """‖θ̂ − θ̃‖², where the true log ratio is linear in θ̃."""
    assert isinstance(run.origin, Simulation)
    truth = run.origin.coef
    assert score.coef is not None
    assert truth is not None
    return float(((score.coef - truth) ** 2).sum())


def boundary(run: Run, score: Score, heights: Sequence[float]) -> FloatArray:
    """The x₁ at which a score crosses its threshold, as a function of x₂.

    Log ratios in the plane must be monotone in x₁.
    """
    excess = certified_excess(run, score)

    def at(x1: FloatArray, x2: FloatArray) -> FloatArray:
        return excess(np.stack([x1, x2], axis=1))

    x2 = np.asarray(heights, dtype=np.float64)
    return np.asarray(find_root(at, (-FAR, FAR), args=(x2,)).x)


@dataclass(frozen=True)
class Simulated(Procedure):
    """Known laws, of which class 1 loses rows or entries.

    Parameters
    ----------
    name : str
        What seeds the draws.
    simulation : callable
        From a point to its `Simulation`.
    n_rows : callable
        From a point to the rows of each sample.
    measured : callable
        What is measured of the score that a method learned in a run, at points.
    at : float, optional
        Where all points are of the same runs: the point that these are drawn at.
    """

    name: str
    simulation: Callable[[float], Simulation]
    n_rows: Callable[[float], int] = int
    measured: Callable[[Run, Score, Sequence[float]], float | FloatArray] = (
        certified_power
    )
    at: float | None = None

    def draw(self, point: float, number: int, conditions: Conditions) -> Run:
        """The samples of a run at a point, from a generator of its own."""
        point = point if self.at is None else self.at
        simulation, n_rows = self.simulation(point), self.n_rows(point)
        phi = simulation.missingness[1]
        rng = conditions.generator(self.name, f"{point:g}", number)
        complete = simulation.numerator.sample(n_rows, rng)
        denominator = simulation.denominator.sample(n_rows, rng)
        numerator = corrupt(complete, phi, rng)
        calibration = simulation.denominator.sample(n_rows, rng)
        return Run(simulation, phi, numerator, complete, denominator, calibration)

    def outcome(
        self, run: Run, score: Score, points: Sequence[float], *_: object
    ) -> float | FloatArray:
        """What is measured of a score."""
        return self.measured(run, score, points)


class SplitSizes(NamedTuple):
    """How a run is made of a data set.

    Parameters
    ----------
    train_rows : int
        Class-0 rows to fit with; the others calibrate.
    test_rows : int
        Class-1 rows to test with; the others are fitted with.
    queries : int
        Missing values of each feature that are looked up.
    """

    train_rows: int
    test_rows: int
    queries: int


Loss = tuple[LogisticMissingness, LogisticMissingness]


@cache
def loss(table: RealTable, share: float | None) -> Loss:
    """φ_j(z) = expit(shift_j ± (z − m_j)/sd_j): all rising, and all falling.

    The mean and the standard deviation are those of the whole data set. With a share
    (experiment 2) the shift gives φ_j this mean over both classes; without one
    (experiment 1) there is no shift. Kept for the runs that follow.
    """
    slope = 1.0 / np.nanstd(table.X, axis=0)
    if share is not None:
        rising, falling = (
            LogisticMissingness.from_proportion(table.X, s, share)
            for s in (slope, -slope)
        )
        return rising, falling
    shift = -slope * np.nanmean(table.X, axis=0)
    return LogisticMissingness(shift, slope), LogisticMissingness(-shift, -slope)


def draw_run(
    table: RealTable,
    sizes: SplitSizes,
    loss: Loss,
    rng: np.random.Generator,
    *,
    corrected: bool,
) -> Run:
    """Split a data set and let its class-1 training rows lose entries."""
    # 1. Split each class.
    rows_0, rows_1 = (rng.permutation(rows) for rows in table.rows)
    train, calibrating = np.split(rows_0, [sizes.train_rows])
    testing, training = np.split(rows_1, [sizes.test_rows])
    splits = (train, training, calibrating, testing)
    parts = [table.X.T.take(rows, axis=1).T for rows in splits]
    # 2. Fill the data set's own NaN: published, by means of each split. They tell the
    # class; corrected, all splits take the means of the training rows of both classes.
    if table.has_nan:
        means = [np.nanmean(rows, axis=0) for rows in parts]
        if corrected:
            means = [np.nanmean(np.concatenate(parts[:2]), axis=0)] * len(parts)
        pairs = zip(parts, means, strict=True)
        parts = [np.where(np.isnan(rows), mean, rows) for rows, mean in pairs]
    denominator, complete, calibration, test = parts
    # 3. Lose entries of class 1, column by column, by their value before any scaling;
    # whether φ_j rises or falls is left to chance.
    rising, falling = loss
    falls = rng.integers(0, 2, np.size(rising.coef)).astype(bool)
    intercepts = np.where(falls, falling.intercept, rising.intercept)
    slopes = np.where(falls, falling.coef, rising.coef)
    numerator, queried = complete.copy(order="F"), []
    for j, log_odds in enumerate(zip(intercepts, slopes, strict=True)):
        phi = LogisticMissingness(*log_odds)
        numerator[:, j : j + 1] = corrupt(complete[:, j : j + 1], phi, rng)
        # 4. Look some of them up.
        lost = np.flatnonzero(np.isnan(numerator[:, j]))
        n_queries = min(sizes.queries, len(lost))
        queried.append(rng.choice(lost, n_queries, replace=False))
    # 5. Normalise by class 0 and what is left of class 1.
    both = np.concatenate([denominator, numerator])
    centre, scale = np.nanmean(both, axis=0), np.nanstd(both, axis=0)
    scale[scale == 0.0] = 1.0
    for rows in (numerator, complete, denominator, calibration, test):
        rows -= centre
        rows /= scale
    revealed = np.full_like(complete, np.nan)
    for j, rows in enumerate(queried):
        revealed[rows, j] = complete[rows, j]
    phi = LogisticMissingness(intercepts + slopes * centre, slopes * scale)
    samples = numerator, complete, denominator, calibration
    return Run(table, phi, *samples, revealed, test, seed=int(training[0]))


@cache
def load_table(name: str, *, corrected: bool) -> RealTable:
    """A data set; kept for the runs that follow."""
    variant = "corrected" if corrected else "published"
    load = getattr(datasets, f"load_{name}")
    X, y = load(variant=variant, return_X_y=True)
    return RealTable(np.asfortranarray(X), y == 1)


def power(
    calibration: FloatArray, test: FloatArray, alpha: float, *, strict: bool
) -> float:
    """The share of the test scores beyond the binomial rule's threshold.

    Published: from the threshold on (≥). Corrected: strictly above it, for which alone
    the certificate is proved where scores may be tied.
    """
    cut = certified_threshold(calibration, alpha, REAL_DELTA)
    beyond = test > cut if strict else test >= cut
    return float(beyond.mean())


@dataclass(frozen=True)
class RealData(Procedure):
    """Runs on a data set, by alpha or by the share that is missing.

    Parameters
    ----------
    name : {"ctg", "fire", "weather"}
    varies : {"alpha", "missing"}
        Experiment 1, in which φ has no shift, or experiment 2.
    sizes : SplitSizes
    """

    name: str
    varies: Literal["alpha", "missing"]
    sizes: SplitSizes

    def unavailable(self) -> str | None:
        """Say so where the file is not at hand."""
        entry = next(e for e in datasets.available() if e.name == self.name)
        if entry.path is not None:
            return None
        return (
            f"{entry.file} is not at hand: `missratio data fetch {self.name}` says how "
            "to get it."
        )

    def fingerprint(self, conditions: Conditions) -> str:
        """The checksum of the table as it was read."""
        return load_table(self.name, corrected=conditions.corrects("data")).digest

    def draw(self, point: float, number: int, conditions: Conditions) -> Run:
        """A run, for a share that is to be missing or without a shift."""
        corrected = conditions.corrects("data")
        table = load_table(self.name, corrected=corrected)
        share = None if self.varies == "alpha" else point
        key = "alpha" if share is None else f"missing {share:g}"
        rng = conditions.generator(self.name, key, number)
        models = loss(table, share)
        return draw_run(table, self.sizes, models, rng, corrected=corrected)

    def outcome(
        self,
        run: Run,
        score: Score,
        points: Sequence[float],
        method: str,
        conditions: Conditions,
    ) -> list[float]:
        """Powers, or errors: half of the class-0 rows calibrate, and half are fresh."""
        assert run.test is not None
        calibration = score.at(run.calibration)
        if method == fits_of(method):
            test = score.at(run.test)
        else:
            calibration, test = np.array_split(calibration, 2)
        strict = conditions.corrects("threshold")
        alphas = points if self.varies == "alpha" else [ALPHA]
        return [power(calibration, test, alpha, strict=strict) for alpha in alphas]
