"""From a labelled table to a certified model: one way for every kind of promise.

Read the table, account for missing values, choose a method, fit and calibrate, describe
it for a report, and put the model together.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
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
from missratio.app.options import FitOptions, Listener
from missratio.app.report import LabelledRows, Names, describe
from missratio.app.tables.columns import BLANK, Encoder, drop_option, refuse_columns
from missratio.app.tables.labelled import (
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

# Cells of a table below which boosted trees lose by several threads: these wait for
# each other busily, and on a machine with other work much longer than they work.
THREADED_TREES = 1_000_000
# The library's share of rows to choose offsets by, where several classes are bounded.
CHOICE_SIZE = 0.1
# Rows of each class to compare methods on where missing values are drawn.
IMPUTED_ROWS = 2_000
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
    fit = _Fit(options, progress)
    table, file = fit.table, fit.source.path.name
    # None leaves the number of threads as it is.
    threads = 1 if table.X.size < THREADED_TREES else None
    with threadpool_limits(threads, user_api="openmp"):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            account = fit.account_for_missing()
            classifier, method, why, comparison = fit.learn(account, caught)
        progress.step("Describing it for a report")
        digest = fit.source.file.sha256()
        training = TrainingData(file, digest, dict(table.counts), table.missing)
        rows = LabelledRows.read(
            classifier, account.X, table.y, account.inclusion,
            before=table.X, groups=table.groups,
        )  # fmt: skip
        report = describe(
            rows,
            title=f"Predicting {options.target} in {file}",
            names=_names(table.encoder),
            comparison=comparison,
            origin={"command": command, "file": file, "sha256": digest},
            column=options.groups or "group",
        )
    model = TableModel(
        classifier, table.encoder, options.target,
        tuple(dict.fromkeys(table.wanted.not_features[1:])), method, training,
        report.json(), comparison, rest=table.rest, group_column=options.groups,
    )  # fmt: skip
    findings, measured = _findings(report.data, rows)
    said = [*map(Message.plain, table.notes), *fit.messages(caught)]
    return FittedTable(model, why, account, findings, measured, said)


class _Fit:
    """The rows to fit, the bounded classes with their levels, and their order.

    Parameters
    ----------
    options : FitOptions
    progress : Listener
    """

    def __init__(self, options: FitOptions, progress: Listener) -> None:
        self.options, self.progress = options, progress
        progress.step(f"Reading {options.data}")
        self.source = open_table(options.data, **options.how)
        wanted = Wanted(
            options.target, options.drop, options.categorical, options.missing_value,
            options.as_observed, options.skip_unlabelled, options.groups,
        )  # fmt: skip
        self.table = read_labelled(self.source, wanted)
        self.bounded: dict[Any, float] = {}
        self.order: list[Any] | None = None
        with about_file(self.source.path):
            self._find_classes()
        varies = np.fmin.reduce(self.table.X) < np.fmax.reduce(self.table.X)
        names = self.table.encoder.names[: self.table.encoder.n_numeric]
        refuse_columns(
            {
                name: f"column {name!r} has one value only, in every row: nothing can "
                f"be learned from it. Leave it out ({drop_option(name)})."
                for name, differs in zip(names, varies, strict=False)
                if not differs
            },
            self.source.path,
        )

    def _find_classes(self) -> None:
        """Two classes, or several with their order, as options name them."""
        options = self.options
        if not options.several:
            ((typed, level),) = options.levels.items()
            self.table, label = two_classes(self.table, typed, options.versus)
            self.bounded[label] = level
            return
        for typed, level in options.levels.items():
            label = find_label(self.table, "--alpha", typed)
            if label in self.bounded:
                raise TableError(f"--alpha names {label!r} twice.")
            self.bounded[label] = level
        if options.order is None:
            return
        labels = list(self.table.counts)
        order = [find_label(self.table, "--ordered", typed) for typed in options.order]
        if sorted(map(str, order)) != sorted(map(str, labels)):
            raise TableError(
                "--ordered lists each label once, the most severe first: got "
                f"{order}, and there are {labels}."
            )
        if set(self.bounded) != set(order[:-1]):
            raise TableError(
                "With --ordered each label but the last has a bound, "
                + ", ".join(f"--alpha {label}=SHARE" for label in order[:-1])
                + f": got {list(self.bounded)}."
            )
        self.order = order

    def account_for_missing(self) -> Account:
        """What is done about missing values."""
        return account_of(
            self.table, self.bounded, self.source, self.options, self.progress
        )

    def learn(
        self, account: Account, caught: list[Any]
    ) -> tuple[Any, str, str, PowerComparison | None]:
        """The fitted classifier, its method, why that, and what it was compared with.

        Parameters
        ----------
        account : Account
        caught : list of warnings.WarningMessage
            What was warned of so far.
        """
        options, table = self.options, self.table
        situation = self._situation(account)
        method, why = choose_method(options.method, situation, options.several)
        compares = options.method == "auto" and options.compare_seconds > 0.0
        if compares:
            classifier = self._classifier(self._search(situation, account), account)
        else:
            self.progress.step(f"Fitting {method} and calibrating")
            classifier = self._classifier(METHODS[method].make(situation), account)
        more: dict[str, Any] = {}
        if options.target_table is not None:
            more["target"] = _target(table.encoder, options.target_table)
        if table.groups is not None:
            more["groups"] = table.groups
        names = table.encoder.encoded_names
        try:
            with columns_named(names):
                classifier.fit(account.X, table.y, inclusion=account.inclusion, **more)
        except (DataError, NoCertificateError) as error:
            raise error.named(names).about(self.source.path) from error
        except ValueError as error:
            if isinstance(error, Explained):
                raise TableError(error.message) from error
            doubts = "".join(f" {message}" for message in self.messages(caught))
            raise TableError(f"{error}{doubts}") from error
        if not compares:
            return classifier, method, why, None
        comparison = _settled(classifier)
        others = [label for label in table.counts if label not in self.bounded]
        method, why = reason_of(comparison, others, method, why)
        return classifier, method, why, comparison

    def messages(self, caught: list[Any]) -> list[Message]:
        """What was warned of, with the table's names for the columns."""
        names = self.table.encoder.encoded_names
        return [
            warning.message.named(names)
            if isinstance(warning, Explained)
            else Message.plain(str(warning))
            for warning in (each.message for each in caught)
        ]

    def _situation(self, account: Account) -> Situation:
        """What a method has to deal with, and how many rows it is fitted on."""
        table, options, missing = self.table, self.options, "nothing"
        labels = table.counts if options.several else self.bounded
        complete = min(map(table.n_complete, labels))
        if account.inclusion is not None:
            whole = ~rows_with_nan(account.X) & (table.y == next(iter(self.bounded)))
            complete, missing = int(np.count_nonzero(whole)), "rows"
        if account.deployment == "as-observed" and len(table.incomplete):
            missing = "ignored"
        elif account.models:
            whole_rows = all(model.rowwise for model in account.models.values())
            missing = "rows" if whole_rows else "values"
        share = 1.0 - options.calibration_size - CHOICE_SIZE * options.several
        numeric = table.encoder.n_numeric
        return Situation(
            numeric, table.encoder.width - numeric, missing, int(share * complete),
            options.seed, fitted_rows=max(1, int(share * len(table.y))),
        )  # fmt: skip

    def _search(self, situation: Situation, account: Account) -> PowerSearch:
        """The comparison of the methods that deal with a table."""
        options = self.options
        bounds: dict[str, Any] = {"alpha": next(iter(self.bounded.values()))}
        if options.several:
            places = {label: k for k, label in enumerate(sorted(self.table.counts))}
            fitted = 1.0 - options.calibration_size - CHOICE_SIZE
            bounds = {
                "alpha": {places[label]: a for label, a in self.bounded.items()},
                "delta": options.delta,
                "order": self.order and [places[label] for label in self.order],
                "certifying": options.calibration_size / max(fitted, 0.01),
            }
        return PowerSearch(
            candidates(situation, options.several),
            **bounds,
            deployment=account.deployment,
            seconds=options.compare_seconds,
            most_rows=IMPUTED_ROWS if situation.missing == "values" else 5_000,
            random_state=options.seed,
            on_candidate=lambda n: self.progress.step(f"Comparing methods: {n}"),
        )

    def _classifier(self, estimator: Any, account: Account) -> Any:
        """The classifier that the options ask for, not fitted."""
        options, groups = self.options, self.table.groups
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
                estimator, alpha=dict(self.bounded), order=self.order,
                choice_size=CHOICE_SIZE, **common,
            )  # fmt: skip
        ((controlled, alpha),) = self.bounded.items()
        common |= {"alpha": alpha, "controlled_class": controlled}
        common["on_infeasible"] = options.on_infeasible
        if groups is None:
            return NeymanPearsonClassifier(estimator, **common)
        known = {canonical(group): group for group in groups.tolist()}
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


def _names(encoder: Encoder) -> Names:
    """What the columns of the matrix are called, and those of the table."""
    features, origins, blank = [], [], []
    for column in encoder.columns:
        features += column.encoded_names
        origins += [column.name] * column.width
        levels = column.levels or ("", "number")
        blank += [level == BLANK for level in levels[1:]]
    return Names(features, origins, frozenset(np.flatnonzero(blank).tolist()))


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
