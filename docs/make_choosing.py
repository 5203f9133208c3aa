"""The figures behind "Which method should I use?".

    missratio reproduce --beyond --variant corrected --out reproduction/corrected
    python docs/make_choosing.py reproduction/corrected

reads what the first command, or several, wrote and writes
``docs/choosing_figures.md``, which the guide includes, and its pictures.
"""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import textwrap
from collections.abc import Sequence
from pathlib import Path

from missratio.reproduce import Result, load_results
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
from missratio.reproduce.procedures import REAL_DELTA, RealData
from missratio.reproduce.results import make_curve, markdown_table
from missratio.threshold import binomial_tail

DOCS = Path(__file__).parent
PICTURES = Path("_static") / "choosing"
NO_BREAK = "\N{NO-BREAK SPACE}"
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
SHOWN = ("ctg_vary_alpha", "ctg_vary_missing", "weather_vary_alpha", *ROWWISE)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", type=Path, nargs="+", help="what commands wrote")
    results, commands = {}, []
    (DOCS / PICTURES).mkdir(parents=True, exist_ok=True)
    folders = parser.parse_args().folders
    for folder in folders:
        own = load_results(folder)
        results |= own
        commands.append(json.loads((folder / "run.json").read_text())["command"])
    for name in SHOWN:
        for picture in (folder / f"{name}_beyond.png" for folder in folders):
            if picture.exists():
                shutil.copy(picture, DOCS / PICTURES / picture.name)
    commands.append(" ".join(["python docs/make_choosing.py", *map(str, folders)]))
    text = "\n\n".join(page(results, commands)) + "\n"
    (DOCS / "choosing_figures.md").write_text(text, encoding="utf-8")


def page(results: dict[str, Result], commands: Sequence[str]) -> list[str]:
    """The sections, of what there is."""
    lines = "\n".join(map(broken, commands))
    pieces = [
        "Made by",
        f"```sh\n{lines}\n```",
        "Intervals are mean ± 1.96 sd/√runs, 2.576 for `np_power` as in the paper; "
        "differences are within runs, so that what a run has in common cancels.",
    ]
    for name, title in (("ctg", "CTG"), ("weather", "Weather")):
        if f"{name}_vary_alpha" in results:
            pieces += alpha_section(results[f"{name}_vary_alpha"], title)
        if f"{name}_vary_missing" in results:
            pieces += missing_section(results[f"{name}_vary_missing"], title)
    if "naive_bayes_large" in results:
        pieces += [
            "### Correlated columns, n = 1000",
            "The paper's `naive_bayes` experiment with ten times its rows.",
            table(
                results["naive_bayes_large"],
                (M_KLIEP, JOINT, TRUE_RATIO),
                (0.0, 0.3, 0.5, 0.7, 0.9),
            ),
        ]
    for name in ROWWISE:
        if name in results and PRODUCTS in results[name].values:
            methods = (M_KLIEP, PRODUCTS, WEIGHTED_TREES, TRUE_RATIO)
            x = results[name].experiment.x
            pieces += [
                f"### Whole rows missing: `{name}`",
                f"![{results[name].experiment.title}]({PICTURES / name}_beyond.png)",
                table(results[name], methods, (x[0], x[len(x) // 2], x[-1])),
            ]
    return pieces


def broken(command: str) -> str:
    """A command in lines that fit a page; quoted names stay whole."""
    words = shlex.split(command)
    lines = textwrap.wrap(
        " ".join(shlex.quote(word).replace(" ", NO_BREAK) for word in words), 84,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
    return " \\\n    ".join(lines).replace(NO_BREAK, " ")


def alpha_section(result: Result, title: str) -> list[str]:
    name, points = result.experiment.id, (0.05, 0.1, 0.2, 0.3)
    n_runs = result.curves[known(JOINT)].runs[0]
    own = [kind(name) for name in LEARNERS for kind in (known, learned)]
    return [
        f"### {title}, half of class 1's values missing",
        f"![{result.experiment.title}]({PICTURES / name}_beyond.png)",
        f"Power by α, over {n_runs} runs (more for the paper's curves):",
        table(result, POWERS, points),
        "What it costs to learn φ from a few looked-up values (learned minus known):",
        differences(
            result, [(learned(each), known(each)) for each in LEARNERS], points
        ),
        *lead(result, (IMPUTED_TREES, NAN_TREES, KNOWN), points),
        "Type I error on fresh class-0 rows, which must stay below α with probability "
        f"{1 - REAL_DELTA:g}: half of the rows held out choose the threshold, and the "
        "error is counted on the others. The last line is the mean error of the "
        "binomial rule for scores without ties, by any method: (k + 1)/(n + 1) "
        "with k of n scores above the threshold.",
        table(
            result,
            [type_one(each) for each in (KNOWN, *own)],
            points,
            [["in theory", *expected_errors(result, points)]],
        ),
    ]


def lead(result: Result, others: Sequence[str], points: Sequence[float]) -> list[str]:
    """By how much tilted imputation with trees is ahead, where it was run."""
    if known(TILTED) not in result.values:
        return []
    pairs = [(known(TILTED), other) for other in others]
    return [
        f'Lead of "{known(TILTED)}" over:',
        differences(result, pairs, points, first=False),
    ]


def expected_errors(result: Result, points: Sequence[float]) -> list[str]:
    """The mean type I error of the binomial rule, at each point."""
    procedure = result.experiment.procedure
    assert isinstance(procedure, RealData)
    (run,) = procedure.draw(0.1, range(1), result.conditions)
    n_rows = (len(run.calibration) + 1) // 2
    tails = [binomial_tail(n_rows, alpha, REAL_DELTA) for alpha in points]
    return [f"{(tail + 1) / (n_rows + 1):.3f}" for tail in tails]


def missing_section(result: Result, title: str) -> list[str]:
    points = tuple(x for x in result.experiment.x if x >= 0.1)
    name = result.experiment.id
    return [
        f"### {title}, by the share that is missing",
        f"![{result.experiment.title}]({PICTURES / name}_beyond.png)",
        "Power at α = 0.1:",
        table(result, POWERS, points),
        *lead(result, (IMPUTED_TREES,), points),
    ]


def table(
    result: Result,
    methods: Sequence[str],
    points: Sequence[float],
    more: Sequence[Sequence[str]] = (),
) -> str:
    """A row for each method, a column for each point, and more rows."""
    curves = result.curves
    places = [result.experiment.x.index(point) for point in points]
    body = []
    for method in methods:
        if method in curves:
            curve = curves[method]
            cells = [cell(curve.mean[i], curve.hi[i]) for i in places]
            body.append([fits_of(method), *cells])
    return markdown_table(_headings(result, points), [*body, *more])


def differences(
    result: Result,
    pairs: Sequence[tuple[str, str]],
    points: Sequence[float],
    *,
    first: bool = True,
) -> str:
    """The mean of one method less another, run by run."""
    body = []
    for one, other in pairs:
        if one not in result.values or other not in result.values:
            continue
        n_runs = min(len(result.values[one]), len(result.values[other]))
        gap = result.values[one][:n_runs] - result.values[other][:n_runs]
        curve = make_curve(gap, result.experiment.z)
        places = [result.experiment.x.index(point) for point in points]
        cells = [cell(curve.mean[i], curve.hi[i], sign="+") for i in places]
        body.append([one if first else other, *cells])
    return markdown_table(_headings(result, points), body)


def cell(mean: float | None, high: float | None, sign: str = "") -> str:
    """A mean and half of its interval."""
    if mean is None:
        return "–"
    half = "" if high is None else f" ±{NO_BREAK}{high - mean:.3f}"
    return f"{mean:{sign}.3f}{half}"


def _headings(result: Result, points: Sequence[float]) -> list[str]:
    return [result.experiment.x_name, *(f"{point:g}" for point in points)]


if __name__ == "__main__":
    main()
