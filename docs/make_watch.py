"""Draws docs/_static/watch.png, and prints what docs/in_use.md shows.

Three thousand patients calibrate a classifier; 250 more come every day. From the fourth
day on the pulse of those who are well is seven higher, which breaks the promise.

    python docs/make_watch.py
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import missratio as mr
from missratio.evaluation import MonitorDisplay

FIGURE = Path(__file__).parent / "_static" / "watch.png"
DAYS = 7


def patients(seed, n_rows, moved=0.0):
    """A table of patients, the pulse of those who are well moved up."""
    rng = np.random.default_rng(seed)
    state = rng.choice(["well", "sick"], n_rows, p=[0.8, 0.2])
    sick = state == "sick"
    pulse = rng.normal(70, 8, n_rows) + 12 * sick + moved * ~sick
    sugar = rng.normal(95, 10, n_rows) + 14 * sick
    columns = {"pulse": pulse.round(1), "sugar": sugar.round(1), "state": state}
    return pd.DataFrame(columns)


def run(folder, command):
    """Run a command of missratio, and show it with its exit status."""
    words = [sys.executable, "-m", "missratio", *command.split()]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    print(f"$ missratio {command}\n{done.stdout}exit status {done.returncode}")


def main():
    """Fit, and watch for a week."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        patients(0, 3000).to_csv(folder / "patients.csv", index=False)
        run(
            folder,
            "fit patients.csv --target state --controlled well --alpha 0.1 "
            "--out model.skops --quiet",
        )
        for day in range(1, DAYS + 1):
            table = patients(day, 250, 0.0 if day < 4 else 7.0)
            table.to_csv(folder / f"day{day}.csv", index=False)
            run(folder, f"watch model.skops day{day}.csv")
        state = json.loads((folder / "model.skops.watch.json").read_text())
    monitor = mr.TypeIErrorMonitor.from_dict(state["monitors"][0])
    figure = Figure(figsize=(7, 6), layout="constrained")
    MonitorDisplay(monitor).plot(ax=figure.subplots(2, sharex=True))
    figure.savefig(FIGURE, dpi=150)


if __name__ == "__main__":
    main()
