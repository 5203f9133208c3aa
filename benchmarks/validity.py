"""How often each threshold rule breaks its promise, and the power it leaves.

The controlled class's score is N(0, 1) and the other's N(shift, 1), so that the type I
error and the power of every threshold are known exactly; with ties both are rounded to
halves. A cell is a missingness function, a number of calibration rows, a pair (α, δ)
and a kind of score; in each of its repeats all rules see the same rows, the same
training rows and the same seed.

    python benchmarks/validity.py --write docs/validity.md
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from scipy.special import expit, ndtr, ndtri
from scipy.stats import binomtest

import missratio as mr
from missratio.missingness import Missingness
from missratio.threshold import CalibrationSample, Rule, Selection, _rules, make_rule
from missratio.weights import complete_row_weights

WEIGHTED = ("paper", "bernstein", "hoeffding-bentkus", "thinning", "betting")
UNBOUNDED = ("flipped-betting", "tuned-betting", "auto")
REPEATS = 2000


@dataclass(frozen=True)
class Situation:
    """How the controlled class loses rows of N(0, I), and how rows are scored."""

    formula: str
    model: Missingness | None
    direction: tuple[float, ...] = (1.0,)
    shift: float = 1.5

    @property
    def rules(self) -> tuple[str, ...]:
        if self.model is None:
            return ("binomial", *WEIGHTED, *UNBOUNDED)
        if self.model.weight_bound(len(self.direction)) is None:
            return UNBOUNDED
        return WEIGHTED + UNBOUNDED

    def draw(
        self, n_samples: int, n_rows: int, rng: np.random.Generator, *, ties: bool
    ) -> list[CalibrationSample]:
        """Calibration rows: drawn, scored, lost and weighted."""
        rows = rng.normal(size=(n_samples * n_rows, len(self.direction)))
        scores = rows @ np.array(self.direction)
        if ties:
            scores = np.rint(2.0 * scores) / 2.0
        scores = scores.reshape(n_samples, n_rows)
        if self.model is None:
            return [CalibrationSample.build(sample) for sample in scores]
        weights = complete_row_weights(mr.corrupt(rows, self.model, rng), self.model)
        weights = weights.reshape(n_samples, n_rows)
        bound = self.model.weight_bound(len(self.direction))
        return [
            CalibrationSample.build(sample, weight, bound)
            for sample, weight in zip(scores, weights, strict=True)
        ]


def of_rows(
    function: Callable[[np.ndarray], np.ndarray], maximum: float | None
) -> Missingness:
    return mr.FunctionMissingness(lambda X: function(X[:, 0]), maximum=maximum)


SITUATIONS = {
    "step up": Situation("0.8·1{z > 0}", of_rows(lambda z: 0.8 * (z > 0), 0.8)),
    "step down": Situation("0.8·1{z < 0}", of_rows(lambda z: 0.8 * (z < 0), 0.8)),
    "logistic up": Situation("0.8·σ(2z)", of_rows(lambda z: 0.8 * expit(2 * z), 0.8)),
    "logistic down": Situation(
        "0.8·σ(−2(z + 1))", of_rows(lambda z: 0.8 * expit(-2 * (z + 1)), 0.8)
    ),
    "close to 1 up": Situation(
        "0.98·σ(2z)", of_rows(lambda z: 0.98 * expit(2 * z), 0.98)
    ),
    "close to 1 down": Situation(
        "0.98·σ(−2z)", of_rows(lambda z: 0.98 * expit(-2 * z), 0.98)
    ),
    "no bound": Situation("σ(z − 1)", of_rows(lambda z: expit(z - 1), None)),
    "constant": Situation("0.5", of_rows(lambda z: np.full(len(z), 0.5), 0.5)),
    "none": Situation("0", None),
    "another feature": Situation(
        "0.8·1{z₂ > 0}, score (z₁ + 0.3z₂)/√1.09, N(1.44, 1) in the other class",
        mr.FunctionMissingness(lambda X: 0.8 * (X[:, 1] > 0), maximum=0.8),
        (1 / math.sqrt(1.09), 0.3 / math.sqrt(1.09)),
        1.5 / math.sqrt(1.09),
    ),
    "per feature": Situation(
        "φⱼ = 0.6·σ(2zⱼ), j = 1, 2, score (z₁ + z₂)/√2",
        mr.FunctionMissingness(
            lambda X: 0.6 * expit(2 * X), rowwise=False, maximum=0.6
        ),
        (math.sqrt(0.5), math.sqrt(0.5)),
    ),
}
LEVELS = ((0.01, 0.01), (0.1, 0.05), (0.2, 0.1))
PRECISE_REPEATS = 20_000


@dataclass(frozen=True)
class Cell:
    """One setting of the simulation."""

    situation: str
    n_rows: int
    alpha: float
    delta: float
    ties: bool

    @property
    def seed(self) -> list[int]:
        return [
            list(SITUATIONS).index(self.situation),
            self.n_rows,
            round(1000 * self.alpha),
            self.ties,
        ]

    def error(self, thresholds: np.ndarray) -> np.ndarray:
        """P(h(Z⁰) > C): with ties a score of C itself reaches up to C + 1/4."""
        return ndtr(-(thresholds + 0.25 * self.ties))

    def power(self, thresholds: np.ndarray) -> np.ndarray:
        shift = SITUATIONS[self.situation].shift
        return ndtr(shift - (thresholds + 0.25 * self.ties))

    @property
    def oracle_power(self) -> float:
        threshold = -ndtri(self.alpha)
        if self.ties:
            threshold = math.ceil(2 * (threshold - 0.25)) / 2
        return float(self.power(np.array(threshold)))


def all_cells() -> list[Cell]:
    """Every cell of the table; the largest n at one pair of levels only."""
    cells = []
    for name in SITUATIONS:
        for alpha, delta in LEVELS:
            sizes = [50, 300, 1000, 5000]
            if alpha == 0.1:
                sizes.append(20_000)
            cells += [Cell(name, n, alpha, delta, False) for n in sizes]
            cells += [Cell(name, n, alpha, delta, True) for n in (300, 5000)]
    return cells


# Where the paper's rule has no power: it is measured more precisely than the others.
EXAMPLE = Cell("step up", 300, 0.1, 0.05, ties=False)


@dataclass(frozen=True)
class Outcome:
    """Errors and powers of every rule in the repeats of a cell."""

    cell: Cell
    error: dict[str, np.ndarray]
    power: dict[str, np.ndarray]
    chosen: dict[str, int]

    def violations(self, rule: str) -> int:
        return int((self.error[rule] > self.cell.alpha * (1 + 1e-9)).sum())

    def violation_p_value(self, rule: str) -> float:
        """Of so many violations or more, were the rate δ."""
        test = binomtest(
            self.violations(rule), len(self.error[rule]), self.cell.delta, "greater"
        )
        return float(test.pvalue)

    def mean_power(self, rule: str) -> tuple[float, float]:
        """The expected power, and its standard error."""
        values = self.power[rule]
        spread = values.std(ddof=1) / math.sqrt(len(values))
        return float(values.mean()), float(spread)

    def best_rule(self) -> str:
        others = [rule for rule in self.power if rule != "auto"]
        return max(others, key=lambda rule: self.power[rule].mean())

    def auto_gap(self) -> tuple[float, float]:
        """How far auto's power is below the best rule's, and its standard error."""
        difference = self.power[self.best_rule()] - self.power["auto"]
        spread = difference.std(ddof=1) / math.sqrt(len(difference))
        return float(difference.mean()), float(spread)


def simulate(
    cell: Cell,
    repeats: int = REPEATS,
    rules: Sequence[str] | None = None,
    extra: dict[str, Rule] | None = None,
) -> Outcome:
    """Run repeats of a cell under rules by name, and under others given."""
    remember_pure_functions()
    situation = SITUATIONS[cell.situation]
    names = list(rules or situation.rules)
    thresholds = {name: np.full(repeats, np.inf) for name in [*names, *(extra or {})]}
    chosen: dict[str, int] = {}
    for i, (sample, training, seed) in enumerate(draws(cell, repeats)):
        complete = situation.model is None
        made = {
            name: make_rule(name, training=training, complete=complete)
            for name in names
        }
        for name, rule in (made | (extra or {})).items():
            selection = select(rule, sample, cell, np.random.default_rng(seed))
            if selection.threshold is not None:
                thresholds[name][i] = selection.threshold
            if name == "auto":
                chosen[selection.rule] = chosen.get(selection.rule, 0) + 1
    error = {name: cell.error(values) for name, values in thresholds.items()}
    power = {name: cell.power(values) for name, values in thresholds.items()}
    return Outcome(cell, error, power, chosen)


def draws(
    cell: Cell, repeats: int
) -> Iterator[tuple[CalibrationSample, CalibrationSample, int]]:
    """Calibration rows, training rows, and a seed for rules that draw."""
    situation = SITUATIONS[cell.situation]
    rng = np.random.default_rng(cell.seed)
    block = max(1, 20_000 // cell.n_rows)
    for start in range(0, repeats, block):
        size = min(block, repeats - start)
        samples = situation.draw(2 * size, cell.n_rows, rng, ties=cell.ties)
        seeds = rng.integers(2**63, size=size).tolist()
        yield from zip(samples[:size], samples[size:], seeds, strict=True)


def select(
    rule: Rule, sample: CalibrationSample, cell: Cell, rng: np.random.Generator
) -> Selection:
    if sample.n_observed == 0:
        return Selection(None, rule.name, cell.alpha, 0)
    return rule.select(sample, cell.alpha, cell.delta, rng)


@cache
def remember_pure_functions() -> None:
    """Binomial quantiles are asked for again and again with the same arguments."""
    for name, value in list(vars(_rules).items()):
        if name.startswith(("binomial_", "expected_")):
            setattr(_rules, name, cache(value))


def simulate_all(
    cells: Sequence[Cell], repeats: int = REPEATS, n_jobs: int = -1
) -> list[Outcome]:
    """The large cells first, so that no core is left waiting at the end."""
    order = sorted(cells, key=lambda cell: -cell.n_rows)
    outcomes = Parallel(n_jobs)(delayed(simulate)(cell, repeats) for cell in order)
    by_cell = {outcome.cell: outcome for outcome in outcomes}
    return [by_cell[cell] for cell in cells]


def simulate_example() -> Outcome:
    return simulate(EXAMPLE, PRECISE_REPEATS, ("paper", "thinning", "auto"))


def broken_promises(outcomes: Sequence[Outcome], level: float = 0.01) -> list[str]:
    """Rules that violate α more often than δ, tested in all cells at once."""
    tests = [(outcome, rule) for outcome in outcomes for rule in outcome.error]
    return [
        f"{rule} in {outcome.cell}: {outcome.violations(rule)} of "
        f"{len(outcome.error[rule])}"
        for outcome, rule in tests
        if outcome.violation_p_value(rule) < level / len(tests)
    ]


def behind(outcomes: Sequence[Outcome], allowed: float = 0.02) -> list[str]:
    """Cells in which auto's power is below the best rule's by more than allowed."""
    found = []
    for outcome in outcomes:
        gap, spread = outcome.auto_gap()
        if gap > allowed + 3 * spread:
            found.append(
                f"{outcome.cell}: {gap:.3f} ± {spread:.3f} behind "
                f"{outcome.best_rule()}; it chose {outcome.chosen}"
            )
    return found


def as_markdown(outcomes: Sequence[Outcome], example: Outcome | None) -> str:
    """The page of the documentation."""
    repeats = len(outcomes[0].power["auto"])
    n_tests = sum(len(outcome.error) for outcome in outcomes)
    lines = [HEADER.format(repeats=repeats, n_tests=n_tests, n_cells=len(outcomes))]
    lines += [*summary(outcomes, example), ""]
    for name, situation in SITUATIONS.items():
        chosen = [outcome for outcome in outcomes if outcome.cell.situation == name]
        if chosen:
            lines += [f"## {name.capitalize()}", "", f"φ = {situation.formula}", ""]
            lines += table(chosen, situation.rules)
    return "\n".join(lines)


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
        f"{in_words(outcomes[i].cell)}."
    )
    worst = max(outcomes, key=lambda outcome: outcome.auto_gap()[0])
    gap, spread = worst.auto_gap()
    yield (
        f"- `auto` is furthest behind the best rule of a setting, by {gap:.3f} ± "
        f"{spread:.3f}, in {in_words(worst.cell)} ({worst.best_rule()})."
    )
    if example is not None:
        (paper, _), (auto, error) = map(example.mean_power, ("paper", "auto"))
        yield (
            f"- Over {PRECISE_REPEATS:,} repeats of {in_words(EXAMPLE)}: power "
            f"{auto:.4f} ± {error:.4f} with `auto` and {paper:.3f} with the paper's "
            f"rule; the oracle has {EXAMPLE.oracle_power:.3f}."
        )


def in_words(cell: Cell) -> str:
    ties = ", ties" if cell.ties else ""
    return f"“{cell.situation}”, n = {cell.n_rows:,}, α = {cell.alpha:g}{ties}"


def table(outcomes: Sequence[Outcome], rules: Sequence[str]) -> list[str]:
    head = ["α", "δ", "n", "scores", "oracle", *rules]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for outcome in outcomes:
        cell = outcome.cell
        row = [f"{cell.alpha:g}", f"{cell.delta:g}", f"{cell.n_rows:,}"]
        row += ["ties" if cell.ties else "continuous", f"{cell.oracle_power:.3f}"]
        for rule in rules:
            rate = outcome.violations(rule) / len(outcome.error[rule])
            row.append(f"{outcome.power[rule].mean():.3f} ({rate:.3f})")
        lines.append("| " + " | ".join(row) + " |")
    return [*lines, ""]


HEADER = """# Validity of the threshold rules

Written by `python benchmarks/validity.py --write docs/validity.md`; `make validity`
runs the same simulation and fails where a rule breaks its promise.

The score of the controlled class is N(0, 1), that of the other class N(1.5, 1), so that
the type I error and the power of each threshold are known exactly; with ties both are
rounded to halves. Rows of the controlled class go missing with probability φ(z). In
each of {repeats:,} repeats all rules see the same n calibration rows, of which some are
missing, and `tuned-betting` and `auto` as many training rows. A cell shows the expected
power, and in brackets the share of repeats in which the type I error exceeded α, which
is to be at most δ. No threshold counts as power 0. The oracle knows the law.

{n_tests:,} violation rates in {n_cells} settings were tested, each by the exact
binomial test, at a level of 0.01 for all of them together:
"""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", type=Path, help="the page to write")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--situations", nargs="*", choices=list(SITUATIONS))
    options = parser.parse_args(arguments)
    cells = [
        cell
        for cell in all_cells()
        if not options.situations or cell.situation in options.situations
    ]
    start = time.perf_counter()
    outcomes = simulate_all(cells, options.repeats, options.jobs)
    example = None if options.situations else simulate_example()
    page = as_markdown(outcomes, example)
    if options.write:
        options.write.write_text(page, encoding="utf-8")
    else:
        print(page)
    for line in [*broken_promises(outcomes), *behind(outcomes)]:
        print(line)
    print(f"{len(cells)} settings in {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    # Under its own name, by which worker processes find it.
    import validity

    validity.main()
