"""How a fit runs on a cluster of this machine: python benchmarks/cluster.py [ROWS]

Rows × 20 float64 in Parquet files that the workers of a `LocalCluster` read
themselves: time of `KLIEP().fit(scan_parquet(…).on(client))` with one worker and with
two, of one thread each; the coefficients must be the same to the last digit. Beside it
what two processes gain that share nothing but the machine. Then what
a pass costs beside its work, with 1,000 partitions of a Dask array, and from these the
estimate for 100 nodes. Runs from the repository, installed or not.
"""

from __future__ import annotations

import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import dask.array as da
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from distributed import Client, LocalCluster
from threadpoolctl import threadpool_limits

import uninstalled  # noqa: F401  isort: skip
import missratio as mr
from missratio.rows.cluster import of_collection
from missratio.rows.labelled import LabelledBlock

N_ROWS, N_COLUMNS, N_FILES = 20_000_000, 20, 20
PARTITIONS, PASSES = 1000, 5
NODES, NODE_CORES, MANY_ROWS = 100, 16, 1e11


def write(folder: str, number: int, n_rows: int) -> None:
    rng = np.random.default_rng([2, number])
    X, y = rng.normal(size=(n_rows, N_COLUMNS)), rng.integers(0, 2, n_rows)
    X[y == 1] += 0.2 * np.random.default_rng(1).normal(size=N_COLUMNS)
    columns = {f"x{j}": X[:, j] for j in range(N_COLUMNS)}
    path = Path(folder) / f"{number:03d}.parquet"
    pq.write_table(pa.table({**columns, "y": y}), path, row_group_size=250_000)


def fitted(folder: str, n_workers: int) -> tuple[float, np.ndarray]:
    cluster = LocalCluster(
        n_workers=n_workers, threads_per_worker=1, dashboard_address=None
    )
    with cluster, Client(cluster) as client:
        source = mr.scan_parquet(folder, target="y").on(client)
        best = np.inf
        for _ in range(2):
            begin = time.perf_counter()
            coef = mr.KLIEP().fit(source).coef_
            best = min(best, time.perf_counter() - begin)
    return best, coef


def _scores(block: LabelledBlock) -> float:
    rows = np.asarray(block.rows)
    return float(np.exp(0.01 * rows.sum(axis=1)).sum()) + float((rows.T @ rows).sum())


def _read(path: str) -> float:
    return mr.scan_parquet(path, target="y").fold(_scores, sum)


def alone(folder: str, n_processes: int) -> float:
    """Seconds in which processes that share nothing read and sum up the files once."""
    paths = sorted(map(str, Path(folder).glob("*.parquet")))
    with ProcessPoolExecutor(n_processes) as pool, threadpool_limits(1):
        list(pool.map(_read, paths[:n_processes]))
        begin = time.perf_counter()
        list(pool.map(_read, paths))
    return time.perf_counter() - begin


def _sums(block: LabelledBlock) -> np.ndarray:
    return block.rows.sum(axis=0)


def overhead() -> float:
    """Seconds of a pass over 1,000 partitions of ten rows each."""
    cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    with cluster, Client(cluster):
        X = np.random.default_rng(0).normal(size=(10 * PARTITIONS, 2))
        y = np.arange(len(X)) % 2
        source = of_collection(
            da.from_array(X, chunks=(10, 2)), da.from_array(y, chunks=10)
        )
        times = []
        for _ in range(PASSES):
            begin = time.perf_counter()
            assert np.allclose(source.fold(_sums, sum), X.sum(axis=0))
            times.append(time.perf_counter() - begin)
    return min(times)


def main(arguments: list[str]) -> None:
    n_rows = int(arguments[0]) if arguments else N_ROWS
    each = n_rows // N_FILES
    with tempfile.TemporaryDirectory() as folder:
        with ProcessPoolExecutor() as pool:
            list(pool.map(write, [folder] * N_FILES, range(N_FILES), [each] * N_FILES))
        (one, coef), (two, same) = fitted(folder, 1), fitted(folder, 2)
        apart = alone(folder, 1) / alone(folder, 2)
    assert np.array_equal(coef, same), "digits depend on the number of workers"
    print(f"{n_rows:,} x {N_COLUMNS} float64 in files, the same digits")
    print(f"  one worker {one:.2f} s, two {two:.2f} s: {one / two:.2f} times as fast")
    print(f"  two processes that share nothing, without Dask: {apart:.2f} times")
    extra = overhead()
    print(
        f"  a pass over {PARTITIONS} partitions beside its work: {1e3 * extra:.1f} ms"
    )
    # A core works off its rows as here, and tasks grow with the workers.
    cores = NODES * NODE_CORES
    work = one * MANY_ROWS / n_rows / cores
    print(
        f"  so {MANY_ROWS:.0e} rows on {NODES} nodes of {NODE_CORES} cores take about "
        f"{work:.0f} s of work, and passes cost {5 * extra * cores / 2 / 60:.1f} min "
        "at most beside it if the scheduler's time grows with the workers"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
