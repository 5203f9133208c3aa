"""Measure missratio's time and memory against other packages, side by side.

Without names every benchmark runs. The exit status is 1 where results disagree, and 0
otherwise, whether or not a target is met.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import certificates
import fits
import kernel
import lossy
import measure
import pages
import streaming
import wide
from measure import DisagreementError, Table
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

BENCHMARKS = {
    "large": fits.large,
    "missing": lossy.missing,
    "correlated": fits.correlated,
    "columns": fits.columns,
    "streaming": streaming.run,
    "small": fits.small,
    "wide": wide.wide,
    "batch": fits.batch,
    "growth": fits.growth,
    "kernel": kernel.kernel,
    "kernel_cv": kernel.kernel_cv,
    "naive_bayes": fits.naive_bayes,
    "learned": lossy.learned,
    "imputer": lossy.imputer,
    "rules": certificates.rules,
    "np_roc": certificates.curves,
    "controller": certificates.controller,
}
LEAST_WIDTH = 140


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    known = ", ".join(BENCHMARKS)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of {known}")
    parser.add_argument(
        "--quick", action="store_true", help="small sizes: does everything work?"
    )
    parser.add_argument(
        "--write", type=Path, metavar="PAGE", help="the page to put tables into"
    )
    given = parser.parse_args(arguments)
    unknown = [name for name in given.names if name not in BENCHMARKS]
    if given.write is not None and given.quick:
        parser.error("--quick measures nothing that belongs on a page: leave it out")
    if unknown:
        parser.error(f"no benchmark is called {unknown[0]!r}; there are {known}")
    return given


def main(arguments: list[str]) -> int:
    given = parse(arguments)
    console = Console()
    if console.width < LEAST_WIDTH and not console.is_terminal:
        console = Console(width=LEAST_WIDTH)
    names = given.names or list(BENCHMARKS)
    tables: dict[str, Table] = {}
    wrong: list[str] = []
    columns = (TextColumn("{task.description}"), BarColumn(20), MofNCompleteColumn())
    # Drawn between measurements only: a thread that draws would take their time.
    with Progress(*columns, console=console, auto_refresh=False) as progress:
        task = progress.add_task("", total=len(names))
        for name in names:

            def tell(what: str, name: str = name) -> None:
                progress.update(task, description=f"{name}: {what}", refresh=True)

            try:
                table = BENCHMARKS[name](tell, quick=given.quick)
            except DisagreementError as error:
                wrong.append(str(error))
            else:
                tables[name] = table
                shown = measure.for_terminal(table, quick=given.quick)
                progress.console.print(shown)
                wrong += [each.wrong for each in table.results if each.wrong]
            progress.advance(task)
    for claim in wrong:
        console.print(f"[red]Wrong:[/] {claim}")
    console.print(measure.conditions())
    if given.write is not None:
        pages.put(given.write, "machine", measure.conditions())
        for name, table in tables.items():
            # Some are measured and not shown.
            if f"<!-- {name}: begin -->" in given.write.read_text(encoding="utf-8"):
                pages.put(given.write, name, measure.as_markdown(table))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
