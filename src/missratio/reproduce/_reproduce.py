"""From ids to files: tables of every run, figures and a summary."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from missratio._base.hints import listed
from missratio._files import write_whole
from missratio.exceptions import DestinationError, Message, Remedy
from missratio.reproduce._execute import Plan, Runner
from missratio.reproduce._experiment import (
    VARIANTS,
    Conditions,
    Experiment,
    Variant,
    chosen,
    fits_of,
)
from missratio.reproduce._registry import EXPERIMENTS
from missratio.reproduce._results import Result
from missratio.reproduce._store import Task
from missratio.reproduce._summary import RunSummary

Announce = Callable[[dict[str, int]], None]


def _ignore(*_: Any) -> None:
    """Nobody wants to know."""


@dataclass(frozen=True)
class Options:
    """What to reproduce, and how.

    Parameters
    ----------
    ids : sequence of str
        Experiments; none stands for all whose data is at hand.
    variant : {"published", "corrected"}
    runs : int, optional
        Of each experiment; None for as many as the paper made, and of iterative
        imputation on the weather for as many as fit into half an hour.
    methods : sequence of str
        Curves; none stands for all of the paper's.
    seed : int
    jobs : int
        Processes.
    beyond : bool
        Whether curves past the paper are added.
    without : sequence of str
        Curves to leave out.
    """

    ids: Sequence[str] = ()
    variant: Variant = "published"
    runs: int | None = None
    methods: Sequence[str] = ()
    seed: int = 0
    jobs: int = 1
    beyond: bool = False
    without: Sequence[str] = ()

    def plans(self) -> tuple[list[Plan], dict[str, str]]:
        """What can be run, and of the rest why not.

        Raises
        ------
        ValueError
            For an id, a method or a variant that there isn't.
        FileNotFoundError
            Where an experiment was asked for by its id and its data is absent.
        """
        if self.variant not in VARIANTS:
            raise ValueError(
                f"variant must be one of {listed(VARIANTS)}: got {self.variant!r}."
            )
        ids = chosen(self.ids, list(EXPERIMENTS), "experiment")
        curves = list(dict.fromkeys(m for e in EXPERIMENTS.values() for m in e.curves))
        wanted = chosen(self.methods, curves, "method")
        unwanted = chosen(self.without, curves, "method")
        plans, skipped = [], {}
        for experiment in (EXPERIMENTS[name] for name in ids or EXPERIMENTS):
            why = experiment.procedure.unavailable()
            if why is not None and ids:
                raise FileNotFoundError(f"{experiment.id} can't be run: {why}")
            offered = experiment.curves if self.beyond else experiment.methods
            if wanted:
                offered = tuple(m for m in experiment.curves if m in wanted)
            methods = tuple(m for m in offered if fits_of(m) not in unwanted)
            if why is not None:
                if methods:
                    skipped[experiment.id] = why
            elif methods:
                plans.append(Plan(experiment, methods, self.runs))
            elif ids:
                raise ValueError(_no_curve(experiment, wanted or unwanted))
        return plans, skipped


@dataclass(frozen=True)
class Reproduction:
    """What came out."""

    results: list[Result]
    summary: RunSummary

    def as_json(self) -> dict[str, Any]:
        """The curves of every experiment, as the command's JSON output has them."""
        return {result.experiment.id: result.as_json() for result in self.results}


def reproduce(
    options: Options,
    out: Path,
    *,
    command: str = "missratio reproduce",
    force: bool = False,
    announce: Announce = _ignore,
    tick: Callable[[Task, int], None] = _ignore,
) -> Reproduction:
    """Run experiments and write their tables and figures, and a summary of all.

    What was finished before under the same settings, by the same code and from the same
    data is taken from the folder.

    Parameters
    ----------
    options : Options
    out : Path
        The folder to write to.
    command : str
        For the summary.
    force : bool
        Whether results of another seed or variant in the folder are replaced, instead
        of an error.
    announce : callable
        Told how many runs at points each experiment is going to make.
    tick : callable
        Told of every task that is done.
    """
    if find_spec("matplotlib") is None:
        raise ModuleNotFoundError(
            'Figures need matplotlib. Install it by pip install "missratio[report]".'
        )
    began = time.monotonic()
    plans, skipped = options.plans()
    conditions = Conditions(options.variant, options.seed)
    _check_folder(out, conditions, force=force)
    announce({plan.experiment.id: _size(plan, conditions) for plan in plans})
    runner = Runner(out, conditions, options.jobs, tick)
    results = runner.run(plans)
    for result in results:
        _write_result(result, out)
    summary = RunSummary(results, skipped, command, time.monotonic() - began)
    reproduction = Reproduction(results, summary)
    write_whole(out / "summary.md", summary.markdown().encode())
    write_whole(out / "summary.html", summary.html().encode())
    content = json.dumps(reproduction.as_json(), indent=1)
    write_whole(out / "results.json", content.encode())
    record = _record(options, reproduction, runner.resumed)
    write_whole(out / "run.json", json.dumps(record, indent=1).encode())
    return reproduction


def _record(
    options: Options, reproduction: Reproduction, resumed: int
) -> dict[str, Any]:
    """How a folder's results were made."""
    summary = reproduction.summary
    seconds = {made.experiment.id: made.seconds for made in reproduction.results}
    return {
        "command": summary.command,
        "seed": options.seed,
        "variant": options.variant,
        "jobs": options.jobs,
        "wall_seconds": summary.wall_seconds,
        "tasks_resumed": resumed,
        "seconds": seconds,
        "skipped": summary.skipped,
    }


def _check_folder(out: Path, conditions: Conditions, *, force: bool) -> None:
    """Refuse a folder with results of another seed or variant."""
    try:
        before = json.loads((out / "run.json").read_text())
    except (OSError, ValueError):
        return
    wanted = {"seed": conditions.seed, "variant": conditions.variant}
    found = {name: before.get(name, value) for name, value in wanted.items()}
    if found != wanted and not force:
        raise DestinationError(
            Message(
                "{folder} has the results of {found}, and {wanted} would replace them.",
                facts={"folder": out, "found": found, "wanted": wanted},
                remedies=("choose another folder", Remedy.OVERWRITE),
            )
        )


def load_results(folder: Path) -> dict[str, Result]:
    """Read back what `reproduce` wrote, by experiment."""
    seconds = json.loads((folder / "run.json").read_text())["seconds"]
    return {
        name: Result.from_parquet(
            EXPERIMENTS[name], folder / f"{name}.parquet", seconds[name]
        )
        for name in seconds
    }


def _no_curve(experiment: Experiment, named: Sequence[str]) -> str:
    if named:
        return (
            f"{experiment.id} has no curve left, by what was said of {listed(named)}. "
            f"It has: {listed(experiment.curves)}."
        )
    return (
        f"{experiment.id} is no figure of the paper. Add beyond=True (--beyond) to run "
        "it."
    )


def _size(plan: Plan, conditions: Conditions) -> int:
    return sum(len(task.runs) * len(task.points) for task in plan.tasks(conditions))


def _write_result(result: Result, out: Path) -> None:
    from missratio.reproduce._figures import figures

    write_whole(out / f"{result.experiment.id}.parquet", result.as_parquet())
    for name, formats in figures(result).items():
        for kind, content in formats.items():
            write_whole(out / f"{name}.{kind}", content)
