"""Partitions of Dask collections, each computed by one task.

A scheduler takes about a millisecond a task, and a partition is several: its rows, its
labels, and what they are made of. What only one partition needs is computed within its
one task. What several need, or what already lies with a worker, stays by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any


class Recipe:
    """How values are computed from others, which come from elsewhere.

    Dask doesn't look into it, as it would into a dataclass or a mapping.

    Parameters
    ----------
    tasks : mapping from key to task
    wanted : sequence of keys
    inputs : sequence of keys
        Of the values that come from elsewhere.
    """

    def __init__(
        self,
        tasks: Mapping[Hashable, Any],
        wanted: Sequence[Hashable],
        inputs: Sequence[Hashable],
    ) -> None:
        self.tasks = tasks
        self.wanted = wanted
        self.inputs = inputs

    def compute(self, values: Sequence[Any]) -> Sequence[Any]:
        """What is wanted, from the values of the inputs."""
        import dask
        from dask.core import literal

        given = {
            key: (literal(value),)
            for key, value in zip(self.inputs, values, strict=True)
        }
        found: Sequence[Any] = dask.get({**self.tasks, **given}, list(self.wanted))
        return found


def fused(
    work: Callable[..., Any],
    partitions: Sequence[Sequence[Any]],
    arguments: Sequence[Sequence[Any]],
) -> list[Any]:
    """Work on each partition's values, as one delayed value a partition.

    Parameters
    ----------
    work : callable
        From a partition's arguments and its values.
    partitions : sequence of sequences of delayed values
    arguments : sequence of sequences
        For each partition, what comes before its values.
    """
    from dask.core import get_deps
    from dask.delayed import Delayed, delayed

    graphs = {id(value.dask): value.dask for own in partitions for value in own}
    graph = {key: task for each in graphs.values() for key, task in each.items()}
    # Dask leaves values out of a graph that it knows to lie with a worker. Its tasks
    # name them all the same. A future names itself.
    within = get_deps(graph)[0]
    needs = {
        key: {*getattr(task, "dependencies", within[key])} - {key}
        for key, task in graph.items()
    }
    wanted = [[value.key for value in own] for own in partitions]
    owner = _owners(graph, needs, wanted)
    tasks: list[dict[Hashable, Any]] = [{} for _ in partitions]
    rest: dict[Hashable, Any] = {}
    for key, task in graph.items():
        number = owner[key]
        own = rest if number is None else tasks[number]
        own[key] = task
    call = delayed(_compute, pure=False)
    found = []
    for keys, own, own_arguments in zip(wanted, tasks, arguments, strict=True):
        inputs = list(
            dict.fromkeys(
                key
                for key in [*keys, *(each for task in own for each in needs[task])]
                if key not in own
            )
        )
        values = [Delayed(key, rest) for key in inputs]
        found.append(call(work, own_arguments, Recipe(own, keys, inputs), values))
    return found


def _owners(
    graph: Mapping[Hashable, Any],
    needs: Mapping[Hashable, Any],
    wanted: Sequence[Sequence[Hashable]],
) -> dict[Hashable, int | None]:
    """For each task the one partition that needs it, or None."""
    from dask.core import toposort
    from distributed import Future

    askers: dict[Hashable, set[int | None]] = {}
    for number, keys in enumerate(wanted):
        for key in keys:
            askers.setdefault(key, set()).add(number)
    owner: dict[Hashable, int | None] = {}
    known = {key: [each for each in own if each in graph] for key, own in needs.items()}
    # Those that need a task come before it.
    for key in reversed(toposort(graph, dependencies=known)):
        own, lies = askers.get(key, set()), isinstance(graph[key], Future)
        owner[key] = own.pop() if len(own) == 1 and not lies else None
        for each in needs[key]:
            askers.setdefault(each, set()).add(owner[key])
    return owner


def _compute(
    work: Callable[..., Any],
    arguments: Sequence[Any],
    recipe: Recipe,
    values: Sequence[Any],
) -> Any:
    return work(*arguments, *recipe.compute(values))
