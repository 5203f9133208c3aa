"""The tables of tutorial.md; `python docs/make_tutorial.py` writes them.

The patients are made up. `patients.csv` is what a clinic has, `new.csv` are patients to
come whose pulse is as often blank, `measured.csv` the same with every pulse taken, and
`answers.csv` is the plan of tutorial.md as a nurse filled it in.
"""

import csv
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import missratio as mr

FOLDER = Path(__file__).parent / "tutorial"
NAMES = ["patient", "pulse", "sugar", "age", "state"]
PAGE = Path(__file__).parent / "tutorial.md"


def draw(n_well, n_sick, first, rng):
    """Patients with all their values."""
    sick = rng.permutation(np.repeat([False, True], [n_well, n_sick]))
    values = np.column_stack(
        [
            rng.normal(np.where(sick, 92, 78), 10).round(),
            rng.normal(np.where(sick, 6.3, 5.3), 0.9).round(1),
            rng.normal(np.where(sick, 58, 49), 12).round(),
        ]
    )
    names = [f"P{number:04}" for number in range(first, first + len(sick))]
    return names, values, np.where(sick, "sick", "well")


def write(file, names, values, state):
    """A table with blanks where values are missing."""
    with (FOLDER / file).open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(NAMES)
        for name, row, label in zip(names, values, state, strict=True):
            cells = ["" if np.isnan(cell) else f"{cell:g}" for cell in row]
            writer.writerow([name, *cells, label])


def answer(records):
    """The plan that the page asks for, filled in."""
    text = PAGE.read_text(encoding="utf-8")
    asked = re.findall(r"^\$ missratio ((?:check|query) .*)$", text, re.MULTILINE)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "patients.csv").write_bytes(
            (FOLDER / "patients.csv").read_bytes()
        )
        for words in map(shlex.split, asked):
            subprocess.run(
                [sys.executable, "-m", "missratio", *words], cwd=folder, check=True
            )
        with (Path(folder) / "plan.csv").open(newline="", encoding="utf-8") as stream:
            plan = list(csv.DictReader(stream))
    with (FOLDER / "answers.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, plan[0], lineterminator="\n")
        writer.writeheader()
        for place, line in enumerate(plan):
            value = records[line["id"]][NAMES.index(line["feature"]) - 1]
            found = "not found" if place in (17, 64) else f"{value:g}"
            writer.writerow({**line, "value": found})


def lose(values, state, rng):
    """High pulses of the well are lost, and one in seven of the sick."""
    high = mr.LogisticMissingness([-16.0, -np.inf, -np.inf], [0.2, 0.0, 0.0])
    known, sick = values.copy(), state == "sick"
    known[~sick] = mr.corrupt(values[~sick], high, random_state=rng)
    known[sick, 0] = np.where(rng.random(sick.sum()) < 1 / 7, np.nan, values[sick, 0])
    return known


def main():
    """Write the tables."""
    FOLDER.mkdir(exist_ok=True)
    rng = np.random.default_rng(0)
    names, values, state = draw(1200, 500, 1, rng)
    write("patients.csv", names, lose(values, state, rng), state)
    new_names, new_values, new_state = draw(700, 300, 5001, rng)
    write("new.csv", new_names, lose(new_values, new_state, rng), new_state)
    write("measured.csv", new_names, new_values, new_state)
    answer(dict(zip(names, values, strict=True)))


if __name__ == "__main__":
    main()
