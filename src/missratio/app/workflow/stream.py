"""From Parquet files that are read in passes to a certified model."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow

from missratio._base.hints import did_you_mean, listed, shown
from missratio._files import kind_of
from missratio._files.numbers import canonical
from missratio.app.modelfile import TrainingData
from missratio.app.report import LabelledRows
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
from missratio.app.workflow.account import (
    Account,
    check_models,
    complete_account,
    named_counts,
    observed_account,
    written_account,
)
from missratio.app.workflow.fit import (
    FittedTable,
    Heard,
    described,
    make_classifier,
    situation_of,
    worded,
)
from missratio.app.workflow.methods import METHODS, choose_method
from missratio.app.workflow.options import FitOptions
from missratio.app.workflow.phi_file import read_missingness
from missratio.exceptions import DataError, Message, NoCertificateError, TableError
from missratio.missingness import Missingness
from missratio.rows import of_files

# Bytes that a cell takes where a table is read whole: as in the file, as a number,
# and in the copies that a fit makes.
CELL_BYTES = 32
# Of the memory that is free, a table read whole may take this share.
SHARE = 0.5


def is_large(path: Path) -> bool:
    """Whether a Parquet file, or a folder of them, is to be read in passes."""
    if path.is_dir():
        return True
    if not path.is_file() or kind_of(path) != "parquet":
        return False
    from pyarrow import ArrowException, parquet

    try:
        meta = parquet.read_metadata(path)
    except (ArrowException, OSError):
        # Whoever reads it says what is wrong.
        return False
    size = meta.num_rows * meta.num_columns * CELL_BYTES
    free = free_memory()
    return free is not None and size > SHARE * free


def free_memory() -> int | None:
    """Bytes that a process may still take; None where that can't be told."""
    found = [value for value in (_of_machine(), _of_group()) if value is not None]
    return min(found, default=None)


def _of_machine() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        line = next(line for line in lines if line.startswith("MemAvailable:"))
        return int(line.split()[1]) * 1024
    except (OSError, StopIteration, ValueError):
        return None


def _of_group(folder: Path = Path("/sys/fs/cgroup")) -> int | None:
    """What a container's limit leaves."""
    try:
        limit = int((folder / "memory.max").read_text(encoding="ascii"))
        return max(limit - int((folder / "memory.current").read_text("ascii")), 0)
    except (OSError, ValueError):
        return None


# Methods whose fits are sums over rows.
STREAMED = ("kliep", "js", "naive-bayes")
# Rows of each class that take no part in the fit, to measure it on; a share at most.
SPARED_ROWS, SPARED_SHARE = 20_000, 0.1


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
    path: Path, wanted: Wanted, options: FitOptions, heard: Heard
) -> StreamedTable:
    """Read Parquet files once: columns, categories, labels and what is missing.

    Parameters
    ----------
    path : Path
        A file, or a folder of them.
    wanted : Wanted
    options : FitOptions
    heard : Heard
    """
    _check_options(options)
    groups, schema = row_groups(path)
    asked = wanted.found_in(_Schema(path, schema.names))
    heard.step(f"First pass over {path}", len(groups))
    survey = survey_columns(path, groups, schema, asked, lambda: heard.tick(1))
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
        lambda total: heard.step(f"Pass {next(numbers)} of the fit", total),
        lambda: heard.tick(1),
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
    wanted: Wanted,
    options: FitOptions,
    heard: Heard,
    client: Any = None,
    command: str | None = None,
) -> FittedTable:
    """Fit and calibrate a classifier in passes over files.

    Parameters
    ----------
    table : StreamedTable
    wanted : Wanted
    options : FitOptions
    heard : Heard
    client : distributed.Client, optional
        Of a cluster whose workers read the files themselves.
    command : str, optional
        What was typed, for the report.
    """
    account = _account(table, options)
    complete = table.counts[table.controlled] - table.incomplete[table.controlled]
    situation = situation_of(table.encoder, account, complete // 2, options)
    method, why = choose_method(options.method, situation)
    if options.method == "auto":
        method = method if method in STREAMED else "js"
        why += "; rows are read in passes, so that no others were compared"
    estimator, bounded = (
        METHODS[method].make(situation),
        {table.controlled: options.alpha},
    )
    classifier = make_classifier(estimator, bounded, None, account.models, options)
    source: Any = table.source
    names = table.encoder.encoded_names
    if client is not None:
        heard.step("Fitting on the cluster")
        source = of_files(table.source, client)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            classifier.fit(source)
        except (DataError, NoCertificateError) as error:
            raise error.named(names).about(table.path) from error
        except (ValueError, OSError) as error:
            raise TableError(f"{table.path}: {error}") from error
    heard.step("Describing it for a report")
    X, y = replace(table.source, on_pass=None, on_group=None).drawn()
    missing = {label: table.missing[label] for label in table.counts}
    counts = dict(table.counts)
    training = TrainingData(table.path.name, _digest(table), counts, missing)
    if hasattr(classifier, "feature_names_in_"):
        X = pyarrow.table({name: X[:, j] for j, name in enumerate(names)})
    return described(
        LabelledRows.read(classifier, X, y),
        table.encoder, replace(wanted, drop=list(table.dropped)), training,
        (method, why), account, command, rest=table.rest, sampled=True,
        warnings=[*map(Message.plain, table.notes), *worded(caught, names)],
    )  # fmt: skip


def _check_options(options: FitOptions) -> None:
    """Refuse what needs all rows in memory."""
    for option in options.given("queries", "learn", "standard_errors", "target_table",
                                "query_budget"):  # fmt: skip
        raise TableError(
            f"{option} needs all rows in memory, and these are read in passes "
            "(--stream). Leave it out, or take a sample of the rows."
        )
    if options.method in METHODS and options.method not in STREAMED:
        raise TableError(
            f"--method {options.method} needs all rows in memory, and these are read "
            f"in passes (--stream). Choose one of {listed(STREAMED)}."
        )


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
