"""Threads over blocks of rows, each with a BLAS of one thread.

NumPy lets go of the interpreter lock within a block, and BLAS's own threads gain
nothing on blocks that fit the cache. A thread that has to wait for the lock sleeps: on
16 cores each operation on a block costs all of them about 50 microseconds. So blocks
are few and large, operations on them few, and threads as many as there is work for.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from threading import Lock
from types import SimpleNamespace
from typing import Any, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

THREADED_ELEMENTS = 250_000

# The C library of Linux gives memory back at once, and asks for it anew, until a piece
# as large has been freed once: naive Bayes of 300,000 × 30 took three times as long.
np.empty(31 << 20, np.uint8)

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


@cache
def _blas_libraries() -> list[Any]:
    every = ThreadpoolController().lib_controllers
    blas = [library for library in every if library.user_api == "blas"]
    return [library for library in blas if library.num_threads is not None]


_held = ContextVar[int | None]("_held", default=None)


@cache
def _hold() -> SimpleNamespace:
    """How many threads hold BLAS, and the limits that the first of them noted."""
    return SimpleNamespace(lock=Lock(), holders=0, noted=[])


def _limit(library: Any, threads: int) -> None:
    library.set_num_threads(threads)
    # Newer versions let no thread but the one that set a limit change it again.
    let_go = getattr(library, "clear_controlling_thread", None)
    if let_go is not None:
        let_go()


@contextmanager
def hold_threads(threads: int) -> Iterator[None]:
    """Hold BLAS to one thread, and the sharing of blocks to as many as given.

    OpenBLAS on threads of its own has one limit for the process: the first to hold it
    notes the limit, and the last to let go gives it back, whichever thread that is.
    Elsewhere each thread has a limit, and each gives its own back.
    """
    libraries, hold, token = _blas_libraries(), _hold(), _held.set(threads)
    with hold.lock:
        before = [library.num_threads for library in libraries]
        hold.noted = hold.noted if hold.holders else before
        hold.holders += 1
        for library in libraries:
            _limit(library, 1)
    try:
        yield
    finally:
        _held.reset(token)
        with hold.lock:
            hold.holders -= 1
            for library, mine, noted in zip(libraries, before, hold.noted, strict=True):
                layer = getattr(library, "threading_layer", None)
                has_one_limit = library.internal_api in ("openblas", "blis")
                if not has_one_limit or layer == "openmp":
                    _limit(library, mine)
                elif not hold.holders:
                    _limit(library, noted)


@contextmanager
def one_blas_thread(size: int) -> Iterator[int]:
    """Hold BLAS to one thread and say how many threads blocks may be shared among.

    For work on fewer numbers than BLAS itself would start threads for, nothing is done.
    May be nested: the outermost one holds.
    """
    if size < 8192:
        yield 1
        return
    # More than two threads have half a million numbers each, or they would wait for one
    # another.
    useful = 1 if size < THREADED_ELEMENTS else max(2, size // 500_000)
    threads = _held.get()
    if threads is not None:
        yield min(threads, useful)
        return
    # As many as the user lets BLAS have: the least of the libraries loaded. Others may
    # be loaded after the user has set a limit, and know nothing of it.
    limits = (library.num_threads for library in _blas_libraries())
    threads = int(min(limits, default=1))
    with hold_threads(threads):
        yield min(threads, useful)


def share(
    work: Callable[[_Item], _Result], items: Sequence[_Item], threads: int
) -> list[_Result]:
    """Map work over items, in order, among threads; the caller's is one of them."""
    if threads == 1 or len(items) <= 1:
        return [work(item) for item in items]
    done: dict[int, _Result] = {}
    failed: dict[int, BaseException] = {}
    left = iter(range(len(items)))

    def work_off() -> None:
        while not failed and (i := next(left, None)) is not None:
            try:
                done[i] = work(items[i])
            except BaseException as error:
                failed[i] = error

    # A helper that has no turn stays in the queue, and must not keep the items alive.
    waiting = [work_off]
    helpers = [
        _workers(threads - 1).submit(lambda: [turn() for turn in [*waiting]])
        for _ in range(threads - 1)
    ]
    work_off()
    waiting.clear()
    for helper in helpers:
        # One that had no turn, as all workers wait for such as this, isn't needed.
        if not helper.cancel():
            helper.result()
    if failed:
        raise failed[min(failed)]
    return [done[i] for i in range(len(items))]


@cache
def _workers(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="missratio")


if hasattr(os, "register_at_fork"):
    # Threads don't survive a fork, nor do their holds: a child makes its own.
    os.register_at_fork(after_in_child=_workers.cache_clear)
    os.register_at_fork(after_in_child=_hold.cache_clear)
