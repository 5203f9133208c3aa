"""``missratio fit``: a table in, a certified model out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from missratio.app.cli import _options as options
from missratio.app.cli._failures import failures, phrased
from missratio.app.cli._progress import Progress

if TYPE_CHECKING:
    from missratio.app.workflow import FittedTable

EXAMPLE_FILE = Path("missingness.toml")


def _write_example(wanted: bool) -> None:
    """Write an example of a missingness file, and leave."""
    if not wanted:
        return
    with failures(options.NOTHING_WRITTEN):
        from missratio._files import written_whole
        from missratio.app.workflow import EXAMPLE

        with written_whole(EXAMPLE_FILE, force=False) as draft:
            draft.write_text(EXAMPLE, encoding="utf-8")
    typer.echo(f"{EXAMPLE_FILE}: an example of a file for --missingness.")
    raise typer.Exit


def fit(
    data: options.Data,
    target: options.Target,
    controlled: options.Controlled,
    out: Annotated[Path, typer.Option(help="The model file, such as model.skops.")],
    alpha: Annotated[
        float, typer.Option(help="Bound on the error on the controlled class.")
    ] = 0.05,
    delta: Annotated[
        float, typer.Option(help="Probability that the bound may fail.")
    ] = 0.05,
    missingness: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|ignore",
            help="Why values are missing: a TOML file (see --example), or 'ignore'.",
            show_default=False,
        ),
    ] = None,
    queries: Annotated[
        Path | None,
        typer.Option(
            metavar="PLAN",
            help="Learn why from a plan of `missratio query`, filled in.",
            show_default=False,
        ),
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            help="auto; kliep, kliep-cv or naive-bayes: density ratios; logistic; "
            "trees: boosted trees; imputed-trees: the same, missing values drawn by "
            "why they are missing."
        ),
    ] = "auto",
    deployment: Annotated[
        str,
        typer.Option(
            help="complete: rows to be classified are complete; as-observed: they "
            "lose values as these did."
        ),
    ] = "complete",
    calibration_size: Annotated[
        float,
        typer.Option(help="Share of the controlled class to choose the threshold by."),
    ] = 0.5,
    rule: Annotated[str, typer.Option(help="How the threshold is certified.")] = "auto",
    odds_factor: Annotated[
        float,
        typer.Option(help="Allow for odds of missingness wrong by this factor."),
    ] = 1.0,
    on_infeasible: Annotated[
        str,
        typer.Option(
            help="raise, or reject_all: without a certificate every row gets the "
            "controlled class."
        ),
    ] = "raise",
    seed: Annotated[int, typer.Option(min=0, help="Of the split.")] = 0,
    standard_errors: Annotated[
        bool,
        typer.Option("--standard-errors", help="So that predict can give them."),
    ] = False,
    drop: options.Drop = [],  # noqa: B006
    categorical: options.Categorical = [],  # noqa: B006
    missing_value: options.MissingValue = [],  # noqa: B006
    encoding: options.Encoding = None,
    sheet: options.Sheet = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
    example: Annotated[
        bool,
        typer.Option(
            "--example",
            callback=_write_example,
            is_eager=True,
            help=f"Write an example for --missingness to {EXAMPLE_FILE}, and stop.",
        ),
    ] = False,
) -> None:
    """Fit a classifier to a table, with a certificate for one of its errors."""
    with failures(options.NOTHING_WRITTEN), Progress(quiet) as progress:
        from missratio._files import check_writable, open_table
        from missratio.app.modelfile import save_model
        from missratio.app.tables import Wanted, read_labelled
        from missratio.app.workflow import FitOptions, fit_table

        asked = FitOptions(
            controlled=controlled,
            alpha=alpha,
            delta=delta,
            missingness=missingness,
            queries=queries,
            method=method,
            deployment=deployment,
            calibration_size=calibration_size,
            rule=rule,
            odds_factor=odds_factor,
            on_infeasible=on_infeasible,
            seed=seed,
            standard_errors=standard_errors,
        )
        asked.check()
        inputs = [data, Path(missingness or data), queries or data]
        check_writable(out, force=force, inputs=inputs)
        progress.step(f"Reading {data}")
        source = open_table(data, encoding=encoding, sheet=sheet)
        wanted = Wanted(target, drop, categorical, missing_value, asked.as_observed)
        table = read_labelled(source, wanted)
        fitted = fit_table(table, source, wanted, asked, progress.step)
        progress.step(f"Writing {out}")
        save_model(fitted.model, out, force=force)
    if as_json:
        typer.echo(json.dumps(_facts(fitted, out), ensure_ascii=False))
    elif not quiet:
        _show(fitted, out)


def _facts(fitted: FittedTable, out: Path) -> dict[str, Any]:
    from missratio.app.modelfile import plain

    model = fitted.model
    return {
        "model": str(out),
        "method": model.method,
        "why": fitted.why,
        "certificate": plain(model.certificate.to_dict()),
        "rows": plain(model.training.rows),
        "missing": plain(model.training.missing),
        "columns": model.encoder.names,
        "training_sha256": model.training.sha256,
        "warnings": _warnings(fitted),
    }


def _warnings(fitted: FittedTable) -> list[str]:
    return list(dict.fromkeys(phrased(message) for message in fitted.warnings))


def _show(fitted: FittedTable, out: Path) -> None:
    model = fitted.model
    rows = ", ".join(f"{n} of {label!r}" for label, n in model.training.rows.items())
    typer.echo(f"Rows: {rows}. Columns: {len(model.encoder.columns)}.")
    typer.echo(f"Method: {model.method}, {fitted.why}.")
    typer.echo(str(model.certificate))
    for warning in _warnings(fitted):
        typer.echo(f"Warning: {warning}")
    typer.echo(f"Written: {out}")
