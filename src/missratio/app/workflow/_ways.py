"""What can be done about a table's missing values, with its price and promise."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from missratio._base.blocks import rows_with_nan
from missratio._base.hints import listed
from missratio.app.tables import LabelledTable, Wanted
from missratio.app.workflow._account import (
    loses_whole_rows,
    named_counts,
    table_account,
)
from missratio.app.workflow._plan import PlanOptions, plan_table
from missratio.exceptions import (
    Message,
    OpenWay,
    Remedy,
    TableError,
    UnexplainedMissingError,
)
from missratio.learning import LearnedMissingness

# Rows of the controlled class to plan for; a quarter to twice as many are tried.
ROWS = 80
# What --alpha and --delta are, unless told otherwise.
USUAL_LEVEL = 0.05
# On larger tables, trials of look-ups take too long to be part of a message.
MOST_ROWS = 200_000


def unexplained(
    table: LabelledTable,
    labels: Sequence[Any],
    file: Path,
    wanted: Wanted,
    plan: PlanOptions | None,
) -> UnexplainedMissingError:
    """The error that shows the ways that are open to a table.

    Parameters
    ----------
    table : LabelledTable
    labels : sequence
        The classes.
    file : Path
    wanted : Wanted
    plan : PlanOptions or None
        Of the look-ups that are proposed, but for their number; None for no proposal.
    """
    lossy = [label for label in labels if table.missing_counts(label)]
    claim = "; ".join(
        f"class {label!r} has missing values in "
        f"{named_counts(table.missing_counts(label))}"
        for label in lossy
    )
    return UnexplainedMissingError(
        Message(
            "{claim}, and nothing says why. These ways are open:",
            label=lossy[0],
            facts={
                "claim": claim[:1].upper() + claim[1:],
                "query": "" if plan is None else _query(file, wanted, plan),
            },
            ways=tuple(_ways(table, lossy, plan)),
        )
    )


def _ways(
    table: LabelledTable, lossy: list[Any], plan: PlanOptions | None
) -> Iterator[OpenWay]:
    if plan is not None:
        yield from _look_ups(table, lossy, plan)
    if not any(loses_whole_rows(table, label) for label in lossy):
        yield OpenWay(
            "look up nothing",
            "φ, the probability of being missing, is learned from the other columns, "
            f"and must be logistic in the value itself{_untaught(table, lossy)}",
            Remedy.LEARN,
        )
    yield OpenWay(
        "write down why", "holds if what you write is right", Remedy.WRITE_DOWN
    )
    yield OpenWay(
        "do nothing",
        "holds for rows that lose values as these did, and for no others",
        Remedy.AS_THEY_ARE,
    )


def _look_ups(
    table: LabelledTable, lossy: list[Any], plan: PlanOptions
) -> Iterator[OpenWay]:
    """A plan of look-ups, and the power that it should buy."""
    if plan.controlled not in lossy:
        yield OpenWay(
            f"look up 50 values a column of {lossy[0]!r}",
            f"rows of {plan.controlled!r} are complete, so the certificate needs no φ; "
            "the score gets better",
            Remedy.LOOK_UP_CELLS,
        )
        return
    mine = table.y == plan.controlled
    n_values = sum(table.missing_counts(plan.controlled).values())
    price = n_values / np.count_nonzero(rows_with_nan(table.X[mine]))
    # Single values of the other class, where it has holes, make the score better.
    goal, more = ("both", 1.5) if len(lossy) > 1 else ("certificate", 1.0)
    wanted = replace(plan, budget=max(1, round(more * ROWS * price)), goal=goal)
    assumes = "no assumption about φ"
    if len(table.y) > MOST_ROWS:
        yield OpenWay(
            f"look up {ROWS} rows",
            assumes,
            Remedy.LOOK_UP_ROWS,
            {"values": wanted.budget, "goal": goal},
        )
        return
    try:
        power = plan_table(table, wanted).power
    except TableError:
        return
    assert power is not None
    useful = np.flatnonzero(power.power > 0.0)
    for place in dict.fromkeys(useful[[0, -1]].tolist() if len(useful) else []):
        values = int(power.values[place])
        rows = f"{power.rows[place]} rows"
        if goal == "both":
            rows += f" of {plan.controlled!r} and single values of the other class"
        yield OpenWay(
            f"look up {rows} ({values} values)",
            f"power about {power.power[place]:.2f}, {assumes}",
            Remedy.LOOK_UP_ROWS,
            {"values": values, "goal": goal},
        )


def _untaught(table: LabelledTable, lossy: list[Any]) -> str:
    """The columns that the others say nothing of."""
    if len(table.y) > MOST_ROWS:
        return ""
    try:
        learned = table_account(table, lossy).models.values()
    except TableError:
        return "; but they can't teach it here"
    names = [
        check.feature
        for model in learned
        if isinstance(model, LearnedMissingness)
        for check in model.checks
        if check.kind == "instrument" and check.failed
    ]
    return f"; but they say too little about {listed(names)}" if names else ""


def _query(file: Path, wanted: Wanted, plan: PlanOptions) -> str:
    """The words of `missratio query` for this table."""
    words = [str(file), "--target", wanted.target, "--controlled", str(plan.controlled)]
    for option, names in (
        ("--drop", wanted.not_features[1:]),
        ("--categorical", wanted.categorical),
        ("--missing-value", wanted.missing_values),
    ):
        for name in names:
            words += [option, name]
    for option, value in (("--alpha", plan.alpha), ("--delta", plan.delta)):
        if value != USUAL_LEVEL:
            words += [option, f"{value:g}"]
    return shlex.join(words)
