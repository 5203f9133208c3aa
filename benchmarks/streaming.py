"""Parquet files larger than memory is meant to be: memory, passes and digits.

Called as a script with a folder it fits the files there, or scans them, and prints a
line of JSON; `run` does that in new processes.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from measure import Result, Table, Target, Tell
from memory import peak_resident, reset_peak

import missratio as mr

TOL = 1e-10


def write(folder: Path, n_rows: int, n_columns: int, n_files: int) -> None:
    names = [f"x{j}" for j in range(n_columns)]
    shift = 0.2 * np.random.default_rng(1).normal(size=n_columns)
    for i in range(n_files):
        rng = np.random.default_rng([2, i])
        X = rng.normal(size=(n_rows // n_files, n_columns))
        y = rng.integers(0, 2, len(X))
        X[y == 1] += shift
        table = pa.table({**dict(zip(names, X.T, strict=True)), "y": y})
        pq.write_table(table, folder / f"{i:03d}.parquet", row_group_size=250_000)


def fit(folder: str) -> dict[str, object]:
    source = mr.scan_parquet(folder, target="y")
    ratio = mr.KLIEP(tol=TOL)
    ratio.fit(np.random.default_rng(0).normal(size=(99, 2)), np.arange(99) % 2)
    before = reset_peak()
    begin = time.perf_counter()
    ratio.fit(source)
    return {
        "seconds": time.perf_counter() - begin,
        "memory": peak_resident() - before,
        "coef": ratio.coef_.tolist(),
        "steps": ratio.n_iter_,
    }


def scan(folder: str) -> dict[str, object]:
    begin = time.perf_counter()
    for batch in ds.dataset(folder, format="parquet").to_batches():
        del batch
    return {"seconds": time.perf_counter() - begin}


def in_memory(folder: str) -> dict[str, object]:
    blocks = list(mr.scan_parquet(folder, target="y"))
    X = np.concatenate([block.rows for block in blocks])
    y = np.concatenate([block.labels for block in blocks])
    return {"coef": mr.KLIEP(tol=TOL).fit(X, y).coef_.tolist()}


def elsewhere(what: str, folder: Path) -> dict[str, object]:
    command = [sys.executable, __file__, what, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"The process that was to {what} failed:\n{done.stderr}")
    found: dict[str, object] = json.loads(done.stdout)
    return found


def run(tell: Tell, *, quick: bool) -> Table:
    n_rows, n_columns, n_files = (400_000, 20, 4) if quick else (20_000_000, 20, 20)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tell("writing files")
        write(folder, n_rows, n_columns, n_files)
        tell("scanning")
        scanned = min(elsewhere("scan", folder)["seconds"] for _ in range(2))
        tell("fitting")
        fitted = elsewhere("fit", folder)
        tell("fitting in memory")
        whole = elsewhere("in_memory", folder)
    difference = np.abs(np.array(fitted["coef"]) - np.array(whole["coef"])).max()
    passes = fitted["seconds"] / scanned
    memory = fitted["memory"] / 1e6
    remark = f"{fitted['steps']} steps; coefficients differ by {difference:.0e}"
    return Table(
        f"Parquet: {n_rows:,} × {n_columns} float64",
        "scans of PyArrow's that a fit takes; MB of memory",
        (
            Result(
                "time",
                f"{fitted['seconds']:.3g} s",
                f"{scanned:.3g} s",
                passes,
                Target("at most", 7.0),
                remark,
                equal=bool(difference <= 1e-9),
            ),
            Result(
                "memory beyond the imports",
                f"{memory:.0f} MB",
                f"X: {n_rows * n_columns * 8e-6:.0f} MB",
                memory,
                Target("at most", 500.0),
            ),
        ),
        note=f"`KLIEP(tol={TOL:g}).fit(scan_parquet(folder))` against a scan of all "
        "columns by `pyarrow.dataset`, each in a process of its own.",
    )


if __name__ == "__main__":
    task = {"fit": fit, "scan": scan, "in_memory": in_memory}[sys.argv[1]]
    print(json.dumps(task(sys.argv[2])))
