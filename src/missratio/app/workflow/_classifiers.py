"""The classifiers that the options of a fit ask for, not fitted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from missratio._base.hints import did_you_mean, listed
from missratio._files.numbers import canonical
from missratio.app.tables import LabelledTable
from missratio.app.workflow._options import FitOptions
from missratio.classifier import (
    GroupedNeymanPearsonClassifier,
    NeymanPearsonClassifier,
)
from missratio.exceptions import TableError
from missratio.missingness import Missingness

SHOWN = 10


def make_classifier(
    estimator: Any,
    controlled: Any,
    models: Mapping[Any, Missingness],
    options: FitOptions,
) -> NeymanPearsonClassifier:
    """The classifier that the options ask for, not fitted."""
    return NeymanPearsonClassifier(
        estimator,
        alpha=options.alpha,
        delta=options.delta,
        missingness=models or None,
        rule=options.rule,
        deployment="as-observed" if options.as_observed else "complete",
        calibration_size=options.calibration_size,
        controlled_class=controlled,
        on_infeasible=options.on_infeasible,  # type: ignore[arg-type]
        random_state=options.seed,
        odds_factor=options.odds_factor,
    )


def make_grouped(
    estimator: Any,
    controlled: Any,
    models: Mapping[Any, Missingness],
    options: FitOptions,
    table: LabelledTable,
) -> GroupedNeymanPearsonClassifier:
    """The same with a promise to each group.

    Parameters
    ----------
    estimator, controlled, models, options
        As for `make_classifier`.
    table : LabelledTable
        With the groups that levels are named by.
    """
    asked = options.groups
    assert asked is not None
    assert table.groups is not None
    known = {canonical(group): group for group in table.groups.tolist()}
    levels = {}
    for typed, level in asked.levels.items():
        if canonical(typed) not in known:
            names = sorted(map(str, known.values()))
            raise TableError(
                f"--group-alpha {typed!r} is not a group in {asked.column!r}."
                f"{did_you_mean(typed, names)} There are {listed(names[:SHOWN])}."
            )
        levels[known[canonical(typed)]] = level
    return GroupedNeymanPearsonClassifier(
        estimator,
        alpha=options.alpha,
        delta=options.delta,
        group_alpha=levels or None,
        threshold="shared" if asked.shared else "own",
        missingness=models or None,
        rule=options.rule,
        deployment="as-observed" if options.as_observed else "complete",
        calibration_size=options.calibration_size,
        controlled_class=controlled,
        on_infeasible=options.on_infeasible,  # type: ignore[arg-type]
        random_state=options.seed,
        odds_factor=options.odds_factor,
    )
