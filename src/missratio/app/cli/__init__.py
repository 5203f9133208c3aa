"""The command line: ``missratio``.

One module for each command. What is heavy is imported by a command when it runs, so
that ``missratio --help`` answers at once.
"""

from __future__ import annotations

from typing import Annotated

import typer

import missratio
from missratio.app.cli import data
from missratio.app.cli._options import arranged
from missratio.app.cli.export import export
from missratio.app.cli.fit import fit
from missratio.app.cli.predict import predict
from missratio.app.cli.query import query
from missratio.app.cli.report import report
from missratio.app.cli.reproduce import reproduce
from missratio.app.cli.watch import watch

app = typer.Typer(
    name="missratio",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,
)
for command in (query, fit, predict, report, export, watch, reproduce):
    app.command()(arranged(command))
app.add_typer(data.app, name="data")


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
