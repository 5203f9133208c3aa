"""``missratio query``: which missing cells to look up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from missratio.app.cli import _options as options
from missratio.app.cli._failures import failures
from missratio.app.cli._progress import Progress


def query(
    data: options.Data,
    target: options.Target,
    controlled: options.Controlled,
    out: Annotated[
        Path,
        typer.Option(help="The table to fill in: .csv, .xlsx or .parquet."),
    ],
    per_feature: Annotated[
        int,
        typer.Option(min=1, help="Values to look up for each class and column."),
    ] = 30,
    rows: Annotated[
        bool, typer.Option("--rows", help="Whole rows are missing: look up rows.")
    ] = False,
    id_column: Annotated[
        str | None,
        typer.Option(
            "--id", help="Your key of a row, copied to the plan.", show_default=False
        ),
    ] = None,
    only_controlled: Annotated[
        bool, typer.Option("--only-controlled", help="Ask about that class alone.")
    ] = False,
    seed: Annotated[
        int, typer.Option(min=0, help="Of the draw; more with the same extends it.")
    ] = 0,
    drop: options.Drop = [],  # noqa: B006
    categorical: options.Categorical = [],  # noqa: B006
    missing_value: options.MissingValue = [],  # noqa: B006
    encoding: options.Encoding = None,
    sheet: options.Sheet = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Draw which missing values to look up, as a table to fill in.

    Give it back to `missratio fit` by --queries, with the same DATA, --target and
    --drop: how values go missing is then learned from the answers.
    """
    with failures(options.NOTHING_WRITTEN), Progress(quiet) as progress:
        from missratio._files import check_writable, open_table
        from missratio.app.tables import Wanted, check_names, read_labelled
        from missratio.app.workflow import check_classes
        from missratio.exceptions import TableError
        from missratio.learning import plan_queries

        check_writable(out, force=force, inputs=[data])
        progress.step(f"Reading {data}")
        source = open_table(data, encoding=encoding, sheet=sheet)
        left_out = [*drop]
        if id_column is not None:
            check_names(source, "--id", [id_column])
            left_out.append(id_column)
        wanted = Wanted(target, left_out, categorical, missing_value)
        table = read_labelled(source, wanted)
        _, label = check_classes(table, target, controlled)
        keys = None
        if id_column is not None:
            column = source.read([id_column]).column(id_column).to_pylist()
            keys = [column[row] for row in table.rows.tolist()]
        progress.step("Drawing")
        frame = table.numeric_frame()
        if not frame.num_columns:
            raise TableError("There is no column of numbers to ask about.")
        try:
            plan = plan_queries(
                frame,
                table.y,
                per_feature=per_feature,
                rowwise=rows,
                classes=[label] if only_controlled else None,
                ids=keys,
                random_state=seed,
            )
        except ValueError as error:
            raise TableError(f"{data}: {error}") from error
        plan.write(out, force=force)
    if as_json:
        facts = {"plan": str(out), "queries": len(plan), "seed": plan.seed}
        typer.echo(json.dumps(facts))
    elif not quiet:
        typer.echo(
            f"{out}: {len(plan)} values to look up. Fill in the column 'value', as far "
            f"as you get, then: missratio fit {data} --queries {out} …"
        )
