"""From a table with several labels to a model that bounds the errors of some."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from missratio._files import TableFile, written_whole
from missratio.app.modelfile import (
    GroupedTableModel,
    MulticlassTableModel,
    TrainingData,
)
from missratio.app.report import LabelledRows, Origin, describe_classes
from missratio.app.tables import LabelledTable, Wanted, find_label
from missratio.app.workflow._account import Account
from missratio.app.workflow._fit import (
    THREADED_TREES,
    account_of,
    check_columns,
    feature_names,
)
from missratio.app.workflow._methods import METHODS, Situation, choose_method
from missratio.app.workflow._options import FitOptions
from missratio.app.workflow._train import Step, fit_classifier, what_is_missing
from missratio.classifier import MulticlassNeymanPearsonClassifier
from missratio.exceptions import Message, NoCertificateError, TableError, about_file

# The library's shares of rows to choose by.
CHOICE_SIZE = 0.2


@dataclass
class FittedSeveral:
    """A model with several promises, and what there is to say about how it came to be.

    Parameters
    ----------
    model : MulticlassTableModel or GroupedTableModel
    why : str
        Why the method was taken.
    account : Account
        What was done about missing values.
    findings : list of str
        What becomes of each class or group, in sentences.
    errors : list of dict
        The same as data.
    warnings : list of Message
    """

    model: MulticlassTableModel | GroupedTableModel
    why: str
    account: Account
    findings: list[str]
    errors: list[dict[str, Any]]
    warnings: list[Message] = field(default_factory=list)


def fit_classes(
    table: LabelledTable,
    source: TableFile,
    wanted: Wanted,
    options: FitOptions,
    step: Step = lambda _: None,
    command: str | None = None,
    trade_off: Path | None = None,
) -> FittedSeveral:
    """Fit a classifier to a table, and bound the errors of several classes.

    Parameters
    ----------
    table : LabelledTable
    source : TableFile
        The file that it was read from.
    wanted : Wanted
    options : FitOptions
        With `several`.
    step : callable
        Told what is done next.
    command : str, optional
        What the report says it was made by.
    trade_off : Path, optional
        A PNG file to draw what bounded classes leave each other, also where that is
        too little.
    """
    threads = 1 if table.X.size < THREADED_TREES else None
    with (
        ThreadPoolExecutor(max_workers=1) as beside,
        threadpool_limits(threads, user_api="openmp"),
    ):
        digest = beside.submit(source.file.sha256)
        with about_file(source.path):
            levels, order = _labels(table, wanted.target, options)
            check_columns(table)
        labels = list(table.counts)
        account = account_of(table, labels, source, wanted, options, step, None)
        situation = _situation(table, account, options)
        method, why = choose_method(options.method, situation, several=True)
        step(f"Fitting {method} and calibrating")
        classifier = _classifier(METHODS[method].make(situation), levels, order,
                                 account, options)  # fmt: skip
        told = _fitted(classifier, table, account, source.path, trade_off)
        step("Describing it for a report")
        return _described(
            classifier, table, account, source, digest, wanted, (method, why), told,
            command,
        )  # fmt: skip


def _labels(
    table: LabelledTable, target: str, options: FitOptions
) -> tuple[dict[Any, float], list[Any] | None]:
    """The bounded classes with their levels, and the order, as the table has them."""
    several = options.several
    assert several is not None
    levels: dict[Any, float] = {}
    for typed, level in several.levels.items():
        label = find_label(table, target, "--alpha", typed)
        if label in levels:
            raise TableError(f"--alpha names {label!r} twice.")
        levels[label] = level
    if several.order is None:
        return levels, None
    order = [find_label(table, target, "--ordered", each) for each in several.order]
    if sorted(map(str, order)) != sorted(map(str, table.counts)):
        raise TableError(
            "--ordered lists each label once, the most severe first: got "
            f"{order}, and there are {list(table.counts)}."
        )
    if set(levels) != set(order[:-1]):
        raise TableError(
            "With --ordered each label but the last has a bound, "
            + ", ".join(f"--alpha {label}=SHARE" for label in order[:-1])
            + f": got {list(levels)}."
        )
    return levels, order


def _situation(
    table: LabelledTable, account: Account, options: FitOptions
) -> Situation:
    numeric = table.encoder.n_numeric
    complete = min(
        rows - table.missing.incomplete[label] for label, rows in table.counts.items()
    )
    return Situation(
        numeric,
        table.encoder.width - numeric,
        what_is_missing(table, account, options),
        int((1.0 - options.calibration_size - CHOICE_SIZE) * complete),
        options.seed,
    )


def _classifier(
    estimator: Any,
    levels: dict[Any, float],
    order: list[Any] | None,
    account: Account,
    options: FitOptions,
) -> MulticlassNeymanPearsonClassifier:
    return MulticlassNeymanPearsonClassifier(
        estimator,
        alpha=levels,
        delta=options.delta,
        order=order,
        missingness=account.models or None,
        rule=options.rule,
        deployment="as-observed" if options.as_observed else "complete",
        calibration_size=options.calibration_size,
        choice_size=CHOICE_SIZE,
        random_state=options.seed,
        odds_factor=options.odds_factor,
    )


def _fitted(
    classifier: MulticlassNeymanPearsonClassifier,
    table: LabelledTable,
    account: Account,
    file: Path,
    trade_off: Path | None,
) -> list[Message]:
    """Fit, and draw what classes leave each other, also where that is too little."""
    try:
        told = fit_classifier(classifier, table, account, file)
    except NoCertificateError:
        if trade_off is not None and hasattr(classifier, "trade_offs_"):
            _draw(classifier, trade_off)
        raise
    if trade_off is not None:
        _draw(classifier, trade_off)
    return told


def _draw(classifier: MulticlassNeymanPearsonClassifier, out: Path) -> None:
    """Draw the tightest pair of bounded classes, where there is one."""
    if not classifier.trade_offs_:
        return
    from matplotlib.figure import Figure

    from missratio.evaluation import TradeOffDisplay

    figure = Figure(figsize=(5.5, 4.5), layout="constrained")
    TradeOffDisplay.from_estimator(classifier, ax=figure.subplots())
    with written_whole(out, force=True) as draft:
        figure.savefig(draft, format="png", dpi=150)


def _described(
    classifier: MulticlassNeymanPearsonClassifier,
    table: LabelledTable,
    account: Account,
    source: TableFile,
    digest: Future[str],
    wanted: Wanted,
    method: tuple[str, str],
    told: list[Message],
    command: str | None,
) -> FittedSeveral:
    file, labels = source.path, list(table.counts)
    missing = {label: table.missing_counts(label) for label in labels}
    training = TrainingData(file.name, digest.result(), dict(table.counts), missing)
    report = describe_classes(
        LabelledRows.read(classifier, account.X, table.y),
        title=f"Predicting {wanted.target} in {file.name}",
        names=feature_names(table.encoder),
        origin=Origin(command, file.name, training.sha256),
    )
    model = MulticlassTableModel(
        classifier,
        table.encoder,
        wanted.target,
        tuple(wanted.drop),
        method[0],
        training,
        report.json(),
    )
    notes = [Message.plain(note) for note in table.notes]
    return FittedSeveral(
        model,
        method[1],
        account,
        [entry["sentence"] for entry in report.data["errors"]],
        report.data["errors"],
        [*notes, *account.warnings, *told],
    )
