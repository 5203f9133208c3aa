"""Errors as one line on standard error, and the exit status that goes with them."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import threading
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, TextIO, cast

import typer

if TYPE_CHECKING:
    from missratio.exceptions import Message

FAILURE, USAGE, TABLE, MODEL, NO_CERTIFICATE, ALARM = 1, 2, 3, 4, 5, 6
FAULT, INTERRUPTED = 70, 130
STATUS = {
    "DataError": TABLE, "ModelFileError": MODEL, "NoCertificateError": NO_CERTIFICATE,
}  # fmt: skip
TRACEBACK = "MISSRATIO_TRACEBACK"


@contextmanager
def failures(*outputs: Path, resumes: bool = False) -> Iterator[None]:
    """Turn what goes wrong into a message and a status.

    Parameters
    ----------
    *outputs : Path
        What the command writes; an interrupted one says whether it was written.
    resumes : bool
        Whether the same command goes on where it was interrupted.
    """
    # Signals are the main thread's alone.
    is_main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGTERM, _interrupt) if is_main else None
    found = [_state(path) for path in outputs]
    try:
        yield
        _flush_output()
    except (typer.Exit, typer.Abort, typer.BadParameter, BrokenPipeError):
        raise
    except (Exception, KeyboardInterrupt) as error:
        if os.environ.get(TRACEBACK):
            raise
        done = [p for p, was in zip(outputs, found, strict=True) if _state(p) != was]
        text, status = _told(error, resumes=resumes, written=bool(done))
        if done:
            text += f" {', '.join(map(str, done))} was written."
        # Where nothing can be said at all, the status says it.
        with suppress(OSError):
            say(text, err=True)
        _close_output()
        raise typer.Exit(status) from error
    finally:
        if is_main:
            signal.signal(signal.SIGTERM, before)


def say(text: str, *, err: bool = False) -> None:
    """Print a text, without the control characters that names may have."""
    typer.echo("".join(map(_printable, text)), err=err)


def _printable(character: str) -> str:
    control = unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
    return ascii(character)[1:-1] if control and character not in "\n\t" else character


def say_json(facts: dict[str, Any]) -> None:
    """Print one JSON object; names may hold characters of any script."""
    text = json.dumps(facts, ensure_ascii=False)
    say(re.sub("[\x7f-\x9f\u2028\u2029]", lambda c: f"\\u{ord(c[0]):04x}", text))


def _state(path: Path) -> tuple[int, ...] | None:
    """What changes when a file is written."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def _told(error: BaseException, *, resumes: bool, written: bool) -> tuple[str, int]:
    """What to say of an error, and the status to leave with."""
    if isinstance(error, KeyboardInterrupt):
        # Nothing is imported: what was interrupted may be an import of the same.
        if resumes:
            return "Interrupted. The same command goes on from here.", INTERRUPTED
        return "Interrupted." if written else "Interrupted: nothing was written.", (
            INTERRUPTED
        )
    text = str(error)
    if hasattr(error, "message"):
        text = phrased(error.message)
    if isinstance(error, ValueError):
        # By their names: loading what is refused for another reason takes seconds.
        kinds = [kind.__name__ for kind in type(error).__mro__]
        status = next((STATUS[kind] for kind in kinds if kind in STATUS), USAGE)
    elif isinstance(error, MemoryError):
        text = (
            f"There is not enough memory. {text} Bring fewer rows; or fit in Python, "
            "where scan_parquet reads Parquet files in passes."
        )
        status = FAILURE
    elif isinstance(error, OSError | ImportError):
        if isinstance(error, OSError) and error.strerror and error.filename is None:
            text = f"Something can't be read or written: {error.strerror}."
        status = FAILURE
    else:
        text = (
            f"This is a fault of missratio: {type(error).__name__}: {text}. Please "
            f"report it, with what {TRACEBACK}=1 shows."
        )
        status = FAULT
    return f"Error: {text}", status


def _interrupt(_: int, __: FrameType | None) -> None:
    """Unwind as for an interrupt, so that drafts are removed."""
    raise KeyboardInterrupt


def phrased(message: Message) -> str:
    """A message in the words of the command line."""
    from missratio.exceptions import Remedy

    return message.phrased(
        {
            Remedy.REJECT_ALL: "take --on-infeasible reject_all",
            Remedy.AS_OBSERVED: "take --new-rows blanks",
            Remedy.PENALTY: "take --method kliep-cv",
            Remedy.COLUMN_PENALTY: "take --method kliep-cv",
            Remedy.DROP_COLUMNS: "leave them out (--drop)",
            Remedy.FEWER_FEATURES: "leave columns out (--drop)",
            Remedy.MODEL: "say why values are missing (--missingness learn or FILE, "
            "or --queries PLAN)",
            Remedy.COMPLETE_CASES: "take complete cases (--missingness ignore)",
            Remedy.OTHER_RULE: "choose another --rule",
            Remedy.RAISE_LEVELS: "raise --alpha or --delta",
            Remedy.OVERWRITE: "--force to overwrite it",
            Remedy.CALIBRATE_MORE: "raise --calibration-size",
            Remedy.LOOKED_UP: "use looked-up values as data (missratio query, then fit "
            "with --queries)",
            Remedy.ODDS_FACTOR: "take --odds-factor {factor:g} or more, to cover what "
            "was found",
        }
    )


def _flush_output() -> None:
    """Find out whether standard output took what was printed, where there is one."""
    # Python has none where the shell closed it (`>&-`).
    if (output := cast(TextIO | None, sys.stdout)) is not None:
        output.flush()


def _close_output() -> None:
    """Drop what standard output couldn't take, or Python complains at its end."""
    try:
        _flush_output()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
