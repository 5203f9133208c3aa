"""Time contenders by turns, say how the times compare, and show it in tables."""

from __future__ import annotations

import datetime
import gc
import os
import platform
import re
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import pages
from rich.table import Table as TerminalTable
from threadpoolctl import threadpool_info


class DisagreementError(Exception):
    """Two computations that should give the same did not."""


@dataclass(frozen=True)
class Timing:
    """Seconds for each call, a value for each repeat."""

    seconds: tuple[float, ...]

    @property
    def best(self) -> float:
        return min(self.seconds)

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    def __truediv__(self, by: float) -> Timing:
        return Timing(tuple(each / by for each in self.seconds))

    def __mul__(self, by: float) -> Timing:
        return self / (1.0 / by)

    def __str__(self) -> str:
        return f"{duration(self.best)} ({duration(self.median)})"


@dataclass(frozen=True)
class Target:
    """What a ratio should be at least, or at most."""

    kind: Literal["at least", "at most"]
    value: float

    def is_met(self, ratio: float) -> bool:
        return ratio >= self.value if self.kind == "at least" else ratio <= self.value

    def __str__(self) -> str:
        return f"{'≥' if self.kind == 'at least' else '≤'} {self.value:g}"


@dataclass(frozen=True)
class Result:
    """One line of a table.

    Parameters
    ----------
    case : str
        What was measured.
    ours, against : str
        The two quantities, written out.
    ratio : float
        How they compare, by the best of the repeats.
    target : Target, optional
        What the ratio is held to; None where it is only reported.
    remark : str
        What was checked, and how well it holds.
    equal : bool
        Whether the result is at least as good as the other's: a target that is met at
        a worse one is not.
    wrong : str
        What fails to hold; the time then means nothing.
    """

    case: str
    ours: str
    against: str
    ratio: float
    target: Target | None = None
    remark: str = ""
    equal: bool = True
    wrong: str = ""

    def verdict(self, *, quick: bool) -> str:
        if self.wrong:
            return "WRONG"
        if self.target is None:
            return "–"
        if quick:
            return "not judged"
        met = self.equal and self.target.is_met(self.ratio)
        return "PASS" if met else "short of target"


Tell = Callable[[str], None]


@dataclass(frozen=True)
class Table:
    """The results of one subject, and how to read them."""

    title: str
    ratio_means: str
    results: tuple[Result, ...]
    note: str = ""


def race(
    contenders: Mapping[str, Callable[[], Any]],
    repeats: int,
    tell: Tell,
    *,
    number: int = 1,
    warm_up: bool = False,
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[dict[str, Timing], dict[str, Any]]:
    """Call contenders by turns: a, b, a, b …

    A slow spell of the machine then falls on all of them.

    Parameters
    ----------
    contenders : mapping from name to callable
    repeats : int
        How many turns each has.
    tell : callable
        Told who has the turn.
    number : int
        Calls in a turn; the time is that of one.
    warm_up : bool
        Whether to call each once before the first turn.
    clock : callable
        `time.process_time` for the processor's time, of all threads.

    Returns
    -------
    timings, results : dict
        The results are those of the last call.
    """
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    results: dict[str, Any] = {}
    if warm_up:
        for call in contenders.values():
            call()
    for turn in range(1, repeats + 1):
        for name, call in contenders.items():
            tell(f"{name}, {turn} of {repeats}")
            results.pop(name, None)
            gc.collect()
            begin = clock()
            for _ in range(number):
                result = call()
            seconds[name].append((clock() - begin) / number)
            results[name] = result
    return {name: Timing(tuple(each)) for name, each in seconds.items()}, results


def duration(seconds: float) -> str:
    """A time in the unit that suits it."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def check(holds: bool, claim: str) -> None:
    """Stop where a result is wrong: its time then means nothing."""
    if not holds:
        raise DisagreementError(claim)


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


def as_markdown(table: Table) -> str:
    """A section of the page: its note, and a table without what was checked."""
    rows = []
    for result in table.results:
        *shown, target, verdict, _ = _cells(result, quick=False)
        missed = f"{target}, missed" if verdict == "short of target" else target
        # The terminal has medians beside the best times.
        shown = [re.sub(r" \([\d.]+ [µmn]?s\)", "", cell) for cell in shown]
        rows.append([*shown, missed])
    note = f"{table.note} Ratio: {table.ratio_means}.".strip()
    return f"## {table.title}\n\n{note}\n\n{pages.table(HEADINGS[:5], rows)}"


def conditions() -> str:
    """When, where and with what was measured."""
    today = datetime.date.today().isoformat()
    return f"Measured on {today} on {machine()}; {', '.join(versions())}."


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
