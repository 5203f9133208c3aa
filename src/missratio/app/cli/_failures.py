"""Errors as one line on standard error, and the exit status that goes with them."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from missratio.exceptions import Message

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


def phrased(message: Message) -> str:
    """A message in the words of the command line."""
    from missratio.exceptions import Remedy

    return message.phrased(
        {
            Remedy.REJECT_ALL: "take --on-infeasible reject_all",
            Remedy.AS_OBSERVED: "take --deployment as-observed",
            Remedy.PENALTY: "take --method kliep-cv",
            Remedy.DROP_COLUMNS: "leave them out (--drop)",
            Remedy.FEWER_FEATURES: "leave columns out (--drop)",
            Remedy.MODEL: "say why values are missing (--missingness FILE or "
            "--queries PLAN)",
            Remedy.COMPLETE_CASES: "take complete cases (--missingness ignore)",
            Remedy.OTHER_RULE: "choose another --rule",
            Remedy.RAISE_LEVELS: "raise --alpha or --delta",
            Remedy.OVERWRITE: "--force to overwrite it",
        }
    )


def _status(error: ValueError) -> int:
    """Which kind of refusal an error is."""
    from missratio.app.modelfile import ModelFileError
    from missratio.exceptions import DataError, NoCertificateError

    for kind, status in (
        (DataError, TABLE),
        (ModelFileError, MODEL),
        (NoCertificateError, NO_CERTIFICATE),
    ):
        if isinstance(error, kind):
            return status
    return USAGE


def _leave(error: Exception, status: int) -> None:
    from missratio.exceptions import Explained

    text = phrased(error.message) if isinstance(error, Explained) else str(error)
    typer.echo(f"Error: {text}", err=True)
    raise typer.Exit(status) from error
