"""What the table teaches of φ: errors, bands, tests, and power on data sets.

python benchmarks/learning_table.py [right] [band] [wrong] [ctg] [weather]
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit
from scipy.stats import binomtest, norm, t

import missratio as mr
from missratio import datasets
from missratio.learning import LearnedMissingness, MissingnessWarning
from missratio.missingness import looked_up_terms
from missratio.weights import inverse_probability_weights

LAWS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "normal": lambda x: x,
    "exponential": lambda x: -np.log(norm.sf(x)),
    "t5": lambda x: t(5).ppf(norm.cdf(x)),
    "lognormal": np.exp,
    "two values": lambda x: (x > 0.7).astype(float),
}
FORMS = ("step", "tail", "U", "another column", "together")
QUANTILES = np.linspace(0.005, 0.995, 41)


def rows_of(
    n: int, d: int, rho: float, law: str, rng: np.random.Generator
) -> np.ndarray:
    """Rows with correlation rho between columns, before the law is put on."""
    common = rng.normal(size=(n, 1))
    own = rng.normal(size=(n, d))
    return LAWS[law](np.sqrt(1.0 - rho) * own + np.sqrt(rho) * common)


def look_up(
    X: np.ndarray, Z: np.ndarray, m: int, rng: np.random.Generator
) -> np.ndarray | None:
    """m missing values of each column, drawn by chance; None for none."""
    if m == 0:
        return None
    revealed = np.full_like(X, np.nan)
    for j in range(X.shape[1]):
        chosen = rng.permutation(np.flatnonzero(np.isnan(X[:, j])))[:m]
        revealed[chosen, j] = Z[chosen, j]
    return revealed


def learn(
    X: np.ndarray, revealed: np.ndarray | None, *, from_table: bool = True
) -> LearnedMissingness:
    """Learn without a word: warnings are what is counted here, by the checks."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MissingnessWarning)
        return mr.learn_missingness(X, revealed, from_table=from_table)


# Errors of the slopes


def slope_errors(
    n: int, d: int, rho: float, repeats: int, seed: int = 0
) -> dict[str, float]:
    """Root mean square errors of slopes that are ±1 per standard deviation."""
    squares: dict[str, list[float]] = {}
    for i in range(repeats):
        rng = np.random.default_rng([seed, n, d, i])
        Z = rows_of(n, d, rho, "normal", rng)
        slopes = rng.choice([-1.0, 1.0], d)
        X = mr.corrupt(Z, mr.LogisticMissingness(0.0, slopes), rng)
        for name, m, from_table in (
            ("20 looked up", 20, False),
            ("50 looked up", 50, False),
            ("none", 0, True),
            ("none, with 20", 20, True),
        ):
            model = learn(X, look_up(X, Z, m, rng), from_table=from_table)
            errors = (np.asarray(model.coef) - slopes) ** 2
            squares.setdefault(name, []).append(float(errors.mean()))
    return {name: float(np.sqrt(np.mean(found))) for name, found in squares.items()}


# Bands and tests of the right form


@dataclass(frozen=True)
class Setting:
    """A table with a logistic φ, drawn at random."""

    n: int
    d: int
    rho: float
    law: str
    n_revealed: int

    @classmethod
    def draw(cls, rng: np.random.Generator) -> Setting:
        return cls(
            int(rng.choice([400, 1500, 5000])),
            int(rng.choice([3, 6, 10])),
            float(rng.uniform(0.1, 0.9)),
            str(rng.choice(list(LAWS))),
            int(rng.choice([0, 0, 20, 50, 200])),
        )


@dataclass(frozen=True)
class Outcome:
    """One table: was φ within its band, and which tests called it wrong?

    `p_values` are by kind and source of the check.
    """

    setting: Setting
    covered: bool
    failed: bool
    p_values: dict[tuple[str, str], list[float]]


def _right_table(
    rng: np.random.Generator,
) -> tuple[Setting, np.ndarray, mr.LogisticMissingness]:
    """A setting, its rows, and a φ that is below 1 at all of them."""
    while True:
        setting = Setting.draw(rng)
        Z = rows_of(setting.n, setting.d, setting.rho, setting.law, rng)
        slopes = rng.uniform(-1.5, 1.5, setting.d) / Z.std(axis=0)
        share = rng.uniform(0.15, 0.7, setting.d)
        truth = mr.LogisticMissingness.from_proportion(Z, slopes, share)
        if truth.probability_band(Z)[1].max() < 1.0:
            return setting, Z, truth


def accused(n: int, d: int, share: float, logistic: bool, seed: int) -> bool:
    """Whether any test speaks against a right φ of so many values missing a column."""
    rng = np.random.default_rng([seed, n, d])
    Z = rows_of(n, d, 0.5, "normal", rng)
    slopes = np.where(np.arange(d) % 2, 1.0, -1.0) * logistic
    truth = mr.LogisticMissingness.from_proportion(Z, slopes, share)
    checks = learn(mr.corrupt(Z, truth, rng), None).checks
    return any(check.failed for check in checks if check.pvalue is not None)


def right_form(seed: int, delta: float = 0.05, *, look_ups: bool = True) -> Outcome:
    """Learn a logistic φ, and look at its band and its tests."""
    rng = np.random.default_rng([1, seed])
    setting, Z, truth = _right_table(rng)
    if not look_ups:
        setting = replace(setting, n_revealed=0)
    X = mr.corrupt(Z, truth, rng)
    model = learn(X, look_up(X, Z, setting.n_revealed, rng))
    grid = np.quantile(Z, QUANTILES, axis=0)
    lower, upper = model.probability_band(grid, delta)
    phi = truth.missing_probability(grid)
    covered = bool(((lower <= phi + 1e-9) & (phi <= upper + 1e-9)).all())
    p_values: dict[tuple[str, str], list[float]] = {}
    for check in model.checks:
        if check.pvalue is not None:
            p_values.setdefault((check.kind, check.source), []).append(check.pvalue)
    failed = any(check.failed and check.pvalue is not None for check in model.checks)
    return Outcome(setting, covered, failed, p_values)


# Wrong forms


def lossy_table(
    form: str, law: str, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """3,000 rows of five columns, as they are seen and in truth."""
    Z = rows_of(3000, 5, 0.6, law, rng)
    rank = Z.argsort(axis=0).argsort(axis=0) / len(Z)
    scaled = (Z - Z.mean(axis=0)) / Z.std(axis=0)
    chance = rng.uniform(size=Z.shape)
    if form == "together":
        same = rng.uniform(size=Z.shape) < 0.4
        chance = np.where(same, rng.uniform(size=(len(Z), 1)), chance)
    phi = {
        "logistic": expit(scaled - 0.4),
        "step": np.where(rank > 0.5, 0.7, 0.1),
        "tail": np.where(rank > 0.88, 0.95, 0.05),
        "U": np.where(np.abs(rank - 0.5) > 0.3, 0.7, 0.1),
        "another column": expit(0.5 * scaled + 0.8 * np.roll(scaled, 1, 1) - 0.4),
        "together": expit(0.8 * scaled - 0.4),
    }[form]
    return np.where(chance < phi, np.nan, Z), Z


def wrong_form(
    form: str, law: str, m: int, seed: int, *, from_table: bool = True
) -> LearnedMissingness:
    """What is learned of such a table, whose φ needn't be a logistic one."""
    rng = np.random.default_rng([2, seed])
    X, Z = lossy_table(form, law, rng)
    return learn(X, look_up(X, Z, m, rng), from_table=from_table)


def mean_errors(form: str, law: str, m: int, repeats: int) -> dict[str, float]:
    """Root mean square errors of columns' means, in standard deviations."""
    squares: dict[str, list[float]] = {}
    for seed in range(repeats):
        rng = np.random.default_rng([4, seed])
        X, Z = lossy_table(form, law, rng)
        revealed = look_up(X, Z, m, rng)
        assert revealed is not None
        missing, found = np.isnan(X), ~np.isnan(revealed)
        shares = found.sum(axis=0) / np.maximum(missing.sum(axis=0), 1)
        inclusion = np.where(missing, np.where(found, shares, 0.0), 1.0)
        filled = np.where(found, revealed, X)
        means = {"complete cases": np.nanmean(X, axis=0)}
        for name, model in (
            ("look-ups teach φ", learn(X, revealed, from_table=False)),
            ("the table teaches φ", learn(X, None)),
        ):
            weights = inverse_probability_weights(X, model.as_known())
            values = np.where(missing, 0.0, X)
            means[name] = (weights * values).sum(axis=0) / weights.sum(axis=0)
        means["look-ups as data"] = np.array(
            [
                looked_up_terms(
                    filled[:, [j]], inclusion[:, j], np.delete(filled, j, axis=1)
                ).mean()
                for j in range(X.shape[1])
            ]
        )
        for name, mean in means.items():
            error = (mean - Z.mean(axis=0)) / Z.std(axis=0)
            squares.setdefault(name, []).append(float((error**2).mean()))
    return {name: float(np.sqrt(np.mean(each))) for name, each in squares.items()}


# Data sets, with missingness that is made as in the paper's first experiment


@dataclass(frozen=True)
class Run:
    """One split of a data set, normalised; what its class 1 lost, and φ."""

    numerator: np.ndarray
    complete: np.ndarray
    denominator: np.ndarray
    held_out: np.ndarray
    test: np.ndarray
    phi: mr.LogisticMissingness

    def power(self, missingness: object, alpha: float = 0.1) -> float:
        """Of the joint M-KLIEP, at the threshold that the held-out rows have."""
        X = np.concatenate([self.numerator, self.denominator])
        y = np.repeat([1, 0], [len(self.numerator), len(self.denominator)])
        ratio = mr.KLIEP(missingness=missingness, l2=0.01)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            ratio.fit(X, y)
        threshold = np.quantile(ratio.decision_function(self.held_out), 1.0 - alpha)
        return float((ratio.decision_function(self.test) > threshold).mean())


SIZES = {"ctg": (237, 100), "weather": (15_000, 10_000)}


def draw_run(name: str, seed: int) -> Run:
    """A split, its NaN filled by training means, and what class 1 loses by φ."""
    load = {"ctg": datasets.load_ctg, "weather": datasets.load_weather}[name]
    X, y = load(variant="corrected", return_X_y=True)
    mean, spread = np.nanmean(X, axis=0), np.nanstd(X, axis=0)
    n_train, n_test = SIZES[name]
    rng = np.random.default_rng([3, seed])
    zeros, ones = (rng.permutation(np.flatnonzero(y == label)) for label in (0, 1))
    train, held_out = np.split(zeros, [n_train])
    test, numerator = np.split(ones, [n_test])
    fill = np.nanmean(X[np.concatenate([train, numerator])], axis=0)
    X = np.where(np.isnan(X), fill, X)
    sign = rng.choice([-1.0, 1.0], X.shape[1])
    phi = mr.LogisticMissingness(sign * mean / spread, -sign / spread)
    lossy = mr.corrupt(X[numerator], phi, rng)
    both = np.concatenate([X[train], lossy])
    centre, scale = np.nanmean(both, axis=0), np.nanstd(both, axis=0)
    scale = np.where(scale > 0.0, scale, 1.0)
    tables = (lossy, X[numerator], X[train], X[held_out], X[test])
    normalised = [(table - centre) / scale for table in tables]
    intercept, coef = np.asarray(phi.intercept), np.asarray(phi.coef)
    return Run(
        *normalised,
        mr.LogisticMissingness(intercept + coef * centre, coef * scale),
    )


def powers(name: str, seed: int) -> dict[str, float]:
    """Powers at α = 0.1 by how φ is known."""
    run = draw_run(name, seed)
    rng = np.random.default_rng([4, seed])
    revealed = look_up(run.numerator, run.complete, 50, rng)
    X = run.numerator
    return {
        "known": run.power({1: run.phi}),
        "50 looked up": run.power({1: learn(X, revealed, from_table=False)}),
        "none": run.power({1: learn(X, None)}),
        "none, with 50": run.power({1: learn(X, revealed)}),
        "complete case": run.power("ignore"),
    }


# Categories, whose indicators go missing together


@dataclass(frozen=True)
class CategoryOutcome:
    """φ by level, as it is and as it was learned, and whether the 90% band holds it."""

    model: mr.missingness.BlockMissingness
    truth: np.ndarray
    learned: np.ndarray
    covered: bool


def category(
    seed: int, *, dropped: bool = False, n_revealed: int = 0
) -> CategoryOutcome:
    """A category with three levels beside three numbers, one of them lossy too."""
    rng = np.random.default_rng([6, seed])
    n, n_levels = int(rng.choice([1500, 4000])), 3
    numbers = rng.normal(size=(n, 3))
    leaning = 1.2 * numbers @ rng.normal(size=(3, n_levels))
    level = (leaning + rng.gumbel(size=(n, n_levels))).argmax(axis=1)
    truth = rng.uniform(0.1, 0.6, n_levels)
    codes = np.eye(n_levels)[:, int(dropped) :]
    Z = np.column_stack([numbers, codes[level]])
    X = Z.copy()
    X[rng.uniform(size=n) < truth[level], 3:] = np.nan
    X[rng.uniform(size=n) < expit(numbers[:, 0] - 1.0), 0] = np.nan
    revealed = np.full_like(X, np.nan)
    chosen = rng.permutation(np.flatnonzero(np.isnan(X[:, 3])))[:n_revealed]
    revealed[chosen, 3:] = Z[chosen, 3:]
    model = learn(X, revealed if n_revealed else None)
    grid = np.column_stack([np.zeros((n_levels, 3)), codes])
    lower, upper = (band[:, 3] for band in model.probability_band(grid, 0.1))
    return CategoryOutcome(
        model,
        truth,
        model.missing_probability(grid)[:, 3],
        bool(((lower <= truth) & (truth <= upper)).all()),
    )


BAND = 0.9


def right(repeats: int) -> bool:
    """Bands hold φ in 95% of tables, and tests reject a right φ in 5% at most."""
    outcomes = [right_form(seed) for seed in range(5 * repeats)]
    covered = sum(outcome.covered for outcome in outcomes)
    failed = sum(outcome.failed for outcome in outcomes)
    print(f"band: {covered} of {len(outcomes)} hold all of φ (95% promised)")
    print(f"warned of a right φ: {failed} of {len(outcomes)} (1% promised)")
    good = binomtest(covered, len(outcomes), 0.94, "less").pvalue > 1e-3
    kinds = sorted({kind for outcome in outcomes for kind in outcome.p_values})
    for kind in kinds:
        found = np.concatenate([o.p_values.get(kind, []) for o in outcomes])
        count = int((found <= 0.05).sum())
        print(f"{kind[0]} ({kind[1]}): {count} of {len(found)} below 0.05")
        good &= binomtest(count, len(found), 0.06, "greater").pvalue > 1e-3
    return good


def band(repeats: int) -> bool:
    """With no look-up, 90% bands miss some of φ in 10% of tables at most."""
    outcomes = [
        right_form(seed, 1.0 - BAND, look_ups=False) for seed in range(10 * repeats)
    ]
    print("\n".join(band_section(outcomes)))
    missed = sum(not outcome.covered for outcome in outcomes)
    return binomtest(missed, len(outcomes), 1.0 - BAND, "greater").pvalue > 1e-3


def band_section(outcomes: Sequence[Outcome]) -> list[str]:
    """What docs/validity.md says of bands with no look-up."""
    groups = {"all": [True] * len(outcomes)}
    for law in LAWS:
        groups[law] = [outcome.setting.law == law for outcome in outcomes]
    for n in sorted({outcome.setting.n for outcome in outcomes}):
        groups[f"{n:,} rows"] = [outcome.setting.n == n for outcome in outcomes]
    lines = ["| tables | | miss some of φ | share, with its standard error |"]
    lines += ["|---|---|---|---|"]
    for name, chosen in groups.items():
        found = np.array(
            [o.covered for o, own in zip(outcomes, chosen, strict=True) if own]
        )
        share, missed = 1.0 - found.mean(), int((~found).sum())
        error = np.sqrt(share * (1.0 - share) / len(found))
        lines.append(
            f"| {name} | {len(found)} | {missed} | {share:.3f} ± {error:.3f} |"
        )
    return lines


def wrong(repeats: int) -> bool:
    """Tables whose φ is no logistic function of the value are warned of."""
    every = True
    for law in ("normal", "lognormal"):
        for form in ("logistic", *FORMS):
            counts = []
            for m in (0, 50):
                models = [wrong_form(form, law, m, i) for i in range(repeats)]
                counts.append(sum(any(c.failed for c in x.checks) for x in models))
            print(
                f"{law}, {form}: warned in {counts[0]} of {repeats} with no look-up, "
                f"in {counts[1]} with 50 a column"
            )
            if form in ("step", "tail", "U"):
                every &= counts[1] == repeats
    return every


def on_data(name: str, repeats: int) -> dict[str, float]:
    found = [powers(name, seed) for seed in range(repeats)]
    means = {key: float(np.mean([f[key] for f in found])) for key in found[0]}
    for key, mean in means.items():
        spread = np.std([f[key] - f["known"] for f in found]) / np.sqrt(repeats)
        print(f"{name}, φ {key}: power {mean:.3f} (to known ± {spread:.3f})")
    return means


def ctg(repeats: int) -> bool:
    """With no look-up the power is within 0.01 of that of a known φ."""
    means = on_data("ctg", repeats)
    return means["none"] >= means["known"] - 0.01


def weather(repeats: int) -> bool:
    """0.55 with no look-up, and 0.57 with 50 a column."""
    means = on_data("weather", max(1, repeats // 10))
    return means["none"] >= 0.55 and means["none, with 50"] >= 0.57


PARTS = {"right": right, "band": band, "wrong": wrong, "ctg": ctg, "weather": weather}


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--repeats", type=int, default=30)
    options = parser.parse_args(arguments)
    unknown = [part for part in options.parts if part not in PARTS]
    if unknown:
        parser.error(f"no part is called {unknown[0]!r}; there are {', '.join(PARTS)}")
    missed = 0
    for part in options.parts or PARTS:
        met = PARTS[part](options.repeats)
        print(f"{'met' if met else 'MISSED'}: {PARTS[part].__doc__}")
        missed += not met
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
