"""``missratio watch``: whether the promised error has been kept since."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from missratio.app.cli import _options as options
from missratio.app.cli._failures import ALARM, failures, say, say_json
from missratio.app.cli._options import hidden
from missratio.app.cli._progress import Progress, check_drawing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from missratio.app.workflow import Watched

Labelled = Annotated[
    Path,
    typer.Argument(
        metavar="LABELLED", help="A table of rows that came since, with their labels."
    ),
]
State = Annotated[
    Path | None,
    hidden(
        "The file that keeps the counts so far. Default: MODEL.watch.json.",
        metavar="FILE",
    ),
]
WatchFigure = Annotated[
    Path | None,
    hidden("Draw the error and the evidence over time.", metavar="PNG"),
]


def watch(
    model_file: options.ModelFile,
    labelled: Labelled,
    state: State = None,
    figure: WatchFigure = None,
    encoding: options.Encoding = None,
    sheet: options.Sheet = None,
    header_row: options.HeaderRow = None,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Check on newer, labelled rows whether promises are still kept.

    Exit status 0: no sign that it isn't; 6: alarm. You may run it every day: with
    probability 1 - delta there is never a false alarm. A table is counted when all its
    labels are in, in the order of the days; until then it is held back.
    """
    kept = state or Path(f"{model_file}.watch.json")
    with failures(kept):
        with Progress(quiet) as progress:
            from missratio._files import check_writable, open_table, written_whole
            from missratio.app.modelfile import load_table_model
            from missratio.app.workflow import facts_of, watch_table

            read = [model_file, labelled]
            if figure is not None:
                # A table is counted once: what is in the way of its figure comes first.
                check_drawing()
                check_writable(figure, force=True, others=[*read, kept])
            check_writable(kept, force=True, others=[*read, figure])
            progress.step(f"Reading {model_file}")
            model = load_table_model(model_file)
            source = open_table(
                labelled, encoding=encoding, sheet=sheet, header_row=header_row
            )
            progress.step(f"Reading {labelled}")
            found = watch_table(model, model_file, source, kept)
            if figure is not None:
                drawn = _drawn(found)
                with written_whole(figure, force=True) as draft:
                    drawn.savefig(draft, format="png", dpi=150)
        if as_json:
            say_json(facts_of(found))
        elif not quiet:
            if found.seen_before:
                say(f"{labelled} was counted before, and isn't counted again.")
            for sentence in found.words:
                say(sentence)
    if found.alarm:
        raise typer.Exit(ALARM)


def _drawn(found: Watched) -> Figure:
    """A column of two panels for each promise."""
    from matplotlib.figure import Figure

    from missratio.evaluation import MonitorDisplay

    count = len(found.monitors)
    figure = Figure(figsize=(7 * count, 6), layout="constrained")
    panels = figure.subplots(2, count, sharex="col", squeeze=False)
    for place, (promise, monitor) in enumerate(found.monitors.items()):
        MonitorDisplay(monitor).plot(ax=panels[:, place])
        if count > 1:
            kind = "" if promise.by_group else "class "
            panels[0, place].set_title(f"{kind}{promise.key}")
    return figure
