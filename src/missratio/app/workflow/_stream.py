"""From Parquet files that are read in passes to a certified model."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from missratio._base.hints import did_you_mean, listed, shown
from missratio._files.numbers import canonical
from missratio.app.modelfile import TableModel, TrainingData
from missratio.app.report import LabelledRows, Origin, Report, describe
from missratio.app.tables import (
    REST,
    EncodedSource,
    Encoder,
    Spared,
    Survey,
    Wanted,
    label_values,
    row_groups,
    survey_columns,
)
from missratio.app.workflow._account import (
    Account,
    check_models,
    complete_account,
    named_counts,
    observed_account,
    written_account,
)
from missratio.app.workflow._classifiers import make_classifier
from missratio.app.workflow._finding import Finding
from missratio.app.workflow._fit import FittedTable, feature_names
from missratio.app.workflow._methods import METHODS, Situation, choose_method
from missratio.app.workflow._options import FitOptions
from missratio.app.workflow._phi_file import read_missingness
from missratio.app.workflow._train import situation_of, worded
from missratio.classifier import NeymanPearsonClassifier
from missratio.exceptions import DataError, Message, NoCertificateError, TableError
from missratio.missingness import Missingness
from missratio.rows import of_files

# Methods whose fits are sums over rows.
STREAMED = ("kliep", "js", "naive-bayes")
# Rows of each class that take no part in the fit, to measure it on; a share at most.
SPARED_ROWS, SPARED_SHARE = 20_000, 0.1


@dataclass(frozen=True)
class Passes:
    """Who is told how far passes are.

    Parameters
    ----------
    step : callable
        Told what is done next, and of how many parts it is.
    tick : callable
        Told that so many parts are done.
    """

    step: Callable[[str, int | None], None] = lambda _what, _total: None
    tick: Callable[[int], None] = lambda _parts: None


@dataclass
class _Schema:
    path: Path
    names: Sequence[str]


@dataclass(frozen=True, eq=False)
class StreamedTable:
    """Two classes of large Parquet files, after the first pass.

    Parameters
    ----------
    path : Path
    source : EncodedSource
    counts, incomplete : dict from label to int
        Rows of each class, and those that miss a cell.
    missing : dict from label to dict
        Missing cells of each class and column.
    controlled, other : object
        The two labels.
    rest : tuple of str
        Labels that are taken together as the other.
    dropped : tuple of str
        Columns that are left out.
    notes : list of str
    """

    path: Path
    source: EncodedSource
    counts: dict[Any, int]
    incomplete: dict[Any, int]
    missing: dict[Any, dict[str, int]]
    controlled: Any
    other: Any
    rest: tuple[str, ...]
    dropped: tuple[str, ...]
    notes: list[str]

    @property
    def encoder(self) -> Encoder:
        """The columns."""
        return self.source.encoder


def read_streamed(
    path: Path, wanted: Wanted, options: FitOptions, passes: Passes
) -> StreamedTable:
    """Read Parquet files once: columns, categories, labels and what is missing.

    Parameters
    ----------
    path : Path
        A file, or a folder of them.
    wanted : Wanted
    options : FitOptions
    passes : Passes
    """
    _check_options(options)
    groups, schema = row_groups(path)
    asked = wanted.found_in(_Schema(path, schema.names))
    passes.step(f"First pass over {path}", len(groups))
    survey = survey_columns(path, groups, schema, asked, lambda: passes.tick(1))
    if survey.n_unlabelled and not asked.skip_unlabelled:
        raise TableError(
            f"{path}: {survey.n_unlabelled} row(s) have no label in {asked.target!r}. "
            "Leave rows without a label out (--skip-unlabelled): they say nothing "
            "about the classes."
        )
    meaning, rest = _meaning(survey, path, asked.target, options)
    controlled, other = dict.fromkeys(meaning.values())
    counts = {
        label: sum(survey.counts[text] for text, own in meaning.items() if own == label)
        for label in sorted((controlled, other))
    }
    numbers = iter(range(1, 10**6))
    source = EncodedSource(
        groups, survey.encoder, asked.target, meaning,
        sum(group.rows for group in groups),
        Spared(options.seed, {label: min(SPARED_SHARE, SPARED_ROWS / count)
                              for label, count in counts.items()}),
        lambda total: passes.step(f"Pass {next(numbers)} of the fit", total),
        lambda: passes.tick(1),
    )  # fmt: skip
    notes = list(survey.notes)
    if survey.n_unlabelled:
        notes.append(f"{survey.n_unlabelled} row(s) without a label were left out.")
    by_label: dict[Any, dict[str, int]] = {}
    incomplete = dict.fromkeys(counts, 0)
    for text, label in meaning.items():
        own = by_label.setdefault(label, {})
        incomplete[label] += survey.incomplete[text]
        for name, count in survey.missing[text].items():
            own[name] = own.get(name, 0) + count
    return StreamedTable(
        path, source, counts, incomplete, by_label, controlled, other, rest,
        tuple(asked.drop), notes,
    )  # fmt: skip


def _meaning(
    survey: Survey, path: Path, target: str, options: FitOptions
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """What each label stands for, the controlled one first, and what is the rest."""
    values = label_values(sorted(survey.counts))
    by_name = {canonical(text): text for text in values}
    few = ", ".join(f"{shown(text)} ({survey.counts[text]} rows)" for text in values)

    def find(option: str, typed: str) -> str:
        if canonical(typed) not in by_name:
            hint = did_you_mean(typed, values)
            raise TableError(
                f"{path}: {option} {typed!r} is not a label in {target!r}.{hint} There "
                f"are {few}."
            )
        return by_name[canonical(typed)]

    assert options.controlled is not None
    own = find("--controlled", options.controlled)
    others = [text for text in values if text != own]
    if options.versus == REST and REST not in values and others:
        return {own: own, **dict.fromkeys(others, REST)}, tuple(others)
    if options.versus is not None:
        others = [find("--versus", options.versus)]
    if len(others) != 1 or others == [own]:
        raise TableError(
            f"{path}: the target {target!r} must have two labels: got {few}. Take "
            "all others as one class (--versus rest), or keep one of them (--versus "
            "LABEL)."
        )
    return {own: values[own], others[0]: values[others[0]]}, ()


def fit_streamed(
    table: StreamedTable,
    options: FitOptions,
    passes: Passes,
    client: Any = None,
    command: str | None = None,
) -> FittedTable:
    """Fit and calibrate a classifier in passes over files.

    Parameters
    ----------
    table : StreamedTable
    options : FitOptions
    passes : Passes
    client : distributed.Client, optional
        Of a cluster whose workers read the files themselves.
    command : str, optional
        What was typed, for the report.
    """
    account = _account(table, options)
    complete = table.counts[table.controlled] - table.incomplete[table.controlled]
    situation = situation_of(table.encoder, account, complete // 2, options)
    method, why = _method(options, situation)
    classifier = make_classifier(
        METHODS[method].make(situation),
        table.controlled,
        account.models,
        options,
    )
    told = _fitted(classifier, table, passes, client)
    passes.step("Describing it for a report", None)
    model = _model(classifier, table, method)
    report = _report(model, table, command)
    return FittedTable(
        replace(model, report=report.json()),
        why,
        account,
        Finding.of(report.data, table.controlled, table.other),
        None,
        [*map(Message.plain, table.notes), *told],
    )


def _fitted(
    classifier: NeymanPearsonClassifier,
    table: StreamedTable,
    passes: Passes,
    client: Any,
) -> list[Message]:
    """Fit in passes, here or on a cluster, and what was warned of."""
    source: Any = table.source
    names = table.encoder.encoded_names
    if client is not None:
        passes.step("Fitting on the cluster", None)
        source = of_files(table.source, client)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            classifier.fit(source)
        except (DataError, NoCertificateError) as error:
            raise error.named(names).about(table.path) from error
        except (ValueError, OSError) as error:
            raise TableError(f"{table.path}: {error}") from error
    return worded(caught, names)


def _model(
    classifier: NeymanPearsonClassifier, table: StreamedTable, method: str
) -> TableModel:
    """The model, without a report."""
    training = TrainingData(
        table.path.name, _digest(table), dict(table.counts),
        {label: table.missing[label] for label in table.counts},
    )  # fmt: skip
    return TableModel(
        classifier, table.encoder, table.source.target, table.dropped, method, training,
        rest=table.rest,
    )  # fmt: skip


def _report(model: TableModel, table: StreamedTable, command: str | None) -> Report:
    """A report on rows that took no part in the fit."""
    X, y = replace(table.source, on_pass=None, on_group=None).drawn()
    rows = LabelledRows.read(model.classifier, model.named(X), y)
    return describe(
        rows,
        rows,
        title=f"Predicting {model.target} in {table.path.name}",
        names=feature_names(table.encoder),
        origin=Origin(command, table.path.name, model.training.sha256),
        sampled=True,
    )


def _check_options(options: FitOptions) -> None:
    """Refuse what needs all rows in memory."""
    for given, option in (
        (options.queries is not None, "--queries"),
        (options.missingness == "learn", "--missingness learn"),
        (options.standard_errors, "--standard-errors"),
        (options.target_table is not None, "--target-table"),
        (options.query_budget is not None, "--query-budget"),
    ):
        if given:
            raise TableError(
                f"{option} needs all rows in memory, and these are read in passes "
                "(--stream). Leave it out, or take a sample of the rows."
            )
    if options.method in METHODS and options.method not in STREAMED:
        raise TableError(
            f"--method {options.method} needs all rows in memory, and these are read "
            f"in passes (--stream). Choose one of {listed(STREAMED)}."
        )


def _method(options: FitOptions, situation: Situation) -> tuple[str, str]:
    method, why = choose_method(options.method, situation)
    if options.method != "auto":
        return method, why
    method = method if method in STREAMED else "js"
    return method, f"{why}; rows are read in passes, so that no others were compared"


def _account(table: StreamedTable, options: FitOptions) -> Account:
    """What is done about missing values, without a table in memory."""
    X = np.empty((0, table.encoder.width))
    lossy = [label for label in table.counts if table.missing[label]]
    if not lossy:
        return complete_account(X)
    if options.as_observed:
        return observed_account(X)
    models: dict[Any, Missingness] = {}
    if options.phi_file is not None:
        models = read_missingness(options.phi_file, table.encoder, list(table.counts))
    unsaid = [label for label in lossy if label not in models]
    if unsaid:
        raise TableError(
            f"{table.path}: class {unsaid[0]!r} has missing values in "
            f"{named_counts(table.missing[unsaid[0]])}, and nothing says why. Write it "
            "down (--missingness FILE), or leave values missing (--missingness "
            "ignore)."
        )
    check_models(table.encoder, table.missing, models)
    assert options.phi_file is not None
    return written_account(X, models, options.phi_file)


def _digest(table: StreamedTable) -> str:
    """The digest of the file's content; of several files, that of their digests."""
    paths = list(dict.fromkeys(group.file.path for group in table.source.groups))
    digests = []
    for path in paths:
        with Path(path).open("rb") as stream:
            digests.append(hashlib.file_digest(stream, "sha256").hexdigest())
    if len(digests) == 1:
        return digests[0]
    return hashlib.sha256("".join(digests).encode()).hexdigest()
