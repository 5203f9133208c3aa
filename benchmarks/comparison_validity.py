"""Level and power of `ratio_test`, and coverage of `estimate_divergence`.

Settings are drawn at random from a seed: laws, numbers of rows and columns, and why
values are missing in each sample. ``python benchmarks/comparison_validity.py`` prints
the tables of the docs.
"""

from __future__ import annotations

import argparse
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.integrate import quad
from scipy.stats import norm

import missratio as mr
from missratio.comparison import _kernel_divergences, read_samples
from missratio.exceptions import SmallSampleWarning, WeightConcentrationWarning

LEVELS = (0.05, 0.1)
RESAMPLES = 99
FloatArray = Any


@dataclass(frozen=True)
class Two:
    """Two samples and why their values are missing."""

    X1: FloatArray
    X0: FloatArray
    missingness: Any


def _law(rng: np.random.Generator, shape: tuple[int, int], kind: int) -> FloatArray:
    if kind == 0:
        return rng.normal(size=shape)
    if kind == 1:
        return rng.standard_t(4, size=shape)
    if kind == 2:
        return rng.exponential(size=shape) - 1.0
    side = np.where(rng.random((shape[0], 1)) < 0.5, -1.5, 1.5)
    return side + rng.normal(size=shape)


def _model(rng: np.random.Generator, d: int) -> Any:
    direction = rng.normal(size=d)
    direction /= np.linalg.norm(direction)
    if rng.random() < 0.5:
        return mr.StepMissingness(
            direction, rng.uniform(-0.5, 0.5), rng.uniform(0.2, 0.7)
        )
    return mr.StepMissingness(
        np.sign(direction), rng.uniform(0, 0.5), rng.uniform(0.1, 0.4), rowwise=False
    )


def draw_samples(rng: np.random.Generator, missing: str, change: float = 0.0) -> Two:
    """Two samples of one law, or of laws that differ in mean or spread by a change."""
    d, kind = int(rng.choice([1, 2, 3])), int(rng.integers(4))
    sizes = rng.integers(60, 300, 2)
    if missing == "lopsided":
        # Few rows that weigh much against many that don't.
        sizes = np.array([rng.integers(150, 250), rng.integers(1000, 1500)])
    X1, X0 = (_law(rng, (int(n), d), kind) for n in sizes)
    if change:
        X1 = X1 + change if rng.random() < 0.5 else X1 * (1.0 + change)
    if missing == "nothing":
        return Two(X1, X0, None)
    if missing == "lopsided":
        heavy = mr.StepMissingness(np.eye(d)[0], 0.0, 0.8)
        return Two(mr.corrupt(X1, heavy, random_state=rng), X0, {1: heavy})
    own = _model(rng, d)
    models = {1: own, 0: own if missing == "alike" else _model(rng, d)}
    return Two(
        mr.corrupt(X1, models[1], random_state=rng),
        mr.corrupt(X0, models[0], random_state=rng),
        models,
    )


def p_values(
    seed: int, n_tests: int, missing: str, change: float = 0.0, broken: str = ""
) -> FloatArray:
    """P-values of tests in settings drawn at random; or of a test that is broken."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(n_tests):
        two = draw_samples(rng, missing, change)
        if broken == "permutation":
            samples = read_samples(two.X1, two.X0, two.missingness)
            values = _kernel_divergences(samples, "permutation", RESAMPLES, rng)
            scaled = ((values - values.mean(axis=0)) / values.std(axis=0)).max(axis=1)
            found.append((1 + (scaled[1:] >= scaled[0]).sum()) / (1 + RESAMPLES))
            continue
        missingness = "ignore" if broken == "ignore" else two.missingness
        result = mr.ratio_test(
            two.X1, two.X0, missingness=missingness, n_resamples=RESAMPLES,
            random_state=rng,
        )  # fmt: skip
        found.append(result.pvalue)
    return np.array(found)


def true_divergences(mean: float, deviation: float) -> dict[str, float]:
    """Of N(mean, deviation²) from N(0, 1)."""

    def mixed(x: float) -> float:
        p1, p0 = norm.pdf(x, mean, deviation), norm.pdf(x)
        return float(p1 * np.log(2 * p1 / (p1 + p0)) + p0 * np.log(2 * p0 / (p1 + p0)))

    def square(x: float) -> float:
        return float(norm.pdf(x, mean, deviation) ** 2 / norm.pdf(x))

    return {
        "kl": -np.log(deviation) + (deviation**2 + mean**2) / 2 - 0.5,
        "js": quad(mixed, -9, 9)[0] / 2,
        "pearson": quad(square, -9, 9)[0] - 1,
    }


def coverage(
    seed: int, n_repeats: int, divergence: str, missing: bool, broken: str = "",
    least: int = 300, most: int = 1000,
) -> tuple[float, float]:  # fmt: skip
    """How often intervals at 95% hold the truth, and the bias in standard errors."""
    rng = np.random.default_rng(seed)
    hits, bias = 0, 0.0
    for _ in range(n_repeats):
        mean, deviation = rng.uniform(0.3, 1.0), rng.uniform(0.6, 0.9)
        n = rng.integers(least, most, 2)
        X1, X0 = rng.normal(mean, deviation, (n[0], 1)), rng.normal(size=(n[1], 1))
        models: Any = None
        if missing:
            models = {label: _row_model(rng) for label in (1, 0)}
            X1 = mr.corrupt(X1, models[1], random_state=rng)
            X0 = mr.corrupt(X0, models[0], random_state=rng)
        found = mr.estimate_divergence(
            X1, X0, divergence, random_state=rng,  # type: ignore[arg-type]
            missingness="ignore" if broken == "ignore" else models,
        )  # fmt: skip
        truth = true_divergences(mean, deviation)[divergence]
        hits += found.confidence_interval[0] <= truth <= found.confidence_interval[1]
        bias += (found.estimate - truth) / found.standard_error
    return hits / n_repeats, bias / n_repeats


def _row_model(rng: np.random.Generator) -> Any:
    sign = float(rng.choice([-1.0, 1.0]))
    return mr.StepMissingness([sign], rng.uniform(-0.5, 0.5), rng.uniform(0.2, 0.7))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tests", type=int, default=1000)
    parser.add_argument("--intervals", type=int, default=300)
    parser.add_argument(
        "--missing", nargs="*", default=["nothing", "alike", "differently", "lopsided"]
    )
    given = parser.parse_args()
    warnings.simplefilter("ignore", WeightConcentrationWarning)
    warnings.simplefilter("ignore", SmallSampleWarning)
    print("| missing | laws | test | rejects at 5% | at 10% |\n|---|---|---|---|---|")
    for missing in given.missing:
        for change in (0.0, 0.4):
            found = p_values(0, given.tests, missing, change)
            test = "permutation" if missing in ("nothing", "alike") else "bootstrap"
            law = "differ" if change else "are one"
            shares = " | ".join(f"{(found <= level).mean():.1%}" for level in LEVELS)
            print(f"| {missing} | {law} | {test} | {shares} |", flush=True)
    for broken in ("permutation", "ignore") if "lopsided" in given.missing else ():
        found = p_values(0, given.tests, "lopsided", broken=broken)
        shares = " | ".join(f"{(found <= level).mean():.1%}" for level in LEVELS)
        print(f"| lopsided | are one | {broken}, wrongly | {shares} |", flush=True)
    if not given.intervals:
        return
    print(
        "\n| divergence | missing | intervals hold | bias / s.e. |\n|---|---|---|---|"
    )
    for divergence in ("kl", "js", "pearson"):
        for missing_rows in (False, True):
            held, bias = coverage(0, given.intervals, divergence, missing_rows)
            what = "rows of both" if missing_rows else "nothing"
            print(f"| {divergence} | {what} | {held:.1%} | {bias:+.2f} |", flush=True)


if __name__ == "__main__":
    main()
