"""Rows that lie on a cluster: partitions of a Dask collection, or files of workers.

One task a worker and pass: parameters travel to the workers, each sums up the parts
that it holds, and only sums come back. They are merged in the parts' order, so that
digits don't depend on how many workers there are, nor on which part lies where.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
from sklearn.utils import check_array

from missratio._base.reading import FLOATS, read_labels, refuse_foreign
from missratio.exceptions import UnreadableFileError
from missratio.rows.labelled import LabelledBlock, LabelledSource
from missratio.rows.source import Merge, Result

# For each worker, its address, and the parts that it holds with their numbers.
Holdings = Sequence[tuple[str, Any]]

# How often a pass is tried again where a worker fails in it.
RETRIES = 2
# Characters of what Dask says, which may list every task.
SHOWN = 300


@dataclass(frozen=True)
class ClusterSource(LabelledSource):
    """Labelled rows in parts that lie with the workers of a cluster.

    Parameters
    ----------
    client : distributed.Client
    holdings : sequence of (str, distributed.Future)
        For each worker, its address, and the parts that it holds with their numbers.
    names : tuple of str
    n_rows : int
    """

    client: Any
    holdings: Holdings
    names: tuple[str, ...]
    n_rows: int

    def __reduce__(self) -> tuple[Any, ...]:
        # On a worker it is only a name.
        return type(self), (None, (), self.names, self.n_rows)

    def fold(
        self, work: Callable[[LabelledBlock], Result], merge: Merge[Result]
    ) -> Result:
        """One task a worker; what it makes of its parts is merged in their order."""

        def on_parts(parts: list[tuple[int, Any]]) -> bytes:
            found = []
            for number, part in parts:
                if isinstance(part, LabelledSource):
                    found.append((number, part.fold(work, merge)))
                elif len(part.labels):
                    found.append((number, merge([work(part)])))
            # Dask would take a list of hundreds apart, which for 1,000 parts takes
            # longer than all else of a pass.
            return pickle.dumps(found, pickle.HIGHEST_PROTOCOL)

        with _explained():
            packed = _gathered(self.client, on_parts, self.holdings)
        found = dict(chain(*map(pickle.loads, packed)))
        return merge([found[number] for number in sorted(found)])


@contextmanager
def _explained() -> Iterator[None]:
    """Say what to do where a cluster fails; what is wrong with rows says so itself."""
    try:
        yield
    except (ValueError, UnreadableFileError):
        raise
    except Exception as error:
        said = f"{type(error).__name__}: {error}"[:SHOWN].rstrip(". ")
        raise RuntimeError(
            f"The cluster couldn't work on its rows: {said}. The client or the cluster "
            "was closed, a worker was lost with rows that can't be computed again, or "
            "it ran out of memory. Bring the collection from where it was read, or in "
            "smaller partitions, and fit again."
        ) from error


def held(client: Any, parts: Sequence[Any]) -> Holdings:
    """Parts where they lie: for each worker that has some, those as one value.

    So a pass has one task a worker. Where a worker is lost, the cluster computes its
    parts again on another.
    """
    from distributed import wait

    own: dict[str, list[Any]] = {w: [] for w in client.scheduler_info(-1)["workers"]}
    if not own:
        raise RuntimeError("The cluster has no worker: start some, and fit again.")
    wait(parts)
    holders = client.who_has(parts)
    for i, part in enumerate(parts):
        at = [worker for worker in holders.get(part.key, ()) if worker in own]
        least = min(own, key=lambda worker: len(own[worker]))
        own[min(at) if at else least].append((i, part))
    return _on_each(client, list, [(w, given) for w, given in own.items() if given])


def _on_each(client: Any, work: Callable[[Any], Any], holdings: Holdings) -> Holdings:
    """The same workers with what one task each makes of what they hold."""
    # Without a worker's address the scheduler may move its parts to another one.
    options = {"allow_other_workers": True, "pure": False, "retries": RETRIES}
    return [
        (worker, client.submit(work, holding, workers=[worker], **options))
        for worker, holding in holdings
    ]


def _gathered(client: Any, work: Callable[[Any], Any], holdings: Holdings) -> list[Any]:
    """What one task a worker makes of what it holds, here."""
    found = [future for _, future in _on_each(client, work, holdings)]
    return list(client.gather(found))


def of_collection(X: Any, y: Any) -> ClusterSource:
    """A Dask array or dataframe and its labels as a source, on the current client.

    Parameters
    ----------
    X : dask.array.Array or dask.dataframe.DataFrame
    y : dask.array.Array, dask.dataframe.Series, or array-like
        Labels, in partitions of the same rows.
    """
    try:
        from dask.delayed import delayed
        from distributed import default_client

        client = default_client()
    except (ImportError, ValueError) as error:
        raise RuntimeError(
            "A Dask collection is fitted on a cluster, and there is no client. Install "
            "missratio[dask], and make one first: distributed.Client() starts workers "
            "on this machine."
        ) from error
    names = [str(name) for name in getattr(X, "columns", ())]
    if not names:
        if len(X.shape) != 2 or X.shape[1] != X.shape[1]:
            raise ValueError(
                f"X must have two dimensions, rows and columns; got shape {X.shape}."
            )
        names = [f"x{j}" for j in range(int(X.shape[1]))]
    rows, labels = _partitions(X), _partitions(y)
    if len(rows) != len(labels):
        raise ValueError(
            f"X has {len(rows)} partitions and y has {len(labels)}: cut both alike, as "
            "by y = frame['label'], or y.rechunk(...)."
        )
    block = delayed(_as_block, pure=True)
    pairs = zip(rows, labels, strict=True)
    parts = client.compute([block(names, i, *pair) for i, pair in enumerate(pairs)])

    # Rows are counted, and each part is told where it begins, by one task a worker.
    def counted(own: Any) -> Any:
        return [(number, len(block.rows)) for number, block in own]

    def placed(own: Any) -> Any:
        return [(number, replace(part, start=starts[number])) for number, part in own]

    with _explained():
        holdings = held(client, parts)
        counts = dict(chain(*_gathered(client, counted, holdings)))
    starts = [0, *np.cumsum([counts[i] for i in range(len(parts))]).tolist()]
    holdings = _on_each(client, placed, holdings)
    return ClusterSource(client, holdings, tuple(names), starts[-1])


def of_files(source: LabelledSource, client: Any) -> ClusterSource:
    """A source of files that workers read themselves, a part for each row group."""
    if not hasattr(client, "scheduler_info"):
        raise TypeError(
            f"client must be a distributed.Client, got {client!r}. Make one by "
            "distributed.Client(address)."
        )
    # A task that copies a part, so that it can be made again where a worker is lost.
    holdings = held(client, client.map(copy, source.split(), pure=False))
    return ClusterSource(client, holdings, source.names, source.n_rows)


def _partitions(collection: Any) -> list[Any]:
    """The partitions by rows, as delayed values."""
    if not hasattr(collection, "to_delayed"):
        raise TypeError(
            "y must be a Dask collection, as X is, with partitions of the same rows; "
            f"got {type(collection).__name__}."
        )
    if hasattr(collection, "numblocks") and len(collection.numblocks) == 2:
        # A block must hold whole rows.
        collection = collection.rechunk({1: -1})
    return list(np.ravel(collection.to_delayed()))


def _as_block(names: list[str], number: int, rows: Any, labels: Any) -> LabelledBlock:
    """One partition, on the worker that holds it."""
    where = f"partition {number}"
    found = [str(name) for name in getattr(rows, "columns", names)]
    if found != names:
        raise ValueError(f"The columns of {where} are {found}, not {names}.")
    try:
        refuse_foreign(rows)
        options = {"ensure_all_finite": False, "ensure_min_samples": 0}
        table = check_array(rows, dtype=FLOATS, order="C", **options)
        marks = read_labels(labels)
    except (TypeError, ValueError) as error:
        raise ValueError(f"In {where}: {error}") from error
    marks = marks.astype(str) if marks.dtype.kind == "O" else marks
    if table.shape != (len(marks), len(names)):
        raise ValueError(
            f"X and y differ in {where}: {table.shape} and {marks.shape}. Cut both "
            "into the same rows."
        )
    return LabelledBlock(table, marks, 0, where)
