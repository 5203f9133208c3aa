"""Which missing cells of a table to look up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from missratio._base.hints import did_you_mean, listed
from missratio.app.tables import LabelledTable
from missratio.exceptions import TableError
from missratio.learning import QueryPlan, plan_queries

GOALS = ("certificate", "ratio", "both")
PER_FEATURE = 30


@dataclass(frozen=True)
class PlanOptions:
    """What is asked of a plan.

    Parameters
    ----------
    controlled : object
        The label whose error is to be certified.
    per_feature : int or None
        Values for each class and column, where there is no budget.
    budget : int or None
        Values in all.
    goal : {"certificate", "ratio", "both"} or None
        What the budget is for.
    rowwise : bool
    only_controlled : bool
    alpha, delta : float
        The certificate to plan for.
    calibration_size : float
        The share of the controlled class's rows that it is calibrated with.
    seed : int
    """

    controlled: Any
    per_feature: int | None = None
    budget: int | None = None
    goal: str | None = None
    rowwise: bool = False
    only_controlled: bool = False
    alpha: float = 0.05
    delta: float = 0.05
    calibration_size: float = 0.5
    seed: int = 0

    def checked(self) -> PlanOptions:
        """Refuse what contradicts itself; fill in what was left open."""
        if self.goal is not None and self.goal not in GOALS:
            hint = did_you_mean(self.goal, GOALS)
            raise ValueError(
                f"--goal must be one of {listed(GOALS)}, got {self.goal!r}.{hint}"
            )
        if self.budget is None:
            if self.goal is not None:
                raise ValueError("--goal is what a budget is for: give --budget.")
            return replace(self, per_feature=self.per_feature or PER_FEATURE)
        if self.per_feature is not None:
            raise ValueError("--budget and --per-feature contradict: give one.")
        if self.rowwise or self.only_controlled:
            raise ValueError(
                "--budget decides itself between rows and values, and between "
                "classes: leave out --rows and --only-controlled, or take "
                "--per-feature."
            )
        return replace(self, goal=self.goal or "both")


def plan_table(
    table: LabelledTable,
    options: PlanOptions,
    *,
    ids: Sequence[Any] | None = None,
    lines: Sequence[int] | None = None,
) -> QueryPlan:
    """Draw missing cells of a table, as `plan_queries` does.

    Parameters
    ----------
    table : LabelledTable
    options : PlanOptions
    ids : sequence, or None
        The user's key of each row of the file.
    lines : sequence of int, or None
        The line of each row of the file.
    """
    frame = table.asked_frame()
    if not frame.num_columns:
        raise TableError("Nothing is missing, and there is no column of numbers.")
    try:
        return plan_queries(
            frame,
            table.y,
            per_feature=options.per_feature,
            budget=options.budget,
            goal=options.goal,  # type: ignore[arg-type]
            rowwise=options.rowwise,
            classes=[options.controlled] if options.only_controlled else None,
            ids=_of_rows(table, ids),
            lines=_of_rows(table, lines),
            levels=table.asked_levels,
            controlled_class=options.controlled,
            alpha=options.alpha,
            delta=options.delta,
            calibration_size=options.calibration_size,
            random_state=options.seed,
        )
    except ValueError as error:
        raise TableError(str(error)) from error


def _of_rows(table: LabelledTable, given: Sequence[Any] | None) -> list[Any] | None:
    return None if given is None else [given[row] for row in table.rows.tolist()]
