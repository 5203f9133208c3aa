"""From a labelled table to a certified model: one way for every kind of promise.

Read the table, account for missing values, choose a method, fit and calibrate, describe
it for a report, and put the model together.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from missratio._base.blocks import rows_with_nan
from missratio._base.hints import did_you_mean, listed
from missratio._base.reading import columns_named
from missratio._base.typing import FloatArray
from missratio._files import open_table
from missratio._files.numbers import canonical
from missratio.app.modelfile import TableModel, TrainingData
from missratio.app.options import RATIOS, FitOptions, Listener
from missratio.app.report import LabelledRows, Names, describe
from missratio.app.tables.columns import BLANK, Encoder, drop_option, refuse_columns
from missratio.app.tables.labelled import (
    LabelledTable,
    Wanted,
    find_label,
    read_labelled,
    two_classes,
)
from missratio.app.workflow.account import Account, account_of
from missratio.app.workflow.methods import (
    METHODS,
    Situation,
    candidates,
    choose_method,
    reason_of,
)
from missratio.classifier import (
    GroupedNeymanPearsonClassifier,
    MulticlassNeymanPearsonClassifier,
    NeymanPearsonClassifier,
    PowerComparison,
    PowerSearch,
)
from missratio.exceptions import (
    DataError,
    Explained,
    Message,
    NoCertificateError,
    TableError,
    about_file,
)
from missratio.missingness import Missingness
from missratio.uncertainty import UnreliableIntervalWarning, ratio_uncertainty

# Cells of a table below which boosted trees lose by several threads: these wait for
# each other busily, and on a machine with other work much longer than they work.
THREADED_TREES = 1_000_000
# The library's share of rows to choose offsets by, where several classes are bounded.
CHOICE_SIZE = 0.1
# Groups that a message lists.
SHOWN = 10


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
    findings : list of str
        What becomes of the other class, or of each class or group.
    measured : dict
        The same as plain data: `power` and `finding`, or `errors` and `findings`.
    warnings : list of Message
    """

    model: TableModel
    why: str
    account: Account
    findings: list[str]
    measured: dict[str, Any]
    warnings: list[Message]


def fit_table(
    options: FitOptions,
    progress: Listener = Listener(),  # noqa: B008
    command: str | None = None,
) -> FittedTable:
    """Fit and calibrate a classifier to a table.

    Parameters
    ----------
    options : FitOptions
        Which were checked.
    progress : Listener
    command : str, optional
        What the report says it was made by.
    """
    progress.step(f"Reading {options.data}")
    source = open_table(options.data, **options.how)
    table = read_labelled(
        source,
        Wanted(
            options.target,
            options.drop,
            options.categorical,
            options.missing_value,
            options.as_observed,
            options.skip_unlabelled,
            options.groups,
        ),
    )
    # None leaves the number of threads as it is.
    threads = 1 if table.X.size < THREADED_TREES else None
    with (
        ThreadPoolExecutor(max_workers=1) as beside,
        threadpool_limits(threads, user_api="openmp"),
    ):
        digest = beside.submit(source.file.sha256)
        with about_file(source.path):
            table, bounded, order = _labelled(table, options)
        varies = np.fmin.reduce(table.X) < np.fmax.reduce(table.X)
        refuse_columns(
            {
                name: f"column {name!r} has one value only, in every row: nothing can "
                f"be learned from it. Leave it out ({drop_option(name)})."
                for name, differs in zip(table.encoder.names, varies, strict=False)
                if not differs and name not in table.encoder.indicators
            },
            source.path,
        )
        account = account_of(table, bounded, source, options, progress)
        situation = _situation(table, bounded, account, options)
        method, why = choose_method(options.method, situation, options.several)
        compares = options.method == "auto" and options.compare_seconds > 0.0
        if compares:
            estimator = _search(
                table, bounded, order, situation, account, options, progress
            )
        else:
            estimator = METHODS[method].make(situation)
            if options.standard_errors and _moves_with_phi(estimator, account.models):
                raise TableError(
                    f"--standard-errors and --method {method} don't go together where "
                    "φ is learned: its means are adjusted by regression, and move with "
                    "φ in ways that the formula doesn't have. Choose 'kliep' or "
                    "'naive-bayes', or leave out --standard-errors."
                )
            progress.step(f"Fitting {method} and calibrating")
        classifier = _classifier(estimator, table, bounded, order, account, options)
        warned = _fit(classifier, table, account, source.path, options)
        comparison = None
        if compares:
            comparison = _settled(classifier)
            method, why = _choice(comparison, method, why, table, bounded)
        covariance = None
        if options.standard_errors:
            progress.step("Estimating standard errors")
            covariance = _covariance(classifier, table, account)
        progress.step("Describing it for a report")
        file = source.path.name
        training = TrainingData(
            file, digest.result(), dict(table.counts), table.missing
        )
        rows = LabelledRows.read(
            classifier, account.X, table.y, account.inclusion,
            before=table.X, groups=table.groups,
        )  # fmt: skip
        report = describe(
            rows,
            title=f"Predicting {options.target} in {file}",
            names=_names(table.encoder),
            comparison=comparison,
            origin={"command": command, "file": file, "sha256": training.sha256},
            column=options.groups or "group",
        )
    model = TableModel(
        classifier, table.encoder, options.target,
        tuple(dict.fromkeys(table.wanted.not_features[1:])), method, training,
        report.json(), comparison, rest=table.rest, covariance=covariance,
        group_column=options.groups,
    )  # fmt: skip
    findings, measured = _findings(report.data, rows)
    notes = [Message.plain(note) for note in table.notes]
    said = [*notes, *account.warnings, *warned]
    return FittedTable(model, why, account, findings, measured, said)


def _labelled(
    table: LabelledTable, options: FitOptions
) -> tuple[LabelledTable, dict[Any, float], list[Any] | None]:
    """The rows to fit, the bounded classes with their levels, and their order."""
    if not options.several:
        ((typed, level),) = options.levels.items()
        table, label = two_classes(table, typed, options.versus)
        return table, {label: level}, None
    levels: dict[Any, float] = {}
    for typed, level in options.levels.items():
        label = find_label(table, "--alpha", typed)
        if label in levels:
            raise TableError(f"--alpha names {label!r} twice.")
        levels[label] = level
    if options.order is None:
        return table, levels, None
    order = [find_label(table, "--ordered", typed) for typed in options.order]
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
    return table, levels, order


def _names(encoder: Encoder) -> Names:
    """What the columns of the matrix are called, and those of the table."""
    features, origins, blank = [], [], []
    for column in encoder.columns:
        features += column.encoded_names
        origins += [column.name] * column.width
        levels = column.levels or ("", "number")
        blank += [level == BLANK for level in levels[1:]]
    return Names(features, origins, frozenset(np.flatnonzero(blank).tolist()))


def _situation(
    table: LabelledTable,
    bounded: Mapping[Any, float],
    account: Account,
    options: FitOptions,
) -> Situation:
    """What a method has to deal with, and how many complete rows it is fitted on."""
    if account.inclusion is not None:
        whole = ~rows_with_nan(account.X) & (table.y == next(iter(bounded)))
        complete, missing = int(np.count_nonzero(whole)), "rows"
    else:
        labels = table.counts if options.several else bounded
        complete, missing = min(map(table.n_complete, labels)), "nothing"
    if account.deployment == "as-observed" and len(table.incomplete):
        missing = "ignored"
    elif account.models:
        whole_rows = all(model.rowwise for model in account.models.values())
        missing = "rows" if whole_rows else "values"
    share = 1.0 - options.calibration_size - CHOICE_SIZE * options.several
    numeric = table.encoder.n_numeric
    indicators = table.encoder.width - numeric
    return Situation(
        numeric, indicators, missing, int(share * complete), options.seed,
        fitted_rows=max(1, int(share * len(table.y))),
    )  # fmt: skip


def _classifier(
    estimator: Any,
    table: LabelledTable,
    bounded: Mapping[Any, float],
    order: list[Any] | None,
    account: Account,
    options: FitOptions,
) -> Any:
    """The classifier that the options ask for, not fitted."""
    common: dict[str, Any] = {
        "delta": options.delta,
        "missingness": dict(account.models) or None,
        "rule": options.rule,
        "deployment": account.deployment,
        "calibration_size": options.calibration_size,
        "random_state": options.seed,
        "odds_factor": options.odds_factor,
    }
    if options.several:
        return MulticlassNeymanPearsonClassifier(
            estimator, alpha=dict(bounded), order=order, choice_size=CHOICE_SIZE,
            **common,
        )  # fmt: skip
    ((controlled, alpha),) = bounded.items()
    common |= {"alpha": alpha, "controlled_class": controlled}
    common["on_infeasible"] = options.on_infeasible
    if table.groups is None:
        return NeymanPearsonClassifier(estimator, **common)
    known = {canonical(group): group for group in table.groups.tolist()}
    levels = {}
    for typed, level in options.group_levels.items():
        if canonical(typed) not in known:
            names = sorted(map(str, known.values()))
            raise TableError(
                f"--group-alpha {typed!r} is not a group in {options.groups!r}."
                f"{did_you_mean(typed, names)} There are {listed(names[:SHOWN])}."
            )
        levels[known[canonical(typed)]] = level
    return GroupedNeymanPearsonClassifier(
        estimator,
        group_alpha=levels or None,
        threshold="shared" if options.shared_threshold else "own",
        **common,
    )


def _search(
    table: LabelledTable,
    bounded: Mapping[Any, float],
    order: list[Any] | None,
    situation: Situation,
    account: Account,
    options: FitOptions,
    progress: Listener,
) -> PowerSearch:
    """The comparison of the methods that deal with a table."""
    compared = candidates(situation, options.several)
    if options.standard_errors:
        compared = {
            name: each
            for name, each in compared.items()
            if name in RATIOS and not _moves_with_phi(each, account.models)
        }
    bounds: dict[str, Any] = {"alpha": next(iter(bounded.values()))}
    if options.several:
        labels = sorted(table.counts)
        fitted = 1.0 - options.calibration_size - CHOICE_SIZE
        bounds = {
            "alpha": {labels.index(label): level for label, level in bounded.items()},
            "delta": options.delta,
            "order": order and [labels.index(label) for label in order],
            "certifying": options.calibration_size / max(fitted, 0.01),
        }
    return PowerSearch(
        compared,
        **bounds,
        deployment=account.deployment,
        seconds=options.compare_seconds,
        random_state=options.seed,
        on_candidate=lambda name: progress.step(f"Comparing methods: {name}"),
    )


def _settled(classifier: Any) -> PowerComparison:
    """Put the winner in the search's place: both give the same scores."""
    alone = isinstance(classifier, NeymanPearsonClassifier)
    search = classifier.estimator_ if alone else classifier.scores_.estimators[0]
    comparison: PowerComparison = search.comparison_
    classifier.estimator = search.candidates[comparison.chosen]
    if alone:
        classifier.estimator_ = search.estimator_
    elif comparison.alpha is None:
        classifier.scores_ = search.scores_
        labels = classifier.classes_.tolist()
        names = tuple(str(labels[int(place)]) for place in comparison.compared)
        comparison = replace(comparison, compared=names)
    else:
        found = (search.estimator_,)
        classifier.scores_ = replace(classifier.scores_, estimators=found)
    return comparison


def _choice(
    comparison: PowerComparison,
    method: str,
    why: str,
    table: LabelledTable,
    bounded: Mapping[Any, float],
) -> tuple[str, str]:
    """The method that a comparison leads to, and why; else the one without it."""
    names = [repr(name) for name in comparison.compared]
    if comparison.alpha is not None:
        names = [repr(label) for label in table.counts if label not in bounded]
        if not comparison.ranked:
            if comparison.note:
                why = f"{why}; methods are not compared, as {comparison.note}"
            return method, why
    *rest, last = names
    found = f"{', '.join(rest)} and {last}, on average," if rest else last
    return comparison.chosen, reason_of(comparison, found)


def _moves_with_phi(estimator: Any, models: Mapping[Any, Missingness]) -> bool:
    """Whether means are adjusted by regression on weights of a learned φ."""
    learned = any(model.learned and not model.rowwise for model in models.values())
    return learned and getattr(estimator, "normalize", None) == "regression"


def _fit(
    classifier: Any,
    table: LabelledTable,
    account: Account,
    file: Path,
    options: FitOptions,
) -> list[Message]:
    """Fit to a table, and what was warned of, with its names for the columns."""
    more: dict[str, Any] = {}
    if options.target_table is not None:
        more["target"] = _target(table.encoder, options.target_table)
    if table.groups is not None:
        more["groups"] = table.groups
    names = table.encoder.encoded_names
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            with columns_named(names):
                classifier.fit(account.X, table.y, inclusion=account.inclusion, **more)
        except (DataError, NoCertificateError) as error:
            raise error.named(names).about(file) from error
        except ValueError as error:
            if isinstance(error, Explained):
                raise TableError(error.message) from error
            doubts = "".join(f" {message}" for message in account.warnings)
            raise TableError(f"{error}{doubts}") from error
    return [
        warning.message.named(names)
        if isinstance(warning, Explained)
        else Message.plain(str(warning))
        for warning in (each.message for each in caught)
    ]


def _target(encoder: Encoder, path: Path) -> FloatArray:
    """Rows of another population, as numbers."""
    source = open_table(path)
    source.check_header()
    encoder = encoder.with_marks(source.marks)
    with about_file(source.path):
        encoder.check_columns(source.names, source.names)
        X = encoder.encode(source.read(encoder.names), place=source.place)
        lost = int(rows_with_nan(X).sum())
        if lost:
            raise TableError(
                f"{lost} row(s) of the target have a missing value, or a category that "
                "the table doesn't have: which rows are complete says nothing about "
                "the target as a whole. Give complete rows."
            )
    return X


def _covariance(classifier: Any, table: LabelledTable, account: Account) -> FloatArray:
    """The covariance of a ratio's coefficients, from the rows that it was fitted on."""
    fitted, inclusion = classifier.training_index_, account.inclusion
    is_other = (table.y != classifier.certificate_.controlled_class).astype(int)
    try:
        # The report says where intervals may be too short.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnreliableIntervalWarning)
            # Where φ was learned, it was from these rows and more of the same class.
            return ratio_uncertainty(
                classifier.estimator_,
                account.X[fitted],
                is_other[fitted],
                inclusion=None if inclusion is None else inclusion[fitted],
                learned_on="same",
            ).covariance
    except ValueError as error:
        raise TableError(f"There are no standard errors: {error}") from error


def _findings(
    data: Mapping[str, Any], rows: LabelledRows
) -> tuple[list[str], dict[str, Any]]:
    """What becomes of the other class, or of each class or group: words and data."""
    errors, certificate = data["errors"], data["certificate"]
    if data["curve"] is None:
        findings = [entry["sentence"] for entry in errors]
        return findings, {"errors": errors, "findings": findings}
    power, controlled, other = errors[0]["found"], rows.controlled, rows.other

    def bare(share: float) -> str:
        """In percent, with a decimal near 0 and 100."""
        value = 100.0 * share
        whole = 1.0 <= value <= 99.0 or value == 0.0
        return f"{value:.0f}" if whole else f"{value:.3g}"

    bound = f"at most {100.0 * certificate['alpha']:.6g}% of {controlled!r} are called "
    bound += f"{other!r}"
    if not certificate["certified"]:
        finding = (
            f"Finds no {other!r}: no threshold could be certified, and every row is "
            f"called {controlled!r}."
        )
    elif power["estimate"] is None:
        finding = (
            f"Which share of {other!r} it finds can't be measured: none of its rows is "
            f"complete. But {bound}."
        )
    else:
        span = f"{bare(power['low'])}–{bare(power['high'])}%"
        found = f"Finds {bare(power['estimate'])}% of {other!r} ({span})"
        finding = f"{found} while {bound}."
    return [finding], {"power": power, "finding": finding}
