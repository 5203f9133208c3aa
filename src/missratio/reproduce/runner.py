"""From ids to files: experiments run in parallel, resumed where they were left.

A task that is finished is kept as a file of plain numbers beside what they depend on.
"""

from __future__ import annotations

import hashlib
import io
import json
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from joblib.externals.loky.process_executor import TerminatedWorkerError
from threadpoolctl import threadpool_limits

import missratio
from missratio._base.hints import did_you_mean, listed
from missratio._base.threads import hold_threads
from missratio._base.typing import FloatArray
from missratio._files import write_whole
from missratio.exceptions import DestinationError, Message, Remedy
from missratio.reproduce.experiments import EXPERIMENTS, Experiment
from missratio.reproduce.methods import VARIANTS, Conditions, Variant
from missratio.reproduce.results import Reproduction, Result


@cache
def code_digest() -> str:
    """A checksum of the library's sources and the version of NumPy.

    What another version of the code computed is computed again.
    """
    state = hashlib.sha256(f"{missratio.__version__} {np.__version__}".encode())
    root = Path(str(files("missratio")))
    for path in sorted(root.rglob("*.py")):
        if path.relative_to(root).parts[0] != "app":
            state.update(path.read_bytes())
    return state.hexdigest()


@dataclass(frozen=True, slots=True)
class Task:
    """Some runs of an experiment, computed together.

    Parameters
    ----------
    experiment : str
        Its id.
    points : tuple of float
    runs : range
    methods : tuple of str
    conditions : Conditions
    """

    experiment: str
    points: tuple[float, ...]
    runs: range
    methods: tuple[str, ...]
    conditions: Conditions

    @property
    def size(self) -> int:
        """How many runs at a point it makes."""
        return len(self.runs) * len(self.points)

    def file(self, folder: Path) -> Path:
        """Where its values are kept, named by all that they depend on."""
        data = EXPERIMENTS[self.experiment].fingerprint(self.conditions)
        identity = f"{self!r}, data {data!r}, code {code_digest()}"
        digest = hashlib.sha256(identity.encode()).hexdigest()[:32]
        return folder / ".tasks" / f"{self.experiment}-{digest}.npz"

    def load(self, folder: Path) -> FloatArray | None:
        """What was finished before; None where nothing was, or it can't be read.

        Nothing in the file is run, and a checksum tells damage.
        """
        try:
            content = io.BytesIO(self.file(folder).read_bytes())
            with np.load(content, allow_pickle=False) as arrays:
                values: FloatArray = arrays["values"]
        # Damage can raise anything, from zlib.error to MemoryError.
        except Exception:
            return None
        shape = len(self.methods), len(self.runs), len(self.points)
        sound = values.shape == shape and values.dtype == np.float64
        return values if sound else None

    def save(self, folder: Path, values: FloatArray) -> None:
        """Keep what was finished."""
        buffer = io.BytesIO()
        np.savez(buffer, values=values)
        write_whole(self.file(folder), buffer.getvalue())


def compute(task: Task) -> tuple[Task, FloatArray]:
    """Values of a task, of shape (n_methods, n_runs, n_points).

    On one core, so that how many there are changes no digit.
    """
    experiment = EXPERIMENTS[task.experiment]
    with hold_threads(1), threadpool_limits(1, user_api="openmp"):
        return task, experiment.measure(
            task.points, task.runs, task.methods, task.conditions
        )


@dataclass(frozen=True)
class Plan:
    """Which runs of an experiment to make.

    Parameters
    ----------
    experiment : Experiment
    methods : tuple of str
    conditions : Conditions
    runs : int, optional
        How many; None for as many as the experiment says.
    """

    experiment: Experiment
    methods: tuple[str, ...]
    conditions: Conditions
    runs: int | None = None

    def tasks(self) -> list[Task]:
        """Some runs each, of methods that are run as often; points that share fits."""
        experiment, tasks = self.experiment, []
        blocks: list[tuple[float, ...]] = [(point,) for point in experiment.x]
        if experiment.shares_fits:
            blocks = [experiment.x]
        times = {m: experiment.n_runs(m, self.runs) for m in self.methods}
        for n_runs in dict.fromkeys(times.values()):
            methods = tuple(m for m in self.methods if times[m] == n_runs)
            for start in range(0, n_runs, experiment.runs_per_task):
                runs = range(start, min(start + experiment.runs_per_task, n_runs))
                tasks += [
                    Task(experiment.id, block, runs, methods, self.conditions)
                    for block in blocks
                ]
        return sorted(tasks, key=lambda task: task.runs[0])

    def result(self, finished: dict[Task, FloatArray]) -> Result:
        """All values of the experiment, in an order that no process had a say in."""
        x, values = self.experiment.x, {}
        for method in self.methods:
            n_runs = self.experiment.n_runs(method, self.runs)
            values[method] = np.full((n_runs, len(x)), np.nan)
        for task in self.tasks():
            columns = [x.index(point) for point in task.points]
            for method, computed in zip(task.methods, finished[task], strict=True):
                values[method][task.runs.start : task.runs.stop, columns] = computed
        return Result(self.experiment, self.conditions, values)


def _ignore(*_: Any) -> None:
    """Where nobody wants to know."""


def run_plans(
    plans: Sequence[Plan],
    folder: Path,
    jobs: int = 1,
    tick: Callable[[Task], None] = _ignore,
) -> tuple[list[Result], int]:
    """Compute all that is not finished yet, and keep it.

    Parameters
    ----------
    plans : sequence of Plan
    folder : Path
        The folder to keep finished tasks in.
    jobs : int
        How many processes.
    tick : callable
        Told of every task that is done.

    Returns
    -------
    results : list of Result
    resumed : int
        How many tasks had been finished before.
    """
    tasks = [task for plan in plans for task in plan.tasks()]
    finished, todo = dict[Task, FloatArray](), []
    for task in tasks:
        if (before := task.load(folder)) is None:
            todo.append(task)
        else:
            finished[task] = before
            tick(task)
    resumed = len(finished)
    pool = Parallel(jobs, return_as="generator_unordered", batch_size=1)
    try:
        for task, made in pool(delayed(compute)(task) for task in todo):
            task.save(folder, made)
            finished[task] = made
            tick(task)
    except TerminatedWorkerError as error:
        raise ChildProcessError(
            "A process was killed, as happens where memory runs out. Run the same "
            f"command again, with fewer than {jobs} processes (--jobs): what is "
            "finished is kept."
        ) from error
    return [plan.result(finished) for plan in plans], resumed


def choose(words: Sequence[str], choices: Sequence[str], what: str) -> list[str]:
    """The choices that are meant, in their own order; an error for any other word.

    Capitals don't matter.
    """
    known = {choice.lower(): choice for choice in choices}
    for word in words:
        if word.lower() not in known:
            raise ValueError(
                f"There is no {what} {word!r}.{did_you_mean(word, choices)} Choose "
                f"from: {listed(choices)}."
            )
    wanted = {known[word.lower()] for word in words}
    return [choice for choice in choices if choice in wanted]


@dataclass(frozen=True)
class Options:
    """What to reproduce, and how.

    Parameters
    ----------
    ids : sequence of str
        Experiments; none stands for all whose data is at hand.
    variant : {"published", "corrected"}
    runs : int, optional
        Of each experiment; None for as many as the paper made, but fewer of iterative
        imputation on the weather and of curves past the paper.
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
        ids = choose(self.ids, list(EXPERIMENTS), "experiment")
        curves = list(dict.fromkeys(m for e in EXPERIMENTS.values() for m in e.curves))
        wanted = choose(self.methods, curves, "method")
        unwanted = choose(self.without, curves, "method")
        plans, skipped = [], {}
        for experiment in (EXPERIMENTS[name] for name in ids or EXPERIMENTS):
            offered = experiment.curves if self.beyond else experiment.methods
            if wanted:
                offered = tuple(m for m in experiment.curves if m in wanted)
            methods = tuple(m for m in offered if m not in unwanted)
            why = experiment.unavailable()
            if ids and why is not None:
                raise FileNotFoundError(f"{experiment.id} can't be run: {why}")
            if ids and not methods:
                raise ValueError(
                    f"{experiment.id} has no curve left, by what was said. It has "
                    f"{listed(experiment.curves)}; those past the paper need "
                    "beyond=True (--beyond), or their names."
                )
            if methods and why is not None:
                skipped[experiment.id] = why
            elif methods:
                conditions = Conditions(self.variant, self.seed)
                plans.append(Plan(experiment, methods, conditions, self.runs))
        return plans, skipped


def reproduce(
    options: Options,
    out: Path,
    *,
    command: str = "missratio reproduce",
    force: bool = False,
    announce: Callable[[dict[str, int]], None] = _ignore,
    tick: Callable[[Task], None] = _ignore,
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
    from missratio.reproduce.figures import figures

    began = time.monotonic()
    plans, skipped = options.plans()
    wanted = {"seed": options.seed, "variant": options.variant}
    # The seed and the variant of the results in the folder, if there are any.
    before: dict[str, Any] = wanted
    with suppress(OSError, ValueError):
        record = json.loads((out / "run.json").read_text())
        before = {name: record.get(name, value) for name, value in wanted.items()}
    if before != wanted and not force:
        raise DestinationError(
            Message(
                "{folder} has the results of {found}, and {wanted} would replace them.",
                facts={"folder": out, "found": before, "wanted": wanted},
                remedies=("choose another folder", Remedy.OVERWRITE),
            )
        )
    announce({p.experiment.id: sum(task.size for task in p.tasks()) for p in plans})
    results, resumed = run_plans(plans, out, options.jobs, tick)
    pages: dict[str, bytes] = {}
    for result in results:
        pages[f"{result.experiment.id}.parquet"] = result.as_parquet()
        for name, formats in figures(result).items():
            pages |= {f"{name}.{kind}": content for kind, content in formats.items()}
    made = Reproduction(results, skipped, command, time.monotonic() - began)
    record = wanted | {
        "command": command,
        "jobs": options.jobs,
        "wall_seconds": made.wall_seconds,
        "tasks_resumed": resumed,
        "skipped": skipped,
    }
    pages["summary.md"] = made.markdown().encode()
    pages["results.json"] = json.dumps(made.as_json(), indent=1).encode()
    pages["run.json"] = json.dumps(record, indent=1).encode()
    for name, content in pages.items():
        write_whole(out / name, content)
    return made
