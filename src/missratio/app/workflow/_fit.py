"""From a labelled table to a certified model."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from threadpoolctl import threadpool_limits

from missratio._files import TableFile
from missratio.app.modelfile import FrameModel, TableModel, TrainingData
from missratio.app.report import LabelledRows, Names, Origin, Report, describe
from missratio.app.tables import (
    BLANK,
    Encoder,
    LabelledTable,
    Wanted,
    drop_option,
    refused,
    two_classes,
    varies,
)
from missratio.app.workflow._account import (
    Account,
    LearningSteps,
    check_models,
    complete_account,
    observed_account,
    table_account,
    written_account,
)
from missratio.app.workflow._budget import budget_of
from missratio.app.workflow._finding import Finding
from missratio.app.workflow._look_ups import lookup_account
from missratio.app.workflow._options import LEARN, FitOptions
from missratio.app.workflow._phi_file import read_missingness
from missratio.app.workflow._plan import PlanOptions
from missratio.app.workflow._train import (
    Step,
    Tick,
    Trained,
    covariance_of,
    no_tick,
    train,
    unheard,
)
from missratio.app.workflow._ways import unexplained
from missratio.classifier import QueryBudget
from missratio.exceptions import Message, TableError, about_file

Model = TypeVar("Model", bound=FrameModel)

# Cells of a table below which boosted trees lose by several threads: these wait for
# each other busily, and on a machine with other work much longer than they work.
THREADED_TREES = 1_000_000


@dataclass
class FittedTable:
    """A model, and what there is to say about how it came to be.

    Parameters
    ----------
    model : TableModel
    why : str
        Why the method was taken.
    account : Account
        What was done about missing values.
    finding : Finding
        Which share of the other class it finds.
    budget : QueryBudget or None
        What other numbers of look-ups would buy, where that was asked for.
    warnings : list of Message
    """

    model: TableModel
    why: str
    account: Account
    finding: Finding
    budget: QueryBudget | None = None
    warnings: list[Message] = field(default_factory=list)


def fit_table(
    table: LabelledTable,
    source: TableFile,
    wanted: Wanted,
    options: FitOptions,
    step: Step = unheard,
    command: str | None = None,
    tick: Tick = no_tick,
) -> FittedTable:
    """Fit and calibrate a classifier to a table."""
    file = source.path
    with digested(table, source) as digest:
        table, account, trained = trained_on(table, source, wanted, options, step, tick)
        training = training_of(table, file, digest)
        covariance = None
        if options.standard_errors:
            step("Estimating standard errors")
            covariance = covariance_of(trained, table, account)
        step("Describing it for a report")
        report = describe(
            LabelledRows.read(
                trained.classifier, account.X, table.y, account.inclusion,
                before=table.X,
            ),
            title=f"Predicting {wanted.target} in {file.name}",
            names=feature_names(table.encoder),
            comparison=trained.comparison,
            origin=Origin(command, file.name, training.sha256),
        )  # fmt: skip
        model = model_of(
            TableModel, table, wanted, trained, training, report,
            covariance=covariance, rest=table.rest,
        )  # fmt: skip
        told = told_of(table, account, trained)
        finding = Finding.of(report.data, model.fallback, model.other_class)
        budget = None
        if options.budgets:
            step("Trying other numbers of look-ups")
            budget = budget_of(trained.classifier, account.X, table.y, options.budgets)
        return FittedTable(model, trained.why, account, finding, budget, told)


@contextmanager
def digested(table: LabelledTable, source: TableFile) -> Iterator[Future[str]]:
    """The digest of a table's file, made beside a fit; one thread for small trees."""
    # None leaves the number of threads as it is.
    threads = 1 if table.X.size < THREADED_TREES else None
    with (
        ThreadPoolExecutor(max_workers=1) as beside,
        threadpool_limits(threads, user_api="openmp"),
    ):
        yield beside.submit(source.file.sha256)


def trained_on(
    table: LabelledTable,
    source: TableFile,
    wanted: Wanted,
    options: FitOptions,
    step: Step,
    tick: Tick,
) -> tuple[LabelledTable, Account, Trained]:
    """The table's two classes, an account of what is missing, and a classifier."""
    assert options.controlled is not None
    with about_file(source.path):
        table, controlled = two_classes(
            table, wanted.target, options.controlled, options.versus
        )
        check_columns(table)
    plan = PlanOptions(
        controlled, alpha=options.alpha, delta=options.delta, seed=options.seed,
        calibration_size=options.calibration_size,
    )  # fmt: skip
    labels = list(table.counts)
    account = account_of(table, labels, source, wanted, options, step, plan, tick)
    trained = train(table, controlled, account, source.path, options, step)
    return table, account, trained


def told_of(table: LabelledTable, account: Account, trained: Trained) -> list[Message]:
    """What there was to note or to warn of."""
    notes = [Message.plain(note) for note in table.notes]
    return [*notes, *account.warnings, *trained.warnings]


def training_of(table: LabelledTable, file: Path, digest: Future[str]) -> TrainingData:
    """Which table a model is fitted on, for its file."""
    missing = {label: table.missing_counts(label) for label in table.counts}
    return TrainingData(file.name, digest.result(), dict(table.counts), missing)


def model_of(
    kind: type[Model],
    table: LabelledTable,
    wanted: Wanted,
    trained: Trained,
    training: TrainingData,
    report: Report,
    **more: Any,
) -> Model:
    """A model of a kind, with what all kinds hold."""
    return kind(
        trained.classifier,
        table.encoder,
        wanted.target,
        tuple(wanted.drop),
        trained.method,
        training,
        report.json(),
        trained.comparison,
        **more,
    )


def feature_names(encoder: Encoder) -> Names:
    """What the columns of the matrix are called, and those of the table."""
    features, origins, blank = [], [], []
    for column in encoder.columns:
        features += column.encoded_names
        origins += [column.name] * column.width
        levels = column.levels or ("", "number")
        blank += [level == BLANK for level in levels[1:]]
    return Names.of(features, origins, blank)


def account_of(
    table: LabelledTable,
    labels: list[Any],
    source: TableFile,
    wanted: Wanted,
    options: FitOptions,
    step: Step,
    plan: PlanOptions | None,
    tick: Tick = no_tick,
) -> Account:
    """What is done about missing values, by what the options give.

    Parameters
    ----------
    table : LabelledTable
    labels : list of classes
    source, wanted, options, step
        As of `fit_table`.
    plan : PlanOptions or None
        Of look-ups for the controlled class; None where there are several bounded.
    tick : callable
        Told that so many parts of a step are done.
    """
    file = source.path
    given = options.phi_file is not None or options.queries is not None
    if not table.has_missing and not given:
        return complete_account(table.X)
    if options.as_observed:
        return observed_account(table.X)
    learns = options.missingness == LEARN
    with about_file(file):
        if options.queries is None and options.missingness is None:
            if plan is not None:
                step("Trying out what look-ups would buy")
            raise unexplained(table, labels, file, wanted, plan)
    if options.queries is not None and plan is not None:
        step("Reading what was looked up")
        numbers = source.line_numbers()
        return lookup_account(
            table,
            labels,
            plan,
            options.queries,
            learn=learns or bool(options.budgets),
            lines=[numbers[row] for row in table.rows.tolist()],
        )
    if learns:
        with about_file(file):
            return table_account(table, labels, LearningSteps(step, tick))
    assert options.phi_file is not None
    models = read_missingness(options.phi_file, table.encoder, labels)
    with about_file(file):
        missing = {label: table.missing_counts(label) for label in labels}
        check_models(table.encoder, missing, models)
    return written_account(table.X, models, options.phi_file)


def check_columns(table: LabelledTable) -> None:
    """Refuse columns of numbers that are the same in every row, all at once."""
    names = table.encoder.names[: table.encoder.n_numeric]
    constant = {
        name: f"column {name!r} has one value only, in every row: nothing can be "
        f"learned from it. Leave it out ({drop_option(name)})."
        for j, name in enumerate(names)
        if not varies(table.X[:, j])
    }
    if len(constant) == 1:
        (problem,) = constant.values()
        raise TableError(problem[:1].upper() + problem[1:])
    if constant:
        raise refused("", constant)
