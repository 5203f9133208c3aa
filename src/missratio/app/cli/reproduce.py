"""``missratio reproduce``: the paper's experiments."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from missratio.app.cli import _options as options
from missratio.app.cli import _paper_options as paper
from missratio.app.cli._failures import failures, say, say_json

if TYPE_CHECKING:
    from missratio.reproduce import MeanCurve, Reproduction, Variant


def reproduce(
    ids: paper.Ids = None,
    variant: paper.Variant = "published",
    runs: paper.Runs = None,
    methods: paper.Methods = None,
    without: paper.Without = None,
    beyond: paper.Beyond = False,
    seed: paper.RunSeed = 0,
    jobs: paper.Jobs = None,
    out: options.FolderOut = Path("reproduction"),
    force: paper.ForceResults = False,
    as_json: paper.CurvesAsJson = False,
) -> None:
    """Run the paper's experiments: tables of every run, figures, and a summary.

    If a run is interrupted, the same command continues where it stopped.
    """
    with failures(resumes=True):
        from joblib import cpu_count

        from missratio.reproduce import Options
        from missratio.reproduce import reproduce as run

        wanted = Options(
            ids or (),
            cast("Variant", variant),
            runs,
            _names(methods),
            seed,
            jobs or int(cpu_count()),
            beyond,
            _names(without),
        )
        command = shlex.join(["missratio", *sys.argv[1:]])
        with _Progress() as progress:
            made = run(
                wanted,
                out,
                command=command,
                force=force,
                announce=progress.announce,
                tick=progress.tick,
            )
        if as_json:
            say_json(made.as_json())
        else:
            _show(made, out)


def _names(words: list[str] | None) -> list[str]:
    return [name.strip() for word in words or () for name in word.split(",")]


class _Progress:
    """Bars on standard error, one for each experiment."""

    def __enter__(self) -> _Progress:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
        from rich.progress import TimeElapsedColumn as Elapsed

        self._bars: dict[str, Any] = {}
        self._progress = Progress(
            TextColumn("{task.description:20}"),
            BarColumn(),
            MofNCompleteColumn(),
            Elapsed(),
            console=Console(stderr=True),
        )
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def announce(self, sizes: dict[str, int]) -> None:
        for name, size in sizes.items():
            self._bars[name] = self._progress.add_task(name, total=size)

    def tick(self, task: Any, size: int) -> None:
        self._progress.advance(self._bars[task.experiment], size)


def _show(made: Reproduction, out: Path) -> None:
    from rich.console import Console
    from rich.table import Table

    from missratio.reproduce import Result
    from missratio.reproduce._summary import time_rows

    console = Console()

    def show_curves(result: Result) -> None:
        experiment, overlaps = result.experiment, result.overlaps
        table = Table(
            title=f"{experiment.id}: {experiment.title}",
            caption="! apart from the published interval" if overlaps else None,
        )
        points = [f"{point:g}" for point in experiment.x]
        rows = []
        for method, curve in result.curves.items():
            verdicts = overlaps.get(method, [None] * len(points))
            rows.append(
                [
                    _cell(curve, place) + (" [red]![/]" if verdict is False else "")
                    for place, verdict in enumerate(verdicts)
                ]
            )
        # The longer of points and methods goes down the page.
        across, down = points, list(result.curves)
        if len(rows) <= len(points):
            across, down = down, across
            rows = [list(cells) for cells in zip(*rows, strict=True)]
        for heading in (experiment.x_name, *across):
            table.add_column(heading, justify="right")
        for heading, cells in zip(down, rows, strict=True):
            table.add_row(heading, *cells)
        console.print(table)

    for result in made.results:
        show_curves(result)
    times = Table(title="Computing time, seconds on one core")
    for heading in ("experiment", "methods", "seconds"):
        times.add_column(heading, justify="right" if heading == "seconds" else "left")
    for cells in time_rows(made.results):
        times.add_row(*cells)
    console.print(times)
    for name, why in made.summary.skipped.items():
        say(f"Not run: {name}: {why}")
    say(
        f"{made.summary.headline} {made.summary.wall_seconds:.1f} s in all. See "
        f"{out / 'summary.html'}."
    )


def _cell(curve: MeanCurve, place: int) -> str:
    mean, high = curve.mean[place], curve.hi[place]
    if mean is None:
        return "–"
    return f"{mean:.3f}" if high is None else f"{mean:.3f} ± {high - mean:.3f}"
