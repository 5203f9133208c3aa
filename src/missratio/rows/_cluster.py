"""Rows that lie on a cluster: partitions of a Dask collection, or files of workers.

One task a worker and pass: parameters travel to the workers, each sums up the parts
that it holds, and only sums come back. They are merged in the parts' order, so that
digits don't depend on how many workers there are, nor on which part lies where.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from missratio.rows._labelled import LabelledBlock, LabelledSource

_Result = TypeVar("_Result")

TRIES = 3


@dataclass(frozen=True)
class ClusterSource(LabelledSource):
    """Labelled rows in parts that lie with the workers of a cluster.

    Parameters
    ----------
    client : distributed.Client
    parts : tuple of distributed.Future
        Each is a list of `LabelledBlock`, or a source that a worker reads.
    names : tuple of str
    rows : int
        The number of rows.
    """

    client: Any
    parts: tuple[Any, ...]
    names: tuple[str, ...]
    rows: int

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return self.rows

    def fold(
        self,
        work: Callable[[LabelledBlock], _Result],
        merge: Callable[[Sequence[_Result]], _Result],
    ) -> _Result:
        """One task a worker; results by part, merged here in the parts' order."""
        tasks = [
            (
                numbers,
                self.client.submit(
                    _fold_parts,
                    work,
                    merge,
                    [self.parts[i] for i in numbers],
                    workers=[worker],
                    allow_other_workers=True,
                    pure=False,
                    retries=TRIES,
                ),
            )
            for worker, numbers in self._by_worker()
        ]
        found: dict[int, _Result] = {}
        try:
            for numbers, task in tasks:
                found.update(zip(numbers, task.result(), strict=True))
        except Exception as error:
            self._explain(error)
            raise
        results = [found[i] for i in range(len(self.parts)) if found[i] is not None]
        return merge(results)

    def _by_worker(self) -> Iterator[tuple[str, list[int]]]:
        """Which parts each worker holds; those of none go where there are fewest."""
        holders = self.client.who_has(list(self.parts))
        held: dict[str, list[int]] = {
            worker: [] for worker in self.client.scheduler_info(-1)["workers"]
        }
        if not held:
            raise RuntimeError(
                "The cluster has no worker: start some, and fit again."
            )
        homeless = []
        for i, part in enumerate(self.parts):
            home = [w for w in holders.get(part.key, ()) if w in held]
            if home:
                held[min(home)].append(i)
            else:
                homeless.append(i)
        for i in homeless:
            held[min(held, key=lambda worker: len(held[worker]))].append(i)
        return ((worker, sorted(numbers)) for worker, numbers in held.items() if numbers)

    def _explain(self, error: Exception) -> None:
        """Say which rows are gone, where the error is that they are."""
        lost = [i for i, part in enumerate(self.parts) if part.status != "finished"]
        if lost:
            shown = ", ".join(map(str, lost[:10]))
            raise RuntimeError(
                f"Part(s) {shown} of the rows are lost: the worker that held them is "
                "gone, and the cluster can't compute them again. Bring the collection "
                "from where it was read (persist() keeps the recipe, scatter() "
                "doesn't), and fit again."
            ) from error


def _fold_parts(work: Any, merge: Any, parts: Sequence[Any]) -> list[Any]:
    """The sums of each part, on a worker; None for an empty one."""
    return [_fold_part(work, merge, part) for part in parts]


def _fold_part(work: Any, merge: Any, part: Any) -> Any:
    if isinstance(part, LabelledSource):
        return part.fold(work, merge)
    results = [work(block) for block in part if len(block.labels)]
    return merge(results) if results else None
