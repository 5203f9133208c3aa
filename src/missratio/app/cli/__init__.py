"""The command line: ``missratio``.

A command imports what is heavy when it runs, so that ``missratio --help`` answers at
once.
"""

from __future__ import annotations

from typing import Annotated

import typer

import missratio
from missratio.app.cli import commands, shell
from missratio.app.cli.reproduce import data, reproduce
from missratio.app.cli.shell import command
from missratio.app.options import default_options

app = typer.Typer(
    name="missratio",
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
)
for work in (
    commands.check, commands.query, commands.fit, commands.predict, commands.report,
    commands.watch, reproduce,
):  # fmt: skip
    app.command()(command(work))
app.add_typer(data, name="data")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"missratio {missratio.__version__}")
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
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
    with shell.failures():
        context.default_map = default_options()


def main() -> None:
    """Run the command line."""
    app()
