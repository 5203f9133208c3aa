"""Coverage of the band of a learned φ, and certificates and ratios that rest on it.

python benchmarks/learning.py --write docs/learning_validity.md
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path

import numpy as np
from learning_simulation import (
    CERTIFICATE_REPEATS,
    KINDS,
    LAWS,
    LEVELS,
    PROPORTIONS,
    REVEALED,
    SITUATIONS,
    SLOPES,
    Coverage,
    Distances,
    Outcome,
    Results,
    RowwiseCoverage,
    pooled,
    simulate_all,
    too_low,
)


def as_markdown(results: Results) -> str:
    """The page of the documentation."""
    repeats = len(results.example.error["known"])
    few = len(results.coverage[0].wald)
    error = {
        level: f"{math.sqrt(level * (1 - level) / (9 * few)):.3f}"
        for level in (0.05, 0.1)
    }
    band = BAND.format(repeats=few, at_95=error[0.05], at_90=error[0.1])
    lines = [HEADER.format(repeats=repeats), "## The band", "", band, ""]
    for delta in LEVELS:
        lines += [f"Coverage at {1 - delta:.0%}:", ""]
        lines += coverage_table(results.coverage, delta)
    lines += ["The same at 95%, by the law of the values and the slope of φ:", ""]
    lines += law_table(results.coverage)
    lines += ["Mean width of the 95% band:", ""]
    lines += means_table(results.coverage, lambda each: each.width)
    for k, name in enumerate(("intercept", "slope")):
        lines += [f"Coverage of ± 1.96 standard errors, for the {name}:", ""]
        lines += means_table(results.coverage, lambda each, k=k: each.wald[:, k])
    lines += [ROWS, "", *rowwise_table(results.rowwise)]
    lines += ["## Certificates", "", CERTIFICATES.format(repeats=repeats), ""]
    lines += certificate_table([*results.certificates, results.example])
    lines += ["## Ratios", "", RATIOS.format(repeats=repeats), ""]
    lines += distance_table(results.distances)
    return "\n".join(lines)


def table(head: Sequence[str], rows: Iterator[Sequence[str]]) -> list[str]:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return [*lines, *("| " + " | ".join(row) + " |" for row in rows), ""]


PROPORTION_HEAD = ["looked up", *(f"{p:.0%} missing" for p in PROPORTIONS)]


def coverage_table(coverage: Sequence[Coverage], delta: float) -> list[str]:
    def row(m: int) -> Iterator[str]:
        yield str(m)
        for proportion in PROPORTIONS:
            count, total = pooled(coverage, delta, n_revealed=m, proportion=proportion)
            yield f"{count / total:.3f}"

    return table(PROPORTION_HEAD, (list(row(m)) for m in REVEALED))


def law_table(coverage: Sequence[Coverage]) -> list[str]:
    def row(law: str, slope: float) -> Iterator[str]:
        yield law
        yield f"{slope:g}"
        for m in REVEALED:
            count, total = pooled(
                coverage, LEVELS[0], law=law, slope=slope, n_revealed=m
            )
            yield f"{count / total:.3f}"

    head = ["law", "slope", *(f"{m} looked up" for m in REVEALED)]
    return table(head, (list(row(*each)) for each in product(LAWS, SLOPES)))


def means_table(
    coverage: Sequence[Coverage], measure: Callable[[Coverage], np.ndarray]
) -> list[str]:
    def row(m: int) -> Iterator[str]:
        yield str(m)
        for proportion in PROPORTIONS:
            chosen = [
                measure(each).mean()
                for each in coverage
                if (each.setting.n_revealed, each.setting.proportion) == (m, proportion)
            ]
            yield f"{np.mean(chosen):.3f}"

    return table(PROPORTION_HEAD, (list(row(m)) for m in REVEALED))


def rowwise_table(rowwise: Sequence[RowwiseCoverage]) -> list[str]:
    head = ["features", "looked up", "coverage at 95%"]
    return table(
        head,
        (
            [str(each.n_features), str(each.n_revealed), f"{each.covered.mean():.3f}"]
            for each in rowwise
        ),
    )


def certificate_table(outcomes: Sequence[Outcome]) -> list[str]:
    def row(outcome: Outcome) -> Iterator[str]:
        cell = outcome.cell
        yield SITUATIONS[cell.situation].formula + (", ties" if cell.ties else "")
        yield from (f"{cell.n_rows:,}", str(cell.n_revealed))
        yield from (f"{cell.alpha:g}", f"{cell.delta:g}")
        for kind in KINDS:
            rate = outcome.violations(kind) / len(outcome.error[kind])
            yield f"{outcome.power[kind].mean():.3f} ({rate:.3f})"

    head = ["φ", "n", "looked up", "α", "δ", "φ known", "φ̂ for φ", "φ learned"]
    return table(head, (list(row(outcome)) for outcome in outcomes))


def distance_table(distances: Sequence[Distances]) -> list[str]:
    head = ["φ", "n", "looked up", "φ known", "φ learned", "complete case"]

    def row(each: Distances) -> Iterator[str]:
        yield from (each.phi, f"{each.n_rows:,}", str(each.n_revealed))
        for values in each.by_kind.values():
            error = values.std() / math.sqrt(len(values))
            yield f"{values.mean():.4f} ± {error:.4f}"

    return table(head, (list(row(each)) for each in distances))


HEADER = """# Validity of learned φ

Written by `python benchmarks/learning.py --repeats {repeats} --write
docs/learning_validity.md`; `make validity` runs the same simulations and fails where
coverage or a certificate is off.
Values go missing with a logistic probability φ; m of those missing are looked up by
chance, and `learn_missingness` learns φ from these and from the observed values.
"""
BAND = """The share of tables in which φ lies within its band at all values between the
0.1% and 99.9% quantiles. Each setting has {repeats} repeats, and each figure is a mean
over three laws of the values (normal, exponential, Student's t with 3 degrees of
freedom) and three slopes of the log-odds (−2, 0, 1), with a standard error of about
{at_95} at 95% and
{at_90} at 90%. There are 400 rows, or as
many as make 220 missing values."""
ROWS = """Whole rows, 800 of N(0, I), missing with log-odds −1 + Σx/√d: the band is
round the ellipsoid that holds the region, so it is conservative. It is tested at 500
points of N(0, 2.25 I):"""
CERTIFICATES = """The controlled class is N(0, I) and loses values with probability φ,
the other is N(1.5, 1) along the score. Of n rows of the controlled class half
calibrate, and m of the missing values of each feature among all of them are looked up.
A cell shows the power, and in brackets the share of {repeats} repeats in which the type
I error exceeded α, which is to be at most δ. “φ̂ for φ” takes the estimate at its word:
where n is large and m small, it breaks the promise. “φ learned” is what
`NeymanPearsonClassifier` does with a learned model."""
RATIOS = """The mean of ‖θ̂ − θ‖² over {repeats} repeats, with its standard error, on
the paper's five-dimensional example: p₁ = N(0, I), p₀ = N(0.1·1, I), where class 1
loses whole rows. “logistic” is σ(−0.5 + 0.5 Σx); “step”, 0.5 where Σx > 0, is the
paper's, of which a logistic φ is an approximation only."""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", type=Path, help="the page to write")
    parser.add_argument("--repeats", type=int, default=CERTIFICATE_REPEATS)
    parser.add_argument("--jobs", type=int, default=-1)
    options = parser.parse_args(arguments)
    start = time.perf_counter()
    results = simulate_all(options.repeats, options.jobs)
    page = as_markdown(results)
    if options.write:
        before = options.write.read_text(encoding="utf-8")
        # What benchmarks/learning_table.py measured stays.
        _, head, rest = before.partition("\n## With no look-up")
        options.write.write_text(f"{page}{head}{rest}", encoding="utf-8")
    else:
        print(page)
    for line in too_low(results.coverage):
        print(line)
    print(f"Done in {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
