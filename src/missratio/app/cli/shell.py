"""How a command meets the shell: options, progress, messages, and the exit status."""

from __future__ import annotations

import dataclasses
import json
import mmap
import os
import re
import signal
import sys
import threading
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from inspect import Parameter, Signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

import typer

from missratio.app.options import (
    PANELS,
    CommandOptions,
    CommandOutcome,
    Listener,
    with_settings,
)

if TYPE_CHECKING:
    from missratio.exceptions import Message

FAILURE, USAGE, TABLE, MODEL, NO_CERTIFICATE = 1, 2, 3, 4, 5
FAULT, INTERRUPTED = 70, 130
STATUS = {
    "DataError": TABLE, "ModelFileError": MODEL, "NoCertificateError": NO_CERTIFICATE,
}  # fmt: skip
TRACEBACK = "MISSRATIO_TRACEBACK"


class Progress(Listener):
    """Steps, and rows within a step; nothing at all where it is to be quiet.

    On a terminal a line that moves; elsewhere a line for each step.
    """

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Progress:
        if not self._quiet:
            from rich import console, progress

            output = console.Console(stderr=True)
            if output.is_terminal:
                what, bar, *_ = progress.Progress.get_default_columns()
                columns = (progress.SpinnerColumn(), what, bar)
                self._bar = progress.Progress(*columns, console=output, transient=True)
                self._bar.start()
                self._task = self._bar.add_task("")
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def step(self, what: str, total: int | None = None) -> None:
        """Begin another step, of so many rows."""
        if self._bar is not None:
            self._bar.reset(self._task, description=what, total=total)
        elif not self._quiet:
            say(f"{what} …", err=True)

    def tick(self, parts: int) -> None:
        """Some more parts are done."""
        if self._bar is not None:
            self._bar.advance(self._task, parts)


def command(work: Callable[[Any, Progress], CommandOutcome]) -> Callable[..., None]:
    """What typer runs: the fields of the options that some work takes are its options.

    Parameters
    ----------
    work : callable
        Of a dataclass of options, which were checked, and of a `Progress`.
    """
    kind: type[CommandOptions] = get_type_hints(work)["options"]
    types, parameters = get_type_hints(kind), []
    for each in dataclasses.fields(kind):
        info = {"default": each.metadata["typer"], "annotation": types[each.name]}
        parameters.append(Parameter(each.name, Parameter.KEYWORD_ONLY, **info))
    parameters.sort(key=lambda each: PANELS.index(each.default.rich_help_panel))
    context = Parameter("context", Parameter.KEYWORD_ONLY, annotation=typer.Context)

    def run(context: typer.Context, **given: Any) -> None:
        sources = {name: context.get_parameter_source(name) for name in given}
        remembered = {k for k, v in sources.items() if v and v.name == "DEFAULT_MAP"}
        options = kind(**with_settings(given, remembered))
        outputs = options.paths(options.WRITES)
        with failures(*outputs, resumes=options.RESUMES):
            with Progress(options.quiet) as progress:
                options.check()
                try:
                    # OpenBLAS waits for ever for memory that a limit keeps from it.
                    mmap.mmap(-1, 3 * 2**28).close()
                except OSError as error:
                    raise MemoryError("Raise its limit (ulimit -v).") from error
                from missratio._files.files import check_writable

                reads = options.paths(options.READS)
                force = getattr(options, "force", True)
                for path in outputs:
                    others = [*reads, *(each for each in outputs if each is not path)]
                    check_writable(path, force=force, others=others)
                done = work(options, progress)
            if options.as_json:
                say_json(done.facts)
            elif not options.quiet:
                for line in done.lines:
                    say(line)
        if done.status:
            raise typer.Exit(done.status)

    run.__name__, run.__doc__ = work.__name__, work.__doc__
    run.__signature__ = Signature([*parameters, context])  # type: ignore[attr-defined]
    return run


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

    def state(path: Path) -> tuple[int, ...] | None:
        """What changes when a file is written."""
        with suppress(OSError):
            now = path.stat()
            return now.st_ino, now.st_mtime_ns, now.st_size
        return None

    # Signals are the main thread's alone, and whoever else handles them goes on to. A
    # KeyboardInterrupt, whatever the signal, so that drafts are removed.
    is_main = threading.current_thread() is threading.main_thread()
    interrupt = signal.default_int_handler
    before = {
        number: signal.signal(number, interrupt)
        for number in (signal.SIGINT, signal.SIGTERM)
        if is_main and signal.getsignal(number) in (signal.SIG_DFL, interrupt)
    }
    states = [state(path) for path in outputs]
    try:
        yield
        _flush_output()
    except (typer.Exit, typer.Abort, typer.BadParameter, BrokenPipeError):
        raise
    except (Exception, KeyboardInterrupt) as error:
        if os.environ.get(TRACEBACK):
            raise
        written = [p for p, was in zip(outputs, states, strict=True) if state(p) != was]
        if isinstance(error, KeyboardInterrupt):
            # Nothing is imported: what was interrupted may be an import of the same.
            text, status = "Interrupted: nothing was written.", INTERRUPTED
            if resumes:
                text = "Interrupted. The same command goes on from here."
            elif written:
                text = "Interrupted."
        else:
            text, status = _explained(error)
        # A file that appeared meanwhile, and is in the way, was written by another run.
        if written and not isinstance(error, FileExistsError):
            text += f" {', '.join(map(str, written))} was written."
        # Where nothing can be said at all, the status says it.
        with suppress(OSError):
            say(text, err=True)
        try:
            _flush_output()
        except OSError:
            # Drop what it couldn't take, or Python complains at its end.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(status) from error
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _explained(error: BaseException) -> tuple[str, int]:
    """What to say of an error, and the status to leave with."""
    text = phrased(error.message) if hasattr(error, "message") else str(error)
    status = FAILURE
    if isinstance(error, ValueError):
        # By their names: loading what is refused for another reason takes seconds.
        kinds = [kind.__name__ for kind in type(error).__mro__]
        status = next((STATUS[kind] for kind in kinds if kind in STATUS), USAGE)
    elif isinstance(error, MemoryError):
        text = (
            f"There is not enough memory. {text} Bring fewer rows; or fit in Python, "
            "where scan_parquet reads Parquet files in passes."
        )
    elif isinstance(error, OSError) and error.strerror:
        what = error.filename or "Something"
        text = f"{what} can't be read or written: {error.strerror}."
    elif not isinstance(error, OSError | ImportError):
        text = (
            f"This is a fault of missratio: {type(error).__name__}: {text}. Please "
            f"report it, with what {TRACEBACK}=1 shows."
        )
        status = FAULT
    return f"Error: {text}", status


def _flush_output() -> None:
    """Find out whether standard output took what was printed."""
    # Python has none where the shell closed it (`>&-`).
    if (output := getattr(sys, "stdout", None)) is not None:
        output.flush()


def say(text: str, *, err: bool = False) -> None:
    """Print a text, without the control characters that names may have."""
    hidden = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
    shown = (
        ascii(c)[1:-1] if unicodedata.category(c) in hidden and c not in "\n\t" else c
        for c in text
    )
    typer.echo("".join(shown), err=err)


def say_json(facts: dict[str, Any]) -> None:
    """Print one JSON object; names may hold characters of any script."""
    text = json.dumps(facts, ensure_ascii=False)
    say(re.sub("[\x7f-\x9f\u2028\u2029]", lambda c: f"\\u{ord(c[0]):04x}", text))


def phrased(message: Message) -> str:
    """A message in the words of the command line."""
    from missratio.exceptions import Remedy

    words: dict[str, str] = {
        Remedy.REJECT_ALL: "take --on-infeasible reject_all",
        Remedy.AS_OBSERVED: "take --new-rows blanks",
        Remedy.PENALTY: "take --method kliep-cv",
        Remedy.DROP_COLUMNS: "leave them out (--drop)",
        Remedy.MODEL: "say why values are missing (--missingness learn or FILE, "
        "or --queries PLAN)",
        Remedy.COMPLETE_CASES: "take complete cases (--missingness ignore)",
        Remedy.OTHER_RULE: "choose another --rule",
        Remedy.RAISE_LEVELS: "raise --alpha or --delta",
        Remedy.OVERWRITE: "--force to overwrite it",
        Remedy.LOOKED_UP: "use looked-up values as data (missratio query, then fit "
        "with --queries)",
        Remedy.ODDS_FACTOR: "take --odds-factor {factor:g} or more, to cover what "
        "was found",
        Remedy.OTHER_FORM: "write φ down in another form (--missingness FILE)",
        # What estimators say of their own parameters, by how it begins.
        "add a ridge penalty": "take --method kliep-cv",
        "take FDivergenceRatio": "take --method js, which uses both classes' rows",
        "use NaiveBayesRatio": "take --method naive-bayes",
        "use fewer": "leave columns out (--drop)",
        "leave such columns out": "leave such columns out (--drop)",
        "classify rows as they come": "take --new-rows blanks",
        "look up": "look rows up (missratio query, then fit with --queries)",
    }
    said = {}
    for remedy in message.remedies:
        # What only Python has is left out: parameters, and functions.
        plain = "" if re.search(r"\w=|\w\(|_\b|^give ", remedy) else remedy
        known = (text for start, text in words.items() if remedy.startswith(start))
        said[remedy] = next(known, plain)
    return message.phrased(said)
