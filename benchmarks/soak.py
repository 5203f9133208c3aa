"""Fit and predict over and over in one process: memory must not grow.

python benchmarks/soak.py --minutes 60

Each round fits a table of another seed by another method, saves the model, loads it,
predicts a table, and reads a plan and a report. The memory that the process holds is
noted after each round. Growth is that of the median over the last fifth of the rounds
from the median over the second fifth: the first one loads modules and fills caches. The
status is 1 where it is 5% or more.
"""

import argparse
import gc
import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np
from typer.testing import CliRunner

from missratio.app.cli import app

MOST_GROWTH = 0.05
METHODS = ("kliep", "kliep-cv", "naive-bayes", "trees")


def megabytes():
    """What the process holds now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def write_table(path, seed, rows=500):
    rng = np.random.default_rng(seed)
    y = np.arange(rows) % 2
    X = rng.normal(size=(rows, 4)) + 0.8 * y[:, None]
    X[rng.uniform(size=X.shape) < 0.05] = np.nan
    with path.open("w") as stream:
        stream.write("a,b,c,d,y\n")
        for row, label in zip(X, y, strict=True):
            cells = ["" if np.isnan(cell) else f"{cell:.5f}" for cell in row]
            stream.write(",".join([*cells, str(label)]) + "\n")


def run(*words):
    result = CliRunner().invoke(app, [str(word) for word in words])
    if result.exit_code:
        raise SystemExit(f"{words}: {result.output}")


def one_round(folder, number, methods):
    table, model = folder / "t.csv", folder / "m.skops"
    write_table(table, number)
    told = ("--target", "y", "--controlled", "0", "--quiet", "--force")
    method = methods[number % len(methods)]
    run("fit", table, *told, "--alpha", 0.2, "--missingness", "ignore",
        "--method", method, "--out", model)  # fmt: skip
    for suffix in (".csv", ".parquet"):
        out = folder / f"p{suffix}"
        run("predict", model, table, "--quiet", "--force", "--out", out)
    run("report", model, "--quiet", "--force", "--out", folder / "r.md")
    run("query", table, *told, "--per-feature", 5, "--out", folder / "plan.csv")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--methods", nargs="*", default=METHODS)
    asked = parser.parse_args()
    ends, found = time.monotonic() + 60.0 * asked.minutes, []
    said = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        while time.monotonic() < ends or len(found) < 10:
            one_round(Path(name), len(found), asked.methods)
            gc.collect()
            found.append(megabytes())
            if time.monotonic() - said > 60.0:
                said = time.monotonic()
                print(f"{len(found)} rounds, {found[-1]:.0f} MB", flush=True)
    fifth = len(found) // 5
    early, late = median(found[fifth : 2 * fifth]), median(found[-fifth:])
    growth = late / early - 1.0
    print(
        f"{len(found)} rounds in {asked.minutes:g} minutes: {early:.1f} MB early, "
        f"{late:.1f} MB late, growth {growth:.1%} (below {MOST_GROWTH:.0%} is asked)."
    )
    return int(growth >= MOST_GROWTH)


if __name__ == "__main__":
    sys.exit(main())
