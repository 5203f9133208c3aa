"""Tables as people have them: many columns, blanks in both classes; each as a command.

Seconds are the processor's: on a machine with other work they mean something, too.
"""

from __future__ import annotations

import csv
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from measure import Result, Table, Target, Tell

BLANKS = 0.04
# Rows, columns, options, the most seconds of the processor, and the most memory in MB.
CASES = {
    "7,000 × 60": (7000, 60, "", 25.0, None),
    "7,000 × 60, φ learned": (7000, 60, "--missingness learn", 45.0, None),
    "2,000 × 20, φ learned": (2000, 20, "--missingness learn", 12.0, None),
    "400 × 5,000": (400, 5000, "", 60.0, 1500.0),
}


def write(path: Path, n_rows: int, n_columns: int, seed: int = 0) -> None:
    """Numbers, some skewed, and three categories; blanks depend on their values."""
    rng = np.random.default_rng(seed)
    sick = rng.permutation(np.arange(n_rows) < 0.4 * n_rows)
    effect = 0.5 * rng.normal(size=n_columns) * (rng.random(n_columns) < 0.4)
    common = 0.3 * rng.normal(size=(n_rows, 5)) @ rng.normal(size=(5, n_columns))
    X = rng.normal(size=(n_rows, n_columns)) + common + np.outer(sick, effect)
    odds = np.log(BLANKS / (1.0 - BLANKS)) + 0.5 * X * (np.arange(n_columns) % 3 == 0)
    blank = rng.random(X.shape) < 1.0 / (1.0 + np.exp(-odds))
    X[:, 3::7] = np.exp(X[:, 3::7] / 2.0)
    cells = np.where(blank, "", np.char.mod("%.4f", X)).astype(object)
    for column in range(3):
        levels = np.array(["low", "middle", "high"])[np.digitize(X[:, column], [-1, 1])]
        cells[:, column] = np.where(blank[:, column], "", levels)
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow([*(f"c{j}" for j in range(n_columns)), "state"])
        for row, is_sick in zip(cells.tolist(), sick, strict=True):
            writer.writerow([*row, "sick" if is_sick else "well"])


def wide(tell: Tell, *, quick: bool) -> Table:
    """Processor seconds and memory of `missratio fit`, from the file to the model."""
    results = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for case, (n_rows, n_columns, options, seconds, megabytes) in CASES.items():
            tell(case)
            size = (400, 6) if quick else (n_rows, n_columns)
            write(folder / "t.csv", *size)
            words = f"fit {folder}/t.csv --target state --controlled well --alpha 10% "
            words += f"--on-infeasible reject_all --force -q --out {folder}/m.skops"
            command = [sys.executable, "-m", "missratio", *f"{words} {options}".split()]
            # The peak of this process alone: that of all children is another's.
            with subprocess.Popen(command) as process:
                _, status, usage = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode:
                raise subprocess.CalledProcessError(process.returncode, command)
            used = usage.ru_utime + usage.ru_stime
            limit = Target("at most", 1.0)
            results.append(
                Result(case, f"{used:.0f} s", f"{seconds:.0f} s", used / seconds, limit)
            )
            if megabytes is not None:
                peak = usage.ru_maxrss / 1024.0
                results.append(
                    Result(f"{case}, memory", f"{peak:.0f} MB", f"{megabytes:.0f} MB",
                           peak / megabytes, limit)
                )  # fmt: skip
    return Table(
        "Wide: tables with many columns and 4 % blanks, as commands",
        "processor seconds, or memory, over what is allowed",
        tuple(results),
        "Mixed columns, both classes with blanks, labels shuffled; from the CSV file "
        "to the model file with its report.",
    )
