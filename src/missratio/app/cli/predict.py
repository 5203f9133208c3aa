"""``missratio predict``: labels and scores for the rows of a table."""

from __future__ import annotations

from dataclasses import asdict

from missratio.app.cli import _options as options
from missratio.app.cli._failures import failures, say, say_json
from missratio.app.cli._progress import Progress


def predict(
    model_file: options.ModelFile,
    data: options.Data,
    out: options.PredictionsOut,
    keep: options.Keep = [],  # noqa: B006
    standard_errors: options.StandardErrors = False,
    verify: options.Verify = None,
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

            check_writable(out, force=force, inputs=[data, model_file])
            progress.step(f"Reading {model_file}")
            model = load_table_model(model_file, verify)
            source = open_table(
                data, encoding=encoding, sheet=sheet, header_row=header_row
            )
            progress.step(f"Predicting {data}", source.n_rows)
            asked = PredictOptions(keep, drop, standard_errors, escape, force)
            done = predict_table(model, source, out, asked, progress.tick)
        controlled, other = model.certificate.controlled_class, model.other_class
        if as_json:
            facts = {"predictions": str(out), **asdict(done)}
            if done.measured is not None:
                facts["measured"] = done.measured.facts()
            say_json(facts)
        elif not quiet:
            say(
                f"{out}: {done.rows} rows, {done.other} of them {other!r} and "
                f"{done.rows - done.other} {controlled!r}."
            )
            if done.unscored:
                say(
                    f"{done.unscored} can't be scored (the column 'reason' says why) "
                    f"and got {controlled!r}, which keeps the guarantee."
                )
            if done.measured is not None:
                say(done.measured.words(model))
