"""How soon a monitor sees that an error has doubled, and how often it errs.

python benchmarks/monitor.py
"""

from __future__ import annotations

import argparse

import numpy as np

import missratio as mr

SEED, ALPHA, DELTA = 3, 0.1, 0.05


def alarms(error: float, rows: int, repeats: int, good: int = 0) -> np.ndarray:
    """The row of each repeat's alarm, good ones before left out; infinite without."""
    found = []
    for repeat in range(repeats):
        rng = np.random.default_rng([SEED, repeat])
        errors = np.repeat([ALPHA / 2, error], [good, rows])
        monitor = mr.TypeIErrorMonitor(ALPHA, DELTA)
        monitor.update(rng.random(good + rows) < errors)
        found.append((monitor.alarm_row or np.inf) - good)
    return np.array(found)


def main() -> None:
    """Print the alarms under a kept promise and under a doubled error."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=400)
    repeats = parser.parse_args().repeats
    seen = alarms(2 * ALPHA, 2000, repeats)
    false = np.mean(alarms(ALPHA, 5000, repeats) < np.inf)
    margin = (DELTA * (1 - DELTA) / repeats) ** 0.5
    late = alarms(2 * ALPHA, 2000, repeats, good=2000)
    print(f"doubled error: alarm after {np.median(seen):.0f} rows in the median")
    print(f"  after 2000 rows at half the level: {np.median(late):.0f} rows")
    print(f"kept promise: {false:.3f} alarms within 5000 rows (delta {DELTA}, binomial "
          f"error {margin:.3f})")  # fmt: skip


if __name__ == "__main__":
    main()
