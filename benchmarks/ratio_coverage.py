"""How often intervals of a ratio hold the truth, and how standard errors compare.

Both classes are normal with the same covariance, p0 = N(0, Σ) and p1 = N(μ, Σ), so that
log r(z) = θᵀz − ½θᵀΣθ with θ = Σ⁻¹μ. Class 1 loses rows or entries, logistically; φ is
known, or learned from m of the missing ones, drawn by chance, in the same rows.

    python benchmarks/ratio_coverage.py --write docs/validity.md
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import pages
from joblib import Parallel, delayed
from scipy import special

import missratio as mr

REPEATS = 400
LEVEL = 0.95
MEAN = np.array([0.5, 0.25])
POINTS = np.array([[0.0, 0.0], [1.0, 1.0], [-1.5, 0.5]])


@dataclass(frozen=True)
class Setting:
    """What is lost, what is looked up, and how the ratio is fitted."""

    losing: str = "entries"
    share: float = 0.5
    queried: int | None = None
    n_rows: int = 1000
    slope: float = 0.7
    estimator: str = "joint"
    normalize: str = "hajek"
    both: bool = False

    @property
    def rowwise(self) -> bool:
        return self.losing == "rows"

    @property
    def covariance(self) -> np.ndarray:
        correlation = 0.5 if self.estimator == "joint" else 0.0
        return np.array([[1.0, correlation], [correlation, 1.0]])

    @property
    def coefficients(self) -> np.ndarray:
        return np.linalg.solve(self.covariance, MEAN)

    @property
    def log_normalizer(self) -> float:
        return float(self.coefficients @ self.covariance @ self.coefficients) / 2.0

    @property
    def truth(self) -> np.ndarray:
        """Coefficients, the log normaliser and log ratios at the points."""
        log_ratio = POINTS @ self.coefficients - self.log_normalizer
        return np.concatenate([self.coefficients, [self.log_normalizer], log_ratio])

    def model(self, label: int) -> mr.LogisticMissingness:
        return loss(label, self.rowwise, self.share, self.slope, self.estimator)

    def draw(self, rng: np.random.Generator, label: int) -> np.ndarray:
        rows = rng.normal(size=(self.n_rows, 2)) @ np.linalg.cholesky(self.covariance).T
        return rows + label * MEAN

    def make(self, missingness: object) -> mr.KLIEP | mr.NaiveBayesRatio:
        inner = mr.KLIEP(normalize=self.normalize, pairs=False)
        if self.estimator == "joint":
            return inner.set_params(missingness=missingness)
        return mr.NaiveBayesRatio(inner, missingness=missingness)


@cache
def loss(
    label: int, rowwise: bool, share: float, slope: float, estimator: str
) -> mr.LogisticMissingness:
    """The φ of a class, at which `share` of its rows or entries is missing."""
    setting = replace(Setting(), n_rows=50_000, estimator=estimator)
    rows = setting.draw(np.random.default_rng(label), label)
    slopes = slope * np.array([1.0, -0.7] if label else [-0.7, 1.0])
    return mr.LogisticMissingness.from_proportion(rows, slopes, share, rowwise)


@dataclass(frozen=True)
class Data:
    """A table with its labels, and what was looked up in it."""

    X: np.ndarray
    y: np.ndarray
    revealed: np.ndarray

    def rows(self, index: np.ndarray) -> Data:
        return Data(self.X[index], self.y[index], self.revealed[index])


def draw(setting: Setting, rng: np.random.Generator) -> Data:
    tables, revealed = [], []
    for label in (0, 1):
        Z = setting.draw(rng, label)
        X = Z
        if label or setting.both:
            X = mr.corrupt(Z, setting.model(label), rng)
        tables.append(X)
        revealed.append(look_up(setting, X, Z, rng))
    labels = np.repeat([0, 1], setting.n_rows)
    return Data(np.concatenate(tables), labels, np.concatenate(revealed))


def look_up(
    setting: Setting, X: np.ndarray, Z: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    revealed = np.full_like(X, np.nan)
    for columns in [slice(None)] if setting.rowwise else [0, 1]:
        missing = np.flatnonzero(np.isnan(X[:, 0 if setting.rowwise else columns]))
        count = min(setting.queried or 0, len(missing))
        chosen = rng.choice(missing, count, replace=False)
        revealed[chosen, columns] = Z[chosen, columns]
    return revealed


def learn(setting: Setting, data: Data) -> dict[int, mr.LogisticMissingness]:
    labels = (0, 1) if setting.both else (1,)
    if setting.queried is None:
        return {label: setting.model(label) for label in labels}
    models = {}
    for label in labels:
        mine = data.y == label
        models[label] = mr.learn_missingness(
            data.X[mine],
            data.revealed[mine],
            rowwise=setting.rowwise,
            from_table=False,
        )
    return models


def fit(setting: Setting, data: Data) -> mr.KLIEP | mr.NaiveBayesRatio:
    return setting.make(learn(setting, data)).fit(data.X, data.y)


def estimates(ratio: mr.KLIEP | mr.NaiveBayesRatio) -> np.ndarray:
    own = np.append(ratio.coef_, ratio.log_normalizer_)
    return np.concatenate([own, ratio.predict_log_ratio(POINTS)])


def standard_errors(
    ratio: mr.KLIEP | mr.NaiveBayesRatio, data: Data, **options: str
) -> np.ndarray:
    uncertainty = mr.ratio_uncertainty(ratio, data.X, data.y, **options)
    _, at_points = uncertainty.log_ratio(POINTS)
    return np.concatenate([uncertainty.standard_errors, at_points])


def as_if_known(
    models: dict[int, mr.LogisticMissingness],
) -> dict[int, mr.LogisticMissingness]:
    """The same φ without a memory of having been learned."""
    return {
        label: mr.LogisticMissingness(model.intercept, model.coef, model.rowwise)
        for label, model in models.items()
    }


def half_lengths(uncertainty: mr.uncertainty.RatioUncertainty) -> np.ndarray:
    """Of the intervals at level 0.95, in the order of the estimates."""
    own = (
        special.stdtrit(uncertainty.degrees_of_freedom, 0.975)
        * uncertainty.standard_errors
    )
    lower, upper = uncertainty.interval(POINTS)
    return np.concatenate([own, (upper - lower) / 2.0])


@dataclass(frozen=True)
class Outcome:
    """Errors of the estimates in every repeat, and their standard errors.

    `included` allows for the estimation of φ, `left_out` doesn't. `reach` is half the
    intervals' lengths, and `reliable` whether no warning came with them.
    """

    setting: Setting
    error: np.ndarray
    included: np.ndarray
    left_out: np.ndarray
    reach: np.ndarray
    reliable: np.ndarray

    @property
    def held(self) -> np.ndarray:
        """Which intervals held the truth."""
        return np.abs(self.error) <= self.reach

    def coverage(self, errors: np.ndarray | None = None) -> np.ndarray:
        """The share of intervals that hold the truth; normal ones, of given errors."""
        if errors is None:
            return self.held.mean(axis=0)
        return (np.abs(self.error) <= 1.959964 * errors).mean(axis=0)

    def inflation(self, errors: np.ndarray) -> np.ndarray:
        """Median standard error over the robust spread of the estimates."""
        low, high = np.quantile(self.error, [0.16, 0.84], axis=0)
        return np.median(errors, axis=0) / ((high - low) / 1.98892)


def repeat(setting: Setting, seed: int, count: int) -> list[tuple[np.ndarray, ...]]:
    rng = np.random.default_rng([seed, 7])
    results = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mr.exceptions.WeightConcentrationWarning)
        warnings.simplefilter("ignore", mr.uncertainty.UnreliableIntervalWarning)
        warnings.simplefilter("ignore", mr.exceptions.NoFiniteOptimumWarning)
        warnings.simplefilter("ignore", mr.learning.MissingnessWarning)
        while len(results) < count:
            data = draw(setting, rng)
            models = learn(setting, data)
            ratio = setting.make(models).fit(data.X, data.y)
            if not getattr(ratio, "converged_", True):
                continue
            uncertainty = mr.ratio_uncertainty(ratio, data.X, data.y)
            _, at_points = uncertainty.log_ratio(POINTS)
            included = np.concatenate([uncertainty.standard_errors, at_points])
            left_out = included
            if setting.queried is not None:
                plain = setting.make(as_if_known(models)).fit(data.X, data.y)
                left_out = standard_errors(plain, data)
            error = estimates(ratio) - setting.truth
            reliable = bool(uncertainty.reliable[:-1].all())
            reach = half_lengths(uncertainty)
            results.append((error, included, left_out, reach, reliable))
    return results


def simulate(setting: Setting, repeats: int = REPEATS, jobs: int = 1) -> Outcome:
    share = -(-repeats // 20)
    parts = Parallel(n_jobs=jobs)(
        delayed(repeat)(setting, seed, share) for seed in range(20)
    )
    columns = zip(*(result for part in parts for result in part), strict=True)
    return Outcome(setting, *(np.array(column) for column in columns))


def bootstrap(setting: Setting, data: Data, draws: int, seed: int = 0) -> np.ndarray:
    """Standard errors by drawing rows within each class, and learning φ again."""
    rng = np.random.default_rng(seed)
    places = [np.flatnonzero(data.y == label) for label in (0, 1)]
    results = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mr.exceptions.WeightConcentrationWarning)
        # Drawn rows scatter twice as much as rows do, about a φ that is right.
        warnings.simplefilter("ignore", mr.missingness.MissingnessContradictionWarning)
        warnings.simplefilter("ignore", mr.learning.MissingnessWarning)
        for _ in range(draws):
            index = np.concatenate([rng.choice(rows, len(rows)) for rows in places])
            results.append(estimates(fit(setting, data.rows(index))))
    low, high = np.quantile(results, [0.16, 0.84], axis=0)
    return (high - low) / 1.98892


def settings() -> list[Setting]:
    cells = [
        Setting("entries", share, queried)
        for share in (0.1, 0.5, 0.9)
        for queried in (None, 10, 50, 200)
    ]
    cells += [
        Setting("rows", share, queried)
        for share in (0.5, 0.9)
        for queried in (None, 10, 200)
    ]
    others = [
        Setting("entries", 0.5, 50, **options)
        for options in (
            {"both": True},
            {"normalize": "horvitz-thompson"},
            {"estimator": "naive-bayes"},
            {"n_rows": 300},
        )
    ]
    hard = [
        Setting("entries", 0.9, queried, n_rows=n, slope=1.5)
        for n in (1000, 4000)
        for queried in (None, 50)
    ]
    return cells + others + hard


def random_settings(count: int, seed: int = 0) -> list[Setting]:
    """Known φ, from harmless to one that comes close to 1 for many values."""
    rng = np.random.default_rng(seed)
    return [
        Setting(
            losing=str(rng.choice(["rows", "entries"])),
            share=float(rng.choice([0.3, 0.5, 0.7])),
            n_rows=int(rng.choice([300, 1000, 3000])),
            slope=round(float(rng.uniform(0.2, 2.5)), 2),
            estimator=str(rng.choice(["joint", "naive-bayes"])),
            both=bool(rng.random() < 0.3),
        )
        for _ in range(count)
    ]


HEAVY = {
    **{f"logistic, slope {slope}": mr.LogisticMissingness(-2.0, [slope])
       for slope in (0.3, 0.5, 0.6, 0.7, 1.0, 1.5)},
    "a step of 0.9 above 1.5": mr.StepMissingness(1.0, 1.5, 0.9),
    "a step of 0.9 above 4": mr.StepMissingness(1.0, 4.0, 0.9),
    "logistic, times 0.95": mr.FunctionMissingness(
        lambda X: 0.95 / (1.0 + np.exp(2.0 - X)), rowwise=False, maximum=0.95
    ),
}  # fmt: skip
"""Losses of a gamma column; logistic above a slope of 1, E W² is infinite."""
HEAVIER = {
    f"t column, logistic, slope {slope}": mr.LogisticMissingness(-1.0, [slope])
    for slope in (0.5, 0.7, 1.0)
}
"""Losses of a column with Student's law, 4 degrees of freedom: E W² is infinite."""


def gamma_tables(
    phi: mr.missingness.Missingness, n_rows: int, repeats: int, t: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Whether the coefficient's interval held, and was called reliable, by table.

    With t, the law of both samples is Student's, cut off at 30.
    """
    scale = 0.7
    truth = 0.0 if t else 1.0 / scale - 1.0
    found = []
    for seed in range(repeats):
        rng = np.random.default_rng([seed, n_rows])
        Z = rng.gamma(2.0, np.repeat([1.0, scale], n_rows))[:, None]
        if t:
            Z = np.clip(rng.standard_t(4.0, Z.shape), -30.0, 30.0)
        X = np.concatenate([mr.corrupt(Z[:n_rows], phi, rng), Z[n_rows:]])
        y = np.repeat([1, 0], n_rows)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ratio = mr.KLIEP(missingness={1: phi}).fit(X, y)
            uncertainty = mr.ratio_uncertainty(ratio, X, y)
        (row,) = uncertainty.summary_frame(backend="pyarrow").to_pylist()
        held = row["lower"] <= truth <= row["upper"]
        found.append((held, uncertainty.reliable[0]))
    held, reliable = np.array(found).T
    return held, reliable


def heavy_row(name: str, n_rows: int, repeats: int) -> list[str]:
    phi = (HEAVY | HEAVIER)[name]
    held, sure = gamma_tables(phi, n_rows, repeats, name in HEAVIER)
    among = f"{held[sure].mean():.3f}" if sure.sum() >= 20 else ""
    return [name, f"{n_rows:,}", f"{held.mean():.3f}", f"{sure.mean():.2f}", among]


RANDOM_HEAD = (
    "lost", "share", "n", "slope", "fit", "normal quantile", "Student's", "reliable"
)  # fmt: skip


def random_row(outcome: Outcome) -> list[str]:
    setting = outcome.setting
    what = setting.estimator + (", both classes" if setting.both else "")
    return [
        setting.losing, f"{setting.share}", f"{setting.n_rows}", f"{setting.slope}",
        what, _range(outcome.coverage(outcome.included)[CLAIMED]),
        _range(outcome.coverage()[CLAIMED]), f"{outcome.reliable.mean():.2f}",
    ]  # fmt: skip


def pooled(outcomes: Sequence[Outcome]) -> tuple[np.ndarray, np.ndarray, float]:
    """Coverage where intervals are called reliable and elsewhere, and how often."""
    held = np.concatenate([outcome.held[:, CLAIMED] for outcome in outcomes])
    reliable = np.concatenate([outcome.reliable for outcome in outcomes])
    return held[reliable].mean(axis=0), held[~reliable].mean(axis=0), reliable.mean()


# All but the log normaliser.
CLAIMED = np.array([0, 1, 3, 4, 5])
HEAD = (
    "lost", "share", "n", "looked up", "fit", "theta", "log r", "se / spread",
    "left out: log r", "left out: se / spread",
)  # fmt: skip


def table_row(outcome: Outcome) -> list[str]:
    setting = outcome.setting
    what = [setting.estimator, *(["both classes"] if setting.both else [])]
    what += ["HT"] if setting.normalize != "hajek" else []
    what += [f"slope {setting.slope}"] if setting.slope != Setting.slope else []
    queried = "φ known" if setting.queried is None else str(setting.queried)
    cells = [
        setting.losing, f"{setting.share}", f"{setting.n_rows}", queried,
        ", ".join(what), *_figures(outcome, outcome.included, outcome.coverage()),
    ]  # fmt: skip
    naive = outcome.coverage(outcome.left_out)
    plain = _figures(outcome, outcome.left_out, naive)[1:]
    return cells + (plain if setting.queried else ["", ""])


def _figures(outcome: Outcome, errors: np.ndarray, coverage: np.ndarray) -> list[str]:
    inflation = outcome.inflation(errors)
    spread = f"{inflation[3:].min():.2f}–{inflation[3:].max():.2f}"
    return [_range(coverage[:2]), _range(coverage[3:]), spread]


def _range(values: np.ndarray) -> str:
    return f"{values.min():.3f}–{values.max():.3f}"


HEAVY_HEAD = ("φ", "n", "holds", "reliable", "holds where reliable")
PLACE = """In {settings} settings drawn at random intervals are called reliable in
{reliable:.0%} of the repeats. They hold in {sure} of those, and in {unsure} of the
others.

A gamma column is lost by a known φ. With a logistic φ the second moment of the weights
is infinite from a slope of 1; of a column with Student's law (4 degrees of freedom) it
is with any slope, though no table may show it. How often the coefficient's interval
holds, is called reliable, and holds where it is, at 3,000 rows
([and at 1,000](evidence/coverage_heavy.csv)):

{heavy}"""


def as_markdown(drawn: Sequence[Outcome], heavy: Sequence[Sequence[str]]) -> str:
    """What stands on the page on validity."""
    sure, unsure, reliable = pooled(drawn)
    shown = [[name, *rest] for name, n_rows, *rest in heavy if n_rows == "3,000"]
    return PLACE.format(
        settings=len(drawn),
        reliable=reliable,
        sure=_range(sure),
        unsure=_range(unsure),
        heavy=pages.table([HEAVY_HEAD[0], *HEAVY_HEAD[2:]], shown),
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", type=Path, help="the page to write")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--random", type=int, default=16, help="settings drawn")
    parser.add_argument("--jobs", type=int, default=-1)
    options = parser.parse_args(arguments)
    outcomes, drawn = [], []
    for found, show, group in (
        (outcomes, table_row, settings()),
        (drawn, random_row, random_settings(options.random)),
    ):
        for setting in group:
            start = time.perf_counter()
            found.append(simulate(setting, options.repeats, options.jobs))
            taken = time.perf_counter() - start
            print(*show(found[-1]), f"{taken:.0f} s", sep=" | ", flush=True)
    print(*(_range(part) for part in pooled(drawn)[:2]))
    heavy = []
    for name in HEAVY | HEAVIER:
        for n_rows in (1000, 3000):
            heavy.append(heavy_row(name, n_rows, options.repeats))
            print(*heavy[-1], sep=" | ", flush=True)
    if options.write:
        pages.put(options.write, "coverage", as_markdown(drawn, heavy))
        pages.write_csv("coverage.csv", HEAD, map(table_row, outcomes))
        pages.write_csv("coverage_random.csv", RANDOM_HEAD, map(random_row, drawn))
        pages.write_csv("coverage_heavy.csv", HEAVY_HEAD, heavy)


if __name__ == "__main__":
    # Under its own name, by which worker processes find it.
    import ratio_coverage

    ratio_coverage.main()
