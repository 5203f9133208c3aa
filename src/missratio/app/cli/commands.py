"""The commands on tables and models: what each does, and what it says of it."""

from __future__ import annotations

import shlex
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer

from missratio.app import options as asked
from missratio.app.cli import shell
from missratio.app.cli.shell import CommandOutcome, Progress, phrased

if TYPE_CHECKING:
    from pathlib import Path

    from missratio.app.modelfile import TableModel

# Columns that a message names, of those that it is about.
NAMED = 3


def write_example(wanted: bool) -> None:
    """Write an example of a missingness file, and leave."""
    if not wanted:
        return
    with shell.failures(asked.EXAMPLE_FILE):
        from missratio._files import written_whole
        from missratio.app.workflow import EXAMPLE

        with written_whole(asked.EXAMPLE_FILE, force=False) as draft:
            draft.write_text(EXAMPLE, encoding="utf-8")
    shell.say(f"{asked.EXAMPLE_FILE}: an example of a file for --missingness.")
    raise typer.Exit


def check(options: asked.CheckOptions, progress: Progress) -> CommandOutcome:
    """Look at a table before anything else: how it reads, and what could be promised.

    What was found is written to missratio.toml in this folder, which check, query and
    fit read: their commands are short then.
    """
    from missratio._files import written_whole
    from missratio.app.workflow import check_table

    kept = asked.SETTINGS.exists() and not options.force
    checked = check_table(options, progress, kept=kept)
    text = checked.toml()
    if not kept:
        with written_whole(asked.SETTINGS, force=True) as draft:
            draft.write_text(text, encoding="utf-8")
    if options.out is not None:
        with written_whole(options.out, force=options.force) as draft:
            draft.write_text(checked.page(options.out.suffix), encoding="utf-8")
    facts = asdict(checked) | {"toml": text, "written": not kept}
    return CommandOutcome(facts, checked.lines())


def fit(options: asked.FitOptions, progress: Progress) -> CommandOutcome:
    """Fit a classifier to a table, with a certificate for one or several errors."""
    from missratio.app.modelfile import plain, save_model
    from missratio.app.workflow import condensed, fit_table

    command = shlex.join(["missratio", *sys.argv[1:]])
    fitted = fit_table(options, progress, command, phrased)
    progress.step(f"Writing {options.out}")
    save_model(fitted.model, options.out, force=options.force)
    model, comparison = fitted.model, fitted.model.comparison
    facts = {
        "model": str(options.out),
        "method": model.method,
        "why": fitted.why,
        "way": fitted.account.way,
        "missingness": fitted.account.sentence,
        "ways": [asdict(way) for way in fitted.account.ways],
        "certificate": plain(model.certificate.to_dict()),
        "rows": plain(model.training.rows),
        "missing": plain(model.training.missing),
        "columns": model.encoder.names,
        "training_sha256": model.training.sha256,
        "comparison": None if comparison is None else plain(asdict(comparison)),
        "warnings": list(dict.fromkeys(map(phrased, fitted.warnings))),
        **fitted.measured,
    }
    rows = ", ".join(f"{n} of {label!r}" for label, n in model.training.rows.items())
    page = options.out.with_suffix(".html")
    shown = shlex.join(["missratio", "report", str(options.out), "--out", str(page)])
    lines = [
        fitted.account.sentence,
        f"Rows: {rows}. Columns: {len(model.encoder.columns)}.",
        f"Method: {model.method}, {fitted.why}.",
        *fitted.findings,
        str(model.certificate),
        *(f"Warning: {text}" for text in condensed(fitted.warnings, phrased, NAMED)),
        f"Written: {options.out}",
        f"Then: {shown}",
    ]
    if ways := fitted.account.ways:
        start = "If new rows will be complete, there is a promise for such rows, too:"
        if fitted.account.way == "table":
            start = "The table teaches little about why values are missing. Instead:"
        lines += [start, *map(str, ways)]
    return CommandOutcome(facts, lines)


def query(options: asked.QueryOptions, progress: Progress) -> CommandOutcome:
    """Draw which missing values to look up, as a table to fill in.

    Give it back to `missratio fit` by --queries, with the same DATA, --target and
    --drop. What was looked up is data: whole rows for the certificate, and single
    values for the score.
    """
    from missratio.app.workflow import plan_table

    plan, out = plan_table(options, progress), options.out
    plan.write(out, force=options.force, escape_formulas=options.escape)
    keys = [] if options.id_column is None else [options.id_column]
    then: dict[str, Any] = {"drop": list(dict.fromkeys([*options.drop, *keys]))}
    then |= {"out": out.with_suffix(".skops"), "queries": out, "force": False}
    facts: dict[str, Any] = {
        "plan": str(out),
        "queries": len(plan),
        "rows": plan.n_rows or None,
        "single": int((~plan.rowwise).sum()),
        "seed": plan.seed,
        "share": None,
        "power": None,
    }
    lines = [
        f"{out}: {plan.content()} to look up. Fill in the column 'value' from the top "
        "down, as far as you get; write 'not found' where a value can't be had. Then:",
        "    " + options.command("fit", asked.FitOptions, **then),
    ]
    if (power := plan.power) is not None:
        names = ("values", "rows", "power", "lower", "upper")
        columns = (getattr(power, name).tolist() for name in names)
        points = zip(*columns, strict=True)
        facts["share"] = share = float(plan.rowwise.mean())
        facts["power"] = [dict(zip(names, each, strict=True)) for each in points]
        if not plan.rowwise.all():
            why = "which should buy most" if abs(share - power.share) <= 0.02 else ""
            lines.append(
                f"{share:.0%} of the values go to rows of the controlled class, "
                f"{why or 'of one kind no more are missing'}."
            )
        lines.append(
            f"Rows of the controlled class, and the power to expect: {power}. "
            f"{power.range_meaning}."
        )
    return CommandOutcome(facts, lines)


def _load(path: Path, progress: Progress) -> TableModel:
    from missratio.app.modelfile import load_table_model

    progress.step(f"Reading {path}")
    return load_table_model(path)


def predict(options: asked.PredictOptions, progress: Progress) -> CommandOutcome:
    """Write a label and a score for every row of a table of any size."""
    from missratio.app.modelfile import GROUPS, SEVERAL_CLASSES, plain
    from missratio.app.workflow import predict_table

    model = _load(options.model_file, progress)
    done = predict_table(model, options, progress)
    counts, fallback, measured = done.counts, model.fallback, done.measured
    facts: dict[str, Any] = {"predictions": str(options.out), "rows": done.rows}
    if model.kind == SEVERAL_CLASSES:
        facts["labels"] = plain(counts)
        said = ": " + ", ".join(f"{n} {label!r}" for label, n in counts.items())
    else:
        other = model.other_class
        facts["other"] = counts[other]
        said = (
            f", {counts[other]} of them {other!r} and {counts[fallback]} {fallback!r}"
        )
    if model.kind == GROUPS:
        facts["without_threshold"] = done.without_threshold
    lines = [f"{options.out}: {done.rows} rows{said}."]
    for count, what in (
        (done.unscored, "can't be scored (the column 'reason' says why)"),
        (done.without_threshold,
         "are of groups without a threshold (the column 'reason' says which)"),
    ):  # fmt: skip
        given = f"{count} {what} and got {fallback!r}{model.fallback_words}."
        lines += [given] * bool(count)
    facts |= {"unscored": done.unscored, "measured": measured and measured.facts()}
    lines += [] if measured is None else [measured.words]
    return CommandOutcome(facts, lines)


def report(options: asked.ReportOptions, progress: Progress) -> CommandOutcome:
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


def export(options: asked.ExportOptions, progress: Progress) -> CommandOutcome:
    """Write a linear or tree model, with its threshold, as an ONNX file."""
    from missratio.app.export import export_onnx

    model, out = _load(options.model_file, progress), options.out
    export_onnx(model, out, force=options.force)
    columns = list(model.encoder.encoded_names)
    said = f"Its input X has {len(columns)} columns: {', '.join(columns)}."
    return CommandOutcome(
        {"onnx": str(out), "columns": columns}, [f"Written: {out}", said]
    )


def watch(options: asked.WatchOptions, progress: Progress) -> CommandOutcome:
    """Check on newer, labelled rows whether promises are still kept.

    Exit status 0: no sign that it isn't; 6: alarm. You may run it every day: with
    probability 1 - delta there is never a false alarm. A table is counted when all its
    labels are in, in the order of the days; until then it is held back.
    """
    from missratio.app.workflow import watch_table

    watched = watch_table(_load(options.model_file, progress), options, progress)
    if options.figure is not None:
        from matplotlib.figure import Figure

        from missratio._files import written_whole
        from missratio.evaluation import MonitorDisplay

        # A column of two panels for each promise.
        count = len(watched.monitors)
        figure = Figure(figsize=(7 * count, 6), layout="constrained")
        panels = figure.subplots(2, count, sharex="col", squeeze=False)
        for place, (promise, monitor) in enumerate(watched.monitors.items()):
            MonitorDisplay(monitor).plot(ax=panels[:, place])
            if count > 1:
                kind = "" if watched.by_group else "class "
                panels[0, place].set_title(f"{kind}{watched.key(promise)}")
        with written_whole(options.figure, force=True) as draft:
            figure.savefig(draft, format="png", dpi=150)
    lines = list(watched.words)
    if watched.seen_before:
        again = f"{options.labelled} was counted before, and isn't counted again."
        lines = [again, *lines]
    return CommandOutcome(watched.facts(), lines, shell.ALARM if watched.alarm else 0)
