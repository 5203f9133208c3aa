"""The page "Reproducing the paper", from what ``make reproduce`` left in a folder.

    python docs/make_reproduction.py reproduction

reads ``reproduction/published`` and ``reproduction/corrected``, runs each correction by
itself, and writes ``docs/reproduction.md`` and its figures. What further commands wrote
to ``reproduction/published-*`` or ``reproduction/corrected-*`` is added.
"""

from __future__ import annotations

import argparse
import datetime
import json
from dataclasses import replace
from pathlib import Path

import reproduction_prose as prose

from missratio import KLIEP
from missratio.reproduce import (
    EXPERIMENTS,
    Conditions,
    Result,
    count_overlaps,
    load_results,
    methods,
    published_curves,
)
from missratio.reproduce.figures import figures
from missratio.reproduce.procedures import Simulated, certified_power
from missratio.reproduce.results import make_curve, markdown_table, time_rows
from missratio.reproduce.runner import Plan, run_plans

DOCS = Path(__file__).parent
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
    record = json.loads((options.folder / "published" / "run.json").read_text())
    text = page(published, corrected, single, record)
    (DOCS / FIGURES).mkdir(parents=True, exist_ok=True)
    for result in published.values():
        for name, formats in figures(result).items():
            (DOCS / FIGURES / f"{name}.png").write_bytes(formats["png"])
    (DOCS / "reproduction.md").write_text(text, encoding="utf-8")


def load_variant(folder: Path, variant: str) -> dict[str, Result]:
    """The curves of a variant, of one or several runs of the command."""
    merged = load_results(folder / variant)
    for other in sorted(folder.glob(f"{variant}-*")):
        for name, more in load_results(other).items():
            first = merged.get(name, more)
            values = first.values | more.values
            order = [m for m in more.experiment.curves if m in values]
            merged[name] = replace(
                first,
                values={method: values[method] for method in order},
                seconds=first.seconds | more.seconds,
            )
    return merged


def run_quick(
    out: Path, correction: str, corrected: dict[str, Result], jobs: int
) -> dict[str, Result]:
    """One correction by itself, methods that are quick, as many runs as corrected."""
    plans = []
    seed = next(iter(corrected.values())).conditions.seed
    for name, point in EFFECTS.items():
        if name in corrected:
            experiment = replace(EXPERIMENTS[name], x=(point,))
            slow = experiment.slow_methods
            quick = tuple(m for m in corrected[name].values if m not in slow)
            n_runs = len(corrected[name].values[quick[0]])
            conditions = Conditions(correction, seed)
            plans.append(Plan(experiment, quick, conditions, n_runs))
    results, _ = run_plans(plans, out, jobs)
    return {result.experiment.id: result for result in results}


def page(
    published: dict[str, Result],
    corrected: dict[str, Result],
    single: dict[str, dict[str, Result]],
    record: dict[str, object],
) -> str:
    agree, compared = count_overlaps(list(published.values()))
    pieces = [
        "# Reproducing the paper",
        f"Written on {datetime.date.today().isoformat()} by `python "
        "docs/make_reproduction.py reproduction` from what `make reproduce` wrote. One "
        "command runs every experiment of the paper whose data is at hand: "
        f"`missratio reproduce`. {prose.INTRODUCTION}",
        f"**Our interval and the published one overlap at {agree} of the {compared} "
        f"points ({100 * agree / compared:.1f} %) whose published values are known.** "
        + _apart(published),
        _not_run(record),
        "## What was run",
        prose.METHOD,
        "## Where the text and the published figures disagree",
        prose.DISAGREE,
        markdown_table(("", "text", "published curves"), prose.DISAGREEMENTS),
        "## What is corrected, and what that changes",
        prose.CORRECTED,
        *_effects(published, corrected, single),
        "## What the text leaves open",
        prose.NORMALISATION,
        normalisations(),
        prose.UNBOUNDED,
        unbounded(),
        "## Results",
    ]
    for result in published.values():
        pieces += _section(result, corrected.get(result.experiment.id))
    pieces += ["## Time", *_time(published, record)]
    return "\n\n".join(pieces) + "\n"


def _not_run(record: dict[str, object]) -> str:
    skipped = record["skipped"]
    assert isinstance(skipped, dict)
    names = " and ".join(f"`{name}`" for name in skipped)
    return f"Not run: {names}. {prose.FIRE}" if skipped else ""


def normalisations() -> str:
    """M-KLIEP's power by what sums of weights are divided by."""
    procedure = EXPERIMENTS["np_power"].procedure
    assert isinstance(procedure, Simulated)
    known = published_curves("np_power", EXPERIMENTS["np_power"].x)["M-KLIEP"]
    body = []
    for place, n_rows in enumerate(SMALL_SIZES):
        runs = procedure.draw(n_rows, range(1000), Conditions())
        means = [f"{_mean_power(runs, way):.4f}" for way in WAYS]
        body.append([f"{n_rows:g}", *means, known.words(place)])
    headings = ("n0=n1", "printed objective", "Hájek", "published")
    return markdown_table(headings, body)


def _mean_power(runs: list[methods.Run], way: str) -> float:
    estimator = KLIEP(missingness={1: runs[0].phi}, normalize=way)
    scores = methods.Batch(runs).together(estimator)
    powers = [certified_power(*pair) for pair in zip(runs, scores, strict=True)]
    return sum(powers) / len(powers)


def unbounded() -> str:
    """CC-KLIEP on CTG by what stands for an infinite coefficient."""
    experiment = EXPERIMENTS["ctg_vary_missing"]
    known = published_curves(experiment.id, experiment.x)["CC-KLIEP"]
    limit, body = methods.INFINITE, []
    for share in (0.3, 0.5, 0.7, 0.9):
        cells = [f"{share:g}"]
        for bound in BOUNDS:
            methods.INFINITE = bound
            values = experiment.procedure.measure(
                [share], range(1000), ["CC-KLIEP"], Conditions()
            )
            cells.append(make_curve(values["CC-KLIEP"], experiment.z).words(0))
        body.append([*cells, known.words(experiment.x.index(share))])
    methods.INFINITE = limit
    headings = (experiment.x_name, *(f"±{bound:g}" for bound in BOUNDS), "published")
    return markdown_table(headings, body)


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


def _section(result: Result, corrected: Result | None) -> list[str]:
    experiment = result.experiment
    name = experiment.id
    pieces = [
        f"### {name}",
        f"{experiment.title}. {result.interval_note}",
        f"![{experiment.title}]({FIGURES / name}.png)",
    ]
    if name == "np_boundary":
        return pieces
    if name == "diff_variance":
        pieces.append(f"![Boundaries of one run]({FIGURES / name}_boundary.png)")
    pieces.append(_table(result))
    if corrected is not None and name.partition("_")[0] in ("ctg", "fire", "weather"):
        pieces += ["Corrected:", _table(corrected, compare=False)]
    return pieces


def _table(result: Result, *, compare: bool = True) -> str:
    """A row for each point, ours and published side by side for each method."""
    published, overlaps = result.published if compare else {}, result.overlaps
    headings = [result.experiment.x_name]
    for method, curve in result.curves.items():
        runs = sorted(set(curve.runs) - {0})
        shown = f"{runs[0]}–{runs[-1]}" if len(runs) > 1 else f"{runs[0]}"
        headings.append(f"{method}, {shown} runs")
        if method in published:
            headings.append("published")
    body = []
    for place, point in enumerate(result.experiment.x):
        cells = [f"{point:g}"]
        for method, curve in result.curves.items():
            cells.append(curve.words(place))
            if method in published:
                apart = overlaps[method][place] is False
                mark = " **apart**" if apart else ""
                cells.append(published[method].words(place) + mark)
        body.append(cells)
    return markdown_table(headings, body)


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
        methods = [
            m for m in published[name].values if m not in experiment.slow_methods
        ]
        body = [
            [label, *(_at(result, method, point) for method in methods)]
            for label, result in variants.items()
        ]
        pieces += [
            f"`{name}` at {experiment.x_name} {point:g}:",
            markdown_table(("", *methods), body),
        ]
    return pieces


def _at(result: Result, method: str, point: float) -> str:
    return result.curves[method].words(result.experiment.x.index(point))


def _time(published: dict[str, Result], record: dict[str, object]) -> list[str]:
    wall = ""
    if record["tasks_resumed"] == 0:
        wall = (
            f"`{record['command']}` took {record['wall_seconds']:.0f} s in all, in "
            f"{record['jobs']} processes. "
        )
    return [
        wall + "Computing time on one core, summed over processes:",
        markdown_table(
            ("experiment", "methods", "seconds"), time_rows(list(published.values()))
        ),
    ]


if __name__ == "__main__":
    main()
