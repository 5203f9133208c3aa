"""``missratio predict``, ``report``, ``export`` and ``watch``: what a model is for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from missratio.app.cli._command import CommandOutcome, Progress
from missratio.app.cli._failures import ALARM
from missratio.app.options import (
    ExportOptions,
    PredictOptions,
    ReportOptions,
    WatchOptions,
)

if TYPE_CHECKING:
    from pathlib import Path

    from missratio.app.modelfile import TableModel
    from missratio.app.workflow import Watched


def _load(path: Path, progress: Progress) -> TableModel:
    from missratio.app.modelfile import load_table_model

    progress.step(f"Reading {path}")
    return load_table_model(path)


def predict(options: PredictOptions, progress: Progress) -> CommandOutcome:
    """Write a label and a score for every row of a table of any size."""
    from missratio.app.modelfile import GROUPS, SEVERAL_CLASSES, plain
    from missratio.app.workflow import predict_table

    model = _load(options.model_file, progress)
    done = predict_table(model, options, progress)
    facts: dict[str, Any] = {"predictions": str(options.out), "rows": done.rows}
    parts, fallback = f"{options.out}: {done.rows} rows", model.fallback
    if model.kind == GROUPS:
        facts["without_threshold"] = done.without_threshold
    if model.kind != SEVERAL_CLASSES:
        other = model.other_class
        facts["other"] = done.counts[other]
        lines = [
            f"{parts}, {done.counts[other]} of them {other!r} and "
            f"{done.counts[fallback]} {fallback!r}."
        ]
    else:
        facts["labels"] = plain(done.counts)
        named = ", ".join(f"{n} {label!r}" for label, n in done.counts.items())
        lines = [f"{parts}: {named}."]
    given = f"and got {fallback!r}{model.fallback_words}."
    if done.unscored:
        lines.append(
            f"{done.unscored} can't be scored (the column 'reason' says why) {given}"
        )
    if done.without_threshold:
        lines.append(
            f"{done.without_threshold} are of groups without a threshold (the column "
            f"'reason' says which) {given}"
        )
    facts |= {"unscored": done.unscored, "measured": None}
    if done.measured is not None:
        facts["measured"] = done.measured.facts()
        lines.append(done.measured.words)
    return CommandOutcome(facts, lines)


def report(options: ReportOptions, progress: Progress) -> CommandOutcome:
    """Write a page that shows what a model guarantees, and on what evidence."""
    from missratio._files import written_whole
    from missratio.app.modelfile import ModelFileError
    from missratio.app.report import Report

    model, out = _load(options.model_file, progress), options.out
    progress.step(f"Writing {out}")
    try:
        page = Report.from_json(str(model.report))
        make = {".html": page.html, ".md": page.markdown, ".json": page.json}
        text = make[out.suffix.lower()]()
    # The report is the file's own, and could say anything.
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        raise ModelFileError(
            f"The report in {options.model_file} is not one that missratio wrote "
            f"({type(error).__name__}: {error}). Fit the model again."
        ) from error
    with written_whole(out, force=options.force) as draft:
        draft.write_text(text, encoding="utf-8")
    return CommandOutcome({"report": str(out)}, [f"Written: {out}"])


def export(options: ExportOptions, progress: Progress) -> CommandOutcome:
    """Write a linear or tree model, with its threshold, as an ONNX file."""
    from missratio.app.export import export_onnx

    model, out = _load(options.model_file, progress), options.out
    export_onnx(model, out, force=options.force)
    columns = list(model.encoder.encoded_names)
    said = f"Its input X has {len(columns)} columns: {', '.join(columns)}."
    return CommandOutcome(
        {"onnx": str(out), "columns": columns}, [f"Written: {out}", said]
    )


def watch(options: WatchOptions, progress: Progress) -> CommandOutcome:
    """Check on newer, labelled rows whether promises are still kept.

    Exit status 0: no sign that it isn't; 6: alarm. You may run it every day: with
    probability 1 - delta there is never a false alarm. A table is counted when all its
    labels are in, in the order of the days; until then it is held back.
    """
    from missratio.app.workflow import watch_table

    model = _load(options.model_file, progress)
    watched = watch_table(model, options, progress)
    if options.figure is not None:
        _draw(watched, options.figure)
    lines = list(watched.words)
    if watched.seen_before:
        again = f"{options.labelled} was counted before, and isn't counted again."
        lines = [again, *lines]
    return CommandOutcome(watched.facts(), lines, ALARM if watched.alarm else 0)


def _draw(watched: Watched, out: Path) -> None:
    """A column of two panels for each promise."""
    from matplotlib.figure import Figure

    from missratio._files import written_whole
    from missratio.evaluation import MonitorDisplay

    count = len(watched.monitors)
    figure = Figure(figsize=(7 * count, 6), layout="constrained")
    panels = figure.subplots(2, count, sharex="col", squeeze=False)
    for place, (promise, monitor) in enumerate(watched.monitors.items()):
        MonitorDisplay(monitor).plot(ax=panels[:, place])
        if count > 1:
            kind = "" if watched.by_group else "class "
            panels[0, place].set_title(f"{kind}{watched.key(promise)}")
    with written_whole(out, force=True) as draft:
        figure.savefig(draft, format="png", dpi=150)
