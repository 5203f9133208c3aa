"""The command line: ``missratio``.

One module for each command. What is heavy is imported by a command when it runs, so
that ``missratio --help`` answers at once.
"""

from __future__ import annotations

from typing import Annotated

import typer

import missratio
from missratio.app.cli._command import command
from missratio.app.cli.fit import fit, query, write_example
from missratio.app.cli.model import export, predict, report, watch
from missratio.app.cli.reproduce import data, reproduce

app = typer.Typer(
    name="missratio",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,
)
app.command()(command(query))
app.command()(command(fit, example=write_example))
for work in (predict, report, export, watch, reproduce):
    app.command()(command(work))
app.add_typer(data, name="data")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"missratio {missratio.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_show_version,
            is_eager=True,
            help="Show the version.",
            metavar="",
        ),
    ] = False,
) -> None:
    """Density ratios and Neyman-Pearson classifiers from data missing not at random."""


def main() -> None:
    """Run the command line."""
    app()
