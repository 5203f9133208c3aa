"""How a fit runs on a cluster of this machine: python benchmarks/cluster.py [ROWS]

Rows × 20 float64 of a Dask array that the workers of a `LocalCluster` hold: time of
`KLIEP().fit` with one worker and with two, of one thread each; the coefficients must be
the same to the last digit. Then what a pass costs beside its work, with 1,000
partitions, and from these the estimate for 100 nodes. Runs from the repository,
installed or not.
"""

from __future__ import annotations

import sys
import time

import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

import uninstalled  # noqa: F401  isort: skip
import missratio as mr
from missratio.rows.cluster import of_collection
from missratio.rows.labelled import LabelledBlock

N_ROWS, N_COLUMNS, N_BLOCKS = 20_000_000, 20, 80
PARTITIONS, PASSES = 1000, 5
NODES, NODE_CORES, MANY_ROWS = 100, 16, 1e11


@dask.delayed(nout=2)
def block(number: int, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng([2, number])
    X, y = rng.normal(size=(n_rows, N_COLUMNS)), rng.integers(0, 2, n_rows)
    X[y == 1] += 0.2 * np.random.default_rng(1).normal(size=N_COLUMNS)
    return X, y


def fitted(n_rows: int, n_workers: int) -> tuple[float, np.ndarray]:
    blocks = [block(number, n_rows) for number in range(N_BLOCKS)]
    X = da.concatenate(
        [da.from_delayed(x, (n_rows, N_COLUMNS), float) for x, _ in blocks]
    )
    y = da.concatenate([da.from_delayed(y, (n_rows,), int) for _, y in blocks])
    cluster = LocalCluster(
        n_workers=n_workers, threads_per_worker=1, dashboard_address=None
    )
    with cluster, Client(cluster):
        source, best = of_collection(X, y), np.inf
        for _ in range(3):
            begin = time.perf_counter()
            coef = mr.KLIEP().fit(source).coef_
            best = min(best, time.perf_counter() - begin)
    return best, coef


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
    (one, coef), (two, same) = (fitted(n_rows // N_BLOCKS, n) for n in (1, 2))
    assert np.array_equal(coef, same), "digits depend on the number of workers"
    print(f"{n_rows:,} x {N_COLUMNS} float64 on workers, the same digits")
    print(f"  one worker {one:.2f} s, two {two:.2f} s: {one / two:.2f} times as fast")
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
