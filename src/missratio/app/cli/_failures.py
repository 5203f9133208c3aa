"""Errors as one line on standard error, and the exit status that goes with them."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import typer

FAILURE, USAGE, TABLE, MODEL, NO_CERTIFICATE, INTERRUPTED = 1, 2, 3, 4, 5, 130


@contextmanager
def failures(interrupted: str) -> Iterator[None]:
    """Turn what a user can mend into a message and a status.

    Parameters
    ----------
    interrupted : str
        What to say when the command is interrupted.
    """
    # Signals are the main thread's alone.
    is_main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGTERM, _interrupt) if is_main else None
    try:
        yield
    except ValueError as error:
        _leave(error, _status(error))
    except (OSError, ModuleNotFoundError) as error:
        _leave(error, FAILURE)
    except KeyboardInterrupt:
        typer.echo(interrupted, err=True)
        raise typer.Exit(INTERRUPTED) from None
    finally:
        if is_main:
            signal.signal(signal.SIGTERM, before)


def _interrupt(_: int, __: FrameType | None) -> None:
    """Unwind as for an interrupt, so that drafts are removed."""
    raise KeyboardInterrupt


def _status(error: ValueError) -> int:
    """Which kind of refusal an error is."""
    from missratio.app.modelfile import ModelFileError
    from missratio.app.tables import TableError
    from missratio.classifier import NoCertificateError

    for kind, status in (
        (TableError, TABLE),
        (ModelFileError, MODEL),
        (NoCertificateError, NO_CERTIFICATE),
    ):
        if isinstance(error, kind):
            return status
    return USAGE


def _leave(error: Exception, status: int) -> None:
    typer.echo(f"Error: {error}", err=True)
    raise typer.Exit(status) from error
