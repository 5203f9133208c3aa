"""How many small faults in the code its own tests notice: a sample of mutants.

    python tests/support/mutants.py threshold --sample 60
    python tests/support/mutants.py modelfile resume --sample 50

A mutant is a room's code with one thing changed: a comparison, an operation, a number,
a condition, or a statement left out. Each is tried in a forked process that has
everything loaded but missratio; it is killed where a test fails, or where the tests
compute for longer than a minute. Mutants of messages, types and docstrings are left
out. Survivors are printed to be read one by one.
"""

from __future__ import annotations

import argparse
import ast
import copy
import importlib
import importlib.abc
import importlib.util
import json
import os
import random
import resource
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]
SECONDS = 60
PRELOADED = (
    "numpy", "scipy.stats", "scipy.special", "scipy.fft", "sklearn.ensemble",
    "sklearn.linear_model", "sklearn.pipeline", "joblib", "hypothesis", "pytest",
    "pyarrow.parquet", "cryptography.hazmat.primitives.asymmetric.ed25519", "skops.io",
    "typer.testing",
)  # fmt: skip


@dataclass(frozen=True)
class Room:
    """Code, and the tests that are its own, the quick ones first."""

    code: tuple[str, ...]
    tests: tuple[str, ...]


ROOMS = {
    "threshold": Room(
        ("threshold/_*.py",),
        tuple(f"tests/threshold/test_{name}.py" for name in (
            "sample", "binomial", "strata", "planning", "bets", "rules", "edges",
        )),
    ),
    "modelfile": Room(
        ("app/modelfile/_*.py",),
        tuple(f"tests/app/modelfile/test_{name}.py" for name in (
            "signature", "tampering", "hostile", "several", "frames", "files",
        )),
    ),
    "resume": Room(
        ("reproduce/_store.py", "reproduce/_execute.py"),
        ("tests/reproduce/test_execute.py",),
    ),
}  # fmt: skip

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
OPERATIONS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult, ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """A module with one thing changed."""

    module: str
    path: Path
    line: int
    what: str
    code: str


def changed(node: ast.AST) -> list[tuple[str, ast.AST | None]]:
    """What could stand in a node's place, and how to say so; None leaves it out."""
    new: ast.AST = copy.deepcopy(node)
    match new:
        case ast.Compare(ops=[op]) if type(op) in COMPARISONS:
            new.ops = [COMPARISONS[type(op)]()]
        case ast.BoolOp():
            new.op = ast.Or() if isinstance(new.op, ast.And) else ast.And()
        case ast.BinOp() if type(new.op) in OPERATIONS and not _is_text(new):
            new.op = OPERATIONS[type(new.op)]()
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            new = new.operand
        case ast.Constant(value=bool()):
            new.value = not new.value
        case ast.Constant(value=int() | float()):
            new.value = new.value + 1
        case ast.IfExp():
            new.test = ast.UnaryOp(ast.Not(), new.test)
        case ast.If() | ast.While():
            new.test = ast.UnaryOp(ast.Not(), new.test)
        case ast.Raise() | ast.AugAssign() | ast.Expr(value=ast.Call()):
            return [(f"without {ast.unparse(node)[:90]}", ast.Pass())]
        case _:
            return []
    shown = new.test if isinstance(new, ast.If | ast.While) else new
    return [(f"{ast.unparse(shown)[:110]}", new)]


def _is_text(node: ast.BinOp) -> bool:
    sides = (node.left, node.right)
    return any(
        isinstance(side, ast.JoinedStr)
        or (isinstance(side, ast.Constant) and isinstance(side.value, str))
        for side in sides
    )


def places(tree: ast.Module) -> Iterator[tuple[ast.AST, str, int | None, ast.AST]]:
    """Every node that runs: its parent, the field and the place in it, and the node."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        parent = waiting.pop()
        for name, value in ast.iter_fields(parent):
            if name in ("annotation", "returns", "type_params", "format_spec"):
                continue
            if isinstance(parent, ast.Raise | ast.JoinedStr | ast.Assert):
                continue
            items = value if isinstance(value, list) else [value]
            for place, item in enumerate(items):
                if isinstance(item, ast.AST):
                    waiting.append(item)
                    yield parent, name, place if isinstance(value, list) else None, item


def mutants_of(path: Path) -> list[Mutant]:
    """All mutants of a file."""
    source = path.read_text()
    parts = path.relative_to(ROOT / "src").with_suffix("").parts
    module, found = ".".join(parts), []
    tree = ast.parse(source)
    for parent, name, place, node in list(places(tree)):
        for what, new in changed(node):
            held = getattr(parent, name)
            if place is None:
                setattr(parent, name, new)
            else:
                held[place] = new
            code = ast.unparse(ast.fix_missing_locations(tree))
            if place is None:
                setattr(parent, name, node)
            else:
                held[place] = node
            found.append(Mutant(module, path, getattr(node, "lineno", 0), what, code))
    return found


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives the code of a mutant for its module, and leaves the others alone."""

    def __init__(self, mutant: Mutant) -> None:
        self.mutant = mutant

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The mutant's module, if it is asked for."""
        del path, target
        if name != self.mutant.module:
            return None
        return importlib.util.spec_from_file_location(
            name, self.mutant.path, loader=self
        )

    def exec_module(self, module: ModuleType) -> None:
        """Run the mutant's code."""
        exec(compile(self.mutant.code, str(self.mutant.path), "exec"), module.__dict__)


def survives(mutant: Mutant | None, tests: Sequence[str]) -> tuple[bool, float]:
    """Whether all tests pass, and how long that took; without a mutant they should."""
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
            silent = os.open(os.devnull, os.O_WRONLY)
            os.dup2(silent, 1)
            os.dup2(silent, 2)
            if mutant is not None:
                sys.meta_path.insert(0, Finder(mutant))
            import pytest

            call = ["-x", "-q", "-p", "no:cacheprovider", *tests]
            status = int(pytest.main(call))
        finally:
            os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return status == 0, time.monotonic() - began


def main() -> None:
    """Try a sample of each room that is named, and print the score."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rooms", nargs="+", choices=ROOMS)
    parser.add_argument("--sample", type=int, default=50, help="mutants of each room")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--examples", type=int, default=15, help="of each property")
    asked = parser.parse_args()
    os.chdir(ROOT)
    for name in PRELOADED:
        importlib.import_module(name)
    from hypothesis import settings

    settings.register_profile(
        "mutants", max_examples=asked.examples, deadline=None, database=None
    )
    settings.load_profile("mutants")
    for name in asked.rooms:
        try_room(name, ROOMS[name], asked.sample, asked.seed)


def try_room(name: str, room: Room, size: int, seed: int) -> None:
    """Try a sample of a room's mutants, one after the other."""
    paths = [
        p for each in room.code for p in sorted((ROOT / "src/missratio").glob(each))
    ]
    every = [mutant for path in paths for mutant in mutants_of(path)]
    chosen = random.Random(seed).sample(every, min(size, len(every)))
    sound, seconds = survives(None, room.tests)
    print(f"{name}: {len(every)} mutants; the tests pass: {sound}, {seconds:.0f} s")
    killed = 0
    for tried, mutant in enumerate(chosen, 1):
        lives, seconds = survives(mutant, room.tests)
        killed += not lives
        if lives:
            place = f"{mutant.path.relative_to(ROOT)}:{mutant.line}"
            print(f"  {tried}: survived {place}: {mutant.what}", flush=True)
        if tried % 10 == 0 or tried == len(chosen):
            facts = {"room": name, "tried": tried, "killed": killed}
            print(json.dumps({**facts, "score": round(killed / tried, 3)}), flush=True)


if __name__ == "__main__":
    main()
