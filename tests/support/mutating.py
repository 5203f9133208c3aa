"""Code with one thing changed, and how to run it in place of what it was."""

from __future__ import annotations

import ast
import copy
import gc
import importlib.abc
import importlib.util
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

ROOT = Path(__file__).parents[2]
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
    """A module with one thing changed, and the lines of the statement that has it."""

    module: str
    path: Path
    line: int
    lines: range
    in_function: bool
    what: str
    make: Callable[[], CodeType]

    @cached_property
    def code(self) -> CodeType:
        """Compiled when it is first needed: few of all mutants are tried."""
        return self.make()

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}: {self.what}"


def changed(node: ast.AST) -> Iterator[ast.AST]:
    """What could stand in a node's place."""
    new: ast.AST = copy.deepcopy(node)
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
        case ast.BinOp() if type(new.op) in OPERATIONS and not _is_text(new):
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


def _said(node: ast.AST, new: ast.AST) -> str:
    if isinstance(new, ast.Pass):
        return f"without {ast.unparse(node)[:90]}"
    return ast.unparse(new.test if isinstance(new, ast.If | ast.While) else new)[:110]


def _is_text(node: ast.BinOp) -> bool:
    sides = (node.left, node.right)
    return any(
        isinstance(side, ast.JoinedStr)
        or (isinstance(side, ast.Constant) and isinstance(side.value, str))
        for side in sides
    )


@dataclass(frozen=True)
class Place:
    """A node that runs, and where it is: in a parent's field, in a statement."""

    parent: ast.AST
    name: str
    number: int | None
    node: ast.AST
    statement: ast.stmt | None
    in_function: bool

    @property
    def lines(self) -> range:
        """Those of the statement, without the body that it may have."""
        first = self.statement
        if first is None:
            return range(0)
        body = getattr(first, "body", None)
        last = body[0].lineno - 1 if body else first.end_lineno or first.lineno
        return range(first.lineno, max(last, first.lineno) + 1)

    def put(self, node: ast.AST) -> None:
        """Put another node there."""
        if self.number is None:
            setattr(self.parent, self.name, node)
        else:
            getattr(self.parent, self.name)[self.number] = node


FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def places(
    parent: ast.AST, statement: ast.stmt | None = None, in_function: bool = False
) -> Iterator[Place]:
    """Every node that runs."""
    if isinstance(parent, ast.Raise | ast.JoinedStr | ast.Assert):
        return
    # An assertion, too: of sequences that are as long as each other.
    if isinstance(parent, ast.keyword) and parent.arg == "strict":
        return
    for name, value in ast.iter_fields(parent):
        if name in ("annotation", "returns", "type_params", "format_spec"):
            continue
        if isinstance(parent, ast.ClassDef) and name == "decorator_list":
            continue
        inside = in_function or (isinstance(parent, FUNCTIONS) and name == "body")
        for number, node in enumerate(value if isinstance(value, list) else [value]):
            if isinstance(node, ast.AST):
                own = node if isinstance(node, ast.stmt) else statement
                place = number if isinstance(value, list) else None
                yield Place(parent, name, place, node, own, inside)
                yield from places(node, own, inside)


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)


def unchanged(path: Path) -> Mutant:
    """A file as it is, which no test may kill."""
    tree = ast.parse(path.read_text())
    make = partial(compile, tree, str(path), "exec")
    return Mutant(module_of(path), path, 0, range(0), True, "nothing", make)


def _compiled(tree: ast.Module, path: Path, place: Place, new: ast.AST) -> CodeType:
    place.put(new)
    code = compile(tree, str(path), "exec")
    place.put(place.node)
    return code


def mutants_of(path: Path) -> list[Mutant]:
    """All mutants of a file."""
    module, tree, found = module_of(path), ast.parse(path.read_text()), []
    for place in list(places(tree)):
        for new in changed(place.node):
            new = ast.fix_missing_locations(ast.copy_location(new, place.node))
            make = partial(_compiled, tree, path, place, new)
            line, what = getattr(place.node, "lineno", 0), _said(place.node, new)
            found.append(
                Mutant(module, path, line, place.lines, place.in_function, what, make)
            )
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
        exec(self.mutant.code, module.__dict__)


def _functions_of(code: CodeType) -> Iterator[tuple[tuple[str, int], CodeType]]:
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield (each.co_qualname, each.co_firstlineno), each
            yield from _functions_of(each)


def loaded_functions(files: Container[str]) -> list[FunctionType]:
    """The functions that are loaded and come from some files."""
    # Not isinstance, which asks a proxy for the class of what it stands for.
    every = (each for each in gc.get_objects() if type(each) is FunctionType)
    return [each for each in every if each.__code__.co_filename in files]


def infect(functions: Sequence[FunctionType], mutant: Mutant) -> None:
    """Give a mutant's code to the functions that are its."""
    codes = dict(_functions_of(mutant.code))
    for each in functions:
        old = each.__code__
        key = old.co_qualname, old.co_firstlineno
        if old.co_filename == str(mutant.path) and key in codes:
            each.__code__ = codes[key]
