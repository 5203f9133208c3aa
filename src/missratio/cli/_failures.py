"""Errors as one line on standard error, and the exit status that goes with them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer

USAGE, FAILURE, INTERRUPTED = 2, 1, 130


@contextmanager
def failures() -> Iterator[None]:
    """Turn what a user can mend into a message: 2 for a wrong word, 1 for the rest."""
    try:
        yield
    except ValueError as error:
        _leave(error, USAGE)
    except (OSError, ModuleNotFoundError) as error:
        _leave(error, FAILURE)
    except KeyboardInterrupt:
        typer.echo("Interrupted. The same command goes on from here.", err=True)
        raise typer.Exit(INTERRUPTED) from None


def _leave(error: Exception, status: int) -> None:
    typer.echo(f"Error: {error}", err=True)
    raise typer.Exit(status) from error
