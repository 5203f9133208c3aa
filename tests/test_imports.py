"""Imports point along the path of the data, and load nothing heavy."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import missratio

ROOT = Path(missratio.__file__).parent

# What each part may use: the parts before it on the data's path.
PATH = [
    "missingness", "threshold", "learning", "weights", "rows", "basis", "objective",
    "moments", "engine", "tensor", "ratio", "comparison", "uncertainty", "imputation",
    "classifier", "evaluation", "theory", "datasets",
]  # fmt: skip
BASE = {"_base", "_files", "exceptions"}
ALLOWED = {
    **{part: set() for part in BASE},
    **{part: {*BASE, *PATH[:place]} for place, part in enumerate(PATH)},
    "solver": {*BASE, *PATH[: PATH.index("engine")]},
}
ALLOWED["exceptions"] = {"_base"}
ALLOWED["_files"] = {"_base", "exceptions"}
ALLOWED["datasets"] = {*BASE, "missingness"}
# What stands on the path's end: an application may use all of it.
ALLOWED["reproduce"] = {*BASE, *PATH, "datasets", "solver"}
# The storey above: what is built on the library, and which of its rooms may use which.
APP = {
    "options": set(),
    "tables": set(),
    "queries": set(),
    "modelfile": {"tables"},
    "report": {"tables", "modelfile"},
    "workflow": {"options", "tables", "queries", "modelfile", "report"},
    "cli": {"options", "tables", "modelfile", "report", "workflow"},
}
LIBRARY = {*ALLOWED, "solver"}
ALLOWED["app"] = {*LIBRARY, "reproduce"}
for late in ["learning", *PATH[PATH.index("ratio") :]]:
    ALLOWED[late].add("solver")
HEAVY = ["torch", "triton", "dask", "distributed", "matplotlib", "pandas", "polars"]
HEAVY += ["pyarrow"]


def imported_modules(file):
    """Every module of the package that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file.name}: import by the full name"
            if node.module == "missratio":
                yield from (f"missratio.{alias.name}" for alias in node.names)
            else:
                yield node.module


def used_parts(file):
    """The parts of the package that a file imports from."""
    names = imported_modules(file)
    return {name.split(".")[1] for name in names if name.startswith("missratio.")}


def part_of(file):
    return file.relative_to(ROOT).with_suffix("").parts[0]


FILES = sorted(file for file in ROOT.rglob("*.py") if part_of(file) in ALLOWED)


def test_every_part_of_the_path_was_found():
    found = {part_of(file) for file in FILES}
    assert found >= {"_base", "solver", *PATH[: PATH.index("ratio") + 1]}


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_imports_point_along_the_path_of_the_data(file):
    assert used_parts(file) - {part_of(file)} <= ALLOWED[part_of(file)]


def private_reaches(file):
    """Other parts' private modules and names that a file imports."""
    part = part_of(file)
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.ImportFrom):
            continue
        _, *path = (node.module or "").split(".")
        if not (node.module or "").startswith("missratio.") or path[0] == part:
            continue
        names = [*path[1:], *(alias.name for alias in node.names)]
        if any(name.startswith("_") for name in names):
            yield part, path[0]


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_no_file_reaches_into_another_parts_private_names(file):
    assert not set(private_reaches(file))


def test_no_two_classes_have_one_name():
    names = [
        node.name
        for file in FILES
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    ]
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("room", APP)
def test_rooms_of_the_storey_above_use_the_ones_before_them(room):
    for file in (ROOT / "app" / room).rglob("*.py"):
        names = imported_modules(file)
        used = {n.split(".")[2] for n in names if n.startswith("missratio.app.")}
        assert used - {room} <= APP[room], file


@pytest.mark.parametrize("part", ["solver", "objective"])
def test_solvers_and_objectives_know_no_data(part):
    for file in FILES:
        assert part_of(file) != part or used_parts(file) <= {"_base", part}


def printed_by(code):
    """What a fresh interpreter prints, to which a warning is an error."""
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True
    )
    assert not run.returncode, run.stderr
    return run.stdout.strip()


def test_importing_the_package_loads_nothing_heavy():
    # scikit-learn loads pandas where it is installed; what it loads is not ours.
    code = (
        "import sys, sklearn.base; "
        f"ours = [name for name in {HEAVY!r} if name not in sys.modules]; "
        "import missratio; "
        "print([name for name in ours if name in sys.modules])"
    )
    assert printed_by(code) == "[]"


def test_every_package_that_is_imported_is_declared():
    """What another package happens to bring along may be gone in its next version."""
    project = tomllib.loads((ROOT.parents[1] / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    users = [name for name in extras if name not in ("dev", "docs", "bench")]
    words = [*project["dependencies"], *(w for name in users for w in extras[name])]
    declared = {re.split(r"[^\w-]", word)[0].replace("-", "_") for word in words}
    # Distributions that are named otherwise, belong to one that is declared, or are
    # asked for only where they are loaded already.
    declared |= {"sklearn", "vl_convert", "dask", "triton", "missratio", "pandas"}
    for file in ROOT.rglob("*.py"):
        used = {name.partition(".")[0] for name in imported_modules(file)}
        assert used <= declared | sys.stdlib_module_names, file


def test_a_fit_loads_nothing_that_it_has_no_need_of():
    code = (
        "import sys, numpy as np, missratio as mr\n"
        "X = np.random.default_rng(0).normal(size=(60, 2))\n"
        "mr.KLIEP().fit(X, np.arange(60) % 2)\n"
        "rooms = 'calibration ensemble impute linear_model model_selection pipeline'\n"
        "print([room for room in rooms.split() if f'sklearn.{room}' in sys.modules])"
    )
    assert printed_by(code) == "[]"
