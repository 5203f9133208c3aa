"""``missratio query``: which missing cells to look up."""

from __future__ import annotations

from missratio.app.cli import _options as options
from missratio.app.cli._failures import failures, say, say_json
from missratio.app.cli._progress import Progress


def query(
    data: options.Data,
    target: options.Target,
    controlled: options.Controlled,
    out: options.PlanOut,
    per_feature: options.PerFeature = 30,
    rows: options.WholeRows = False,
    id_column: options.Id = None,
    only_controlled: options.OnlyControlled = False,
    seed: options.DrawSeed = 0,
    drop: options.Drop = [],  # noqa: B006
    categorical: options.Categorical = [],  # noqa: B006
    missing_value: options.MissingValue = [],  # noqa: B006
    encoding: options.Encoding = None,
    sheet: options.Sheet = None,
    escape: options.EscapeFormulas = True,
    force: options.Force = False,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Draw which missing values to look up, as a table to fill in.

    Give it back to `missratio fit` by --queries, with the same DATA, --target and
    --drop: how values go missing is then learned from the answers.
    """
    with failures(out):
        with Progress(quiet) as progress:
            from missratio._files import check_writable, open_table
            from missratio.app.tables import Wanted, check_names, read_labelled
            from missratio.app.workflow import check_classes, plan_table
            from missratio.exceptions import about_file

            check_writable(out, force=force, inputs=[data])
            progress.step(f"Reading {data}")
            source = open_table(data, encoding=encoding, sheet=sheet)
            keys = [] if id_column is None else [id_column]
            check_names(source, "--id", keys)
            wanted = Wanted(target, [*drop, *keys], categorical, missing_value)
            table = read_labelled(source, wanted)
            with about_file(data):
                _, label = check_classes(table, target, controlled)
            progress.step("Drawing")
            plan = plan_table(
                table,
                per_feature=per_feature,
                rowwise=rows,
                classes=[label] if only_controlled else None,
                ids=source.read(keys).column(0).to_pylist() if keys else None,
                seed=seed,
            )
            plan.write(out, force=force, escape_formulas=escape)
        if as_json:
            facts = {"plan": str(out), "queries": len(plan), "seed": plan.seed}
            say_json(facts)
        elif not quiet:
            say(
                f"{out}: {len(plan)} values to look up. Fill in the column 'value', as "
                f"far as you get, then: missratio fit {data} --queries {out} …"
            )
