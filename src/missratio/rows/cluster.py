"""Rows that lie on a cluster: partitions of a Dask collection.

One task a worker and pass: parameters travel to the workers, each sums up the parts
that it holds, and only sums come back. They are merged in the parts' order, so that
digits don't depend on how many workers there are, nor on which part lies where.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
from sklearn.utils import check_array

from missratio._base.reading import FLOATS, read_labels, refuse_foreign
from missratio.exceptions import UnreadableFileError
from missratio.rows.labelled import LabelledBlock, LabelledSource
from missratio.rows.source import Merge, Result

# A worker's address goes with the parts that it holds, which are numbered.
Holdings = Sequence[tuple[str, Any]]


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

        def on_blocks(blocks: list[tuple[int, LabelledBlock]]) -> bytes:
            some = ((number, block) for number, block in blocks if len(block.rows))
            results = [(number, merge([work(block)])) for number, block in some]
            # Dask would take a list of hundreds apart, which for 1,000 parts takes
            # longer than all else of a pass.
            return pickle.dumps(results, pickle.HIGHEST_PROTOCOL)

        with _explained():
            packed = _gathered(self.client, on_blocks, self.holdings)
        results = dict(chain(*map(pickle.loads, packed)))
        return merge([results[number] for number in sorted(results)])


@contextmanager
def _explained() -> Iterator[None]:
    """Say what to do where a cluster fails; what is wrong with rows says so itself."""
    try:
        yield
    except (ValueError, UnreadableFileError):
        raise
    except Exception as error:
        # Dask's message may list every task: its beginning is shown.
        said = f"{type(error).__name__}: {error}"[:300].rstrip(". ")
        raise RuntimeError(
            f"The cluster couldn't work on its rows: {said}. The client or the cluster "
            "was closed, a worker was lost with rows that can't be computed again, or "
            "it ran out of memory. Bring the collection from where it was read, or in "
            "smaller partitions, and fit again."
        ) from error


def _on_each(client: Any, work: Callable[[Any], Any], holdings: Holdings) -> Holdings:
    """The same workers with what one task each makes of what they hold."""
    # Without a worker's address the scheduler may move its parts to another one.
    # A pass is tried again twice where a worker fails in it.
    options = {"allow_other_workers": True, "pure": False, "retries": 2}
    return [
        (worker, client.submit(work, holding, workers=[worker], **options))
        for worker, holding in holdings
    ]


def _gathered(client: Any, work: Callable[[Any], Any], holdings: Holdings) -> list[Any]:
    """What one task a worker makes of what it holds, here."""
    return list(client.gather([made for _, made in _on_each(client, work, holdings)]))


def of_collection(X: Any, y: Any) -> ClusterSource:
    """A Dask array or dataframe and its labels as a source, on the current client.

    Partitions are used where they lie. A pass over a thousand of a few rows each takes
    longer than all else: repartition such a collection first.

    Parameters
    ----------
    X : dask.array.Array or dask.dataframe.DataFrame
    y : dask.array.Array, dask.dataframe.Series, or array-like
        Labels, in partitions of the same rows.
    """
    try:
        from distributed import default_client, futures_of, wait

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
    if not hasattr(y, "to_delayed"):
        raise TypeError(
            "y must be a Dask collection, as X is, with partitions of the same rows; "
            f"got {type(y).__name__}."
        )
    if hasattr(X, "rechunk"):
        # A block must hold whole rows.
        X = X.rechunk({1: -1})
    # What both are made of is computed once. A key is a name and a partition's number.
    rows, labels = (
        sorted(futures_of(kept), key=lambda future: future.key[1:])
        for kept in client.persist([X, y])
    )
    if len(rows) != len(labels):
        raise ValueError(
            f"X has {len(rows)} partitions and y has {len(labels)}: cut both alike, as "
            "by y = frame['label'], or y.rechunk(...)."
        )
    with _explained():
        # Ask where partitions lie, and how many rows they have.
        wait([*rows, *labels])
        holders = client.who_has(rows)
        held: dict[str, list[int]] = {
            worker: [] for worker in client.scheduler_info(-1)["workers"]
        }
        if not held:
            raise RuntimeError("The cluster has no worker: start some, and fit again.")
        for i, part in enumerate(rows):
            there = [worker for worker in holders.get(part.key, ()) if worker in held]
            held[min(there or held, key=lambda worker: len(held[worker]))].append(i)
        parts = [(worker, [rows[i] for i in some]) for worker, some in held.items()]
        counted = _gathered(client, lambda some: [len(part) for part in some], parts)
    counts = np.empty(len(rows), dtype=np.intp)
    counts[list(chain(*held.values()))] = list(chain(*counted))
    starts = np.append(0, np.cumsum(counts)).tolist()
    holdings = [
        (worker, [(i, starts[i], rows[i], labels[i]) for i in some])
        for worker, some in held.items()
    ]
    blocks = _on_each(client, partial(_as_blocks, names), holdings)
    return ClusterSource(client, blocks, tuple(names), starts[-1])


def _as_blocks(names: list[str], parts: Any) -> list[tuple[int, LabelledBlock]]:
    """Partitions as blocks with their numbers, on a worker."""
    blocks = []
    for number, start, rows, labels in parts:
        where = f"partition {number}"
        columns = [str(name) for name in getattr(rows, "columns", names)]
        if columns != names:
            raise ValueError(f"The columns of {where} are {columns}, not {names}.")
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
        blocks.append((number, LabelledBlock(table, marks, start, where)))
    return blocks
