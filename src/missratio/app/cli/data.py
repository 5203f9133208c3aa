"""``missratio data``: the paper's data sets."""

from __future__ import annotations

from typing import Annotated

import typer

from missratio.app.cli._failures import failures, say

app = typer.Typer(help="Find or download the paper's data sets.", no_args_is_help=True)


@app.command("list")
def list_files() -> None:
    """List the data sets: where each file is, and whether it is the known one."""
    with failures():
        from missratio.datasets import available

        for entry in available():
            where = "absent" if entry.path is None else str(entry.path)
            checked = "" if entry.path is None else f" (SHA-256 {entry.digest})"
            say(f"{entry.name:8} {where}{checked}")
            account = ", to account holders" if entry.account_needed else ""
            say(f"{'':8} published by {entry.publisher}{account}: {entry.page}")


@app.command()
def fetch(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            help="ctg, fire or weather. Default: all.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Find or download data sets, and check them against their checksums."""
    with failures():
        from missratio.datasets import available
        from missratio.datasets import fetch as find

        absent = []
        for name in names or [entry.name for entry in available()]:
            try:
                say(str(find(name)))
            except FileNotFoundError as error:
                absent.append(str(error))
        if absent:
            raise FileNotFoundError("\n".join(absent))
