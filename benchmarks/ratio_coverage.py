"""How often intervals of a ratio hold the truth, and how standard errors compare.

Both classes are normal with the same covariance, p0 = N(0, Σ) and p1 = N(μ, Σ), so that
log r(z) = θᵀz − ½θᵀΣθ with θ = Σ⁻¹μ. Class 1 loses rows or entries, logistically; φ is
known, or learned from m of the missing ones, drawn by chance, in the same rows.

    python benchmarks/ratio_coverage.py --write docs/coverage.md
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
from joblib import Parallel, delayed

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
        inner = mr.KLIEP(normalize=self.normalize)
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
            data.X[mine], data.revealed[mine], rowwise=setting.rowwise
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


@dataclass(frozen=True)
class Outcome:
    """Errors of the estimates in every repeat, and their standard errors.

    `included` allows for the estimation of φ, `left_out` doesn't.
    """

    setting: Setting
    error: np.ndarray
    included: np.ndarray
    left_out: np.ndarray

    def coverage(self, errors: np.ndarray | None = None) -> np.ndarray:
        errors = self.included if errors is None else errors
        return (np.abs(self.error) <= 1.959964 * errors).mean(axis=0)

    def inflation(self, errors: np.ndarray) -> np.ndarray:
        """Median standard error over the robust spread of the estimates."""
        low, high = np.quantile(self.error, [0.16, 0.84], axis=0)
        return np.median(errors, axis=0) / ((high - low) / 1.98892)


def repeat(setting: Setting, seed: int, count: int) -> list[tuple[np.ndarray, ...]]:
    rng = np.random.default_rng([seed, 7])
    results = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mr.WeightConcentrationWarning)
        warnings.simplefilter("ignore", mr.UnreliableIntervalWarning)
        while len(results) < count:
            data = draw(setting, rng)
            models = learn(setting, data)
            ratio = setting.make(models).fit(data.X, data.y)
            included = left_out = standard_errors(ratio, data)
            if setting.queried is not None:
                plain = setting.make(as_if_known(models)).fit(data.X, data.y)
                left_out = standard_errors(plain, data)
            results.append((estimates(ratio) - setting.truth, included, left_out))
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
        warnings.simplefilter("ignore", mr.WeightConcentrationWarning)
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


COLUMNS = (
    "lost | share | n | looked up | fit | θ | log r | se / spread | left out: log r | "
    "se / spread"
)


def table_row(outcome: Outcome) -> str:
    setting = outcome.setting
    what = [setting.estimator, *(["both classes"] if setting.both else [])]
    what += ["HT"] if setting.normalize != "hajek" else []
    what += [f"slope {setting.slope}"] if setting.slope != Setting.slope else []
    queried = "φ known" if setting.queried is None else str(setting.queried)
    cells = [
        setting.losing, f"{setting.share}", f"{setting.n_rows:,}", queried,
        ", ".join(what), *_figures(outcome, outcome.included),
    ]  # fmt: skip
    plain = _figures(outcome, outcome.left_out)[1:]
    return f"| {' | '.join(cells + (plain if setting.queried else ['', '']))} |"


def _figures(outcome: Outcome, errors: np.ndarray) -> list[str]:
    coverage, inflation = outcome.coverage(errors), outcome.inflation(errors)
    spread = f"{inflation[3:].min():.2f}–{inflation[3:].max():.2f}"
    return [_range(coverage[:2]), _range(coverage[3:]), spread]


def _range(values: np.ndarray) -> str:
    return f"{values.min():.3f}–{values.max():.3f}"


PAGE = """# Coverage of a ratio's intervals

Written by `python benchmarks/ratio_coverage.py --write docs/coverage.md`; `make
validity` runs a part of the same simulation.

Both classes are normal with the same covariance (correlation 0.5; 0 for naive Bayes),
so that θ and log r are known. Class 1 loses whole rows or single entries, logistically
with slopes 0.7 and −0.49 in the two columns (or a slope as said, and −0.7 times it),
and so many of the missing ones are looked up, in each column or as whole rows; all of
them where fewer are missing. The binomial error of a share is 0.01.

Columns "θ" and "log r" are the shares of {repeats:,} repeats in which the interval at
level 0.95 held the truth, the least and the largest of both coefficients, and of log r
at three points; "se / spread" is the median standard error of log r over the spread of
its estimates. The last two columns are what comes out if the learned φ is taken for
known.

| {columns} |
|{rule}
{rows}
"""


def page(outcomes: Sequence[Outcome], repeats: int) -> str:
    rows = "\n".join(table_row(outcome) for outcome in outcomes)
    rule = "---|" * len(COLUMNS.split(" | "))
    return PAGE.format(repeats=repeats, columns=COLUMNS, rule=rule, rows=rows)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", type=Path, help="the page to write")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--jobs", type=int, default=-1)
    options = parser.parse_args(arguments)
    outcomes = []
    for setting in settings():
        start = time.perf_counter()
        outcomes.append(simulate(setting, options.repeats, options.jobs))
        taken = time.perf_counter() - start
        print(table_row(outcomes[-1]), f"{taken:.0f} s", flush=True)
    if options.write:
        options.write.write_text(page(outcomes, options.repeats), encoding="utf-8")


if __name__ == "__main__":
    # Under its own name, by which worker processes find it.
    import ratio_coverage

    ratio_coverage.main()
