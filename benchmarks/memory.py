"""Extra memory of one fit, measured in a process of its own.

Called as a script it makes the data, fits and prints a line of JSON; `extra_memory`
does that in a new process.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from draws import gaussian_classes

from missratio import KLIEP, density_ratio

FORMS = ("sorted", "shuffled", "two samples")
_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")


@dataclass(frozen=True)
class Memory:
    """Bytes: of the table, and at the peak of a fit over what was held before it.

    Parameters
    ----------
    table : int
    resident : int
        By the operating system's count, BLAS's buffers and thread stacks included.
    traced : int
        By Python's count, in a second fit.
    """

    table: int
    resident: int
    traced: int


def extra_memory(n_rows: int, n_columns: int, form: str, dtype: str) -> Memory:
    """Measure a fit in a new process."""
    command = [sys.executable, __file__, str(n_rows), str(n_columns), form, dtype]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"The process that measures memory failed:\n{done.stderr}")
    return Memory(**json.loads(done.stdout))


def peak_resident() -> int:
    """The most bytes that were ever resident, or were since the mark was reset."""
    if _STATUS.exists():
        return _status("VmHWM")
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def reset_peak() -> int:
    """Bring the high-water mark down to what is resident now, and say where it is."""
    try:
        _CLEAR.write_text("5")
    except OSError:
        # The mark stays where it was: at the table, which was never exceeded.
        return peak_resident()
    return _status("VmRSS")


def _status(field: str) -> int:
    found = re.search(rf"^{field}:\s+(\d+) kB", _STATUS.read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1]) * 1024


def measure(fit: Callable[[], Any], table: int) -> Memory:
    before = reset_peak()
    fit()
    resident = peak_resident() - before
    tracemalloc.start()
    fit()
    traced = tracemalloc.get_traced_memory()[1]
    return Memory(table, resident, traced)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("n_rows", type=int)
    parser.add_argument("n_columns", type=int)
    parser.add_argument("form", choices=FORMS)
    parser.add_argument("dtype", choices=["float64", "float32"])
    given = parser.parse_args()
    dtype = np.dtype(given.dtype)
    # What a process loads once (libraries, thread pools) is not a fit's own.
    small = gaussian_classes(20_000, given.n_columns, shift=0.2, dtype=dtype)
    KLIEP().fit(small.X, small.y)
    data = gaussian_classes(given.n_rows, given.n_columns, shift=0.2, dtype=dtype)
    y = data.y
    if given.form == "shuffled":
        np.random.default_rng(1).shuffle(y)
    if given.form == "two samples":
        upper, lower = data.rows(1), data.rows(0)
        memory = measure(lambda: density_ratio(upper, lower), data.X.nbytes)
    else:
        memory = measure(lambda: KLIEP().fit(data.X, y), data.X.nbytes)
    print(json.dumps(asdict(memory)))


if __name__ == "__main__":
    main()
