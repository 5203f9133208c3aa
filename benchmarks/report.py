"""The tables, on the terminal and in Markdown."""

from __future__ import annotations

import datetime
import os
import platform
import re
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from measure import Result, Table
from rich.table import Table as TerminalTable
from threadpoolctl import threadpool_info

PACKAGES = ("missratio", "numpy", "scipy", "scikit-learn", "densratio", "mapie")
COLOURS = {"PASS": "green", "short of target": "red", "WRONG": "bold red"}
HEADINGS = ("", "missratio", "against", "ratio", "target", "", "checked")


def for_terminal(table: Table, *, quick: bool) -> TerminalTable:
    shown = TerminalTable(title=table.title, caption=f"ratio: {table.ratio_means}")
    for heading in HEADINGS:
        shown.add_column(heading)
    for result in table.results:
        verdict = result.verdict(quick=quick)
        colour = COLOURS.get(verdict, "default")
        cells = _cells(result, quick=quick)
        cells[5] = f"[{colour}]{verdict}[/]"
        shown.add_row(*cells)
    return shown


def as_markdown(tables: Sequence[Table], command: str, *, quick: bool) -> str:
    judged = " with small sizes, which say nothing about the targets" if quick else ""
    pieces = [
        "# Benchmarks",
        f"Written by `{command}`{judged}, on {datetime.date.today().isoformat()}, on "
        f"{machine()}; {', '.join(versions())}.",
        "missratio and the other package run by turns in one process. Times are the "
        "best of the repeats, with the median in brackets; ratios and verdicts are by "
        "the best.",
    ]
    for table in tables:
        lines = [_line(("", *HEADINGS[1:5], "verdict", HEADINGS[6])), "|---" * 7 + "|"]
        lines += [_line(_cells(result, quick=quick)) for result in table.results]
        pieces.append(f"## {table.title}")
        pieces.append(f"{table.note} Ratio: {table.ratio_means}.".strip())
        pieces.append("\n".join(lines))
    return "\n\n".join(pieces) + "\n"


def machine() -> str:
    """The processor, its cores and its memory, in words."""
    processor = platform.processor() or platform.machine()
    information = Path("/proc/cpuinfo")
    if information.exists():
        found = re.search(r"^model name\s*:\s*(.+)$", information.read_text(), re.M)
        processor = found[1].strip() if found else processor
    cores = len(os.sched_getaffinity(0)) if _has_affinity() else os.cpu_count()
    words = f"a machine with {cores} cores of {processor}"
    if "SC_PHYS_PAGES" in os.sysconf_names:
        size = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        words += f" and {size / 2**30:.0f} GiB of memory"
    return f"{words}, {platform.system()}"


def versions() -> list[str]:
    blas = {
        f"{info['internal_api']} {info['version']} on {info['num_threads']} threads"
        for info in threadpool_info()
        if info["user_api"] == "blas"
    }
    packages = [f"{name} {version(name)}" for name in PACKAGES]
    return [f"Python {platform.python_version()}", *packages, *sorted(blas)]


def _has_affinity() -> bool:
    return hasattr(os, "sched_getaffinity")


def _cells(result: Result, *, quick: bool) -> list[str]:
    return [
        result.case,
        result.ours,
        result.against,
        f"{result.ratio:.2g}" if result.ratio < 10 else f"{result.ratio:.0f}",
        "–" if result.target is None else str(result.target),
        result.verdict(quick=quick),
        result.remark,
    ]


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
