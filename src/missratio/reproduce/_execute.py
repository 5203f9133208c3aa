"""Experiments run in parallel, task by task, and resumed where they were left."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed

from missratio._threads import single_threaded
from missratio._typing import FloatArray
from missratio.reproduce._experiment import Conditions, Experiment
from missratio.reproduce._registry import EXPERIMENTS
from missratio.reproduce._results import Result
from missratio.reproduce._store import Finished, Store, Task

Tick = Callable[[Task, int], None]
"""Told of a task that is done, and of how many runs at a point that makes."""


@dataclass(frozen=True)
class Plan:
    """Which runs of an experiment to make.

    Parameters
    ----------
    experiment : Experiment
    methods : tuple of str
    runs : int, optional
        How many; None for as many as the paper made, or of slow methods for as many as
        fit into the time set aside for them.
    """

    experiment: Experiment
    methods: tuple[str, ...]
    runs: int | None = None

    @property
    def n_runs(self) -> int:
        """How many runs are made of methods that are not slow."""
        # A figure of one run stays one.
        limit = self.experiment.runs
        return limit if self.runs is None or limit == 1 else self.runs

    @property
    def quick_methods(self) -> tuple[str, ...]:
        """Methods that are computed together."""
        slow = self.experiment.slow_methods
        return tuple(method for method in self.methods if method not in slow)

    @property
    def slow_methods(self) -> tuple[str, ...]:
        """Methods that are computed one by one."""
        return tuple(m for m in self.methods if m not in self.quick_methods)

    @property
    def seconds_for_slow(self) -> float | None:
        """For how long slow runs are begun."""
        return self.experiment.slow_seconds if self.runs is None else None

    def quick_tasks(self, conditions: Conditions) -> list[Task]:
        """Tasks of all methods that are computed together."""
        if not self.quick_methods:
            return []
        size = self.experiment.runs_per_task
        return self._tasks(self.quick_methods, size, conditions)

    def slow_tasks(self, conditions: Conditions) -> list[Task]:
        """Tasks of one run each, in an order in which points advance together."""
        return [
            task
            for method in self.slow_methods
            for task in self._tasks((method,), 1, conditions)
        ]

    def _tasks(
        self, methods: tuple[str, ...], size: int, conditions: Conditions
    ) -> list[Task]:
        starts = range(0, self.n_runs, size)
        return [
            Task(
                self.experiment.id,
                points,
                range(start, min(start + size, self.n_runs)),
                methods,
                conditions,
            )
            for start in starts
            for points in self.experiment.blocks
        ]


def compute(task: Task) -> tuple[Task, Finished]:
    """Compute a task on one core, so that how many there are changes no digit."""
    began = time.process_time()
    experiment = EXPERIMENTS[task.experiment]
    with single_threaded():
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
        quick = [task for plan in plans for task in plan.quick_tasks(self.conditions)]
        self._work(quick, store, fingerprints, None)
        for plan in plans:
            slow = plan.slow_tasks(self.conditions)
            self._work(slow, store, fingerprints, plan.seconds_for_slow)
        return [self._result(plan) for plan in plans]

    def _work(
        self,
        tasks: Sequence[Task],
        store: Store,
        fingerprints: dict[str, str],
        seconds: float | None,
    ) -> None:
        """Do tasks; with a bound in seconds, begin none after it."""
        todo, spent = [], 0.0
        for task in tasks:
            finished = store.load(task, fingerprints[task.experiment])
            if finished is None:
                todo.append(task)
            else:
                self.resumed += 1
                spent += finished.seconds / self.jobs
                self._keep(task, finished)
        deadline = None if seconds is None else time.monotonic() + seconds - spent
        pool = Parallel(
            n_jobs=self.jobs,
            return_as="generator_unordered",
            batch_size=1,
            pre_dispatch="n_jobs" if seconds else "2 * n_jobs",
        )
        for task, finished in pool(
            delayed(compute)(task) for task in _until(todo, deadline)
        ):
            store.save(task, fingerprints[task.experiment], finished)
            self._keep(task, finished)

    def _keep(self, task: Task, finished: Finished) -> None:
        self._finished[task] = finished
        self.tick(task, len(task.runs) * len(task.points))

    def _result(self, plan: Plan) -> Result:
        """All values of an experiment, in an order that no job had a say in."""
        x = plan.experiment.x
        values: dict[str, FloatArray] = {
            method: np.full((plan.n_runs, len(x)), np.nan) for method in plan.methods
        }
        seconds: dict[str, float] = {}
        tasks = plan.quick_tasks(self.conditions) + plan.slow_tasks(self.conditions)
        for task in tasks:
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
