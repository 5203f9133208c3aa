"""The figures of "Reproduction", from what ``make reproduce`` left in a folder.

    python benchmarks/reproduction.py reproduction --write docs/reproduction.md

reads ``reproduction/published`` and ``reproduction/corrected``, runs each correction by
itself, and puts what it finds into its places on the page. All points go to
``docs/evidence/reproduction.csv``, and the figures beside it. What further commands
wrote to ``reproduction/published-*`` or ``reproduction/corrected-*`` is added.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from math import isnan
from pathlib import Path

import pages

from missratio import KLIEP
from missratio.reproduce import (
    EXPERIMENTS,
    Conditions,
    Result,
    count_overlaps,
    methods,
    published_curves,
)
from missratio.reproduce.experiments import certified_power
from missratio.reproduce.figures import figures
from missratio.reproduce.results import make_curve
from missratio.reproduce.runner import fill_in

DOCS = Path(__file__).parents[1] / "docs"
FIGURES = Path("_static") / "reproduction"
SMALL_SIZES = (100.0, 200.0, 300.0)
WAYS = ("horvitz-thompson", "hajek")
BOUNDS = (5.0, 10.0, 100.0)
EFFECTS = {
    "ctg_vary_alpha": 0.1,
    "weather_vary_alpha": 0.1,
    "weather_vary_missing": 0.5,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="what make reproduce wrote")
    parser.add_argument("--write", type=Path, help="the page to put figures into")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    published, corrected = (
        load_variant(options.folder, variant) for variant in ("published", "corrected")
    )
    single = {
        correction: run_quick(
            options.folder / "single", correction, corrected, options.jobs
        )
        for correction in methods.CORRECTIONS
    }
    agree, compared = count_overlaps(list(published.values()))
    places = {
        "overlap": f"**Our interval and the published one overlap at {agree} of the "
        f"{compared} points ({100 * agree / compared:.1f} %) whose published values "
        f"are known.** {_apart(published)}",
        "effects": "\n\n".join(_effects(published, corrected, single)),
        "objective": normalisations(),
        "limit": unbounded(),
    }
    for name, text in places.items():
        print(f"{name}:\n\n{text}\n")
        if options.write:
            pages.put(options.write, name, text)
    if options.write:
        variants = {"published": published, "corrected": corrected}
        pages.write_csv("reproduction.csv", HEAD, points(variants))
        (DOCS / FIGURES).mkdir(parents=True, exist_ok=True)
        for result in published.values():
            for name, formats in figures(result).items():
                (DOCS / FIGURES / f"{name}.png").write_bytes(formats["png"])


def load_variant(folder: Path, variant: str) -> dict[str, Result]:
    """The curves of a variant, of one or several runs of the command."""
    merged = pages.load_results(folder / variant)
    for other in sorted(folder.glob(f"{variant}-*")):
        for name, more in pages.load_results(other).items():
            first = merged.get(name, more)
            values = first.values | more.values
            order = [m for m in more.experiment.curves if m in values]
            ordered = {method: values[method] for method in order}
            merged[name] = replace(first, values=ordered)
    return merged


def run_quick(
    out: Path, correction: str, corrected: dict[str, Result], jobs: int
) -> dict[str, Result]:
    """One correction by itself, methods that are quick, as many runs as corrected."""
    results = []
    seed = next(iter(corrected.values())).conditions.seed
    for name, point in EFFECTS.items():
        if name in corrected:
            experiment = replace(EXPERIMENTS[name], x=(point,))
            quick = tuple(m for m in corrected[name].values if m != methods.IMPUTATION)
            n_runs = len(corrected[name].values[quick[0]])
            conditions = Conditions(correction, seed)
            results.append(Result.planned(experiment, conditions, quick, n_runs))
    fill_in(results, out, jobs)
    return {result.experiment.id: result for result in results}


def normalisations() -> str:
    """M-KLIEP's power by what sums of weights are divided by."""
    experiment = EXPERIMENTS["np_power"]
    known = published_curves("np_power")["M-KLIEP"]
    body = []
    for place, n_rows in enumerate(SMALL_SIZES):
        runs = [experiment.draw(n_rows, k, Conditions()) for k in range(1000)]
        means = [f"{_mean_power(runs, way):.4f}" for way in WAYS]
        body.append([f"{n_rows:g}", *means, known.words(place)])
    headings = ("n0=n1", "printed objective", "Hájek", "published")
    return pages.table(headings, body)


def _mean_power(runs: list[methods.Run], way: str) -> float:
    total = 0.0
    for run in runs:
        ratio = KLIEP(missingness={1: run.phi}, normalize=way)
        total += certified_power(run, methods.fit_linear(run, ratio))
    return total / len(runs)


def unbounded() -> str:
    """CC-KLIEP on CTG by what stands for an infinite coefficient."""
    experiment = EXPERIMENTS["ctg_vary_missing"]
    known = published_curves(experiment.id)["CC-KLIEP"]
    limit, body = methods.INFINITE, []
    for share in (0.3, 0.5, 0.7, 0.9):
        cells = [f"{share:g}"]
        for bound in BOUNDS:
            methods.INFINITE = bound
            (values,) = experiment.measure(
                [share], range(1000), ["CC-KLIEP"], Conditions()
            )
            cells.append(make_curve(values, experiment.z).words(0))
        body.append([*cells, known.words(experiment.x.index(share))])
    methods.INFINITE = limit
    headings = (experiment.x_name, *(f"±{bound:g}" for bound in BOUNDS), "published")
    return pages.table(headings, body)


def _apart(published: dict[str, Result]) -> str:
    """Where intervals don't overlap, in words."""
    places = [
        f"{method} of `{name}` at {result.experiment.x[place]:g}"
        for name, result in published.items()
        for method, verdicts in result.overlaps.items()
        for place, verdict in enumerate(verdicts)
        if verdict is False
    ]
    if not places:
        return ""
    return f"They lie apart for {', '.join(places)}."


HEAD = (
    "experiment", "variant", "by", "at", "method", "whose", "runs", "mean", "low",
    "high",
)  # fmt: skip


def points(variants: dict[str, dict[str, Result]]) -> Iterator[list[object]]:
    """Every point of every curve, ours and the paper's."""
    for variant, results in variants.items():
        for name, result in results.items():
            theirs = result.published if variant == "published" else {}
            curves = [("ours", m, curve) for m, curve in result.curves.items()]
            curves += [("paper", m, curve) for m, curve in theirs.items()]
            for whose, method, curve in curves:
                for place, x in enumerate(result.experiment.x):
                    if isnan(curve.mean[place]):
                        continue
                    runs = curve.runs[place] if whose == "ours" else ""
                    given = [name, variant, result.experiment.x_name, f"{x:g}", method]
                    figures = (curve.mean[place], curve.lo[place], curve.hi[place])
                    shown = ["" if isnan(v) else f"{v:.4f}" for v in figures]
                    yield [*given, whose, runs, *shown]


def _effects(
    published: dict[str, Result],
    corrected: dict[str, Result],
    single: dict[str, dict[str, Result]],
) -> list[str]:
    pieces = []
    for name, point in EFFECTS.items():
        if name not in published:
            continue
        experiment = EXPERIMENTS[name]
        variants = {
            "published": published[name],
            **{f"only {c}": results[name] for c, results in single.items()},
            "corrected": corrected[name],
        }
        quick = [m for m in published[name].values if m != methods.IMPUTATION]
        body = [
            [label, *(_at(result, method, point) for method in quick)]
            for label, result in variants.items()
        ]
        pieces += [
            f"`{name}` at {experiment.x_name} {point:g}:",
            pages.table(("", *quick), body),
        ]
    return pieces


def _at(result: Result, method: str, point: float) -> str:
    return f"{result.curves[method].mean[result.experiment.x.index(point)]:.4f}"


if __name__ == "__main__":
    main()
