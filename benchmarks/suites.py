"""What a run of the long statistical suites found, for the page on validity.

make validity PYTEST_ARGS="--junitxml=validity.xml"
python benchmarks/suites.py validity.xml --write docs/validity.md
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import pages

ROOT = Path(__file__).parents[1]


@dataclass
class Suite:
    """One file of tests."""

    path: Path
    tests: int = 0
    failed: int = 0

    @property
    def name(self) -> str:
        room = self.path.parent.name.replace("validity", "")
        words = self.path.stem.removeprefix("test_").replace("_", " ")
        return f"{room} {words}".strip()


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
    tests, failed = (
        sum(getattr(each, n) for each in suites) for n in ("tests", "failed")
    )
    told = f"{tests} tests in {len(suites)} files: "
    told += ", ".join(f"{each.name} ({each.tests})" for each in suites)
    wrong = [each.name for each in suites if each.failed]
    return f"{told}. " + (
        f"{failed} failed, in {', '.join(wrong)}." if wrong else "None failed."
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("report", type=Path, help="what --junitxml wrote")
    parser.add_argument("--write", type=Path, help="the page to write")
    options = parser.parse_args(arguments)
    page = as_markdown(read(options.report))
    if options.write:
        pages.put(options.write, "suites", page)
    else:
        print(page)


if __name__ == "__main__":
    main()
