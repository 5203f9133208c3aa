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
COMMAND = [sys.executable, "-m", "missratio"]
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
FIT = """\
import json, sys, time
from pathlib import Path
import pyarrow.parquet, skops.io
from missratio.app.modelfile import save_model
from missratio.app.options import FitOptions
from missratio.app.workflow import fit_table
clocks = time.perf_counter, time.process_time
begun = [clock() for clock in clocks]
data, phi, out = map(Path, sys.argv[1:])
marks = []
class Clock:
    def step(self, what, total=None):
        marks.append([clock() for clock in clocks])
    def tick(self, parts):
        pass
model, _ = fit_table(
    FitOptions(data=data, target="y", out=out, controlled="0", missingness=str(phi),
               method="kliep"),
    Clock(),
)
marks.append([clock() for clock in clocks])
save_model(model, out, force=True)
marks.append([clock() for clock in clocks])
spans = [[b - a for a, b in zip(*pair)] for pair in zip(marks, marks[1:])]
print(json.dumps(spans))
"""
PARTS = ("reading", "fit, certificate", "report", "writing")


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


def timed(*command: object, quiet: bool = False) -> tuple[float, float, int]:
    """Wall and processor seconds, and the largest memory in bytes, of a command."""
    start = time.perf_counter()
    output = subprocess.DEVNULL if quiet else None
    process = subprocess.Popen([*map(str, command)], stdout=output)
    _, status, usage = os.wait4(process.pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    seconds = time.perf_counter() - start
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def large(folder: Path, repeats: int) -> None:
    data, phi, model = folder / "data.parquet", folder / "phi.toml", folder / "m.skops"
    write_table(data, 1_000_000, 0, lossy=True, labels=True)
    phi.write_text(PHI)
    show("missratio --help", np.min([helped() for _ in range(3 * repeats)], axis=0))
    fitting(data, phi, model, repeats)
    predict = ["predict", model, data, "--out", folder / "p.parquet", "--force", "-q"]
    show(
        "missratio predict", np.min([run(*predict) for _ in range(repeats)], axis=0)[:2]
    )
    scoring(model, repeats)


def fitting(data: Path, phi: Path, model: Path, repeats: int) -> None:
    """A fit, and a peer that reads the file and fits a logistic regression to it.

    In one process both have their packages loaded before the clock starts; as commands
    both start Python and load them.
    """
    fit = ["fit", data, "--target", "y", "--controlled", 0, "--missingness", phi,
           "--method", "kliep", "--out", model, "--force", "-q"]  # fmt: skip
    peers, parts, commands, others = [], [], [], []
    # In turns, so that what else the machine does hits both alike.
    for _ in range(repeats):
        peers.append(python(BASELINE, data))
        parts.append(python(FIT, data, phi, model))
        commands.append(run(*fit))
        others.append(timed(sys.executable, "-c", BASELINE, data, quiet=True))
    read, peer_fit = np.min(peers, axis=0)
    show("pyarrow reads", read)
    show("LogisticRegression", peer_fit)
    inside = np.min([np.sum(spans, axis=0) for spans in parts], axis=0)
    show("missratio fit, in process", inside)
    for name, span in zip(PARTS, np.min(parts, axis=0), strict=True):
        show(f"  {name}", span)
    peer = np.min([np.sum(spans, axis=0) for spans in peers], axis=0)
    show("  times both, in process", inside / peer, "")
    without = [
        np.sum(
            [span for name, span in zip(PARTS, spans, strict=True) if name != "report"],
            axis=0,
        )
        for spans in parts
    ]
    show("  the same, the report left out", np.min(without, axis=0) / peer, "")
    command, other = (np.min(runs, axis=0) for runs in (commands, others))
    show("both, as a command", other[:2])
    show("missratio fit, as a command", command[:2])
    show("  times both, as commands", command[:2] / other[:2], "")
    print(f"  {'peak memory':28}{command[2] / 1e9:6.2f} GB")


def show(name: str, wall_and_processor: np.ndarray, unit: str = " s") -> None:
    wall, processor = wall_and_processor
    print(f"{name:30}{wall:6.2f}{unit}, processor {processor:.2f}{unit}")


def helped() -> tuple[float, float]:
    code = "from missratio.app.cli import app; app(['--help'], standalone_mode=False)"
    start = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL)
    _, _, usage = os.wait4(process.pid, 0)
    return time.perf_counter() - start, usage.ru_utime + usage.ru_stime


def scoring(model_file: Path, repeats: int) -> None:
    """Rows a second on one core, from record batches in memory to labels and scores."""
    from threadpoolctl import threadpool_limits

    from missratio.app.modelfile import load_model
    from missratio.app.workflow.predict import output_batch, reasons

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
            X = model.encoder.encode(batch)
            decisions = model.decide(X)
            why = reasons(model.encoder, batch, X, decisions.unscored)
            output_batch(model, batch.select([]), decisions, why)
            best = min(best, time.process_time() - start)
    print(f"  {'rows a second a core':28}{len(batch) / best / 1e6:6.2f} million")


def stream(folder: Path) -> None:
    data, model = folder / "big.parquet", folder / "m.skops"
    small, phi = folder / "data.parquet", folder / "phi.toml"
    write_table(small, 100_000, 0, lossy=True, labels=True)
    phi.write_text(PHI)
    fit = ["fit", small, "--target", "y", "--controlled", 0, "--missingness", phi]
    fit += ["--method", "kliep"]
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
