"""From a table to a model that bounds the error of one class in each group."""

from __future__ import annotations

from dataclasses import replace

from missratio._files import TableFile
from missratio.app.modelfile import GroupedTableModel
from missratio.app.report import LabelledRows, Origin, describe
from missratio.app.tables import LabelledTable, Wanted
from missratio.app.workflow._fit import (
    digested,
    feature_names,
    model_of,
    told_of,
    trained_on,
    training_of,
)
from missratio.app.workflow._fit_classes import FittedSeveral
from missratio.app.workflow._options import FitOptions
from missratio.app.workflow._train import Step, Tick, no_tick, unheard


def fit_groups(
    table: LabelledTable,
    source: TableFile,
    wanted: Wanted,
    options: FitOptions,
    step: Step = unheard,
    command: str | None = None,
    tick: Tick = no_tick,
) -> FittedSeveral:
    """Fit a classifier to a table, and bound the error of a class in each group."""
    assert wanted.groups is not None
    file = source.path
    with digested(table, source) as digest:
        table, account, trained = trained_on(table, source, wanted, options, step, tick)
        step("Describing it for a report")
        training = training_of(table, file, digest)
        report = describe(
            LabelledRows.read(
                trained.classifier, account.X, table.y, account.inclusion,
                before=table.X, groups=table.groups,
            ),
            title=f"Predicting {wanted.target} in {file.name}",
            names=feature_names(table.encoder),
            comparison=trained.comparison,
            origin=Origin(command, file.name, training.sha256),
            column=wanted.groups,
        )  # fmt: skip
        unused = list(dict.fromkeys([*wanted.drop, wanted.groups]))
        model = model_of(
            GroupedTableModel, table, replace(wanted, drop=unused), trained, training,
            report, group_column=wanted.groups, rest=table.rest,
        )  # fmt: skip
        warnings = told_of(table, account, trained)
        errors = report.data["groups"]
        return FittedSeveral(model, trained.why, account, errors, warnings)
