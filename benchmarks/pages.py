"""Puts what a benchmark measured into its place on a page of the documentation.

A place is what stands between two lines, ``<!-- name: begin -->`` and
``<!-- name: end -->``. Figures that are too many for a page go to a CSV file in
``docs/evidence``.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from pyarrow import parquet

from missratio.reproduce import EXPERIMENTS, Conditions, Result

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


def load_results(folder: Path) -> dict[str, Result]:
    """What ``missratio reproduce`` wrote, by experiment."""
    results = {}
    for name in json.loads((folder / "results.json").read_text()):
        experiment, path = EXPERIMENTS[name], folder / f"{name}.parquet"
        table = parquet.read_table(path, page_checksum_verification=True)
        settings = json.loads(table.schema.metadata[b"missratio"])
        columns = table.to_pydict()
        shape = (1 + max(columns["run"]), len(experiment.x))
        named = set(columns["method"])
        values = {m: np.full(shape, np.nan) for m in experiment.curves if m in named}
        for x, method, run, value in zip(*columns.values(), strict=True):
            values[method][run, experiment.x.index(x)] = value
        conditions = Conditions(settings["variant"], settings["seed"])
        results[name] = Result(experiment, conditions, values)
    return results
