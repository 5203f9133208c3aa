"""From ids to files: experiments run in parallel, resumed where they were left.

A task that is finished is kept as a file of plain numbers beside what they depend on.
"""

from __future__ import annotations

import hashlib
import io
import json
import time
from collections.abc import Callable, Collection, Sequence
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
from missratio._base.hints import check_choice, did_you_mean, listed
from missratio._base.threads import hold_threads
from missratio._base.typing import FloatArray
from missratio._files import write_whole
from missratio.exceptions import DestinationError, Message, Remedy
from missratio.reproduce.experiments import EXPERIMENTS
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
        buffer, path = io.BytesIO(), self.file(folder)
        np.savez(buffer, values=values)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, buffer.getvalue())


def compute(task: Task) -> tuple[Task, FloatArray]:
    """Values of a task, of shape (n_methods, n_runs, n_points).

    On one core, so that how many there are changes no digit.
    """
    experiment = EXPERIMENTS[task.experiment]
    with hold_threads(1), threadpool_limits(1, user_api="openmp"):
        return task, experiment.measure(
            task.points, task.runs, task.methods, task.conditions
        )


def make_tasks(result: Result) -> list[Task]:
    """The tasks that fill in a result: some runs of methods that are run as often.

    Points that share their fits are computed together.
    """
    experiment, size = result.experiment, result.experiment.runs_per_task
    blocks: list[tuple[float, ...]] = [(point,) for point in experiment.x]
    if experiment.shares_fits:
        blocks = [experiment.x]
    methods: dict[int, list[str]] = {}
    for method, values in result.values.items():
        methods.setdefault(len(values), []).append(method)
    tasks = [
        Task(experiment.id, block, runs, tuple(names), result.conditions)
        for n_runs, names in methods.items()
        for start in range(0, n_runs, size)
        for runs in [range(start, min(start + size, n_runs))]
        for block in blocks
    ]
    return sorted(tasks, key=lambda task: task.runs[0])


def _ignore(*_: Any) -> None:
    """Where nobody wants to know."""


def fill_in(
    results: Sequence[Result],
    folder: Path,
    jobs: int = 1,
    step: Callable[[str, int], None] = _ignore,
    tick: Callable[[int], None] = _ignore,
) -> int:
    """Compute all that is not finished yet, keep it, and put it into its place.

    Parameters
    ----------
    results : sequence of Result
        As `Result.planned` makes them.
    folder : Path
        The folder to keep finished tasks in.
    jobs : int
        How many processes.
    step, tick : callable
        Told what is run, and how many runs at a point that will be; and how many more
        are done.

    Returns
    -------
    int
        How many tasks had been finished before.
    """
    tasks = {task: result for result in results for task in make_tasks(result)}
    names = ", ".join(result.experiment.id for result in results)
    step(f"Running {names}", sum(task.size for task in tasks))

    def finish(task: Task, values: FloatArray) -> None:
        result = tasks[task]
        columns = [result.experiment.x.index(point) for point in task.points]
        for method, computed in zip(task.methods, values, strict=True):
            runs = slice(task.runs.start, task.runs.stop)
            result.values[method][runs, columns] = computed
        tick(task.size)

    todo = []
    for task in tasks:
        if (before := task.load(folder)) is None:
            todo.append(task)
        else:
            finish(task, before)
    pool = Parallel(jobs, return_as="generator_unordered", batch_size=1)
    try:
        for task, values in pool(delayed(compute)(task) for task in todo):
            task.save(folder, values)
            finish(task, values)
    except TerminatedWorkerError as error:
        raise ChildProcessError(
            "A process was killed, as happens where memory runs out. Run the same "
            f"command again, with fewer than {jobs} processes (--jobs): what is "
            "finished is kept."
        ) from error
    return len(tasks) - len(todo)


def check_known(words: Sequence[str], choices: Collection[str], what: str) -> None:
    """Refuse words that are no choice."""
    for word in words:
        if word not in choices:
            raise ValueError(
                f"There is no {what} {word!r}.{did_you_mean(word, choices)} Choose "
                f"from: {listed(choices)}."
            )


def plan(
    ids: Sequence[str],
    conditions: Conditions,
    methods: Sequence[str] = (),
    runs: int | None = None,
    *,
    beyond: bool = False,
) -> tuple[list[Result], dict[str, str]]:
    """Results to fill in, of what can be run, and of the rest why not.

    Parameters are those of `reproduce`.

    Raises
    ------
    ValueError
        For an id, a method or a variant that there isn't.
    FileNotFoundError
        Where an experiment was asked for by its id and its data is absent.
    """
    check_choice("variant", conditions.variant, VARIANTS)
    curves = [curve for some in EXPERIMENTS.values() for curve in some.curves]
    check_known(ids, EXPERIMENTS, "experiment")
    check_known(methods, dict.fromkeys(curves), "method")
    planned, skipped = [], {}
    for name, experiment in EXPERIMENTS.items():
        if ids and name not in ids:
            continue
        offered = experiment.curves if beyond else experiment.methods
        if methods:
            offered = tuple(curve for curve in experiment.curves if curve in methods)
        why = experiment.unavailable()
        if ids and why is not None:
            raise FileNotFoundError(f"{experiment.id} can't be run: {why}")
        if ids and not offered:
            raise ValueError(
                f"{experiment.id} has none of these curves. It has "
                f"{listed(experiment.curves)}."
            )
        if offered and why is not None:
            skipped[experiment.id] = why
        elif offered:
            planned.append(Result.planned(experiment, conditions, offered, runs))
    return planned, skipped


def reproduce(
    out: Path,
    ids: Sequence[str] = (),
    *,
    variant: Variant = "published",
    runs: int | None = None,
    methods: Sequence[str] = (),
    seed: int = 0,
    jobs: int = 1,
    beyond: bool = False,
    command: str = "missratio reproduce",
    force: bool = False,
    step: Callable[[str, int], None] = _ignore,
    tick: Callable[[int], None] = _ignore,
) -> Reproduction:
    """Run experiments and write their tables and figures, and a summary of all.

    What was finished before under the same settings, by the same code and from the same
    data is taken from the folder.

    Parameters
    ----------
    out : Path
        The folder to write to.
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
        How many processes.
    beyond : bool
        Whether curves past the paper are added.
    command : str
        For the summary.
    force : bool
        Whether results of another seed or variant in the folder are replaced, instead
        of an error.
    step, tick : callable
        As for `fill_in`.
    """
    if find_spec("matplotlib") is None:
        raise ModuleNotFoundError(
            'Figures need matplotlib. Install it by pip install "missratio[report]".'
        )
    from missratio.reproduce.figures import figures

    began, conditions = time.monotonic(), Conditions(variant, seed)
    results, skipped = plan(ids, conditions, methods, runs, beyond=beyond)
    wanted = {"seed": seed, "variant": variant}
    # The folder may have results of another seed or variant.
    before: dict[str, Any] = wanted
    with suppress(OSError, ValueError):
        record = json.loads((out / "run.json").read_text())
        before = {name: record.get(name, value) for name, value in wanted.items()}
    if before != wanted and not force:
        raise DestinationError(
            Message(
                "{folder} has the results of {before}, and {wanted} would replace "
                "them.",
                facts={"folder": out, "before": before, "wanted": wanted},
                remedies=("choose another folder", Remedy.OVERWRITE),
            )
        )
    resumed = fill_in(results, out, jobs, step, tick)
    pages: dict[str, bytes] = {}
    for result in results:
        pages[f"{result.experiment.id}.parquet"] = result.as_parquet()
        for name, formats in figures(result).items():
            pages |= {f"{name}.{kind}": content for kind, content in formats.items()}
    made = Reproduction(results, skipped, command, time.monotonic() - began)
    record = wanted | {
        "command": command,
        "jobs": jobs,
        "wall_seconds": made.wall_seconds,
        "tasks_resumed": resumed,
        "skipped": skipped,
    }
    pages["summary.md"] = made.markdown().encode()
    pages["results.json"] = json.dumps(made.as_json(), indent=1).encode()
    pages["run.json"] = json.dumps(record, indent=1).encode()
    out.mkdir(parents=True, exist_ok=True)
    for name, content in pages.items():
        write_whole(out / name, content)
    return made
