"""What a run of the long statistical suites found, as a page.

make validity PYTEST_ARGS="--junitxml=validity.xml"
python benchmarks/suites.py validity.xml --write docs/suites.md
"""

from __future__ import annotations

import argparse
import ast
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parents[1]
PAGE = """# The long suites

`make validity` tests promises by simulations that could fail: certificates, bands,
intervals, levels of tests and false alarms, in settings that are drawn at random from a
seed. Beside them it breaks each mechanism on purpose, and fails if that goes unnoticed.
This page is what one run found, written by `python benchmarks/suites.py`:
{tests} tests, {failed}.

| suite | what it tests | tests | failed |
|---|---|---|---|
{rows}

The figures behind the promises are on pages of their own: [rules](validity.md),
[intervals of a ratio](coverage.md), [learned φ](learning_validity.md),
[look-ups](three_ways.md), [several classes](several_classes.md).
"""


@dataclass
class Suite:
    """One file of tests."""

    path: Path
    tests: int = 0
    failed: int = 0

    @property
    def promise(self) -> str:
        """The first sentence of its docstring."""
        text = ast.get_docstring(ast.parse(self.path.read_text(encoding="utf-8")))
        return (text or "").split("\n\n")[0].replace("\n", " ").rstrip(".")

    def row(self) -> str:
        name = f"`{self.path.relative_to(ROOT / 'tests').as_posix()}`"
        return f"| {name} | {self.promise} | {self.tests} | {self.failed} |"


def read(report: Path) -> list[Suite]:
    """The suites in a JUnit report, as pytest writes it."""
    suites: dict[Path, Suite] = {}
    for case in ElementTree.parse(report).iter("testcase"):
        if case.find("skipped") is not None:
            continue
        path = ROOT / (case.attrib["classname"].replace(".", "/") + ".py")
        suite = suites.setdefault(path, Suite(path))
        suite.tests += 1
        suite.failed += any(case.find(tag) is not None for tag in ("failure", "error"))
    return sorted(suites.values(), key=lambda suite: suite.path)


def as_markdown(suites: Sequence[Suite]) -> str:
    failed = sum(suite.failed for suite in suites)
    return PAGE.format(
        tests=sum(suite.tests for suite in suites),
        failed=f"{failed} of them failed" if failed else "none of which failed",
        rows="\n".join(suite.row() for suite in suites),
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("report", type=Path, help="what --junitxml wrote")
    parser.add_argument("--write", type=Path, help="the page to write")
    options = parser.parse_args(arguments)
    page = as_markdown(read(options.report))
    if options.write:
        options.write.write_text(page, encoding="utf-8")
    else:
        print(page)


if __name__ == "__main__":
    main()
