"""How often each threshold rule breaks its promise, and the power it leaves.

The controlled class's score is N(0, 1) and the other's N(shift, 1), so that the type I
error and the power of every threshold are known exactly; with ties both are rounded to
a grid. A setting is drawn at random from a seed: the missingness function, its size and
direction, how many columns lose values, the number of calibration rows, α, δ and the
width of ties. In each of its repeats all rules see the same rows, the same training
rows and the same random numbers.

    python benchmarks/validity.py --write docs/validity.md
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pages
from joblib import Parallel, delayed
from scipy import special
from scipy.stats import binomtest

import missratio as mr
from missratio.threshold import RULES, CalibrationSample, Rule, Selection, make_rule
from missratio.weights import complete_row_weights

SEED, SETTINGS, REPEATS = 2024, 60, 2000
SHIFT = 1.5
KINDS = ("step", "logistic", "bump", "constant", "per feature", "no bound", "none")
UNBOUNDED = ("flipped-betting", "tuned-betting", "auto")


@dataclass(frozen=True)
class Setting:
    """How rows go missing, how many there are, and what is promised.

    Parameters
    ----------
    kind : str
        The form of φ.
    most : float
        ‖φ‖∞, where it is below 1.
    slope : float
        Along the score: positive where high scores go missing most.
    columns : int
        How many columns lose values, for "per feature", of as many and two more.
    n_rows : int
    alpha, delta : float
    grid : float
        The width of ties; 0 for continuous scores.
    """

    kind: str
    most: float
    slope: float
    columns: int
    n_rows: int
    alpha: float
    delta: float
    grid: float

    @classmethod
    def draw(cls, seed: int) -> Setting:
        """Any setting, from a seed; every fourth has few rows or heavy weights."""
        rng = np.random.default_rng([SEED, seed])
        heavy, tiny = rng.uniform() < 0.25, rng.uniform() < 0.25
        size = (math.log(15), math.log(60)) if tiny else (math.log(60), math.log(6000))
        delta = float(rng.choice([0.01, 0.05, 0.1, 0.2]))
        return cls(
            kind=str(rng.choice(KINDS)),
            most=float(
                np.round(rng.uniform(0.9, 0.99) if heavy else rng.uniform(0.2, 0.9), 2)
            ),
            slope=float(np.round(rng.choice([-1, 1]) * rng.uniform(0.5, 4.0), 1)),
            columns=int(rng.integers(1, 4)),
            n_rows=round(math.exp(rng.uniform(*size))),
            alpha=float(np.round(rng.uniform(0.02, 0.3), 2)),
            delta=delta,
            grid=float(rng.choice([0.0, 0.0, 0.2, 0.5, 1.0])),
        )

    @cached_property
    def model(self) -> mr.missingness.Missingness | None:
        most, slope = self.most, self.slope
        if self.kind == "none":
            return None
        if self.kind == "per feature":
            lossy = np.arange(self.width) < self.columns
            each = 1.0 - (1.0 - most) ** (1.0 / self.columns)
            return mr.FunctionMissingness(
                lambda X: each * lossy * special.expit(slope * X),
                rowwise=False,
                maximum=each * lossy,
            )
        functions = {
            "step": lambda z: most * (slope * z > 0),
            "logistic": lambda z: most * special.expit(slope * z),
            "bump": lambda z: most * np.exp(-slope * slope * (z - 1.0) ** 2),
            "constant": lambda z: np.full(len(z), most),
            "no bound": lambda z: special.expit(slope / 2 * z - 1.0),
        }
        function = functions[self.kind]
        maximum = None if self.kind == "no bound" else most
        return mr.FunctionMissingness(lambda X: function(X[:, 0]), maximum=maximum)

    @property
    def width(self) -> int:
        return self.columns + 2 if self.kind == "per feature" else 1

    @property
    def rules(self) -> tuple[str, ...]:
        if self.model is None:
            return tuple(RULES)
        if self.kind == "no bound":
            return UNBOUNDED
        return tuple(name for name in RULES if name != "binomial")

    @property
    def bound(self) -> float | None:
        return None if self.model is None else self.model.weight_bound(self.width)

    def draw_samples(
        self, n_samples: int, rng: np.random.Generator
    ) -> list[CalibrationSample]:
        """Calibration rows: drawn, scored, lost and weighted."""
        rows = rng.normal(size=(n_samples * self.n_rows, self.width))
        scores = rows.sum(axis=1) / math.sqrt(self.width)
        if self.grid:
            scores = np.rint(scores / self.grid) * self.grid
        scores = scores.reshape(n_samples, self.n_rows)
        if self.model is None:
            return [CalibrationSample.build(own) for own in scores]
        weights = complete_row_weights(mr.corrupt(rows, self.model, rng), self.model)
        return [
            CalibrationSample.build(own, weight, self.bound, random_state=rng)
            for own, weight in zip(scores, weights.reshape(scores.shape), strict=True)
        ]

    def error(self, thresholds: np.ndarray) -> np.ndarray:
        """P(h(Z⁰) > C): with ties a score of C reaches up to half a step more."""
        return special.ndtr(-(thresholds + self.grid / 2))

    def power(self, thresholds: np.ndarray) -> np.ndarray:
        return special.ndtr(SHIFT - (thresholds + self.grid / 2))

    @property
    def oracle_power(self) -> float:
        threshold = -special.ndtri(self.alpha)
        if self.grid:
            steps = math.ceil((threshold - self.grid / 2) / self.grid - 1e-9)
            threshold = steps * self.grid
        return float(self.power(np.array(threshold)))

    def __str__(self) -> str:
        shape = {
            "none": "nothing lost",
            "constant": f"φ = {self.most:g}",
            "step": f"φ = {self.most:g}·1{{{'z > 0' if self.slope > 0 else 'z < 0'}}}",
            "logistic": f"φ = {self.most:g}·σ({self.slope:g}z)",
            "bump": f"φ = {self.most:g}·exp(−{self.slope**2:.2g}(z − 1)²)",
            "no bound": f"φ = σ({self.slope / 2:g}z − 1)",
            "per feature": f"{self.columns} of {self.width} columns, "
            f"∏(1 − φⱼ) ≥ {1 - self.most:.2g}, slope {self.slope:g}",
        }[self.kind]
        return shape.replace("-", "−")


def all_settings(n_settings: int = SETTINGS) -> list[Setting]:
    return [Setting.draw(seed) for seed in range(n_settings)]


# Where the paper's rule has no power: it is measured more precisely than the others.
EXAMPLE = Setting("step", 0.8, 1.0, 1, 300, 0.1, 0.05, 0.0)
PRECISE_REPEATS = 20_000


@dataclass(frozen=True)
class Outcome:
    """Errors and powers of every rule in the repeats of a setting."""

    setting: Setting
    error: dict[str, np.ndarray]
    power: dict[str, np.ndarray]
    chosen: dict[str, int]

    def violations(self, rule: str) -> int:
        return int((self.error[rule] > self.setting.alpha * (1 + 1e-9)).sum())

    def violation_p_value(self, rule: str) -> float:
        """Of so many violations or more, were the rate δ."""
        test = binomtest(
            self.violations(rule), len(self.error[rule]), self.setting.delta, "greater"
        )
        return float(test.pvalue)

    def mean_power(self, rule: str) -> tuple[float, float]:
        """The expected power, and its standard error."""
        values = self.power[rule]
        return float(values.mean()), float(values.std(ddof=1) / math.sqrt(len(values)))

    def best_rule(self) -> str:
        others = [rule for rule in self.power if rule != "auto"]
        return max(others, key=lambda rule: self.power[rule].mean())

    def auto_gap(self) -> tuple[float, float]:
        """How far auto's power is below the best rule's, and its standard error."""
        difference = self.power[self.best_rule()] - self.power["auto"]
        spread = difference.std(ddof=1) / math.sqrt(len(difference))
        return float(difference.mean()), float(spread)


def simulate(
    setting: Setting,
    repeats: int = REPEATS,
    rules: Sequence[str] | None = None,
    extra: dict[str, Rule] | None = None,
) -> Outcome:
    """Run repeats of a setting under rules by name, and under others given."""
    names = list(rules or setting.rules)
    thresholds = {name: np.full(repeats, np.inf) for name in [*names, *(extra or {})]}
    chosen: dict[str, int] = {}
    complete = setting.model is None
    for i, (sample, training) in enumerate(draws(setting, repeats)):
        made = {
            name: make_rule(name, training=training, complete=complete)
            for name in names
        }
        for name, rule in (made | (extra or {})).items():
            if name == "tuned-betting" and not training.n_observed:
                continue
            selection = select(rule, sample, setting)
            if selection.threshold is not None:
                thresholds[name][i] = selection.threshold
            if name == "auto":
                chosen[selection.rule] = chosen.get(selection.rule, 0) + 1
    error = {name: setting.error(values) for name, values in thresholds.items()}
    power = {name: setting.power(values) for name, values in thresholds.items()}
    return Outcome(setting, error, power, chosen)


def draws(
    setting: Setting, repeats: int
) -> Iterator[tuple[CalibrationSample, CalibrationSample]]:
    """Calibration rows, and training rows."""
    rng = np.random.default_rng([SEED, setting.n_rows, round(1000 * setting.alpha)])
    block = max(1, 20_000 // setting.n_rows)
    for start in range(0, repeats, block):
        size = min(block, repeats - start)
        samples = setting.draw_samples(2 * size, rng)
        yield from zip(samples[:size], samples[size:], strict=True)


def select(rule: Rule, sample: CalibrationSample, setting: Setting) -> Selection:
    if sample.n_observed == 0:
        return Selection(None, rule.name, setting.alpha)
    return rule.select(sample, setting.alpha, setting.delta)


def simulate_all(
    settings: Sequence[Setting], repeats: int = REPEATS, n_jobs: int = -1
) -> list[Outcome]:
    """The large settings first, so that no core is left waiting at the end."""
    order = sorted(range(len(settings)), key=lambda i: -settings[i].n_rows)
    done = Parallel(n_jobs)(delayed(simulate)(settings[i], repeats) for i in order)
    return [done[order.index(i)] for i in range(len(settings))]


def simulate_example() -> Outcome:
    return simulate(EXAMPLE, PRECISE_REPEATS, ("paper", "thinning", "auto"))


def broken_promises(outcomes: Sequence[Outcome], level: float = 0.01) -> list[str]:
    """Rules that violate α more often than δ, tested in all settings at once."""
    tests = [(outcome, rule) for outcome in outcomes for rule in outcome.error]
    return [
        f"{rule} in {in_words(outcome.setting)}: {outcome.violations(rule)} of "
        f"{len(outcome.error[rule])}"
        for outcome, rule in tests
        if outcome.violation_p_value(rule) < level / len(tests)
    ]


def behind(outcomes: Sequence[Outcome], allowed: float = 0.02) -> list[str]:
    """Settings in which auto's power is below the best rule's by more than allowed."""
    found = []
    for outcome in outcomes:
        gap, spread = outcome.auto_gap()
        if gap > allowed + 3 * spread:
            found.append(
                f"{in_words(outcome.setting)}: {gap:.3f} ± {spread:.3f} behind "
                f"{outcome.best_rule()}; it chose {outcome.chosen}"
            )
    return found


def as_markdown(outcomes: Sequence[Outcome], example: Outcome | None) -> str:
    """What stands on the page about the settings."""
    n_tests = sum(len(outcome.error) for outcome in outcomes)
    head = (
        f"{n_tests:,} violation rates in {len(outcomes)} settings were tested, each by "
        "the exact binomial test, at a level of 0.01 for all of them together:\n"
    )
    return "\n".join([head, *summary(outcomes, example)])


def summary(outcomes: Sequence[Outcome], example: Outcome | None) -> Iterator[str]:
    failed = broken_promises(outcomes)
    p_value, rule, i = min(
        (outcome.violation_p_value(rule), rule, i)
        for i, outcome in enumerate(outcomes)
        for rule in outcome.error
    )
    yield (
        "- Rules that break their promise significantly: "
        f"{'; '.join(failed) if failed else 'none'}. The smallest p-value is "
        f"{p_value:.2g}: {rule}, {outcomes[i].violations(rule)} violations in "
        f"{in_words(outcomes[i].setting)}."
    )
    worst = max(outcomes, key=lambda outcome: outcome.auto_gap()[0])
    gap, spread = worst.auto_gap()
    yield (
        f"- `auto` is furthest behind the best rule of a setting, by {gap:.3f} ± "
        f"{spread:.3f}, in {in_words(worst.setting)} ({worst.best_rule()})."
    )
    if example is not None:
        (paper, _), (auto, error) = map(example.mean_power, ("paper", "auto"))
        yield (
            f"- Over {PRECISE_REPEATS:,} repeats of {in_words(EXAMPLE)}: power "
            f"{auto:.4f} ± {error:.4f} with `auto` and {paper:.3f} with the paper's "
            f"rule; the oracle has {EXAMPLE.oracle_power:.3f}."
        )


def in_words(setting: Setting) -> str:
    ties = f", ties {setting.grid:g} apart" if setting.grid else ""
    return f"“{setting}”, n = {setting.n_rows:,}, α = {setting.alpha:g}{ties}"


HEAD = ("setting", "n", "alpha", "delta", "ties", "oracle", "rule", "power", "violated")


def rows(outcomes: Sequence[Outcome]) -> Iterator[list[object]]:
    """Expected power and violation rate by setting and rule; no threshold has none."""
    for outcome in sorted(outcomes, key=lambda o: (o.setting.kind, o.setting.n_rows)):
        setting = outcome.setting
        levels = [f"{level:g}" for level in (setting.alpha, setting.delta)]
        ties = f"{setting.grid:g}" if setting.grid else ""
        given = [str(setting), setting.n_rows, *levels, ties]
        for rule in RULES:
            if rule in outcome.error:
                rate = outcome.violations(rule) / len(outcome.error[rule])
                power = outcome.power[rule].mean()
                figures = [f"{setting.oracle_power:.3f}", rule]
                yield [*given, *figures, f"{power:.3f}", f"{rate:.3f}"]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", type=Path, help="the page to write")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--settings", type=int, default=SETTINGS)
    parser.add_argument("--jobs", type=int, default=-1)
    options = parser.parse_args(arguments)
    start = time.perf_counter()
    outcomes = simulate_all(
        all_settings(options.settings), options.repeats, options.jobs
    )
    print(f"{time.perf_counter() - start:.0f} s")
    page = as_markdown(outcomes, simulate_example() if options.write else None)
    for line in [*broken_promises(outcomes), *behind(outcomes)]:
        print(line)
    print(page)
    if options.write:
        pages.put(options.write, "rules", page)
        pages.write_csv("rules.csv", HEAD, rows(outcomes))


if __name__ == "__main__":
    # Under its own name, by which worker processes find it.
    import validity

    validity.main()
