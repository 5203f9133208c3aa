"""Every command with a fault at each of its writes, and killed again and again.

Run by itself, it tries all of them and says what it found:

    python tests/support/faults.py faults kills --times 200

A small C library that is loaded before all others (failing.c) counts what changes files
in the folder of a command: opening to write, writing, renaming, linking, fsync and the
like. In one run after another the first, second, third … of them fails. Whatever fails,
a command must end with a message and no traceback, leave what it read as it was, and
leave each of its outputs as it was before or as it should be. Run again without a
fault, it must give what it gives without one.
"""

import argparse
import ctypes
import importlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

SHIM = Path(__file__).with_name("failing.c")
MARK = "-missratio-draft"
OK, FAULT = 0, 70
LONG = ("fit", "report", "reproduce", "predict", "query", "watch", "watch-again")

HEAVY = (
    "missratio.app.workflow", "missratio.app.modelfile", "missratio.app.report",
    "missratio.app.queries", "missratio.reproduce.figures", "missratio.reproduce",
    "pyarrow.csv", "pyarrow.parquet", "skops.io", "scipy.stats", "sklearn.ensemble",
    "matplotlib.backends.backend_agg", "matplotlib.backends.backend_svg", "xlsxwriter",
)  # fmt: skip


@dataclass(frozen=True)
class Command:
    """A command line, the files that it writes, and whether it has `--force`.

    `begins` are outputs that are there before, each with the file it is a copy of.
    """

    line: str
    outputs: str
    forces: bool = True
    begins: dict[str, str] = field(default_factory=dict)


TABLE = "t.csv --target y --controlled 0 --quiet"
FIT = f"fit {TABLE} --alpha 0.3 --missingness ignore --method kliep --out"
WATCH = "watch m.skops {} --state {} --quiet"
COMMANDS = {
    "fit": Command(f"{FIT} new.skops", "new.skops"),
    **{
        f"{name}{'-' * bool(kind)}{kind}": Command(f"{line} {out}", out)
        for name, line, outs in (
            ("predict", "predict m.skops t.csv --quiet --out",
             {"": "p.csv", "parquet": "p.parquet"}),
            ("report", "report m.skops --quiet --out",
             {"": "r.html", "markdown": "r.md"}),
            ("query", f"query {TABLE} --per-feature 5 --out",
             {"": "plan.csv", "workbook": "plan.xlsx"}),
        )
        for kind, out in outs.items()
    },
    "watch": Command(WATCH.format("whole.csv", "s.json"), "s.json", forces=False),
    "watch-again": Command(
        WATCH.format("later.csv", "s.json"), "s.json", forces=False,
        begins={"s.json": "state.json"},
    ),
    "reproduce": Command(
        "reproduce naive_bayes --runs 2 --jobs 1 --out out",
        "out/results.json out/naive_bayes.parquet",
        forces=False,
    ),
}  # fmt: skip


def prepare(folder):
    import numpy as np

    rng = np.random.default_rng(0)
    y = np.arange(240) % 2
    X = rng.normal(size=(240, 2)) + 1.2 * y[:, None]
    lost = rng.uniform(size=X.shape) < 0.1
    tables = {"t.csv": np.where(lost, np.nan, X), "whole.csv": X, "later.csv": X + 0.1}
    for name, cells in tables.items():
        rows = [
            ",".join("" if np.isnan(cell) else f"{cell:.4f}" for cell in row)
            for row in cells
        ]
        lines = [f"{row},{label}" for row, label in zip(rows, y, strict=True)]
        (folder / name).write_text("\n".join(["a,b,y", *lines]) + "\n")


def content(path):
    """What a file says, without when it was written and by which options."""
    if not path.exists():
        return None
    if path.suffix in (".xlsx", ".skops"):
        untold = ("docProps", "schema.json", "missratio.json")
        with suppress(zipfile.BadZipFile), zipfile.ZipFile(path) as archive:
            names = [n for n in archive.namelist() if not n.startswith(untold)]
            return {name: archive.read(name) for name in names}
    return path.read_bytes()


class Runs:
    """Runs commands, each in a process of its own that has everything loaded."""

    def __init__(self, folder):
        self.folder = folder / "run"
        self._sound, self._said = folder / "sound", folder / "said.txt"
        self._shim = ctypes.CDLL(None)
        for module in HEAVY:
            importlib.import_module(module)
        self._sound.mkdir()
        prepare(self._sound)
        self.reset()
        for line in (f"{FIT} m.skops", WATCH.format("whole.csv", "state.json")):
            assert self.run(line.split())[0] == OK, self.said
        for name in ("m.skops", "state.json"):
            shutil.copy(self.folder / name, self._sound)

    def reset(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(self._sound, self.folder)

    def inputs(self):
        names = [path.name for path in self._sound.iterdir()]
        return {name: (self.folder / name).read_bytes() for name in names}

    @property
    def said(self):
        return self._said.read_text(errors="replace")

    def run(self, words, fail=0, kill=0, seconds=0.0):
        """Run a command; its status, operations and time. A kill is a status below 0.

        An operation, by its number, fails, or it is killed before it, or after seconds.
        """
        began = time.monotonic()
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            self._child(words, fail, kill, seconds, writer)
        os.close(writer)
        with os.fdopen(reader) as stream:
            count = int(stream.read() or 0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        return status, count, time.monotonic() - began

    def _child(self, words, fail, kill, seconds, writer):
        os.chdir(self.folder)
        output = os.open(self._said, os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
        os.dup2(output, 1)
        os.dup2(output, 2)
        sys.argv = ["missratio", *words]
        if seconds:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_REAL, seconds)
        status = 99
        try:
            from missratio.app.cli import app

            self._shim.watch_folder(str(self.folder).encode(), fail, kill)
            app(list(words))
        except SystemExit as leave:
            status = int(leave.code or 0)
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            count = self._shim.operations()
            self._shim.watch_folder(b"", 0, 0)
            with suppress(OSError):
                sys.stdout.flush()
            os.write(writer, str(count).encode())
            os._exit(status)


@dataclass
class Trial:
    """One command, tried with and without something there to replace."""

    runs: Runs
    name: str
    replaces: bool
    problems: list[str] = field(default_factory=list)
    refused: int = 0
    seconds: float | None = None

    def __post_init__(self):
        self.command = COMMANDS[self.name]
        self.words = self.command.line.split()
        if self.replaces and self.command.forces:
            self.words.append("--force")
        self._begin()
        status, self.count, _ = self.runs.run(self.words)
        assert status == OK, self.runs.said
        self.inputs = self.runs.inputs()
        self.after = self._contents()

    def _begin(self):
        self.runs.reset()
        # What is replaced is a file of the same kind that says something else.
        for name in self.command.outputs.split():
            if self.replaces and self.command.forces:
                (self.runs.folder / name).write_bytes(b"what was there before")
        for name, source in self.command.begins.items():
            shutil.copy(self.runs.folder / source, self.runs.folder / name)
        self.before = self._contents()

    def _contents(self):
        names = self.command.outputs.split()
        return {name: content(self.runs.folder / name) for name in names}

    def fault(self, place):
        self._begin()
        status, _, _ = self.runs.run(self.words, fail=place)
        self.refused += status != OK
        self._check(f"fault at {place}", status, drafts=False)
        self._again(f"after a fault at {place}")

    def kill(self, rng):
        """Kill it at a moment, or before an operation, drawn at random."""
        self._begin()
        if self.seconds is None:
            # Without the time of loading: other runs have everything loaded.
            self.seconds = self.runs.run(self.words)[2]
            self._begin()
        if rng.random() < 0.5:
            when = {"seconds": max(1e-3, rng.uniform(0.0, 1.05) * self.seconds)}
        else:
            when = {"kill": rng.randint(1, self.count)}
        status, _, _ = self.runs.run(self.words, **when)
        self.refused += status < 0
        self._check(f"killed at {when}", status, drafts=True)
        self._again(f"after a kill at {when}")

    def _check(self, when, status, drafts):
        said = self.runs.said
        if status in (FAULT, 99) or "Traceback" in said:
            self.problems.append(f"{when}: status {status}: {said[-2000:]}")
        if self.runs.inputs() != self.inputs:
            self.problems.append(f"{when}: an input was changed")
        for name, found in self._contents().items():
            if found not in (self.before[name], self.after[name]):
                self.problems.append(f"{when}: {name} is neither old nor new")
            if status == OK and found != self.after[name]:
                self.problems.append(f"{when}: {name} isn't new, and nothing was said")
        left = list(self.runs.folder.rglob(f"*{MARK}*"))
        if left and not drafts:
            self.problems.append(f"{when}: {left[0].name} was left")

    def _again(self, when):
        """Run it again: nothing that was left behind may change what it gives."""
        words = self.command.line.split()
        if self.command.forces:
            words.append("--force")
        status, _, _ = self.runs.run(words)
        if status != OK or self._contents() != self.after:
            self.problems.append(f"{when}: run again: {status}: {self.runs.said}")


def build(folder):
    library = folder / "failing.so"
    call = ["cc", "-O2", "-shared", "-fPIC", "-o", library, SHIM, "-ldl"]
    subprocess.run(call, check=True, capture_output=True)
    return library


def main():
    """Try the commands, and leave with status 1 where something was lost."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kinds", nargs="+", choices=["faults", "kills"])
    parser.add_argument("--commands", nargs="*")
    parser.add_argument("--times", type=int, default=200, help="kills of each command")
    parser.add_argument("--every", type=int, default=1, help="which faults are tried")
    parser.add_argument("--last", type=int, help="so many faults, from the end")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        if "MISSRATIO_FAULTS" not in os.environ:
            # What is written says neither when nor by how many threads.
            same = {"SOURCE_DATE_EPOCH": "0", "OMP_NUM_THREADS": "1",
                    "OPENBLAS_NUM_THREADS": "1"}  # fmt: skip
            told = {"LD_PRELOAD": str(build(folder)), "MISSRATIO_FAULTS": "1", **same}
            call = [sys.executable, *sys.argv]
            sys.exit(subprocess.run(call, env={**os.environ, **told}).returncode)
        sys.exit(try_all(asked, Runs(folder)))


def try_all(asked, runs):
    """Try the commands that were asked for; 1 where there were problems."""
    rng, problems = random.Random(asked.seed), 0
    names = asked.commands or (LONG if asked.kinds == ["kills"] else list(COMMANDS))
    for name in names:
        for replaces in [False, True] if COMMANDS[name].forces else [False]:
            trial = Trial(runs, name, replaces)
            for kind in asked.kinds:
                problems += _try(trial, kind, asked, rng)
    return min(problems, 1)


def _try(trial, kind, asked, rng):
    trial.problems, trial.refused, began, tried = [], 0, time.monotonic(), 0
    if kind == "faults":
        for place in range(1, trial.count + 1, asked.every)[-(asked.last or 0) :]:
            trial.fault(place)
            tried += 1
    else:
        # A kill that comes after the end is none.
        while trial.refused < asked.times // (2 if trial.command.forces else 1):
            trial.kill(rng)
            tried += 1
    facts = {
        "command": trial.name, "kind": kind, "replaces": trial.replaces,
        "operations": trial.count, "tried": tried, "failed or killed": trial.refused,
        "problems": len(trial.problems), "seconds": round(time.monotonic() - began, 1),
    }  # fmt: skip
    print(json.dumps(facts), flush=True)
    for problem in trial.problems[:5]:
        print(f"  {problem}", flush=True)
    return len(trial.problems)


if __name__ == "__main__":
    main()
