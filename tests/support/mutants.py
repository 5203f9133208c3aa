"""How many small faults in the code its own tests notice: a sample of mutants.

    python tests/support/mutants.py threshold modelfile resume --sample 100

A mutant is a room's code with one thing changed: a comparison, an operation, a number,
a condition, or a statement left out. Mutants of messages, types, docstrings,
assertions (`strict=` of `zip` is one) and the options of dataclasses are left out.

The room's tests are collected once. Each of them is then run once, alone in a forked
process with code that was put in place as a mutant's is and has nothing changed, to
learn how long it takes and which lines it runs. A mutant is tried in a
forked process, too: its functions get the changed code, and the tests that run the
changed line follow, the quickest first. What is changed outside of functions needs a
new import, and all tests. A mutant is killed where a test fails, where the tests
compute for longer than three times as long as they should, and ten seconds, or where
they wait for a minute without computing. Survivors are printed to be read one by one.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import pickle
import random
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FunctionType
from typing import NoReturn

import pytest
from mutating import (
    ROOT,
    Finder,
    Mutant,
    infect,
    loaded_functions,
    mutants_of,
    unchanged,
)

MOST_BYTES, MOST_SECONDS = 8 << 30, 300.0
PRELOADED = (
    "coverage", "numpy", "scipy.stats", "scipy.special", "scipy.fft",
    "sklearn.ensemble", "sklearn.linear_model", "sklearn.pipeline", "joblib",
    "hypothesis", "pyarrow.parquet", "skops.io", "typer.testing",
)  # fmt: skip


@dataclass(frozen=True)
class Room:
    """Code, and the tests that are its own."""

    code: tuple[str, ...]
    tests: tuple[str, ...]


ROOMS = {
    "threshold": Room(
        ("threshold/[a-z]*.py",), ("src/missratio/threshold", "tests/threshold")
    ),
    "modelfile": Room(
        ("app/modelfile/[a-z]*.py",),
        ("src/missratio/app/modelfile", "tests/app/modelfile"),
    ),
    "resume": Room(("reproduce/runner.py",), ("tests/reproduce/test_runner.py",)),
}


def forked(work: Callable[[], None], seconds: float | None = None) -> bool:
    """Whether some work in a process of its own ends well, and in time."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            if seconds is not None:
                limit = int(seconds) + 1
                resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
                resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
                end_when_idle()
            work()
            status = 0
        finally:
            os._exit(status)
    return os.waitpid(child, 0)[1] == 0


def end_when_idle() -> None:
    """End this process where it computes nothing for a minute, as one that hangs."""
    seen, idle = time.process_time(), 0

    def look(*_: object) -> None:
        nonlocal seen, idle
        now = time.process_time()
        # Twice, as a process that was stopped for a while has been idle once.
        idle = idle + 1 if now - seen < 0.1 else 0
        seen = now
        if idle == 2:
            os._exit(1)

    signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, 30.0, 30.0)


@dataclass(frozen=True)
class Known:
    """Of a test: how long it takes, and the lines that it runs, by file."""

    seconds: float
    lines: dict[str, set[int]]


@dataclass(eq=False)
class Session:
    """A plugin of pytest: what is done with the tests that were collected.

    It has a hash, which pytest asks of plugins where a folder has its own conftest.

    Parameters
    ----------
    work : callable
        Given the session's tests.
    """

    work: Callable[[list[pytest.Item]], None]

    def pytest_sessionstart(self) -> None:
        """Failures of Hypothesis are found, and not made smaller."""
        from hypothesis import Phase, settings

        phases = (Phase.explicit, Phase.generate)
        settings.register_profile(
            "mutants", phases=phases, deadline=None, database=None
        )
        settings.load_profile("mutants")

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Work with the tests instead of running them."""
        if session.testsfailed:
            os._exit(1)
        self.work(session.items)
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """End the process at the first test that fails."""
        if report.failed:
            os._exit(1)


def collect(room: Room, work: Callable[[list[pytest.Item]], None]) -> None:
    """Collect a room's tests, in silence, and do some work with them."""
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    # What is loaded already can't be rewritten, and needn't be.
    loaded = ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    call = ["-q", "-p", "no:cacheprovider", *loaded, *room.tests]
    if pytest.main(call, plugins=[Session(work)]) != 0:
        os._exit(1)


def run_tests(items: Sequence[pytest.Item]) -> None:
    """Run tests in this process, to the end or to the first that fails."""
    for item, following in zip(items, [*items[1:], None], strict=True):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)


@dataclass
class Trial:
    """A sample of a room's mutants, tried one after the other."""

    name: str
    room: Room
    chosen: list[Mutant]
    report: int
    """Where to print: what tests print is silenced."""
    folder: Path
    known: dict[str, Known] = field(default_factory=dict)
    functions: list[FunctionType] = field(default_factory=list)
    killed: int = 0
    tried: int = 0

    def say(self, text: str) -> None:
        os.write(self.report, f"{text}\n".encode())

    def learn(self, items: list[pytest.Item]) -> None:
        """Learn of each test how long it takes, and which lines it runs."""
        import coverage

        files = sorted({str(mutant.path) for mutant in self.chosen})
        kept = self.folder / "known"
        self.functions = loaded_functions(set(files))
        # Code with nothing changed: all tests must pass with it.
        for name in files:
            infect(self.functions, unchanged(Path(name)))

        def alone(item: pytest.Item) -> None:
            measured = coverage.Coverage(data_file=None, include=files, config_file="")
            # Some tests of a room are about other files.
            measured.set_option("run:disable_warnings", ["no-data-collected"])
            began = time.process_time()
            measured.start()
            run_tests([item])
            measured.stop()
            data = measured.get_data()
            lines = {name: set(data.lines(name) or ()) for name in files}
            known = Known(time.process_time() - began, lines)
            kept.write_bytes(pickle.dumps(known))

        for item in items:
            if not forked(lambda item=item: alone(item), MOST_SECONDS):  # type: ignore[misc]
                self.say(f"{self.name}: without a change a test fails: {item.nodeid}")
                os._exit(1)
            self.known[item.nodeid] = pickle.loads(kept.read_bytes())
        seconds = sum(known.seconds for known in self.known.values())
        self.say(f"{self.name}: {len(items)} tests, {seconds:.0f} s in all")

    def of(self, mutant: Mutant, items: list[pytest.Item]) -> list[pytest.Item]:
        """The tests that could notice a mutant, the quickest first."""
        path, lines = str(mutant.path), set(mutant.lines)

        def runs(item: pytest.Item) -> bool:
            return bool(self.known[item.nodeid].lines[path] & lines)

        found = [each for each in items if not mutant.in_function or runs(each)]
        return sorted(found, key=lambda item: self.known[item.nodeid].seconds)

    def seconds(self, items: list[pytest.Item]) -> float:
        return 10.0 + 3.0 * sum(self.known[item.nodeid].seconds for item in items)

    def inside(self, items: list[pytest.Item]) -> None:
        """Try mutants of functions, in processes that have everything loaded."""
        self.learn(items)
        for mutant in self.chosen:
            if mutant.in_function:
                tests = self.of(mutant, items)

                def work(mutant: Mutant = mutant, tests: list = tests) -> None:
                    infect(self.functions, mutant)
                    run_tests(tests)

                self.note(mutant, forked(work, self.seconds(tests)), len(tests))
        facts = (self.known, self.tried, self.killed)
        (self.folder / "facts").write_bytes(pickle.dumps(facts))

    def outside(self, mutant: Mutant) -> None:
        """Try a mutant outside of functions, in a process without missratio."""

        def work(items: list[pytest.Item]) -> None:
            run_tests(self.of(mutant, items))

        def anew() -> None:
            sys.meta_path.insert(0, Finder(mutant))
            # Before pytest, which loads files named like tests by a finder of its own.
            importlib.import_module(mutant.module)
            collect(self.room, work)

        limit = 60.0 + 3.0 * sum(known.seconds for known in self.known.values())
        self.note(mutant, forked(anew, limit), len(self.known))

    def note(self, mutant: Mutant, lives: bool, tests: int) -> None:
        self.tried += 1
        self.killed += not lives
        if lives:
            self.say(f"  {self.tried}: survived {tests} tests: {mutant}")
        if self.tried % 10 == 0 or self.tried == len(self.chosen):
            facts = {"room": self.name, "tried": self.tried, "killed": self.killed}
            score = round(self.killed / self.tried, 3)
            self.say(json.dumps({**facts, "score": score}))

    def run(self) -> None:
        """Try all of them."""
        if not forked(lambda: collect(self.room, self.inside)):
            sys.exit(f"The tests of {self.name} don't pass.")
        facts = (self.folder / "facts").read_bytes()
        self.known, self.tried, self.killed = pickle.loads(facts)
        for mutant in self.chosen:
            if not mutant.in_function:
                self.outside(mutant)


def try_room(name: str, room: Room, size: int, seed: int) -> None:
    """Try a sample of a room's mutants."""
    root = ROOT / "src/missratio"
    paths = [path for each in room.code for path in sorted(root.glob(each))]
    every = [mutant for path in paths for mutant in mutants_of(path)]
    chosen = random.Random(seed).sample(every, min(size, len(every)))
    print(f"{name}: {len(chosen)} of {len(every)} mutants", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        Trial(name, room, chosen, os.dup(1), Path(folder)).run()


def main() -> NoReturn:
    """Try a sample of each room that is named, and print the score."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rooms", nargs="+", choices=ROOMS)
    parser.add_argument("--sample", type=int, default=100, help="mutants of each room")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--tests",
        nargs="+",
        help="some of its tests: the score is at least what they give",
    )
    asked = parser.parse_args()
    os.chdir(ROOT)
    for name in PRELOADED:
        importlib.import_module(name)
    for name in asked.rooms:
        room = ROOMS[name]
        if asked.tests:
            room = Room(room.code, tuple(asked.tests))
        try_room(name, room, asked.sample, asked.seed)
    sys.exit()


if __name__ == "__main__":
    main()
