"""From a labelled table to a certified model: one way for every kind of promise.

Read labels, account for missing values, choose a method, fit and calibrate, describe
it for a report, and put the model together.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from threadpoolctl import threadpool_limits

from missratio._base.blocks import rows_with_nan
from missratio._base.hints import did_you_mean, listed
from missratio._base.reading import columns_named
from missratio._base.typing import FloatArray
from missratio._files import TableFile, open_table
from missratio._files.numbers import canonical
from missratio.app.modelfile import (
    TableModel,
    TrainingData,
)
from missratio.app.report import LabelledRows, Names, Origin, describe
from missratio.app.tables import (
    BLANK,
    Encoder,
    LabelledTable,
    Wanted,
    drop_option,
    find_label,
    refused,
    two_classes,
    varies,
)
from missratio.app.workflow.account import (
    Account,
    LearningSteps,
    PlanOptions,
    check_models,
    complete_account,
    lookup_account,
    observed_account,
    table_account,
    unexplained,
    written_account,
)
from missratio.app.workflow.methods import (
    METHODS,
    Situation,
    candidates,
    choose_method,
    said_of,
)
from missratio.app.workflow.options import LEARN, FitOptions
from missratio.app.workflow.phi_file import read_missingness
from missratio.classifier import (
    ClassSearch,
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
from missratio.ratio import LinearRatio
from missratio.uncertainty import UnreliableIntervalWarning, ratio_uncertainty

# Cells of a table below which boosted trees lose by several threads: these wait for
# each other busily, and on a machine with other work much longer than they work.
THREADED_TREES = 1_000_000
# The library's share of rows to choose offsets by, where several classes are bounded.
CHOICE_SIZE = 0.1
# Groups that a message lists.
SHOWN = 10


class Step(Protocol):
    """Told what is done next, and of how many parts it is."""

    def __call__(self, what: str, total: int | None = None, /) -> None:
        """Begin another step."""


@dataclass(frozen=True)
class Heard:
    """Who is told how far a fit is: what is done next, and how many parts are done."""

    step: Step = lambda _what, _total=None: None
    tick: Callable[[int], None] = lambda _parts: None


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
        The same in numbers: `power`, or `errors`.
    warnings : list of Message
    """

    model: TableModel
    why: str
    account: Account
    findings: list[str]
    measured: dict[str, Any]
    warnings: list[Message] = field(default_factory=list)


def fit_table(
    table: LabelledTable,
    source: TableFile,
    wanted: Wanted,
    options: FitOptions,
    heard: Heard = Heard(),  # noqa: B008
    command: str | None = None,
) -> FittedTable:
    """Fit and calibrate a classifier to a table.

    Parameters
    ----------
    table : LabelledTable
    source : TableFile
        The file that it was read from.
    wanted : Wanted
    options : FitOptions
    heard : Heard
    command : str, optional
        What the report says it was made by.
    """
    step, file = heard.step, source.path
    with _beside(table, source) as digest:
        with about_file(file):
            table, bounded, order = _labels(table, wanted.target, options)
            check_columns(table)
        account = account_of(table, bounded, source, wanted, options, heard)
        situation = _situation(table, bounded, account, options)
        several = options.several is not None
        method, why = choose_method(options.method, situation, several=several)
        estimator = METHODS[method].make(situation)
        compares = options.method == "auto" and options.compare_seconds > 0.0
        if compares:
            labels = sorted(table.counts)
            estimator = _search(
                situation, labels, bounded, order, account, options, step
            )
        else:
            if options.standard_errors:
                _check_standard_errors(estimator, account.models, method)
            step(f"Fitting {method} and calibrating")
        models = account.models
        classifier = make_classifier(estimator, bounded, order, models, options, table)
        told = _fitted(classifier, table, account, file, options)
        comparison = None
        if compares:
            comparison = _settled(classifier)
            method, why = _chosen(comparison, method, why, table, bounded)
        covariance = None
        if options.standard_errors:
            step("Estimating standard errors")
            covariance = _covariance(classifier, table, account)
        step("Describing it for a report")
        missing = {label: table.missing_counts(label) for label in table.counts}
        sha256, counts = digest.result(), dict(table.counts)
        training = TrainingData(file.name, sha256, counts, missing)
        rows = LabelledRows.read(
            classifier, account.X, table.y, account.inclusion,
            before=table.X, groups=table.groups,
        )  # fmt: skip
        notes = [Message.plain(note) for note in table.notes]
        return described(
            rows, table.encoder, wanted, training, (method, why), account, command,
            comparison=comparison, rest=table.rest, covariance=covariance,
            warnings=[*notes, *account.warnings, *told],
        )  # fmt: skip


def described(
    rows: LabelledRows,
    encoder: Encoder,
    wanted: Wanted,
    training: TrainingData,
    method: tuple[str, str],
    account: Account,
    command: str | None,
    *,
    comparison: PowerComparison | None = None,
    rest: tuple[str, ...] = (),
    covariance: FloatArray | None = None,
    warnings: list[Message],
) -> FittedTable:
    """The model of a fitted classifier, with its report and what it finds.

    Parameters
    ----------
    rows : LabelledRows
        With the classifier.
    encoder, wanted, training, command, comparison, rest, covariance
        What the model's file holds.
    method : tuple of str
        Its name, and why it was taken.
    account : Account
    warnings : list of Message
    """
    report = describe(
        rows,
        title=f"Predicting {wanted.target} in {training.file}",
        names=feature_names(encoder),
        comparison=comparison,
        origin=Origin(command, training.file, training.sha256),
        column=wanted.groups or "group",
    )
    data = report.data
    unused = [*wanted.drop, *([] if wanted.groups is None else [wanted.groups])]
    model = TableModel(
        rows.classifier, encoder, wanted.target, tuple(dict.fromkeys(unused)),
        method[0], training, report.json(), comparison, rest=rest,
        covariance=covariance, group_column=wanted.groups,
    )  # fmt: skip
    errors, curve = data["errors"] or data["groups"], data["curve"]
    if errors:
        findings, measured = [entry["sentence"] for entry in errors], {"errors": errors}
    else:
        own = curve["own"]
        power = {
            "estimate": curve["power"][own],
            "low": curve["power_low"][own],
            "high": curve["power_high"][own],
            "confidence": curve["confidence"],
            "rows": curve["power_rows"],
            "source": curve["source"],
        }
        found = _finding(power, data["certificate"], rows.controlled, rows.other)
        findings, measured = [found], {"power": power}
    return FittedTable(model, method[1], account, findings, measured, warnings)


def _finding(
    power: dict[str, Any], certificate: dict[str, Any], controlled: Any, other: Any
) -> str:
    """Which share of the other class is found, at the certified error."""
    bound = f"at most {100.0 * certificate['alpha']:.6g}% of {controlled!r} are called "
    bound += f"{other!r}"
    if not certificate["certified"]:
        return (
            f"Finds no {other!r}: no threshold could be certified, and every row is "
            f"called {controlled!r}."
        )
    if power["estimate"] is None:
        return (
            f"Which share of {other!r} it finds can't be measured: none of its rows is "
            f"complete. But {bound}."
        )

    def bare(share: float) -> str:
        """In percent, with a decimal near 0 and 100."""
        value = 100.0 * share
        whole = 1.0 <= value <= 99.0 or value == 0.0
        return f"{value:.0f}" if whole else f"{value:.3g}"

    span = f"{bare(power['low'])}–{bare(power['high'])}%"
    return f"Finds {bare(power['estimate'])}% of {other!r} ({span}) while {bound}."


@contextmanager
def _beside(table: LabelledTable, source: TableFile) -> Iterator[Future[str]]:
    """The digest of a table's file, made beside a fit; one thread for small trees."""
    # None leaves the number of threads as it is.
    threads = 1 if table.X.size < THREADED_TREES else None
    with (
        ThreadPoolExecutor(max_workers=1) as beside,
        threadpool_limits(threads, user_api="openmp"),
    ):
        yield beside.submit(source.file.sha256)


def _labels(
    table: LabelledTable, target: str, options: FitOptions
) -> tuple[LabelledTable, dict[Any, float], list[Any] | None]:
    """The rows to fit, the bounded classes with their levels, and their order."""
    several = options.several
    if several is None:
        assert options.controlled is not None
        table, label = two_classes(table, target, options.controlled, options.versus)
        return table, {label: options.alpha}, None
    levels: dict[Any, float] = {}
    for typed, level in several.levels.items():
        label = find_label(table, target, "--alpha", typed)
        if label in levels:
            raise TableError(f"--alpha names {label!r} twice.")
        levels[label] = level
    if several.order is None:
        return table, levels, None
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
    return table, levels, order


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
    bounded: Mapping[Any, float],
    source: TableFile,
    wanted: Wanted,
    options: FitOptions,
    heard: Heard,
) -> Account:
    """What is done about missing values, by what the options give.

    Parameters
    ----------
    table : LabelledTable
    bounded : mapping
        The bounded classes with their levels; look-ups are planned for one alone.
    source, wanted, options, heard
        As of `fit_table`.
    """
    file, labels = source.path, list(table.counts)
    given = options.phi_file is not None or options.queries is not None
    if not table.has_missing and not given:
        return complete_account(table.X)
    if options.as_observed:
        return observed_account(table.X)
    plan = None
    if options.several is None:
        plan = PlanOptions(
            next(iter(bounded)), alpha=options.alpha, delta=options.delta,
            seed=options.seed, calibration_size=options.calibration_size,
        )  # fmt: skip
    learns = options.missingness == LEARN
    with about_file(file):
        if options.queries is None and options.missingness is None:
            if plan is not None:
                heard.step("Trying out what look-ups would buy")
            raise unexplained(table, labels, file, wanted, plan)
    if options.queries is not None and plan is not None:
        heard.step("Reading what was looked up")
        numbers = source.line_numbers()
        return lookup_account(
            table,
            labels,
            plan,
            options.queries,
            learn=learns,
            lines=[numbers[row] for row in table.rows.tolist()],
        )
    if learns:
        with about_file(file):
            steps = LearningSteps(heard.step, heard.tick)
            return table_account(table, labels, steps)
    assert options.phi_file is not None
    models = read_missingness(options.phi_file, table.encoder, labels)
    with about_file(file):
        missing = {label: table.missing_counts(label) for label in labels}
        check_models(table.encoder, missing, models)
    return written_account(table.X, models, options.phi_file)


def _situation(
    table: LabelledTable,
    bounded: Mapping[Any, float],
    account: Account,
    options: FitOptions,
) -> Situation:
    share = 1.0 - options.calibration_size
    if options.several is not None:
        share -= CHOICE_SIZE
        bounded = dict.fromkeys(table.counts, 0.0)
    complete = min(
        table.counts[label] - table.missing.incomplete[label] for label in bounded
    )
    if account.inclusion is not None:
        whole = ~rows_with_nan(account.X)
        complete = int(np.count_nonzero(whole & (table.y == next(iter(bounded)))))
    return situation_of(table.encoder, account, int(share * complete), options)


def situation_of(
    encoder: Encoder, account: Account, complete_rows: int, options: FitOptions
) -> Situation:
    """What a method has to deal with, with so many complete rows to fit on."""
    missing = "nothing" if account.inclusion is None else "rows"
    if account.way == "as observed":
        missing = "ignored"
    elif account.models:
        whole_rows = all(model.rowwise for model in account.models.values())
        missing = "rows" if whole_rows else "values"
    numeric = encoder.n_numeric
    indicators = encoder.width - numeric
    return Situation(numeric, indicators, missing, complete_rows, options.seed)


def make_classifier(
    estimator: Any,
    bounded: Mapping[Any, float],
    order: Sequence[Any] | None,
    models: Mapping[Any, Missingness],
    options: FitOptions,
    table: LabelledTable | None = None,
) -> Any:
    """The classifier that the options ask for, not fitted.

    Parameters
    ----------
    estimator : estimator
    bounded : mapping
        The bounded classes with their levels.
    order : sequence, or None
        Of several classes, where they are ordered.
    models : mapping from label to Missingness
    options : FitOptions
    table : LabelledTable, optional
        With the groups that levels are named by.
    """
    common: dict[str, Any] = {
        "delta": options.delta,
        "missingness": dict(models) or None,
        "rule": options.rule,
        "deployment": "as-observed" if options.as_observed else "complete",
        "calibration_size": options.calibration_size,
        "random_state": options.seed,
        "odds_factor": options.odds_factor,
    }
    if options.several is not None:
        return MulticlassNeymanPearsonClassifier(
            estimator, alpha=dict(bounded), order=order, choice_size=CHOICE_SIZE,
            **common,
        )  # fmt: skip
    ((controlled, alpha),) = bounded.items()
    common |= {"alpha": alpha, "controlled_class": controlled}
    common["on_infeasible"] = options.on_infeasible
    if options.groups is None:
        return NeymanPearsonClassifier(estimator, **common)
    assert table is not None
    return GroupedNeymanPearsonClassifier(
        estimator,
        group_alpha=_group_levels(table, options) or None,
        threshold="shared" if options.groups.shared else "own",
        **common,
    )


def _group_levels(table: LabelledTable, options: FitOptions) -> dict[Any, float]:
    """The levels of groups that have one of their own, as the table has the groups."""
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
    return levels


def _search(
    situation: Situation,
    labels: list[Any],
    bounded: Mapping[Any, float],
    order: Sequence[Any] | None,
    account: Account,
    options: FitOptions,
    step: Step,
) -> PowerSearch | ClassSearch:
    """The comparison of the methods that deal with a table."""
    several = options.several is not None
    compared = candidates(
        situation, ratios_only=options.standard_errors, several=several
    )
    if options.standard_errors:
        compared = {
            name: each
            for name, each in compared.items()
            if not _moves_with_phi(each, account.models)
        }
    common: dict[str, Any] = {
        "deployment": "as-observed" if options.as_observed else "complete",
        "seconds": options.compare_seconds,
        "random_state": options.seed,
        "on_candidate": lambda name: step(f"Comparing methods: {name}"),
    }
    if not several:
        return PowerSearch(compared, alpha=options.alpha, **common)
    fitted = 1.0 - options.calibration_size - CHOICE_SIZE
    return ClassSearch(
        compared,
        alpha={labels.index(label): level for label, level in bounded.items()},
        delta=options.delta,
        order=None if order is None else [labels.index(label) for label in order],
        certifying=options.calibration_size / max(fitted, 0.01),
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
    elif isinstance(search, ClassSearch):
        classifier.scores_ = search.scores_
        labels = classifier.classes_.tolist()
        names = tuple(str(labels[int(place)]) for place in comparison.compared)
        comparison = replace(comparison, compared=names)
    else:
        found = (search.estimator_,)
        classifier.scores_ = replace(classifier.scores_, estimators=found)
    return comparison


def _chosen(
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
    return comparison.chosen, said_of(comparison, found)


def _check_standard_errors(
    estimator: Any, models: Mapping[Any, Missingness], method: str
) -> None:
    """Refuse what there will be no standard errors of, before it is fitted."""
    if not isinstance(estimator, LinearRatio):
        raise TableError(
            f"--standard-errors are for density ratios, and the method is {method}. "
            "Choose 'kliep', 'js', 'kliep-cv' or 'naive-bayes'."
        )
    if _moves_with_phi(estimator, models):
        raise TableError(
            f"--standard-errors and --method {method} don't go together where φ is "
            "learned: its means are adjusted by regression, and move with φ in ways "
            "that the formula doesn't have. Choose 'kliep' or 'naive-bayes', or leave "
            "out --standard-errors."
        )


def _moves_with_phi(estimator: Any, models: Mapping[Any, Missingness]) -> bool:
    """Whether means are adjusted by regression on weights of a learned φ."""
    learned = any(model.learned and not model.rowwise for model in models.values())
    return learned and getattr(estimator, "normalize", None) == "regression"


def _fitted(
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
    return worded(caught, names)


def worded(
    caught: list[warnings.WarningMessage], names: Sequence[str]
) -> list[Message]:
    """Warnings with the table's names for the columns."""
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
