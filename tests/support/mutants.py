"""How many small faults in the code its own tests notice: a sample of mutants.

    python tests/support/mutants.py threshold modelfile resume --sample 100

A mutant is a room's code with one thing changed: a comparison, an operation, a number,
a condition, or a statement left out. Mutants of messages, types, docstrings,
assertions (`strict=` of `zip` is one) and the options of dataclasses are left out.

A mutant is tried in a forked process that imports it in the place of its module, and
runs the room's tests up to the first that fails. It is killed where one does, or where
they take far longer than they should. Survivors are printed to be read one by one.
"""

from __future__ import annotations

import argparse
import ast
import copy
import importlib.abc
import importlib.util
import json
import os
import random
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "missratio"
MOST_BYTES = 8 << 30
PRELOADED = (
    "numpy", "scipy.stats", "scipy.special", "scipy.fft",
    "sklearn.ensemble", "sklearn.linear_model", "sklearn.pipeline", "joblib",
    "hypothesis", "pyarrow.parquet", "skops.io", "typer.testing",
)  # fmt: skip
ROOMS = {
    "threshold": (
        "threshold/[a-z]*.py",
        ["src/missratio/threshold", "tests/threshold"],
    ),
    "modelfile": (
        "app/modelfile/[a-z]*.py",
        ["src/missratio/app/modelfile", "tests/app/modelfile"],
    ),
    "resume": ("reproduce/runner.py", ["tests/reproduce/test_runner.py"]),
    "certify": (
        "classifier/certify.py",
        [f"tests/classifier/test_{name}.py" for name in ("certify", "certificate",
         "look_ups", "refusals", "learned_missingness", "sensitivity", "grouped",
         "missingness", "calibration", "reading", "neyman_pearson", "multiclass")],
    ),
    "watch": (
        "app/workflow/watch.py",
        [f"tests/app/cli/test_{name}.py" for name in ("watch", "groups",
         "several_classes", "ways")],
    ),
}  # fmt: skip
"""The code of a room, and the tests that are its own."""

UNTESTED = ("strict", "repr", "kw_only")
COMPARISONS = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
OPERATIONS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult, ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
}  # fmt: skip


def changed(node: ast.AST) -> Iterator[ast.AST]:
    """What could stand in a node's place."""
    new = copy.deepcopy(node)
    match new:
        case ast.Compare():
            for place, op in enumerate(new.ops):
                if type(op) in COMPARISONS:
                    other = copy.deepcopy(new)
                    other.ops[place] = COMPARISONS[type(op)]()
                    yield other
            return
        case ast.BoolOp():
            new.op = ast.Or() if isinstance(new.op, ast.And) else ast.And()
        case ast.BinOp() if type(new.op) in OPERATIONS and not is_text(new):
            new.op = OPERATIONS[type(new.op)]()
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            new = new.operand
        case ast.Constant(value=bool()):
            new.value = not new.value
        case ast.Constant(value=int() | float()):
            new.value = new.value + 1
        case ast.IfExp() | ast.If() | ast.While():
            new.test = ast.UnaryOp(ast.Not(), new.test)
        case ast.Raise() | ast.AugAssign() | ast.Expr(value=ast.Call()):
            new = ast.Pass()
        case _:
            return
    yield new


def is_text(node: ast.BinOp) -> bool:
    sides = (node.left, node.right)
    return any(
        isinstance(side, ast.JoinedStr)
        or (isinstance(side, ast.Constant) and isinstance(side.value, str))
        for side in sides
    )


@dataclass(frozen=True)
class Mutant:
    """A node of a module that gets another in its place, and the lines it runs on."""

    path: Path
    tree: ast.Module
    owner: list | object
    key: int | str
    node: ast.AST
    new: ast.AST
    lines: range

    def code(self) -> object:
        """The module, compiled with the new node."""
        put = self.owner.__setitem__ if isinstance(self.owner, list) else (
            lambda key, node: setattr(self.owner, key, node)
        )  # fmt: skip
        put(self.key, ast.fix_missing_locations(ast.copy_location(self.new, self.node)))
        code = compile(self.tree, str(self.path), "exec")
        put(self.key, self.node)
        return code

    def __str__(self) -> str:
        new = self.new
        what = ast.unparse(new.test if isinstance(new, ast.If | ast.While) else new)
        if isinstance(new, ast.Pass):
            what = f"without {ast.unparse(self.node)}"
        return f"{self.path.relative_to(ROOT)}:{self.lines.start}: {what[:110]}"


def mutants_of(path: Path) -> Iterator[Mutant]:
    """All mutants of a file: of every node that runs."""
    tree = ast.parse(path.read_text())
    waiting: list[tuple[ast.AST, range]] = [(tree, range(1))]
    for parent, lines in waiting:
        if isinstance(parent, ast.Raise | ast.JoinedStr | ast.Assert):
            continue
        # An assertion, too, of sequences as long as each other; and fields' options.
        if isinstance(parent, ast.keyword) and parent.arg in UNTESTED:
            continue
        for name, value in ast.iter_fields(parent):
            if name in ("annotation", "returns", "type_params", "format_spec"):
                continue
            if isinstance(parent, ast.ClassDef) and name == "decorator_list":
                continue
            pairs = enumerate(value) if isinstance(value, list) else [(name, value)]
            for key, node in pairs:
                if not isinstance(node, ast.AST):
                    continue
                at = lines
                if isinstance(node, ast.stmt):
                    # Of a statement, without the body that it may have.
                    body = getattr(node, "body", None)
                    last = body[0].lineno - 1 if body else node.end_lineno
                    at = range(node.lineno, max(last, node.lineno) + 1)
                waiting.append((node, at))
                owner = value if isinstance(value, list) else parent
                for new in changed(node):
                    yield Mutant(path, tree, owner, key, node, new, at)


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives the code of a mutant for its module, and leaves the others alone."""

    def __init__(self, mutant: Mutant) -> None:
        parts = mutant.path.relative_to(ROOT / "src").with_suffix("").parts
        self.name, self.path, self.code = ".".join(parts), mutant.path, mutant.code()

    def find_spec(self, name, path, target=None):
        """The mutant's module, if it is asked for."""
        if name == self.name:
            return importlib.util.spec_from_file_location(name, self.path, loader=self)
        return None

    def exec_module(self, module):
        """Run the mutant's code."""
        exec(self.code, module.__dict__)


def run_tests(tests: list[str]) -> bool:
    """Whether tests pass, in silence; failures of Hypothesis are not made smaller."""
    from hypothesis import Phase, settings

    class Quick:
        def pytest_sessionstart(self):
            settings.load_profile("mutants")

    phases = (Phase.explicit, Phase.generate)
    settings.register_profile("mutants", phases=phases, deadline=None, database=None)
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    call = ["-q", "-x", "-p", "no:cacheprovider", "-W",
            "ignore::pytest.PytestAssertRewriteWarning", *tests]  # fmt: skip
    return pytest.main(call, plugins=[Quick()]) == 0


def forked(work: Callable[[], bool], seconds: float | None = None) -> int:
    """Start work in a process of its own; its status is 0 if it ends well, in time."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            if seconds is not None:
                limit = int(seconds) + 1
                resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
                resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
                # One that hangs without computing.
                signal.alarm(60 + 10 * limit)
            status = 0 if work() else 1
        finally:
            os._exit(status)
    return child


def try_room(name: str, size: int, seed: int, jobs: int) -> None:
    """Try a sample of a room's mutants, and print the score."""
    pattern, tests = ROOMS[name]
    paths = sorted(SOURCE.glob(pattern))
    every = [mutant for path in paths for mutant in mutants_of(path)]
    waiting = random.Random(seed).sample(every, min(size, len(every)))
    print(f"{name}: {len(waiting)} of {len(every)} mutants", flush=True)
    before = os.times().children_user
    if os.waitpid(forked(lambda: run_tests(tests)), 0)[1]:
        sys.exit(f"The tests of {name} don't pass.")
    seconds = os.times().children_user - before
    tried = killed = 0
    running: dict[int, Mutant] = {}

    def run_mutant() -> bool:
        sys.meta_path.insert(0, Finder(mutant))
        return run_tests(tests)

    while waiting or running:
        while waiting and len(running) < jobs:
            mutant = waiting.pop()
            running[forked(run_mutant, 60.0 + 3.0 * seconds)] = mutant
        child, status = os.wait()
        mutant, tried = running.pop(child), tried + 1
        if status == 0:
            print(f"  survived: {mutant}", flush=True)
        else:
            killed += 1
        if tried % 10 == 0 or not (waiting or running):
            facts = {"room": name, "tried": tried, "killed": killed}
            print(json.dumps({**facts, "score": round(killed / tried, 3)}), flush=True)


def main() -> None:
    """Try a sample of each room that is named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rooms", nargs="+", choices=ROOMS)
    parser.add_argument("--sample", type=int, default=100, help="mutants of each room")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="mutants at a time")
    asked = parser.parse_args()
    os.chdir(ROOT)
    for name in PRELOADED:
        importlib.import_module(name)
    for name in asked.rooms:
        try_room(name, asked.sample, asked.seed, asked.jobs)


if __name__ == "__main__":
    main()
