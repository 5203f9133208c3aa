"""A command: options from the fields of a dataclass, progress, and what it says."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from contextlib import ExitStack
from copy import copy
from dataclasses import dataclass, field
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Any, get_type_hints

import typer
from typer.models import OptionInfo

from missratio.app.cli._failures import failures, say, say_json
from missratio.app.options import PANELS, Listener

if TYPE_CHECKING:
    from missratio.app.options import CommandOptions


class Progress(Listener):
    """Steps, and rows within a step; nothing at all where it is to be quiet.

    On a terminal a line that moves; elsewhere a line for each step.
    """

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet
        self._bar: Any = None
        self._task: Any = None
        self._open = ExitStack()

    def __enter__(self) -> Progress:
        if self._quiet:
            return self
        from rich.console import Console

        console = Console(stderr=True)
        if console.is_terminal:
            from rich import progress

            self._bar = self._open.enter_context(
                progress.Progress(
                    progress.SpinnerColumn(),
                    progress.TextColumn("{task.description}"),
                    progress.BarColumn(),
                    progress.TimeElapsedColumn(),
                    console=console,
                    transient=True,
                )
            )
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def step(self, what: str, total: int | None = None) -> None:
        """Begin another step, of so many rows."""
        if self._quiet:
            return
        if self._bar is None:
            say(f"{what} …", err=True)
            return
        if self._task is not None:
            self._bar.remove_task(self._task)
        self._task = self._bar.add_task(what, total=total)

    def tick(self, parts: int) -> None:
        """Some more parts are done."""
        if self._bar is not None:
            self._bar.advance(self._task, parts)


@dataclass(frozen=True)
class CommandOutcome:
    """What a command has to say, as data and as lines, and the status to leave with."""

    facts: dict[str, Any]
    lines: list[str] = field(default_factory=list)
    status: int = 0


def command(
    work: Callable[[Any, Progress], CommandOutcome], **callbacks: Callable[[bool], None]
) -> Callable[..., None]:
    """What typer runs: the fields of the options that some work takes are its options.

    Parameters
    ----------
    work : callable
        Of a dataclass of options, which were checked, and of a `Progress`.
    **callbacks : callable
        Of options that do something by themselves, and leave.
    """
    kind: type[CommandOptions] = get_type_hints(work)["options"]

    def run(**given: Any) -> None:
        options = kind(**given)
        outputs = options.paths(options.WRITES)
        with failures(*outputs, resumes=options.RESUMES):
            with Progress(options.quiet) as progress:
                options.check()
                from missratio._files.files import check_writable

                reads = options.paths(options.READS)
                for path in outputs:
                    others = [*reads, *(each for each in outputs if each is not path)]
                    check_writable(path, force=options.overwrites, others=others)
                done = work(options, progress)
            if options.as_json:
                say_json(done.facts)
            elif not options.quiet:
                for line in done.lines:
                    say(line)
        if done.status:
            raise typer.Exit(done.status)

    run.__name__, run.__doc__ = work.__name__, work.__doc__
    run.__signature__ = signature(kind, **callbacks)  # type: ignore[attr-defined]
    return run


def signature(kind: type[Any], **callbacks: Callable[[bool], None]) -> Signature:
    """The options of a dataclass as parameters, in the order of the panels of help."""
    types, parameters = get_type_hints(kind), []
    for each in dataclasses.fields(kind):
        info, default = copy(each.metadata["typer"]), each.default
        if each.default_factory is not dataclasses.MISSING:
            default = each.default_factory()
        info.default = ... if default is dataclasses.MISSING else default
        if isinstance(info, OptionInfo):
            flag = types[each.name] is bool
            if flag:
                info.metavar = ""
                dashed = each.name.replace("_", "-")
                info.param_decls = info.param_decls or (f"--{dashed}",)
            one_sided = flag and "/" not in str(info.param_decls)
            info.show_default = not one_sided and default not in (None, [])
            if each.name in callbacks:
                info.callback, info.is_eager = callbacks[each.name], True
        parameters.append(
            Parameter(
                each.name,
                Parameter.KEYWORD_ONLY,
                default=info,
                annotation=types[each.name],
            )
        )
    return Signature(
        sorted(parameters, key=lambda each: PANELS.index(each.default.rich_help_panel))
    )
