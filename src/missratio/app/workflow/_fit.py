"""From a labelled table to a certified model."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from missratio._blocks import rows_with_nan
from missratio._files import TableFile
from missratio._hints import did_you_mean, listed
from missratio._typing import FloatArray
from missratio.app.modelfile import TableModel, TrainingData
from missratio.app.report import LabelledRows, describe
from missratio.app.tables import LabelledTable, Wanted, varies
from missratio.app.workflow._account import (
    Account,
    check_blank_categories,
    check_models,
    lookup_account,
    table_account,
    written_account,
)
from missratio.app.workflow._methods import METHODS, Situation, choose_method
from missratio.app.workflow._options import LEARN, FitOptions
from missratio.app.workflow._plan import PlanOptions
from missratio.app.workflow._ways import unexplained
from missratio.classifier import NeymanPearsonClassifier
from missratio.exceptions import (
    DataError,
    Explained,
    Message,
    NoCertificateError,
    TableError,
    about_file,
)
from missratio.missingness import Missingness
from missratio.ratio import BaseRatio
from missratio.uncertainty import UnreliableIntervalWarning, ratio_uncertainty

# Cells of a table below which boosted trees lose by several threads: these wait for
# each other busily, and on a machine with other work much longer than they work.
THREADED_TREES = 1_000_000
Step = Callable[[str], None]


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
    warnings : list of Message
    """

    model: TableModel
    why: str
    account: Account
    warnings: list[Message] = field(default_factory=list)


def fit_table(
    table: LabelledTable,
    source: TableFile,
    wanted: Wanted,
    options: FitOptions,
    step: Step = lambda _: None,
) -> FittedTable:
    """Fit and calibrate a classifier to a table.

    Parameters
    ----------
    table : LabelledTable
    source : TableFile
        The file that it was read from.
    wanted : Wanted
    options : FitOptions
    step : callable
        Told what is done next.
    """
    # None leaves the number of threads as it is.
    threads = 1 if table.X.size < THREADED_TREES else None
    with (
        ThreadPoolExecutor(max_workers=1) as beside,
        threadpool_limits(threads, user_api="openmp"),
    ):
        digest = beside.submit(source.file.sha256)
        return _fit_table(table, source.path, digest, wanted, options, step)


def _fit_table(
    table: LabelledTable,
    file: Path,
    digest: Future[str],
    wanted: Wanted,
    options: FitOptions,
    step: Step,
) -> FittedTable:
    with about_file(file):
        labels, controlled = check_classes(table, wanted.target, options.controlled)
        _check_columns(table)
    account = _account(table, labels, controlled, file, wanted, options, step)
    situation = _situation(table, controlled, account, options)
    method, why = choose_method(options.method, situation)
    estimator = METHODS[method].make(situation)
    if options.standard_errors:
        _check_standard_errors(estimator, account, method)
    step(f"Fitting {method} and calibrating")
    classifier = _classifier(estimator, controlled, account.models, options)
    told = _fitted(classifier, table, account, file)
    missing = {label: table.missing_counts(label) for label in labels}
    training = TrainingData(file.name, digest.result(), dict(table.counts), missing)
    covariance = None
    if options.standard_errors:
        step("Estimating standard errors")
        covariance = _covariance(classifier, table, account)
    step("Describing it for a report")
    report = describe(
        LabelledRows.read(
            classifier, account.X, table.y, account.inclusion, before=table.X
        ),
        title=f"{wanted.target} in {file.name}",
        names=table.encoder.encoded_names,
    )
    model = TableModel(
        classifier,
        table.encoder,
        wanted.target,
        tuple(wanted.drop),
        method,
        training,
        covariance,
        report.json(),
    )
    notes = [Message.plain(note) for note in table.notes]
    return FittedTable(model, why, account, [*notes, *account.warnings, *told])


def _account(
    table: LabelledTable,
    labels: list[Any],
    controlled: Any,
    file: Path,
    wanted: Wanted,
    options: FitOptions,
    step: Step,
) -> Account:
    """What is done about missing values, by what the options give."""
    given = options.phi_file is not None or options.queries is not None
    if not table.has_missing and not given:
        return Account("complete", "No value is missing.", table.X)
    if options.as_observed:
        return Account(
            "as observed",
            "Missing values are left as they are: the certificate is for rows that "
            "lose values as these did.",
            table.X,
        )
    learns = options.missingness == LEARN
    with about_file(file):
        if options.phi_file is None:
            check_blank_categories(table, labels, {})
        if options.queries is None and options.missingness is None:
            step("Trying out what look-ups would buy")
            plan = PlanOptions(
                controlled,
                alpha=options.alpha,
                delta=options.delta,
                calibration_size=_calibration_share(table, controlled, options),
                seed=options.seed,
            )
            raise unexplained(table, labels, file, wanted, plan)
    if options.queries is not None:
        step("Reading what was looked up")
        return lookup_account(table, labels, controlled, options.queries, learn=learns)
    if learns:
        step("Learning why values are missing")
        with about_file(file):
            return table_account(table, labels)
    assert options.phi_file is not None
    account = written_account(table, labels, options.phi_file)
    with about_file(file):
        check_blank_categories(table, labels, account.models)
        check_models(table, labels, account.models)
    return account


def _classifier(
    estimator: Any,
    controlled: Any,
    models: Mapping[Any, Missingness],
    options: FitOptions,
) -> NeymanPearsonClassifier:
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


def _fitted(
    classifier: NeymanPearsonClassifier,
    table: LabelledTable,
    account: Account,
    file: Path,
) -> list[Message]:
    """Fit to a table, and what was warned of, with its names for the columns."""
    names = table.encoder.encoded_names
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            classifier.fit(account.X, table.y, inclusion=account.inclusion)
        except (DataError, NoCertificateError) as error:
            raise error.named(names).about(file) from error
        except ValueError as error:
            doubts = "".join(f" {message}" for message in account.warnings)
            raise TableError(f"{error}{doubts}") from error
    return [
        warning.message.named(names)
        if isinstance(warning, Explained)
        else Message.plain(str(warning))
        for warning in (each.message for each in caught)
    ]


def _check_standard_errors(estimator: Any, account: Account, method: str) -> None:
    """Refuse what there will be no standard errors of, before it is fitted."""
    if not isinstance(estimator, BaseRatio):
        raise TableError(
            f"--standard-errors are for density ratios, and the method is {method}. "
            "Choose 'kliep', 'kliep-cv' or 'naive-bayes'."
        )
    learned = [
        repr(label)
        for label, model in account.models.items()
        if model.learned and not model.rowwise
    ]
    if learned and getattr(estimator, "normalize", None) == "regression":
        raise TableError(
            f"--standard-errors and --method {method} don't go together where φ is "
            f"learned, as it is of {listed(learned)}: means adjusted by regression "
            "move with φ in ways that the formula doesn't have. Choose 'kliep' or "
            "'naive-bayes', or leave out --standard-errors."
        )


def _covariance(
    classifier: NeymanPearsonClassifier, table: LabelledTable, account: Account
) -> FloatArray:
    """The covariance of a ratio's coefficients, from the rows that it was fitted on."""
    ratio = classifier.estimator_
    fitted = np.ones(len(table.y), dtype=bool)
    fitted[classifier.calibration_index_] = False
    is_other = (table.y != classifier.certificate_.controlled_class).astype(int)
    try:
        # The report says where intervals may be too short.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnreliableIntervalWarning)
            # Where φ was learned, it was from these rows and more of the same class.
            known = ratio_uncertainty(
                ratio,
                account.X[fitted],
                is_other[fitted],
                inclusion=(
                    None if account.inclusion is None else account.inclusion[fitted]
                ),
                learned_on="same",
            )
    except ValueError as error:
        raise TableError(f"There are no standard errors: {error}") from error
    return known.covariance


def check_classes(
    table: LabelledTable, target: str, controlled: str
) -> tuple[list[Any], Any]:
    """The two labels, and which of them is controlled.

    Parameters
    ----------
    table : LabelledTable
    target : str
    controlled : str
        As it was typed.
    """
    labels = list(table.counts)
    shown = ", ".join(f"{label!r} ({n} rows)" for label, n in table.counts.items())
    if len(labels) != 2:
        few = shown if len(labels) <= 6 else f"{len(labels)} labels"
        raise TableError(
            f"The target {target!r} must have two labels: got {few}. Keep the rows of "
            "two classes, or choose another target."
        )
    by_name = {str(label): label for label in labels}
    if controlled not in by_name:
        hint = did_you_mean(controlled, by_name)
        raise TableError(
            f"--controlled {controlled!r} is not a label in {target!r}.{hint} There "
            f"are {shown}."
        )
    return labels, by_name[controlled]


def _check_columns(table: LabelledTable) -> None:
    """Refuse columns of numbers that are the same in every row."""
    names = table.encoder.names[: table.encoder.n_numeric]
    for j, name in enumerate(names):
        if not varies(table.X[:, j]):
            raise TableError(
                f"Column {name!r} has one value only, in every row: nothing can be "
                f"learned from it. Leave it out (--drop {name})."
            )


def _calibration_share(
    table: LabelledTable, controlled: Any, options: FitOptions
) -> float:
    """The share of the controlled class's rows that calibrates."""
    size = options.calibration_size
    return size if size < 1 else min(size / table.counts[controlled], 0.99)


def _situation(
    table: LabelledTable, controlled: Any, account: Account, options: FitOptions
) -> Situation:
    complete = table.counts[controlled] - table.missing.incomplete[controlled]
    if account.inclusion is not None:
        whole = ~rows_with_nan(account.X)
        complete = int(np.count_nonzero(whole & (table.y == controlled)))
    if options.as_observed:
        missing = "ignored" if table.has_missing else "nothing"
    elif account.models:
        whole_rows = all(model.rowwise for model in account.models.values())
        missing = "rows" if whole_rows else "values"
    else:
        missing = "nothing" if account.inclusion is None else "rows"
    numeric = table.encoder.n_numeric
    return Situation(
        numeric,
        table.encoder.width - numeric,
        missing,
        int((1.0 - _calibration_share(table, controlled, options)) * complete),
        options.seed,
    )
