"""The tables and the printed text of tutorial.md: `python docs/make_tutorial.py`.

The patients are made up. `patients.csv` is what a clinic has, `deleted.csv` the same
without incomplete rows, `new.csv` are patients to come whose pulse is as often blank,
`measured.csv` the same with every pulse taken, and `answers.csv` is the plan of the
page as a nurse filled it in. Then every command of the page is run, and what it prints
is put below it; where the page has `...`, its text stays.
"""

import csv
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import numpy as np
from python_calamine import CalamineWorkbook

FOLDER = Path(__file__).parent / "tutorial"
NAMES = ["patient", "pulse", "sugar", "age", "state"]
PAGE = Path(__file__).parent / "tutorial.md"
BLOCK = re.compile(r"^```(console|toml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
WIDTH = 88


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


def lose(values, state, rng):
    """The old meter loses 17 of 20 pulses above 80; the ward forgets one in seven."""
    known, well = values.copy(), state == "well"
    fails = (values[:, 0] > 80) & (rng.random(len(state)) < 0.85)
    forgotten = rng.random(len(state)) < 1 / 7
    known[np.where(well, fails, forgotten), 0] = np.nan
    return known


def write(file, names, values, state):
    """A table with blanks where values are missing."""
    with (FOLDER / file).open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(NAMES)
        for name, row, label in zip(names, values, state, strict=True):
            cells = ["" if np.isnan(cell) else f"{cell:g}" for cell in row]
            writer.writerow([name, *cells, label])


def perform(line, folder):
    """What a command of the page prints."""
    program, *words = shlex.split(line)
    if program == "head":
        lines = (folder / words[1]).read_text(encoding="utf-8").splitlines()
        return "\n".join(lines[: int(words[0][1:])])
    command = [sys.executable, "-m", "missratio", *words]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False
    )
    _, found, told = done.stderr.partition("Error")
    return (done.stdout + found + told).rstrip()


def answer(records, folder):
    """Fill in the plan that the page asked for."""
    sheet = CalamineWorkbook.from_path(folder / "plan.xlsx").get_sheet_by_index(0)
    head, *plan = sheet.to_python()
    with (FOLDER / "answers.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, head, lineterminator="\n")
        writer.writeheader()
        for place, cells in enumerate(plan):
            line = dict(zip(head, cells, strict=True))
            value = records[line["id"]][NAMES.index(line["feature"]) - 1]
            found = "not found" if place in (17, 64) else f"{value:g}"
            whole = {k: f"{v:g}" for k, v in line.items() if isinstance(v, float)}
            writer.writerow({**line, **whole, "value": found})
    shutil.copy(FOLDER / "answers.csv", folder)


def wrapped(printed):
    """Lines as wide as the page; what can be pasted stays whole."""
    return "\n".join(
        line if line.startswith("    ") else textwrap.fill(line, WIDTH)
        for line in printed.splitlines()
    )


def print_page(records):
    """Put what the commands print into the page, in its order."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(FOLDER, folder, dirs_exist_ok=True)

        def block(found):
            kind, body = found.groups()
            if kind == "toml":
                file, content = body.split("\n", 1)
                (folder / file.removeprefix("# ")).write_text(content, encoding="utf-8")
                return found[0]
            shown = ""
            for each in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
                line, _, before = each.partition("\n")
                printed = wrapped(perform(line, folder))
                if "missratio query" in line:
                    answer(records, folder)
                after = before.rstrip() if "..." in before else printed
                shown += f"$ {line}\n{after}\n" if after else f"$ {line}\n"
            return f"```console\n{shown}```"

        text = BLOCK.sub(block, PAGE.read_text(encoding="utf-8"))
    PAGE.write_text(text, encoding="utf-8")


def main():
    """Write the tables, and the page."""
    FOLDER.mkdir(exist_ok=True)
    rng = np.random.default_rng(0)
    names, values, state = draw(1200, 500, 1, rng)
    known = lose(values, state, rng)
    whole = ~np.isnan(known).any(axis=1)
    write("patients.csv", names, known, state)
    write("deleted.csv", np.array(names)[whole], known[whole], state[whole])
    new_names, new_values, new_state = draw(700, 300, 5001, rng)
    write("new.csv", new_names, lose(new_values, new_state, rng), new_state)
    write("measured.csv", new_names, new_values, new_state)
    print_page(dict(zip(names, values, strict=True)))


if __name__ == "__main__":
    main()
