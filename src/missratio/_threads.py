"""Threads over blocks of rows, each with a BLAS of one thread.

NumPy lets go of the interpreter lock within a block, and BLAS's own threads gain
nothing on blocks that fit the cache.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import TypeVar

from threadpoolctl import ThreadpoolController

THREADED_ELEMENTS = 250_000
BLAS_THREAD_ELEMENTS = 8192

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


@cache
def _threadpools() -> ThreadpoolController:
    return ThreadpoolController()


def _allowed_threads() -> int:
    """As many threads as the user lets BLAS have: the first one that was loaded.

    Others may be loaded after the user has set a limit, and know nothing of it.
    """
    libraries = _threadpools().lib_controllers
    blas = [lib.num_threads for lib in libraries if lib.user_api == "blas"]
    return int(min(blas, default=1))


@contextmanager
def single_threaded() -> Iterator[None]:
    """Hold everything to one thread, BLAS and the sharing of blocks alike."""
    token = _held.set(1)
    try:
        with _threadpools().limit(limits=1, user_api="blas"):
            yield
    finally:
        _held.reset(token)


_held = ContextVar[int | None]("_held", default=None)


@contextmanager
def one_blas_thread(size: int) -> Iterator[int]:
    """Hold BLAS to one thread and say how many threads blocks may be shared among.

    For work on fewer numbers than BLAS itself would start threads for, nothing is done.
    May be nested: the outermost one holds.
    """
    if size < BLAS_THREAD_ELEMENTS:
        yield 1
        return
    threads = _held.get()
    if threads is not None:
        yield threads if size >= THREADED_ELEMENTS else 1
        return
    threads = _allowed_threads()
    token = _held.set(threads)
    try:
        with _threadpools().limit(limits=1, user_api="blas"):
            yield threads if size >= THREADED_ELEMENTS else 1
    finally:
        _held.reset(token)


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

    helpers = [_workers(threads - 1).submit(work_off) for _ in range(threads - 1)]
    work_off()
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
    # Threads don't survive a fork: a child makes its own.
    os.register_at_fork(after_in_child=_workers.cache_clear)
