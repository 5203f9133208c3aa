"""Coverage of the band of a learned φ, and certificates and ratios that rest on it.

python benchmarks/learning.py --write docs/validity.md
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import pages
from joblib import Parallel, delayed
from scipy import special
from scipy.stats import binomtest, norm, t
from sklearn.base import BaseEstimator, ClassifierMixin

import missratio as mr
from missratio.learning import LearnedMissingness
from missratio.missingness import LogisticMissingness, Missingness
from missratio.missingness.check import MissingnessContradictionError

# Coverage of the band


@dataclass(frozen=True)
class Law:
    """Of a feature: its quantile function."""

    quantile: Callable[[np.ndarray], np.ndarray]

    def draw(self, rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
        return self.quantile(rng.uniform(size=shape))

    @property
    def grid(self) -> np.ndarray:
        """Where the band is looked at: all but a thousandth at either end."""
        return self.quantile(np.linspace(0.001, 0.999, 41))[:, None]

    def model(self, slope: float, proportion: float) -> LogisticMissingness:
        levels = self.quantile((np.arange(20_000) + 0.5) / 20_000)[:, None]
        return LogisticMissingness.from_proportion(levels, slope, proportion)


LAWS = {
    "normal": Law(norm.ppf),
    "exponential": Law(lambda u: -np.log1p(-u)),
    "t3": Law(t(3).ppf),
}
REVEALED = (10, 20, 50, 200)
PROPORTIONS = (0.1, 0.3, 0.5, 0.7, 0.9)
SLOPES = (-2.0, 0.0, 1.0)
LEVELS = (0.05, 0.1)
NORMAL_QUANTILE = 1.959964
COVERAGE_REPEATS = 60
CERTIFICATE_REPEATS = 120


@dataclass(frozen=True)
class Setting:
    """One setting of the simulation of the band."""

    law: str
    slope: float
    proportion: float
    n_revealed: int

    @property
    def n_rows(self) -> int:
        """Enough for 200 values to be missing."""
        return max(400, math.ceil(220 / self.proportion))


@dataclass(frozen=True)
class Coverage:
    """What of the truth was covered in the repeats of a setting.

    Parameters
    ----------
    setting : Setting
    band : dict of float to ndarray of bool
        By δ: whether φ was within the band at all points of the grid.
    wald : ndarray of bool of shape (repeats, 2)
        Whether intercept and slope were within 1.96 standard errors of the estimate.
    width : ndarray
        Of the band at δ = 0.05, its mean over the law of the values.
    """

    setting: Setting
    band: dict[float, np.ndarray]
    wald: np.ndarray
    width: np.ndarray


def all_settings() -> list[Setting]:
    return [Setting(*each) for each in product(LAWS, SLOPES, PROPORTIONS, REVEALED)]


def cover(setting: Setting, repeats: int) -> Coverage:
    """Run a setting; the repeats are the columns of one table."""
    place = all_settings().index(setting)
    rng = np.random.default_rng([1, place])
    law = LAWS[setting.law]
    truth = law.model(setting.slope, setting.proportion)
    at_truth = np.array([np.ravel(truth.intercept)[0], setting.slope])
    values = law.draw(rng, (setting.n_rows, repeats))
    X, revealed = lose_and_reveal(values, at_truth, setting.n_revealed, rng)
    learned = mr.learn_missingness(X, revealed, from_table=False)
    estimates = np.stack([learned.intercept, learned.coef], axis=1)
    reach = NORMAL_QUANTILE * learned.standard_errors
    grid = law.grid
    phi = special.expit(at_truth[0] + at_truth[1] * grid[:, 0])
    band = {delta: np.zeros(repeats, dtype=bool) for delta in LEVELS}
    width = np.zeros(repeats)
    for j in range(repeats):
        alone = feature(learned, j)
        for delta in LEVELS:
            low, high = (edge[:, 0] for edge in alone.probability_band(grid, delta))
            band[delta][j] = ((low <= phi) & (phi <= high)).all()
            if delta == LEVELS[0]:
                width[j] = (high - low).mean()
    return Coverage(setting, band, np.abs(estimates - at_truth) <= reach, width)


def lose_and_reveal(
    values: np.ndarray, at_truth: np.ndarray, n: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """What is observed of values, and n of the others in every column."""
    lost = rng.uniform(size=values.shape) < special.expit(
        at_truth[0] + at_truth[1] * values
    )
    order = np.where(lost, rng.uniform(size=values.shape), np.inf)
    last = np.sort(order, axis=0)[n - 1]
    chosen = lost & (order <= last)
    return np.where(lost, np.nan, values), np.where(chosen, values, np.nan)


def feature(model: LearnedMissingness, j: int) -> LearnedMissingness:
    """The model of one feature alone, whose band is simultaneous over no others."""
    one = slice(j, j + 1)
    return LearnedMissingness(
        np.asarray(model.intercept)[one],
        np.asarray(model.coef)[one],
        False,
        model.evidence[one],
        model.method,
        model.feature_names[one],
    )


@dataclass(frozen=True)
class RowwiseCoverage:
    """Coverage of the band of whole rows, of so many features."""

    n_features: int
    n_revealed: int
    covered: np.ndarray


def cover_rows(n_features: int, n_revealed: int, repeats: int) -> RowwiseCoverage:
    """Rows of N(0, I), missing with log-odds −1 + Σx/√d, at δ = 0.05."""
    rng = np.random.default_rng([2, n_features, n_revealed])
    slopes = np.full(n_features, n_features**-0.5)
    truth = LogisticMissingness(-1.0, slopes, rowwise=True)
    grid = rng.normal(size=(500, n_features)) * 1.5
    phi = truth.missing_probability(grid)
    covered = np.zeros(repeats, dtype=bool)
    for i in range(repeats):
        rows = rng.normal(size=(800, n_features))
        X = mr.corrupt(rows, truth, rng)
        learned = mr.learn_missingness(
            X, reveal(X, rows, n_revealed, rng), rowwise=True
        )
        low, high = learned.probability_band(grid, 0.05)
        covered[i] = ((low <= phi) & (phi <= high)).all()
    return RowwiseCoverage(n_features, n_revealed, covered)


def reveal(
    X: np.ndarray, rows: np.ndarray, n: int, rng: np.random.Generator
) -> np.ndarray:
    """Look up n values of every feature, or n whole rows where these are missing."""
    revealed = np.full_like(rows, np.nan)
    missing = np.isnan(X)
    if missing.shape[1] > 1 and (missing.all(axis=1) == missing.any(axis=1)).all():
        chosen = rng.permutation(np.flatnonzero(missing[:, 0]))[:n]
        revealed[chosen] = rows[chosen]
        return revealed
    for j in range(rows.shape[1]):
        chosen = rng.permutation(np.flatnonzero(missing[:, j]))[:n]
        revealed[chosen, j] = rows[chosen, j]
    return revealed


# Certificates


class Direction(ClassifierMixin, BaseEstimator):
    """Scores rows along a direction, in steps where there are to be ties."""

    def __init__(self, direction: tuple[float, ...], step: float = 0.0) -> None:
        self.direction = direction
        self.step = step

    def fit(self, X: np.ndarray, y: np.ndarray) -> Direction:
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        scores = np.asarray(X) @ np.array(self.direction)
        return np.rint(scores / self.step) * self.step if self.step else scores

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


@dataclass(frozen=True)
class Situation:
    """How the controlled class loses values of N(0, I); the other is N(shift, I)."""

    formula: str
    intercept: float
    slope: float
    n_features: int = 1

    @property
    def direction(self) -> tuple[float, ...]:
        return (self.n_features**-0.5,) * self.n_features

    @property
    def model(self) -> LogisticMissingness:
        return LogisticMissingness(
            np.full(self.n_features, self.intercept),
            np.full(self.n_features, self.slope),
        )

    @property
    def grid(self) -> np.ndarray:
        """Rows of N(0, I), evenly spread, to measure errors with."""
        if self.n_features == 1:
            return special.ndtri((np.arange(5000) + 0.5) / 5000)[:, None]
        side = special.ndtri((np.arange(120) + 0.5) / 120)
        return np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)


SHIFT = 1.5
SITUATIONS = {
    "up": Situation("σ(z − 1)", -1.0, 1.0),
    "down": Situation("σ(−z − 1)", -1.0, -1.0),
    "steep up": Situation("σ(2z − 3)", -3.0, 2.0),
    "constant": Situation("0.3", math.log(0.3 / 0.7), 0.0),
    "per feature": Situation("φⱼ = σ(zⱼ − 2), j = 1, 2", -2.0, 1.0, 2),
}


@dataclass(frozen=True)
class Cell:
    """One setting of the simulation of certificates.

    Parameters
    ----------
    situation : str
    n_rows : int
        Of the controlled class; half of them calibrate.
    n_revealed : int
        Of each feature, among all rows of the class.
    alpha, delta : float
    ties : bool
    """

    situation: str
    n_rows: int
    n_revealed: int
    alpha: float = 0.1
    delta: float = 0.1
    ties: bool = False


def all_cells() -> list[Cell]:
    cells = [
        Cell(name, n_rows, n_revealed)
        for name in ("up", "down", "steep up", "constant")
        for n_rows, n_revealed in ((1000, 20), (1000, 100), (4000, 200))
    ]
    cells += [Cell("per feature", 2000, 200)]
    cells += [Cell(name, 1000, 100, ties=True) for name in ("up", "down")]
    cells += [Cell(name, 60, 5, 0.3, 0.2) for name in ("up", "down", "constant")]
    return cells


# Where φ̂ taken at its word breaks the promise: few queries, many rows.
EXAMPLE = Cell("constant", 20_000, 20, 0.1, 0.05)
KINDS = ("known", "plug-in", "learned")


@dataclass(frozen=True)
class Outcome:
    """Type I errors and powers in the repeats of a cell, by how φ is known.

    "known" is told φ, "plug-in" takes the estimate for it, and "learned" takes the band
    into account.
    """

    cell: Cell
    error: dict[str, np.ndarray]
    power: dict[str, np.ndarray]

    def violations(self, kind: str) -> int:
        # Errors are measured to the distance of the grid.
        return int((self.error[kind] > self.cell.alpha + 2e-4).sum())

    def pvalue(self, kind: str) -> float:
        """Of so many violations or more, were the rate δ."""
        count, repeats = self.violations(kind), len(self.error[kind])
        return float(binomtest(count, repeats, self.cell.delta, "greater").pvalue)


def certify(cell: Cell, repeats: int, kinds: Sequence[str] = KINDS) -> Outcome:
    """Learn φ from the controlled class's rows, fit on the same, and measure."""
    situation = SITUATIONS[cell.situation]
    grid = situation.grid
    seed = [3, list(SITUATIONS).index(cell.situation), cell.n_rows, cell.n_revealed]
    error = {kind: np.zeros(repeats) for kind in kinds}
    power = {kind: np.zeros(repeats) for kind in kinds}
    for i in range(repeats):
        rng = np.random.default_rng([*seed, cell.ties, i])
        rows = rng.normal(size=(cell.n_rows, situation.n_features))
        shift = SHIFT * np.array(situation.direction)
        other = shift + rng.normal(size=(500, situation.n_features))
        X0 = mr.corrupt(rows, situation.model, rng)
        learned = mr.learn_missingness(X0, reveal(X0, rows, cell.n_revealed, rng))
        plugged = LogisticMissingness(learned.intercept, learned.coef)
        models = {"known": situation.model, "plug-in": plugged, "learned": learned}
        X = np.concatenate([X0, other])
        y = np.repeat([0, 1], [len(X0), len(other)])
        for kind in kinds:
            try:
                fitted = classifier(cell, models[kind], i).fit(X, y)
            except MissingnessContradictionError:
                # Refused: no row is classified as of the other class.
                continue
            error[kind][i] = fitted.predict(grid).mean()
            # Of the other class's law: the same grid, shifted.
            power[kind][i] = fitted.predict(grid + shift).mean()
    return Outcome(cell, error, power)


def classifier(cell: Cell, model: Missingness, seed: int) -> mr.NeymanPearsonClassifier:
    direction = SITUATIONS[cell.situation].direction
    return mr.NeymanPearsonClassifier(
        Direction(direction, 0.5 * cell.ties),
        cell.alpha,
        cell.delta,
        missingness={0: model},
        on_infeasible="reject_all",
        random_state=seed,
    )


# M-KLIEP


@dataclass(frozen=True)
class Distances:
    """Squared distances ‖θ̂ − θ‖² on the five-dimensional example, by estimator."""

    phi: str
    n_rows: int
    n_revealed: int
    by_kind: dict[str, np.ndarray]


FIVE_MODELS: dict[str, Missingness] = {
    "logistic": LogisticMissingness(-0.5, np.full(5, 0.5), rowwise=True),
    "step": mr.StepMissingness(np.ones(5), 0.0, 0.5),
}


def five_dimensions(phi: str, n_rows: int, n_revealed: int, repeats: int) -> Distances:
    """p1 = N(0, I), p0 = N(0.1·1, I): θ = −0.1·1; class 1 loses whole rows."""
    truth = FIVE_MODELS[phi]
    names = ("known", "learned", "complete case")
    by_kind = {name: np.zeros(repeats) for name in names}
    for i in range(repeats):
        rng = np.random.default_rng([4, n_rows, n_revealed, i])
        rows, X0 = rng.normal(size=(n_rows, 5)), rng.normal(0.1, 1, (n_rows, 5))
        X1 = mr.corrupt(rows, truth, rng)
        revealed = reveal(X1, rows, n_revealed, rng)
        learned = mr.learn_missingness(X1, revealed, rowwise=True)
        models = zip(names, ({1: truth}, {1: learned}, "ignore"), strict=True)
        for name, missingness in models:
            theta = mr.density_ratio(X1, X0, missingness=missingness).coef_
            by_kind[name][i] = ((theta + 0.1) ** 2).sum()
    return Distances(phi, n_rows, n_revealed, by_kind)


# All of it


@dataclass(frozen=True)
class Results:
    """All that the page shows."""

    coverage: list[Coverage]
    rowwise: list[RowwiseCoverage]
    certificates: list[Outcome]
    example: Outcome
    distances: list[Distances]


ROWWISE = ((2, 20), (2, 100), (5, 50), (5, 200))
FIVE = (("logistic", 500, 50), ("logistic", 1500, 200), ("step", 1500, 200))


def simulate_all(repeats: int = CERTIFICATE_REPEATS, n_jobs: int = -1) -> Results:
    """Run everything; the share of repeats for coverage is as in the constants."""
    few = math.ceil(repeats * COVERAGE_REPEATS / CERTIFICATE_REPEATS)
    tasks = [delayed(certify)(cell, repeats) for cell in (EXAMPLE, *all_cells())]
    tasks += [delayed(five_dimensions)(*setting, repeats) for setting in FIVE]
    tasks += [delayed(cover_rows)(*setting, repeats) for setting in ROWWISE]
    tasks += [delayed(cover)(setting, few) for setting in all_settings()]
    results = iter(Parallel(n_jobs)(tasks))
    example = next(results)
    certificates = [next(results) for _ in all_cells()]
    distances = [next(results) for _ in FIVE]
    rowwise = [next(results) for _ in ROWWISE]
    return Results(list(results), rowwise, certificates, example, distances)


def pooled(
    coverage: Sequence[Coverage], delta: float, **fixed: object
) -> tuple[int, int]:
    """How often φ was within the band, and of how many, in settings so chosen."""
    chosen = [
        each.band[delta]
        for each in coverage
        if all(getattr(each.setting, name) == value for name, value in fixed.items())
    ]
    return sum(int(covered.sum()) for covered in chosen), sum(map(len, chosen))


def too_low(coverage: Sequence[Coverage], tolerance: float = 0.01) -> list[str]:
    """Where coverage is below nominal by more than a tolerance, significantly."""
    found = []
    for delta, m, proportion in product(LEVELS, REVEALED, PROPORTIONS):
        count, total = pooled(coverage, delta, n_revealed=m, proportion=proportion)
        nominal = 1.0 - delta - tolerance
        if binomtest(count, total, nominal, "less").pvalue < 1e-3:
            found.append(f"m={m}, proportion={proportion}, {delta}: {count} of {total}")
    return found


def as_markdown(results: Results) -> str:
    """What stands on the page on validity."""
    repeats = len(results.example.error["known"])
    few = len(results.coverage[0].wald)
    error = math.sqrt(0.05 * 0.95 / (9 * few))
    return "\n\n".join(
        [
            BAND.format(error=error),
            coverage_table(results.coverage, LEVELS[0]),
            CERTIFICATES.format(repeats=repeats),
            pages.table(CELL_HEAD, filter(is_shown, certificate_rows(results))),
            RATIOS,
            distance_table(results.distances),
        ]
    )


PROPORTION_HEAD = ["looked up", *(f"{p:.0%} missing" for p in PROPORTIONS)]


def coverage_table(coverage: Sequence[Coverage], delta: float) -> str:
    def row(m: int) -> Iterator[str]:
        yield str(m)
        for proportion in PROPORTIONS:
            count, total = pooled(coverage, delta, n_revealed=m, proportion=proportion)
            yield f"{count / total:.3f}"

    return pages.table(PROPORTION_HEAD, (list(row(m)) for m in REVEALED))


CELL_HEAD = ("φ", "n", "looked up", "α", "δ", "φ known", "φ̂ for φ", "φ learned")


def certificate_rows(results: Results) -> Iterator[list[str]]:
    """What became of each certificate, the example's at the end."""
    for outcome in (*results.certificates, results.example):
        cell = outcome.cell
        rates = {kind: outcome.violations(kind) for kind in KINDS}
        yield [
            SITUATIONS[cell.situation].formula + (", ties" if cell.ties else ""),
            *(f"{cell.n_rows:,}", str(cell.n_revealed)),
            *(f"{cell.alpha:g}", f"{cell.delta:g}"),
            *(
                f"{outcome.power[kind].mean():.3f} "
                f"({rates[kind] / len(outcome.error[kind]):.3f})"
                for kind in KINDS
            ),
        ]


def is_shown(row: Sequence[str]) -> bool:
    """The page has settings with rows and look-ups enough, and the example."""
    few = int(row[2]) < 100 and row[1] != f"{EXAMPLE.n_rows:,}"
    return not few and "ties" not in row[0]


def distance_table(distances: Sequence[Distances]) -> str:
    head = ["φ", "n", "looked up", "φ known", "φ learned", "complete case"]

    def row(each: Distances) -> Iterator[str]:
        yield from (each.phi, f"{each.n_rows:,}", str(each.n_revealed))
        for values in each.by_kind.values():
            error = values.std() / math.sqrt(len(values))
            yield f"{values.mean():.4f} ± {error:.4f}"

    return pages.table(head, (list(row(each)) for each in distances))


BAND = """Coverage of the 95% band, over three laws of the values and three slopes of
the log-odds; the standard error is about {error:.3f}:"""
CERTIFICATES = """Power, and in brackets the share of {repeats} repeats in which the
type I error exceeded α, which may be δ of them; n rows of the controlled class N(0, I),
the other class 1.5 away ([more settings](evidence/learned.csv)):"""
RATIOS = """The mean of ‖θ̂ − θ‖², with its standard error, on the paper's
five-dimensional example; a logistic φ only approximates the step:"""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", type=Path, help="the page to write")
    parser.add_argument("--repeats", type=int, default=CERTIFICATE_REPEATS)
    parser.add_argument("--jobs", type=int, default=-1)
    options = parser.parse_args(arguments)
    start = time.perf_counter()
    results = simulate_all(options.repeats, options.jobs)
    page = as_markdown(results)
    print(page)
    if options.write:
        pages.put(options.write, "learned", page)
        pages.write_csv("learned.csv", CELL_HEAD, certificate_rows(results))
    for line in too_low(results.coverage):
        print(line)
    print(f"Done in {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
