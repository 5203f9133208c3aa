"""``missratio reproduce`` and ``missratio data``: the paper's experiments and data."""
# ruff: noqa: RUF009

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, cast

import typer

from missratio.app.cli.shell import Progress, failures, say
from missratio.app.options import CommandOutcome, Writing, argument, asked

if TYPE_CHECKING:
    from missratio.reproduce import Variant


@dataclass(frozen=True, kw_only=True)
class ReproduceOptions(Writing):
    """What is asked of a reproduction."""

    ids: list[str] | None = argument(
        "Experiments, such as np_power or ctg_vary_alpha. Default: all whose data is "
        "available.",
        "ID",
        needed=False,
    )
    variant: str = asked(
        "published: as the curves were made; corrected: with their defects mended.",
        "published",
        choices=("published", "corrected"),
    )
    runs: int | None = asked(
        "Number of runs of each experiment. Default: as many as in the paper.", min=1
    )
    methods: list[str] = asked(
        "Names of curves to draw, separated by commas; may be repeated. Default: all "
        "curves of the paper.",
        [],
    )
    beyond: bool = asked(
        "Add curves that are not in the paper: joint fits, and learners on "
        "imputations.",
        False,
    )
    seed: int = asked("Random seed for all draws.", 0, min=0)
    jobs: int | None = asked("Number of processes. Default: one for each core.", min=1)
    out: Path = asked(
        "Folder for tables, figures and the summary.",
        Path("reproduction"),
        file_okay=False,
    )

    WRITES: ClassVar[tuple[str, ...]] = ()
    RESUMES: ClassVar[bool] = True


def reproduce(options: ReproduceOptions, progress: Progress) -> CommandOutcome:
    """Run the paper's experiments: tables of every run, figures, and a summary.

    If a run is interrupted, the same command continues where it stopped.
    """
    from joblib import cpu_count

    from missratio.reproduce import reproduce as run

    made = run(
        options.out,
        options.ids or (),
        variant=cast("Variant", options.variant),
        runs=options.runs,
        methods=[name.strip() for word in options.methods for name in word.split(",")],
        seed=options.seed,
        jobs=options.jobs or int(cpu_count()),
        beyond=options.beyond,
        command=shlex.join(["missratio", *sys.argv[1:]]),
        force=options.force,
        step=progress.step,
        tick=progress.tick,
    )
    summary = f"{made.headline} See {options.out / 'summary.md'}."
    return CommandOutcome(made.as_json(), [made.markdown(pictures=False), summary])


data = typer.Typer(help="Find or download the paper's data sets.", no_args_is_help=True)


@data.command("list")
def list_files() -> None:
    """List the data sets: where each file is, and whether it is the known one."""
    with failures():
        from missratio.datasets import available

        for entry in available():
            where = "absent" if entry.path is None else str(entry.path)
            checked = "" if entry.path is None else f" (SHA-256 {entry.digest})"
            say(f"{entry.name:8} {where}{checked}")
            account = ", to account holders" if entry.account_needed else ""
            say(f"{'':8} published by {entry.publisher}{account}: {entry.page}")


@data.command()
def fetch(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            help="ctg, fire or weather. Default: all.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Find or download data sets, and check them against their checksums."""
    with failures():
        from missratio.datasets import available
        from missratio.datasets import fetch as find

        absent = []
        for name in names or [entry.name for entry in available()]:
            try:
                say(str(find(name)))
            except FileNotFoundError as error:
                absent.append(str(error))
        if absent:
            raise FileNotFoundError("\n".join(absent))
