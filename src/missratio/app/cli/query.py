"""``missratio query``: which missing cells to look up."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from missratio.app.cli import _options as options
from missratio.app.cli._failures import failures, say, say_json
from missratio.app.cli._progress import Progress

if TYPE_CHECKING:
    from missratio._files import TableFile
    from missratio.app.queries import QueryPlan
    from missratio.app.tables import Wanted
    from missratio.app.workflow import PlanOptions


def query(
    data: options.Data,
    target: options.Target,
    controlled: options.Controlled,
    out: options.PlanOut,
    budget: options.Budget = None,
    goal: options.Goal = None,
    per_feature: options.PerFeature = None,
    rows: options.WholeRows = False,
    id_column: options.Id = None,
    only_controlled: options.OnlyControlled = False,
    alpha: options.Alpha = 0.05,
    delta: options.Delta = 0.05,
    seed: options.DrawSeed = 0,
    versus: options.Versus = None,
    drop: options.Drop = [],  # noqa: B006
    categorical: options.Categorical = [],  # noqa: B006
    missing_value: options.MissingValue = [],  # noqa: B006
    encoding: options.Encoding = None,
    sheet: options.Sheet = None,
    header_row: options.HeaderRow = None,
    skip_unlabelled: options.SkipUnlabelled = False,
    escape: options.EscapeFormulas = True,
    force: options.Force = False,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Draw which missing values to look up, as a table to fill in.

    Give it back to `missratio fit` by --queries, with the same DATA, --target and
    --drop. What was looked up is data: whole rows for the certificate, and single
    values for the score.
    """
    with failures(out):
        with Progress(quiet) as progress:
            from missratio._files import check_writable, open_table
            from missratio.app.tables import Wanted
            from missratio.app.workflow import PlanOptions

            check_writable(out, force=force, others=[data])
            progress.step(f"Reading {data}")
            source = open_table(
                data, encoding=encoding, sheet=sheet, header_row=header_row
            )
            keys = [] if id_column is None else [id_column]
            wanted = Wanted(
                target, [*drop, *keys], categorical, missing_value,
                skip_unlabelled=skip_unlabelled,
            )  # fmt: skip
            asked = PlanOptions(
                controlled, per_feature, budget, goal, rows, only_controlled, alpha,
                delta, seed=seed,
            )  # fmt: skip
            plan = _drawn(source, wanted, keys, asked, versus, progress)
            plan.write(out, force=force, escape_formulas=escape)
        if as_json:
            say_json(_facts(plan, out))
        elif not quiet:
            _show(plan, data, out)


def _drawn(
    source: TableFile,
    wanted: Wanted,
    keys: list[str],
    asked: PlanOptions,
    versus: str | None,
    progress: Progress,
) -> QueryPlan:
    """Read the table, and draw the cells of it."""
    from missratio.app.tables import check_names, read_labelled, two_classes
    from missratio.app.workflow import plan_table
    from missratio.exceptions import about_file

    check_names(source, "--id", keys)
    table = read_labelled(source, wanted)
    with about_file(source.path):
        table, label = two_classes(table, wanted.target, asked.controlled, versus)
    progress.step("Drawing")
    return plan_table(
        table,
        replace(asked, controlled=label).checked(),
        ids=source.read(keys).column(0).to_pylist() if keys else None,
        lines=source.line_numbers(),
    )


def _facts(plan: QueryPlan, out: Path) -> dict[str, Any]:
    power = plan.power
    return {
        "plan": str(out),
        "queries": len(plan),
        "rows": plan.n_rows or None,
        "single": int((~plan.rowwise).sum()),
        "seed": plan.seed,
        "share": None if power is None else power.share,
        "power": None
        if power is None
        else [
            {
                "values": int(power.values[place]),
                "rows": int(power.rows[place]),
                "power": float(power.power[place]),
                "lower": float(power.lower[place]),
                "upper": float(power.upper[place]),
            }
            for place in range(len(power.values))
        ],
    }


def _show(plan: QueryPlan, data: Path, out: Path) -> None:
    say(
        f"{out}: {plan.content()} to look up. Fill in the column 'value' from "
        "the top down, as far as you get; write 'not found' where a value can't be "
        f"had. Then: missratio fit {data} --queries {out} …"
    )
    if plan.power is not None:
        if plan.power.division:
            say(f"{plan.power.division}.")
        say(
            f"Rows of the controlled class, and the power to expect: {plan.power}. "
            f"{plan.power.range_meaning}."
        )
