"""Time and memory of the command line: help, fit and predict on large tables.

python benchmarks/tables.py            1,000,000 rows of 20 columns
python benchmarks/tables.py --stream   predict on a Parquet file of 5 GB
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

COLUMNS = 20
COMMAND = [sys.executable, "-m", "missratio.cli"]
PHI = """\
[classes.0]
missing = "rows"
kind = "step"
direction = { x0 = 1.0 }
threshold = 1.0
probability = 0.5
"""
BASELINE = """\
import json, sys, time
import numpy as np
import pyarrow.parquet as pq
from sklearn.linear_model import LogisticRegression
clocks = time.perf_counter, time.process_time
start = [clock() for clock in clocks]
table = pq.read_table(sys.argv[1])
read = [clock() - begun for clock, begun in zip(clocks, start)]
y = table.column("y").to_numpy()
X = np.column_stack([table.column(n).to_numpy() for n in table.column_names[:-1]])
kept = ~np.isnan(X[:, 0])
X, y = X[kept], y[kept]
start = [clock() for clock in clocks]
LogisticRegression().fit(X, y)
fit = [clock() - begun for clock, begun in zip(clocks, start)]
print(json.dumps([read, fit]))
"""
STARTUP = "import missratio.workflow, missratio.modelfile, skops.io, pyarrow.parquet"


def write_table(
    path: Path, n_rows: int, seed: int, *, lossy: bool, labels: bool
) -> None:
    rng = np.random.default_rng(seed)
    names = [f"x{j}" for j in range(COLUMNS)]
    schema = pa.schema(
        [(name, pa.float64()) for name in names] + [("y", pa.int64())] * labels
    )
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for start in range(0, n_rows, 100_000):
            count = min(100_000, n_rows - start)
            y = rng.integers(0, 2, count)
            X = rng.normal(0.1 * y[:, None], 1.0, (count, COLUMNS))
            if lossy:
                lost = (y == 0) & (X[:, 0] > 1.0) & (rng.uniform(size=count) < 0.5)
                X[lost] = np.nan
            arrays = [pa.array(column, from_pandas=True) for column in X.T]
            arrays += [pa.array(y)] * labels
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))


def run(*arguments: object) -> tuple[float, float, int]:
    return timed(*COMMAND, *arguments)


def python(code: str, *arguments: object) -> list[list[float]]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    result = subprocess.run(command, capture_output=True, check=True)
    return json.loads(result.stdout)


def timed(*command: object) -> tuple[float, float, int]:
    """Wall and processor seconds, and the largest memory in bytes, of a command."""
    start = time.perf_counter()
    process = subprocess.Popen([*map(str, command)])
    _, status, usage = os.wait4(process.pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    seconds = time.perf_counter() - start
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def large(folder: Path, repeats: int) -> None:
    data, phi, model = folder / "data.parquet", folder / "phi.toml", folder / "m.skops"
    write_table(data, 1_000_000, 0, lossy=True, labels=True)
    phi.write_text(PHI)
    wall, cpu = np.min([helped() for _ in range(3 * repeats)], axis=0)
    print(f"missratio --help          {wall:6.2f} s, processor {cpu:.2f} s")
    bases = np.array([python(BASELINE, data) for _ in range(repeats)])
    read, fitted = bases.min(axis=0)
    print(f"pyarrow reads             {read[0]:6.2f} s, processor {read[1]:.2f} s")
    print(f"LogisticRegression        {fitted[0]:6.2f} s, processor {fitted[1]:.2f} s")
    startup = np.min(
        [timed(sys.executable, "-c", STARTUP)[:2] for _ in range(repeats)], axis=0
    )
    print(
        f"imports                   {startup[0]:6.2f} s, processor {startup[1]:.2f} s"
    )
    fit = ["fit", data, "--target", "y", "--controlled", 0, "--missingness", phi]
    runs = np.array(
        [run(*fit, "--out", model, "--force", "-q") for _ in range(repeats)]
    )
    wall, cpu, peak = runs.min(axis=0)
    print(f"missratio fit             {wall:6.2f} s, processor {cpu:.2f} s")
    for name, place, whole in (("wall", 0, wall), ("processor", 1, cpu)):
        base = read[place] + fitted[place]
        print(
            f"  times both, {name:12}  {whole / base:6.2f}, imports left out "
            f"{(whole - startup[place]) / base:.2f}"
        )
    print(f"  peak memory             {peak / 1e9:6.2f} GB")
    predict = ["predict", model, data, "--out", folder / "p.parquet", "--force", "-q"]
    wall, cpu, _ = np.min([run(*predict) for _ in range(repeats)], axis=0)
    print(f"missratio predict         {wall:6.2f} s, processor {cpu:.2f} s")
    scoring(model, repeats)


def helped() -> tuple[float, float]:
    code = "from missratio.cli import app; app(['--help'], standalone_mode=False)"
    start = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL)
    _, _, usage = os.wait4(process.pid, 0)
    return time.perf_counter() - start, usage.ru_utime + usage.ru_stime


def scoring(model_file: Path, repeats: int) -> None:
    """Rows a second on one core, from record batches in memory to labels and scores."""
    from threadpoolctl import threadpool_limits

    from missratio.modelfile import load_model
    from missratio.workflow._predict import _output

    model = load_model(model_file)
    rng = np.random.default_rng(1)
    names = [f"x{j}" for j in range(COLUMNS)]
    batch = pa.RecordBatch.from_arrays(
        [pa.array(column) for column in rng.normal(size=(COLUMNS, 65_536))], names
    )
    best = np.inf
    with threadpool_limits(1):
        for _ in range(20 * repeats):
            start = time.process_time()
            scores, above = model.score(model.encoder.encode(batch))
            _output(model, batch.select([]), scores, above)
            best = min(best, time.process_time() - start)
    print(f"  rows a second a core    {len(batch) / best / 1e6:6.2f} million")


def stream(folder: Path) -> None:
    data, model = folder / "big.parquet", folder / "m.skops"
    small, phi = folder / "data.parquet", folder / "phi.toml"
    write_table(small, 100_000, 0, lossy=True, labels=True)
    phi.write_text(PHI)
    fit = ["fit", small, "--target", "y", "--controlled", 0, "--missingness", phi]
    run(*fit, "--out", model, "-q")
    write_table(data, 33_500_000, 1, lossy=False, labels=False)
    print(f"file                      {data.stat().st_size / 1e9:6.2f} GB")
    seconds, cpu, peak = run(
        "predict", model, data, "--out", folder / "p.parquet", "-q"
    )
    print(f"missratio predict         {seconds:6.2f} s, processor {cpu:.2f} s")
    print(f"  peak memory             {peak / 1e9:6.2f} GB")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--stream", action="store_true")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if options.stream:
            stream(Path(folder))
        else:
            large(Path(folder), options.repeats)


if __name__ == "__main__":
    main()
