"""Puts what a benchmark measured into its place on a page of the documentation.

A place is what stands between two lines, ``<!-- name: begin -->`` and
``<!-- name: end -->``. Figures that are too many for a page go to a CSV file in
``docs/evidence``.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

EVIDENCE = Path(__file__).parents[1] / "docs" / "evidence"


def put(page: Path, name: str, text: str) -> None:
    """Replace what stands in a place of a page."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, _, rest = page.read_text(encoding="utf-8").partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise ValueError(f"{page} has no place {name!r}: put {begin} and {end} there.")
    text = f"{before}{begin}\n\n{text.strip()}\n\n{end}{after}"
    page.write_text(text, encoding="utf-8")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [f"| {' | '.join(row)} |" for row in (head, *rows)]
    lines.insert(1, "|" + "---|" * len(head))
    return "\n".join(lines)


def write_csv(name: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a file of ``docs/evidence``."""
    EVIDENCE.mkdir(exist_ok=True)
    with (EVIDENCE / name).open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream, lineterminator="\n").writerows([head, *rows])
