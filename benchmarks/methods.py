"""The figures behind "Which method should I use?".

    missratio reproduce --beyond --variant corrected --out reproduction/corrected
    python benchmarks/methods.py reproduction/corrected --write docs/choosing.md

reads what the first command, or several, wrote, puts a table into its place on the
page, and writes all figures to ``docs/evidence/methods.csv``.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from math import isnan
from pathlib import Path

import pages

from missratio.reproduce import Result
from missratio.reproduce.methods import (
    FULL_DATA,
    FULL_TREES,
    IMPUTATION,
    IMPUTED_TREES,
    JOINT,
    KNOWN,
    NAN_TREES,
    PRODUCTS,
    TILTED,
    known,
    learned,
)
from missratio.reproduce.results import MeanCurve, make_curve

LEARNERS = (JOINT, PRODUCTS, TILTED)
POWERS = (
    KNOWN,
    *(known(name) for name in LEARNERS),
    IMPUTATION,
    IMPUTED_TREES,
    NAN_TREES,
    FULL_DATA,
    FULL_TREES,
)
COLUMNS = (
    ("ctg_vary_alpha", 0.1, "CTG"),
    ("ctg_vary_missing", 0.9, "CTG, 90% missing"),
    ("weather_vary_alpha", 0.1, "weather"),
)
HEAD = ("experiment", "quantity", "by", "at", "method", "mean", "half width")
LEAD = "lead of tilted imputation and trees"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", type=Path, nargs="+", help="what commands wrote")
    parser.add_argument("--write", type=Path, help="the page to put tables into")
    options = parser.parse_args()
    results = {}
    for folder in options.folders:
        results |= pages.load_results(folder)
    text = table(results)
    print(text)
    if options.write:
        pages.put(options.write, "methods", text)
        pages.write_csv("methods.csv", HEAD, figures(results))


def table(results: dict[str, Result]) -> str:
    """Powers at an error of 0.1, a row for each method; of what there is."""
    places = [
        (results[name], results[name].experiment.x.index(x), title)
        for name, x, title in COLUMNS
        if name in results
    ]
    body = [
        [
            method,
            *(
                cell(result.curves[method], place) if method in result.curves else "–"
                for result, place, _ in places
            ),
        ]
        for method in POWERS
        if any(method in result.curves for result, _, _ in places)
    ]
    head = ["method, and whether φ is known", *(title for _, _, title in places)]
    return pages.table(head, body)


def cell(curve: MeanCurve, place: int) -> str:
    """A mean and half of its interval."""
    mean, high = curve.mean[place], curve.hi[place]
    if isnan(mean):
        return "–"
    return f"{mean:.3f}" if isnan(high) else f"{mean:.3f} ± {high - mean:.3f}"


def figures(results: dict[str, Result]) -> Iterator[list[object]]:
    """All figures: powers, and differences within runs."""
    for experiment, result in results.items():
        curves = [("power", name, curve) for name, curve in result.curves.items()]
        for each in LEARNERS:
            curves += difference(result, learned(each), known(each), None)
        for other in (IMPUTED_TREES, NAN_TREES, KNOWN):
            curves += difference(result, known(TILTED), other, LEAD)
        for quantity, method, curve in curves:
            for place, x in enumerate(result.experiment.x):
                if not isnan(mean := curve.mean[place]):
                    high = curve.hi[place]
                    half = "" if isnan(high) else f"{high - mean:.3f}"
                    at = [result.experiment.x_name, f"{x:g}", method]
                    yield [experiment, quantity, *at, f"{mean:.3f}", half]


def difference(
    result: Result, one: str, other: str, lead: str | None
) -> list[tuple[str, str, MeanCurve]]:
    """The mean of one method less another, run by run."""
    if one not in result.values or other not in result.values:
        return []
    n_runs = min(len(result.values[one]), len(result.values[other]))
    gap = result.values[one][:n_runs] - result.values[other][:n_runs]
    curve = make_curve(gap, result.experiment.z)
    return [(lead or "learned minus known", other if lead else one, curve)]


if __name__ == "__main__":
    main()
