"""The commands on tables and models: what each does, and what it says of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from missratio.app import options as asked
from missratio.app.cli.shell import Progress, phrased
from missratio.app.options import CommandOutcome

if TYPE_CHECKING:
    from pathlib import Path

    from missratio.app.modelfile import TableModel


def check(options: asked.CheckOptions, progress: Progress) -> CommandOutcome:
    """Look at a table before anything else: how it reads, and what could be promised.

    What was found is written to missratio.toml in this folder, which check, query and
    fit read: their commands are short then.
    """
    from missratio.app.workflow import check_table

    return check_table(options, progress)


def fit(options: asked.FitOptions, progress: Progress) -> CommandOutcome:
    """Fit a classifier to a table, with a certificate for one or several errors."""
    from missratio.app.modelfile import save_model
    from missratio.app.workflow import fit_table

    model, outcome = fit_table(options, progress, phrased)
    progress.step(f"Writing {options.out}")
    save_model(model, options.out, force=options.force)
    return outcome


def query(options: asked.QueryOptions, progress: Progress) -> CommandOutcome:
    """Draw which missing values to look up, as a table to fill in.

    Give it back to `missratio fit` by --queries, with the same DATA, --target and
    --drop. What was looked up is data: whole rows for the certificate, and single
    values for the score.
    """
    from missratio.app.workflow import plan_table

    plan, out = plan_table(options, progress), options.out
    plan.write(out, force=options.force)
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
                f"{why or 'as one of the two kinds has no more blanks'}."
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
    from missratio.app.workflow import predict_table

    return predict_table(_load(options.model_file, progress), options, progress)


def report(options: asked.ReportOptions, progress: Progress) -> CommandOutcome:
    """Write a page that shows what a model guarantees, and on what evidence."""
    from missratio._files import write_whole
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
    write_whole(out, text, force=options.force)
    return CommandOutcome({"report": str(out)}, [f"Written: {out}"])


def watch(options: asked.WatchOptions, progress: Progress) -> CommandOutcome:
    """Check on newer, labelled rows whether promises are still kept.

    Exit status 0: no sign that it isn't; 6: alarm. You may run it every day: with
    probability 1 - delta there is never a false alarm. A table is counted when all its
    labels are in, in the order of the days; until then it is held back.
    """
    from missratio.app.workflow import watch_table

    return watch_table(_load(options.model_file, progress), options, progress)
