"""What is being done, on standard error."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from missratio.app.cli._failures import say


class Progress:
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
        """Begin another step.

        Parameters
        ----------
        what : str
        total : int, optional
            How many rows it has.
        """
        if self._quiet:
            return
        if self._bar is None:
            say(f"{what} …", err=True)
            return
        if self._task is not None:
            self._bar.remove_task(self._task)
        self._task = self._bar.add_task(what, total=total)

    def tick(self, rows: int) -> None:
        """Some more rows are done."""
        if self._bar is not None:
            self._bar.advance(self._task, rows)


def check_drawing() -> None:
    """Refuse to draw without matplotlib, before anything else is done."""
    from importlib.util import find_spec

    if find_spec("matplotlib") is None:
        raise ModuleNotFoundError(
            'Figures need matplotlib. Install it by pip install "missratio[report]".'
        )
