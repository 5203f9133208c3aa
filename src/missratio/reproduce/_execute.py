"""Experiments run in parallel, task by task, and resumed where they were left."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from joblib.externals.loky.process_executor import TerminatedWorkerError
from threadpoolctl import threadpool_limits

from missratio._base.threads import single_threaded
from missratio._base.typing import FloatArray
from missratio.reproduce._experiment import Conditions, Experiment, fits_of
from missratio.reproduce._memory import keep_freed_memory
from missratio.reproduce._registry import EXPERIMENTS
from missratio.reproduce._results import Result
from missratio.reproduce._store import Finished, Store, Task

ATTEMPTS = 3
Tick = Callable[[Task, int], None]
"""Told of a task that is done, and of how many runs at a point that makes."""


@dataclass(frozen=True)
class Stage:
    """Tasks that are shared out together.

    Parameters
    ----------
    tasks : list of Task
        In an order in which points advance together.
    seconds : float, optional
        For how long they are begun; None: until all are done.
    """

    tasks: list[Task]
    seconds: float | None = None


@dataclass(frozen=True)
class Plan:
    """Which runs of an experiment to make.

    Parameters
    ----------
    experiment : Experiment
    methods : tuple of str
    runs : int, optional
        How many; None for as many as the paper made, of slow methods for as many as fit
        into the time set aside for them, and of curves past the paper for as many as
        the experiment says.
    """

    experiment: Experiment
    methods: tuple[str, ...]
    runs: int | None = None

    def n_runs(self, method: str) -> int:
        """How many runs are made of a method."""
        experiment = self.experiment
        past = method in experiment.beyond
        limit = (experiment.beyond_runs if past else None) or experiment.runs
        # A figure of one run stays one.
        return limit if self.runs is None or limit == 1 else self.runs

    def stages(self, conditions: Conditions) -> tuple[Stage, Stage, Stage]:
        """What is quick and computed together; what is slow; what is past the paper."""
        experiment = self.experiment
        past = [m for m in self.methods if m in experiment.beyond]
        slow = [m for m in self.methods if m in experiment.slow_methods]
        quick = [m for m in self.methods if m not in past and m not in slow]
        size = experiment.runs_per_task
        together = self._tasks(tuple(quick), size, conditions) if quick else []
        seconds = experiment.slow_seconds if self.runs is None else None
        return (
            Stage(together),
            Stage(self._one_by_one(slow, conditions), seconds),
            Stage(self._one_by_one(past, conditions)),
        )

    def _one_by_one(self, methods: Sequence[str], conditions: Conditions) -> list[Task]:
        """Tasks of one run and one method's fits, all of a run before the next."""
        groups: dict[str, list[str]] = {}
        for method in methods:
            groups.setdefault(fits_of(method), []).append(method)
        tasks = [
            task
            for group in groups.values()
            for task in self._tasks(tuple(group), 1, conditions)
        ]
        return sorted(tasks, key=lambda task: task.runs.start)

    def tasks(self, conditions: Conditions) -> list[Task]:
        """The tasks of all stages."""
        return [task for stage in self.stages(conditions) for task in stage.tasks]

    def _tasks(
        self, methods: tuple[str, ...], size: int, conditions: Conditions
    ) -> list[Task]:
        n_runs = self.n_runs(methods[0])
        return [
            Task(
                self.experiment.id,
                points,
                range(start, min(start + size, n_runs)),
                methods,
                conditions,
            )
            for start in range(0, n_runs, size)
            for points in self.experiment.blocks
        ]


def compute(task: Task) -> tuple[Task, Finished]:
    """Compute a task on one core, so that how many there are changes no digit."""
    keep_freed_memory()
    began = time.process_time()
    experiment = EXPERIMENTS[task.experiment]
    with single_threaded(), threadpool_limits(1, user_api="openmp"):
        values = experiment.procedure.measure(
            task.points, task.runs, task.methods, task.conditions
        )
    return task, Finished(values, time.process_time() - began)


@dataclass
class Runner:
    """Computes plans, keeps what is finished, and puts it together.

    Parameters
    ----------
    out : Path
        The folder to keep finished tasks in.
    conditions : Conditions
    jobs : int
        How many processes.
    tick : callable
        Told of every task that is done.
    """

    out: Path
    conditions: Conditions
    jobs: int
    tick: Tick
    resumed: int = field(default=0, init=False)
    """How many tasks had been finished before."""
    _finished: dict[Task, Finished] = field(default_factory=dict, init=False)

    def run(self, plans: Sequence[Plan]) -> list[Result]:
        """Compute all that is not finished yet."""
        store = Store(self.out)
        fingerprints = {
            plan.experiment.id: plan.experiment.procedure.fingerprint(self.conditions)
            for plan in plans
        }
        stages = [plan.stages(self.conditions) for plan in plans]
        quick = Stage([task for first, *_ in stages for task in first.tasks])
        later = [stage for _, *rest in stages for stage in rest]
        for stage in (quick, *later):
            self._work(stage, store, fingerprints)
        return [self._result(plan) for plan in plans]

    def _work(self, stage: Stage, store: Store, fingerprints: dict[str, str]) -> None:
        """Do a stage's tasks; with a bound in seconds, begin none after it."""
        todo, spent, seconds = [], 0.0, stage.seconds
        for task in stage.tasks:
            finished = store.load(task, fingerprints[task.experiment])
            if finished is None:
                todo.append(task)
            else:
                self.resumed += 1
                spent += finished.seconds / self.jobs
                self._keep(task, finished)
        deadline = None if seconds is None else time.monotonic() + seconds - spent
        killed = 0
        while True:
            left = [task for task in todo if task not in self._finished]
            try:
                for task, finished in self._pool(seconds is not None)(
                    delayed(compute)(task) for task in _until(left, deadline)
                ):
                    store.save(task, fingerprints[task.experiment], finished)
                    self._keep(task, finished)
            except TerminatedWorkerError as error:
                killed += 1
                if killed == ATTEMPTS:
                    raise ChildProcessError(
                        f"A process was killed {ATTEMPTS} times over, as happens where "
                        f"memory runs out. Use fewer than {self.jobs} processes "
                        "(--jobs): what is finished is kept."
                    ) from error
            else:
                return

    def _pool(self, timed: bool) -> Any:
        return Parallel(
            n_jobs=self.jobs,
            return_as="generator_unordered",
            batch_size=1,
            pre_dispatch="n_jobs" if timed else "2 * n_jobs",
        )

    def _keep(self, task: Task, finished: Finished) -> None:
        self._finished[task] = finished
        self.tick(task, len(task.runs) * len(task.points))

    def _result(self, plan: Plan) -> Result:
        """All values of an experiment, in an order that no job had a say in."""
        x = plan.experiment.x
        values: dict[str, FloatArray] = {
            method: np.full((plan.n_runs(method), len(x)), np.nan)
            for method in plan.methods
        }
        seconds: dict[str, float] = {}
        for task in plan.tasks(self.conditions):
            finished = self._finished.get(task)
            if finished is None:
                continue
            columns = [x.index(point) for point in task.points]
            for method, own in finished.values.items():
                values[method][task.runs.start : task.runs.stop, columns] = own
            first = task.methods[0]
            seconds[first] = seconds.get(first, 0.0) + finished.seconds
        return Result(plan.experiment, self.conditions, values, seconds)


def _until(tasks: Sequence[Task], deadline: float | None) -> Iterator[Task]:
    for task in tasks:
        if deadline is not None and time.monotonic() >= deadline:
            return
        yield task
