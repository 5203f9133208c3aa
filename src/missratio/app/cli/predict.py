"""``missratio predict``: labels and scores for the rows of a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from missratio.app.cli import _options as options
from missratio.app.cli._failures import failures, say, say_json
from missratio.app.cli._progress import Progress

if TYPE_CHECKING:
    from missratio.app.modelfile import TableModel
    from missratio.app.workflow import Predicted


def predict(
    model_file: options.ModelFile,
    data: options.Data,
    out: options.PredictionsOut,
    keep: options.Keep = [],  # noqa: B006
    standard_errors: options.StandardErrors = False,
    drop: options.Drop = [],  # noqa: B006
    encoding: options.Encoding = None,
    sheet: options.Sheet = None,
    header_row: options.HeaderRow = None,
    escape: options.EscapeFormulas = False,
    force: options.Force = False,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Write a label and a score for every row of a table of any size."""
    with failures(out):
        with Progress(quiet) as progress:
            from missratio._files import check_writable, open_table
            from missratio.app.modelfile import load_table_model
            from missratio.app.workflow import PredictOptions, predict_table

            check_writable(out, force=force, others=[data, model_file])
            progress.step(f"Reading {model_file}")
            model = load_table_model(model_file)
            source = open_table(
                data, encoding=encoding, sheet=sheet, header_row=header_row
            )
            progress.step(f"Predicting {data}", source.n_rows)
            asked = PredictOptions(keep, drop, standard_errors, escape, force)
            done = predict_table(model, source, out, asked, progress.tick)
        if as_json:
            say_json({"predictions": str(out), **_facts(model, done)})
        elif not quiet:
            _show(model, done, out)


def _facts(model: TableModel, done: Predicted) -> dict[str, Any]:
    from missratio.app.modelfile import GROUPS, SEVERAL_CLASSES, plain

    facts: dict[str, Any] = {"rows": done.rows}
    if model.kind == GROUPS:
        facts["without_threshold"] = done.without_threshold
    if model.kind != SEVERAL_CLASSES:
        facts["other"] = done.counts[model.other_class]
    else:
        facts["labels"] = plain(done.counts)
    measured = None if done.measured is None else done.measured.facts()
    return {**facts, "unscored": done.unscored, "measured": measured}


def _show(model: TableModel, done: Predicted, out: Path) -> None:
    from missratio.app.modelfile import SEVERAL_CLASSES

    fallback = model.fallback
    if model.kind != SEVERAL_CLASSES:
        other = model.other_class
        say(
            f"{out}: {done.rows} rows, {done.counts[other]} of them {other!r} and "
            f"{done.counts[fallback]} {fallback!r}."
        )
    else:
        parts = ", ".join(f"{n} {label!r}" for label, n in done.counts.items())
        say(f"{out}: {done.rows} rows: {parts}.")
    if done.unscored:
        say(
            f"{done.unscored} can't be scored (the column 'reason' says why) "
            f"and got {fallback!r}{model.fallback_words}."
        )
    if done.without_threshold:
        say(
            f"{done.without_threshold} are of groups without a threshold (the column "
            f"'reason' says which) and got {fallback!r}{model.fallback_words}."
        )
    if done.measured is not None:
        say(done.measured.words)
