"""``missratio reproduce``: the paper's experiments."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from missratio.app.cli import _options as options
from missratio.app.cli import _options as paper
from missratio.app.cli._failures import failures, say, say_json

if TYPE_CHECKING:
    from missratio.reproduce import Reproduction, Variant


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

    def tick(self, task: Any) -> None:
        self._progress.advance(self._bars[task.experiment], task.size)


def _show(made: Reproduction, out: Path) -> None:
    from rich.console import Console
    from rich.markdown import Markdown

    Console().print(Markdown(made.markdown(pictures=False)))
    say(f"{made.headline} See {out / 'summary.html'}.")
