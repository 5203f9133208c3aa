"""The figures behind "Which method should I use?".

    missratio reproduce --beyond --variant corrected --out reproduction/corrected
    python benchmarks/methods.py reproduction/corrected --write docs/choosing.md

reads what the first command, or several, wrote, puts tables into their place on the
page, and writes all figures to ``docs/evidence/methods.csv``, with the pictures.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Iterator, Sequence
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
    M_KLIEP,
    NAN_TREES,
    PRODUCTS,
    TILTED,
    TRUE_RATIO,
    WEIGHTED_TREES,
    fits_of,
    known,
    learned,
    type_one,
)
from missratio.reproduce.results import MeanCurve, make_curve

DOCS = Path(__file__).parents[1] / "docs"
PICTURES = Path("_static") / "choosing"
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
ROWWISE = ("np_power", "diff_variance", "misspecification")
SHOWN = ("ctg_vary_alpha", "weather_vary_alpha")


ALPHAS = (0.05, 0.1, 0.2, 0.3)
SHARES = (0.1, 0.5, 0.9)
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
    text = "\n\n".join(place(results))
    print(text)
    if options.write:
        pages.put(options.write, "methods", text)
        pages.write_csv("methods.csv", HEAD, figures(results))
        (DOCS / PICTURES).mkdir(parents=True, exist_ok=True)
        for name in SHOWN:
            for folder in options.folders:
                if (picture := folder / f"{name}_beyond.png").exists():
                    shutil.copy(picture, DOCS / PICTURES / picture.name)


def place(results: dict[str, Result]) -> Iterator[str]:
    """Tables for the page, of what there is."""
    for name, title in (("ctg", "CTG"), ("weather", "Weather")):
        if result := results.get(f"{name}_vary_alpha"):
            picture = f"{PICTURES.as_posix()}/{name}_vary_alpha_beyond.png"
            yield f"![{result.experiment.title}]({picture})"
            n_runs = result.curves[known(JOINT)].runs[0]
            yield f"{title}: power by α, over {n_runs} runs (more for the paper's):"
            yield table(result, POWERS, ALPHAS)
        if result := results.get(f"{name}_vary_missing"):
            yield f"{title}: power at α = 0.1 by the share that is missing:"
            yield table(result, POWERS, SHARES)
    if result := results.get("naive_bayes_large"):
        yield "Correlated columns, n = 1000: power by the correlation:"
        yield table(result, (M_KLIEP, JOINT, TRUE_RATIO), (0.0, 0.5, 0.9))
    methods = (M_KLIEP, PRODUCTS, WEIGHTED_TREES, TRUE_RATIO)
    for name in ROWWISE:
        if name in results and PRODUCTS in results[name].values:
            x = results[name].experiment.x
            yield f"Whole rows missing, `{name}`:"
            yield table(results[name], methods, (x[0], x[len(x) // 2], x[-1]))


def table(result: Result, methods: Sequence[str], points: Sequence[float]) -> str:
    """A row for each method, a column for each point."""
    places = [result.experiment.x.index(point) for point in points]
    body = [
        [fits_of(method), *(cell(result.curves[method], i) for i in places)]
        for method in methods
        if method in result.curves
    ]
    head = [result.experiment.x_name, *(f"{point:g}" for point in points)]
    return pages.table(head, body)


def cell(curve: MeanCurve, place: int) -> str:
    """A mean and half of its interval."""
    mean, high = curve.mean[place], curve.hi[place]
    if isnan(mean):
        return "–"
    return f"{mean:.3f}" if isnan(high) else f"{mean:.3f} ± {high - mean:.3f}"


def figures(results: dict[str, Result]) -> Iterator[list[object]]:
    """All figures: powers, errors of type I, and differences within runs."""
    tested = (KNOWN, *(kind(name) for name in LEARNERS for kind in (known, learned)))
    errors = {type_one(method): method for method in tested}
    for experiment, result in results.items():
        curves = [
            ("type I error", errors[name], curve)
            if name in errors
            else ("power", name, curve)
            for name, curve in result.curves.items()
        ]
        for each in LEARNERS:
            curves += difference(result, learned(each), known(each), None)
        for other in (IMPUTED_TREES, NAN_TREES, KNOWN):
            curves += difference(result, known(TILTED), other, LEAD)
        for quantity, method, curve in curves:
            for place, x in enumerate(result.experiment.x):
                if not isnan(mean := curve.mean[place]):
                    high = curve.hi[place]
                    half = "" if isnan(high) else f"{high - mean:.3f}"
                    at = [result.experiment.x_name, f"{x:g}", fits_of(method)]
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
