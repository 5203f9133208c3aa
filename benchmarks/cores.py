"""How a fit speeds up with cores: python benchmarks/cores.py [THREADS ...]

2,000,000 + 2,000,000 × 50 float64 rows (1.6 GB): time of `KLIEP().fit` on 1, 2, 4 …
threads, beside the time that reading X takes them; the coefficients must be the same to
the last digit. Then what the memory allows: processes that share nothing, and only take
scores, exponentials and sums of rows of their own. Runs from the repository, installed
or not.
"""

from __future__ import annotations

import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import Manager
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import uninstalled  # noqa: F401  isort: skip
import missratio as mr

N_ROWS, N_COLUMNS, REPEATS = 2_000_000, 50, 3
PARTS = 64


def table(missing: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    X = np.empty((2 * N_ROWS, N_COLUMNS))
    length = len(X) // PARTS

    def fill(part: int) -> None:
        rng = np.random.default_rng(part)
        rows = X[part * length : (part + 1) * length]
        rng.standard_normal(out=rows)
        if missing:
            rows[rng.random(rows.shape) < missing] = np.nan

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(fill, range(PARTS)))
    X[N_ROWS:] += 0.2 * np.random.default_rng(1).normal(size=N_COLUMNS)
    return X, np.repeat([0, 1], N_ROWS)


def reading(X: np.ndarray, threads: int) -> float:
    parts = np.array_split(X, PARTS)
    with ThreadPoolExecutor(threads) as pool:
        begin = time.perf_counter()
        list(pool.map(lambda part: part.sum(), parts))
        return time.perf_counter() - begin


def measure(threads: list[int], X: np.ndarray, y: np.ndarray, ratio: mr.KLIEP) -> None:
    best = {(what, t): np.inf for what in ("read", "fit") for t in threads}
    coef = None
    for _ in range(REPEATS):
        for t in threads:
            best["read", t] = min(best["read", t], reading(X, t))
            with threadpool_limits(t):
                begin = time.perf_counter()
                found = ratio.fit(X, y).coef_
                best["fit", t] = min(best["fit", t], time.perf_counter() - begin)
            coef = found if coef is None else coef
            assert np.array_equal(coef, found), "digits depend on the number of threads"
    print(f"{ratio!r}, {ratio.n_iter_} steps; the same digits on all")
    print("threads   fit, s   speed-up   reads of X   reading X, s")
    for t in threads:
        fit, read = best["fit", t], best["read", t]
        speed = best["fit", threads[0]] / fit
        print(f"{t:7d} {fit:8.3f} {speed:10.2f} {fit / read:12.1f} {read:14.4f}")


def passes_a_second(seed: int, start: Any) -> float:
    """How many times a process goes over rows of its own in a second."""
    X = np.random.default_rng(seed).standard_normal((N_ROWS // 10, N_COLUMNS))
    coef, done = np.full(N_COLUMNS, 0.01), 0
    with threadpool_limits(1):
        start.wait()
        begin = time.perf_counter()
        while time.perf_counter() - begin < 1.0:
            for rows in np.array_split(X, 64):
                score = rows @ coef
                np.dot(np.exp(score, out=score), rows)
            done += 1
        return done / (time.perf_counter() - begin)


def ceiling(processes: list[int]) -> None:
    print("processes   speed-up of rows that are in nobody else's way")
    alone = None
    for n in processes:
        with Manager() as manager, ProcessPoolExecutor(n) as pool:
            start = manager.Barrier(n)
            speed = sum(pool.map(passes_a_second, range(n), [start] * n))
        alone = alone or speed
        print(f"{n:9d} {speed / alone:10.2f}")


def main(arguments: list[str]) -> None:
    cores = os.cpu_count() or 1
    threads = [int(each) for each in arguments] or [
        t for t in (1, 2, 4, 8, 16, 32) if t <= cores
    ]
    print(f"{N_ROWS:,} + {N_ROWS:,} x {N_COLUMNS}, {cores} cores")
    measure(threads, *table(), mr.KLIEP())
    constant = mr.LogisticMissingness(np.full(N_COLUMNS, np.log(1 / 9)), 0.0)
    X, y = table(missing=0.1)
    X[:N_ROWS][np.isnan(X[:N_ROWS])] = 0.0
    measure(threads, X, y, mr.KLIEP(missingness={1: constant}))
    del X, y
    ceiling(threads)


if __name__ == "__main__":
    main(sys.argv[1:])
