"""Time a row as tables grow: python benchmarks/scaling.py [MOST_ROWS]

`KLIEP().fit` on 10⁴, 10⁵ … rows × 20 float64, half of them of each class: from memory,
and from Parquet files (up to 10⁷), with the threads that BLAS has. Runs from the
repository, installed or not.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import uninstalled  # noqa: F401  isort: skip
import missratio as mr

N_COLUMNS, PARTS, MOST, MOST_IN_FILES = 20, 16, 100_000_000, 10_000_000


def table(n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    X = np.empty((n_rows, N_COLUMNS))
    parts = np.array_split(np.arange(n_rows), PARTS)

    def fill(number: int) -> None:
        own = slice(parts[number][0], parts[number][-1] + 1)
        np.random.default_rng(number).standard_normal(out=X[own])

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(fill, range(PARTS)))
    X[n_rows // 2 :] += 0.2 * np.random.default_rng(99).normal(size=N_COLUMNS)
    return X, np.repeat([0, 1], n_rows // 2)


def best(fit: Callable[[], mr.KLIEP], repeats: int) -> tuple[float, mr.KLIEP]:
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        found = fit()
        times.append(time.perf_counter() - begin)
    return min(times), found


def files(folder: Path, X: np.ndarray, y: np.ndarray) -> None:
    for number, own in enumerate(np.array_split(np.arange(len(X)), PARTS)):
        rows = slice(own[0], own[-1] + 1)
        columns = {f"x{j}": X[rows, j] for j in range(N_COLUMNS)}
        path = folder / f"{number:03d}.parquet"
        pq.write_table(pa.table({**columns, "y": y[rows]}), path)


def main(arguments: list[str]) -> None:
    most = int(float(arguments[0])) if arguments else MOST
    print("     rows   in memory, s   ns a row   steps   from Parquet, s   ns a row")
    n_rows = 10_000
    while n_rows <= most:
        X, y = table(n_rows)
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


if __name__ == "__main__":
    main(sys.argv[1:])
