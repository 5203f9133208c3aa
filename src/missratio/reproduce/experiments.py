"""Every experiment of the paper, as data: what is varied, measured, and how often."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize.elementwise import find_root
from scipy.special import ndtri

from missratio import datasets
from missratio._base.typing import FloatArray
from missratio.datasets import Simulation, simulations
from missratio.datasets.simulations import spread_points
from missratio.missingness import LogisticMissingness, corrupt
from missratio.reproduce import methods as m
from missratio.reproduce.methods import Conditions, RealTable, Run, Score
from missratio.threshold import BinomialRule, CalibrationSample

SIZES = tuple(float(n) for n in range(100, 1501, 100))
TENTHS = tuple(step / 10 for step in range(10))
COMPARED = (m.TRUE_RATIO, m.M_KLIEP, m.CC_KLIEP)
FEWER_QUERIES = 10
ALPHA, DELTA, REAL_DELTA = 0.1, 0.1, 0.05
LOG2_POINTS = 14
FAR = 1e3


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
    rows, masses = spread_points(run.origin.numerator, LOG2_POINTS)
    return float(masses @ (score.at(rows) > cut))


def squared_distance(run: Run, score: Score, _: Sequence[float]) -> float:
    """‖θ̂ − θ̃‖², where the true log ratio is linear in θ̃."""
    return float(((score.coef - run.origin.coef) ** 2).sum())


def boundary(run: Run, score: Score, heights: Sequence[float]) -> FloatArray:
    """The x₁ at which a score crosses its threshold, as a function of x₂.

    Log ratios in the plane must be monotone in x₁.
    """
    excess = certified_excess(run, score)

    def at(x1: FloatArray, x2: FloatArray) -> FloatArray:
        return excess(np.stack([x1, x2], axis=1))

    x2 = np.asarray(heights, dtype=np.float64)
    return np.asarray(find_root(at, (-FAR, FAR), args=(x2,)).x)


def powers_by_alpha(run: Run, score: Score, alphas: Sequence[float]) -> list[float]:
    """Powers of a data set's run at the thresholds that calibration rows certify.

    Published: scores from the threshold on (≥) count. Corrected: those strictly above
    it, for which alone the certificate is proved where scores may be tied.
    """
    assert run.test is not None
    calibration, test = score.at(run.calibration), score.at(run.test)
    beyond = np.greater if run.strict else np.greater_equal
    cuts = [certified_threshold(calibration, alpha, REAL_DELTA) for alpha in alphas]
    return [float(beyond(test, cut).mean()) for cut in cuts]


def power_at_alpha(run: Run, score: Score, _: Sequence[float]) -> list[float]:
    """The same at the experiments' α."""
    return powers_by_alpha(run, score, [ALPHA])


@dataclass(frozen=True, kw_only=True)
class Experiment(ABC):
    """A figure of the paper as data: what is varied, what is measured, and how often.

    Parameters
    ----------
    id : str
    title : str
    x_name, y_name : str
    x : tuple of float
        The points of the horizontal axis.
    methods : tuple of str
        The curves that the paper draws.
    runs : int
        How often the paper repeats it.
    confidence : float
        Of the intervals, mean ± z·sd/√runs.
    runs_per_task : int
        How many runs are computed together.
    beyond : tuple of str
        Curves that go past the paper.
    fewer_runs : mapping from str to int
        How often methods are repeated that are not repeated as often as the others.
    shares_fits : bool
        Whether all points are computed from the same fits.
    measured : callable
        What is measured of the score that a method learned in a run, at points that
        share the fit.
    """

    id: str
    title: str
    x_name: str = "n0=n1"
    y_name: str = "expected power"
    x: tuple[float, ...] = SIZES
    methods: tuple[str, ...] = COMPARED
    runs: int = 100
    confidence: float = 0.95
    runs_per_task: int = 50
    beyond: tuple[str, ...] = ()
    fewer_runs: Mapping[str, int] = field(default_factory=dict)
    shares_fits: bool = False
    measured: Callable[[Run, Score, Sequence[float]], Any] = certified_power

    @property
    def curves(self) -> tuple[str, ...]:
        """The paper's curves and those past it."""
        return self.methods + self.beyond

    def n_runs(self, method: str, asked: int | None) -> int:
        """How often a method is run: fewer times if it is slow or past the paper."""
        most = self.fewer_runs.get(method, self.runs)
        # A figure of one run stays one.
        return most if asked is None or most == 1 else asked

    @property
    def z(self) -> float:
        """The normal quantile of the intervals: 1.96 or 2.576."""
        return float(ndtri(0.5 + 0.5 * self.confidence))

    @abstractmethod
    def draw(self, point: float, number: int, conditions: Conditions) -> Run:
        """The samples of a run at a point, from a generator of its own."""

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
    ) -> FloatArray:
        """Run some runs at a point, or at points that share their fits.

        Returns
        -------
        ndarray of shape (n_methods, n_runs, n_points)
            NaN where a method has nothing to do at a point.
        """
        values = np.full((len(methods), len(runs), len(points)), np.nan)
        for place, number in enumerate(runs):
            run = self.draw(points[0], number, conditions)
            for k, method in enumerate(methods):
                if (score := m.score_run(method, run, conditions)) is not None:
                    values[k, place] = self.measured(run, score, points)
        return values


@dataclass(frozen=True, kw_only=True)
class Simulated(Experiment):
    """Known laws, of which class 1 loses rows or entries.

    Parameters
    ----------
    simulation : callable
        From a point to its `Simulation`.
    n_rows : callable
        From a point to the rows of each sample.
    at : float, optional
        Where all points are of the same runs: the point that these are drawn at.
    """

    simulation: Callable[[float], Simulation]
    n_rows: Callable[[float], int] = int
    at: float | None = None

    def draw(self, point: float, number: int, conditions: Conditions) -> Run:
        """The samples of a run at a point, from a generator of its own."""
        point = point if self.at is None else self.at
        simulation, n_rows = self.simulation(point), self.n_rows(point)
        phi = simulation.missingness[1]
        rng = conditions.generator(self.id, f"{point:g}", number)
        complete = simulation.numerator.sample(n_rows, rng)
        denominator = simulation.denominator.sample(n_rows, rng)
        numerator = corrupt(complete, phi, rng)
        calibration = simulation.denominator.sample(n_rows, rng)
        return Run(simulation, phi, numerator, complete, denominator, calibration)


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


@cache
def loss(
    table: RealTable, share: float | None
) -> tuple[LogisticMissingness, LogisticMissingness]:
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
    share: float | None,
    rng: np.random.Generator,
    conditions: Conditions,
) -> Run:
    """Split a data set and let its class-1 training rows lose entries."""
    # 1. Split each class.
    rows_0, rows_1 = (
        rng.permutation(np.flatnonzero(table.is_numerator == k)) for k in (False, True)
    )
    train, calibrating = np.split(rows_0, [sizes.train_rows])
    testing, training = np.split(rows_1, [sizes.test_rows])
    splits = (train, training, calibrating, testing)
    parts = [table.X.T.take(rows, axis=1).T for rows in splits]
    # 2. Fill the data set's own NaN: published, by means of each split. They tell the
    # class; corrected, all splits take the means of the training rows of both classes.
    if np.isnan(table.X).any():
        means = [np.nanmean(rows, axis=0) for rows in parts]
        if conditions.corrects("data"):
            means = [np.nanmean(np.concatenate(parts[:2]), axis=0)] * len(parts)
        pairs = zip(parts, means, strict=True)
        parts = [np.where(np.isnan(rows), mean, rows) for rows, mean in pairs]
    denominator, complete, calibration, test = parts
    # 3. Lose entries of class 1, column by column, by their value before any scaling;
    # whether φ_j rises or falls is left to chance.
    rising, falling = loss(table, share)
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
    strict = conditions.corrects("threshold")
    return Run(table, phi, *samples, revealed, test, int(training[0]), strict)


@cache
def load_table(name: str, *, corrected: bool) -> RealTable:
    """A data set; kept for the runs that follow."""
    variant = "corrected" if corrected else "published"
    load = getattr(datasets, f"load_{name}")
    X, y = load(variant=variant, return_X_y=True)
    return RealTable(np.asfortranarray(X), y == 1)


@dataclass(frozen=True, kw_only=True)
class RealData(Experiment):
    """Runs on a data set, by the share that is missing or, of the same fits, by alpha.

    Parameters
    ----------
    data : {"ctg", "fire", "weather"}
    sizes : SplitSizes
    """

    data: str
    sizes: SplitSizes

    def unavailable(self) -> str | None:
        """Say so where the file is not at hand."""
        entry = next(file for file in datasets.available() if file.name == self.data)
        if entry.path is not None:
            return None
        return (
            f"{entry.files[0]} is not at hand: `missratio data fetch {self.data}` says "
            "how to get it."
        )

    def fingerprint(self, conditions: Conditions) -> str:
        """The checksum of the table as it was read."""
        return load_table(self.data, corrected=conditions.corrects("data")).digest

    def draw(self, point: float, number: int, conditions: Conditions) -> Run:
        """A run, for a share that is to be missing or without a shift."""
        table = load_table(self.data, corrected=conditions.corrects("data"))
        share = None if self.shares_fits else point
        key = "alpha" if share is None else f"missing {share:g}"
        rng = conditions.generator(self.data, key, number)
        return draw_run(table, self.sizes, share, rng, conditions)


@cache
def _simulation(name: str, *parameters: float) -> Simulation:
    """Kept, since the tails of a ratio that is not linear take a while."""
    made: Simulation = getattr(simulations, name)(*parameters)
    return made


SIMULATED = [
    Simulated(
        id="msd_5dim",
        title="Mean squared distance from the true parameter, five dimensions",
        simulation=lambda _: _simulation("msd_5dim"),
        measured=squared_distance,
        y_name="mean squared distance to the true parameter",
        methods=(m.M_KLIEP, m.CC_KLIEP),
        confidence=0.99,
    ),
    Simulated(
        id="np_boundary",
        title="Boundaries of one run on a mixture, n = 500",
        simulation=lambda _: _simulation("np_mixture"),
        measured=boundary,
        at=500.0,
        x_name="x2",
        y_name="x1 on the boundary",
        x=tuple(step / 4 for step in range(-12, 29)),
        runs=1,
        confidence=0.99,
        shares_fits=True,
    ),
    Simulated(
        id="np_power",
        title="Power on a mixture, by sample size",
        simulation=lambda _: _simulation("np_mixture"),
        confidence=0.99,
    ),
    Simulated(
        id="naive_bayes",
        title="Power of naive Bayes, by the correlation of its features",
        simulation=lambda rho: _simulation("naive_bayes", rho),
        n_rows=lambda _: 100,
        x_name="correlation rho",
        x=TENTHS,
        beyond=(m.JOINT,),
    ),
    Simulated(
        id="diff_variance",
        title="Power where variances differ, by sample size",
        simulation=lambda _: _simulation("diff_variance"),
    ),
    Simulated(
        id="misspecification",
        title="Power by the level of misspecification",
        simulation=lambda level: _simulation("misspecification", level / 2),
        n_rows=lambda _: 500,
        x_name="misspecification 2 rho",
        x=(0.0, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0),
    ),
]


def _real(
    name: str,
    title: str,
    sizes: SplitSizes,
    runs: tuple[int, int],
    beyond_runs: int,
    imputation_runs: tuple[int, int],
    runs_per_task: int = 1,
) -> list[RealData]:
    """Both experiments on a data set.

    Parameters
    ----------
    name, title : str
    sizes : SplitSizes
        Of experiment 1; experiment 2 looks up `FEWER_QUERIES` values of each feature.
    runs, imputation_runs : pair of int
        Of experiments 1 and 2; of those runs, how many iterative imputation has.
    beyond_runs, runs_per_task : int
    """
    paper = (m.KNOWN, m.LEARNED, m.CC_KLIEP, m.IMPUTATION)
    learners = [kind(name) for name in m.LEARNERS for kind in (m.known, m.learned)]
    trees = (m.IMPUTED_TREES, m.NAN_TREES, m.FULL_TREES)
    # On the weather each point has its own fits, and one curve takes long enough.
    by_share = (*map(m.known, m.LEARNERS), m.IMPUTED_TREES)
    by_share = by_share[:1] if name == "weather" else by_share
    fewer = dict.fromkeys((*learners, *trees), beyond_runs)
    shared: dict[str, Any] = {"data": name, "runs_per_task": runs_per_task}
    shared["y_name"] = "out-of-sample power"
    return [
        RealData(
            id=f"{name}_vary_alpha",
            title=f"{title}: power by the bound on the type I error",
            sizes=sizes,
            x_name="alpha",
            x=(0.05, 0.1, 0.15, 0.2, 0.25, 0.3),
            methods=(m.FULL_DATA, *paper),
            runs=runs[0],
            beyond=(*learners, *trees),
            fewer_runs=fewer | {m.IMPUTATION: imputation_runs[0]},
            shares_fits=True,
            measured=powers_by_alpha,
            **shared,
        ),
        RealData(
            id=f"{name}_vary_missing",
            title=f"{title}: power by the share that is missing",
            sizes=sizes._replace(queries=FEWER_QUERIES),
            x_name="target missing proportion",
            x=TENTHS,
            methods=paper,
            runs=runs[1],
            beyond=by_share,
            fewer_runs=fewer | {m.IMPUTATION: imputation_runs[1]},
            measured=power_at_alpha,
            **shared,
        ),
    ]


CTG, FIRE = SplitSizes(237, 100, 10), SplitSizes(20_000, 5_000, 50)
WEATHER = SplitSizes(15_000, 10_000, 50)
REAL = [
    *_real("ctg", "CTG", CTG, (1000, 1000), 200, (1000, 1000), runs_per_task=25),
    *_real("fire", "Fire", FIRE, (100, 100), 10, (100, 100)),
    *_real("weather", "Weather", WEATHER, (100, 30), 10, (15, 2)),
]
EXPERIMENTS: dict[str, Experiment] = {
    experiment.id: experiment for experiment in [*SIMULATED, *REAL]
}
