"""How a fit's time grows with rows, and falls with cores.

    python benchmarks/scaling.py rows [MOST_ROWS]
    python benchmarks/scaling.py cores [THREADS ...]

rows: `KLIEP().fit` on 10⁴, 10⁵ … rows × 20 float64, half of them of each class: from
memory, and from Parquet files (up to 10⁷), with the threads that BLAS has.

cores: 2,000,000 + 2,000,000 × 50 float64 rows (1.6 GB), on 1, 2, 4 … threads, beside
the time that reading X takes them; the coefficients must be the same to the last digit.
Then what the memory allows: processes that share nothing, and only take scores,
exponentials and sums of rows of their own.

Runs from the repository, installed or not.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import Manager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from threadpoolctl import threadpool_limits

import uninstalled  # noqa: F401  isort: skip
import missratio as mr

PARTS = 64


def table(
    n_rows: int, n_columns: int, missing: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Half of the rows are of each class."""
    X = np.empty((n_rows, n_columns))

    def fill(part: int) -> None:
        rng = np.random.default_rng(part)
        rows = X[part * n_rows // PARTS : (part + 1) * n_rows // PARTS]
        rng.standard_normal(out=rows)
        if missing:
            rows[rng.random(rows.shape) < missing] = np.nan

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(fill, range(PARTS)))
    X[n_rows // 2 :] += 0.2 * np.random.default_rng(PARTS).normal(size=n_columns)
    return X, np.repeat([0, 1], n_rows // 2)


# Rows

MOST, MOST_IN_FILES = 100_000_000, 10_000_000


def best(fit: Callable[[], mr.KLIEP], repeats: int) -> tuple[float, mr.KLIEP]:
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        found = fit()
        times.append(time.perf_counter() - begin)
    return min(times), found


def files(folder: Path, X: np.ndarray, y: np.ndarray) -> None:
    for number, own in enumerate(np.array_split(np.arange(len(X)), 16)):
        rows = slice(own[0], own[-1] + 1)
        columns = {f"x{j}": X[rows, j] for j in range(X.shape[1])}
        path = folder / f"{number:03d}.parquet"
        pq.write_table(pa.table({**columns, "y": y[rows]}), path)


def rows(arguments: list[str]) -> None:
    most = int(float(arguments[0])) if arguments else MOST
    print("     rows   in memory, s   ns a row   steps   from Parquet, s   ns a row")
    n_rows = 10_000
    while n_rows <= most:
        X, y = table(n_rows, 20)
        seconds, found = best(lambda: mr.KLIEP().fit(X, y), 5 if n_rows < 1e7 else 2)  # noqa: B023
        line = f"{n_rows:9d} {seconds:14.4f} {1e9 * seconds / n_rows:10.0f}"
        line += f" {found.n_iter_:7d}"
        if n_rows <= MOST_IN_FILES:
            with tempfile.TemporaryDirectory() as folder:
                files(Path(folder), X, y)
                source = mr.scan_parquet(folder, target="y")
                seconds, same = best(lambda: mr.KLIEP().fit(source), 2)  # noqa: B023
            np.testing.assert_allclose(same.coef_, found.coef_, atol=1e-8)
            line += f" {seconds:17.4f} {1e9 * seconds / n_rows:10.0f}"
        print(line, flush=True)
        n_rows *= 10


# Cores

N_ROWS, N_COLUMNS, REPEATS = 2_000_000, 50, 3


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


def cores(arguments: list[str]) -> None:
    n_cores = os.cpu_count() or 1
    threads = [int(each) for each in arguments] or [
        t for t in (1, 2, 4, 8, 16, 32) if t <= n_cores
    ]
    print(f"{N_ROWS:,} + {N_ROWS:,} x {N_COLUMNS}, {n_cores} cores")
    measure(threads, *table(2 * N_ROWS, N_COLUMNS), mr.KLIEP())
    constant = mr.LogisticMissingness(np.full(N_COLUMNS, np.log(1 / 9)), 0.0)
    X, y = table(2 * N_ROWS, N_COLUMNS, missing=0.1)
    X[:N_ROWS][np.isnan(X[:N_ROWS])] = 0.0
    measure(threads, X, y, mr.KLIEP(missingness={1: constant}))
    del X, y
    ceiling(threads)


if __name__ == "__main__":
    parts = {"rows": rows, "cores": cores}
    if sys.argv[1:2] not in (["rows"], ["cores"]):
        sys.exit(__doc__)
    parts[sys.argv[1]](sys.argv[2:])
