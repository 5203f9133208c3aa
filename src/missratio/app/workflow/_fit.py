"""From a labelled table to a certified model."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from missratio._files import TableFile
from missratio._hints import did_you_mean, listed
from missratio._typing import FloatArray
from missratio.app.modelfile import TableModel, TrainingData
from missratio.app.report import LabelledRows, describe
from missratio.app.tables import LabelledTable, Wanted, varies
from missratio.app.workflow._explained import check_explained, find_missingness
from missratio.app.workflow._methods import METHODS, Situation, choose_method
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

IGNORE = "ignore"
# No table is long enough to certify a lower one.
LEAST_LEVEL = 1e-12
DEPLOYMENTS = ("complete", "as-observed")
INFEASIBLE = ("raise", "reject_all")
# Cells of a table below which boosted trees lose by several threads: these wait for
# each other busily, and on a machine with other work much longer than they work.
THREADED_TREES = 1_000_000
Step = Callable[[str], None]


@dataclass(frozen=True)
class FitOptions:
    """What is asked of a fit.

    Parameters
    ----------
    controlled : str
        The label whose error is bounded, as it is written in the file.
    alpha, delta : float
    missingness : str or None
        A file that says why values are missing, or "ignore".
    queries : Path or None
        A plan that was filled in, to learn it from.
    method : str
    deployment : {"complete", "as-observed"}
    calibration_size : float
    rule : str
    odds_factor : float
    on_infeasible : {"raise", "reject_all"}
    seed : int
    standard_errors : bool
        Whether the model is to give standard errors of its scores.
    """

    controlled: str
    alpha: float = 0.05
    delta: float = 0.05
    missingness: str | None = None
    queries: Path | None = None
    method: str = "auto"
    deployment: str = "complete"
    calibration_size: float = 0.5
    rule: str = "auto"
    odds_factor: float = 1.0
    on_infeasible: str = "raise"
    seed: int = 0
    standard_errors: bool = False

    @property
    def ignores(self) -> bool:
        """Whether missing values are left out of account."""
        return self.missingness == IGNORE

    @property
    def phi_file(self) -> Path | None:
        """The file that says why values are missing."""
        if self.missingness is None or self.ignores:
            return None
        return Path(self.missingness)

    @property
    def inputs(self) -> list[Path]:
        """The files that are read beside the table."""
        return [path for path in (self.phi_file, self.queries) if path is not None]

    @property
    def as_observed(self) -> bool:
        """Whether rows to be classified lose values as these did."""
        return self.ignores or self.deployment == "as-observed"

    def check(self) -> None:
        """Refuse what isn't among the choices, and what contradicts itself."""
        for option, value, choices in (
            ("--deployment", self.deployment, DEPLOYMENTS),
            ("--on-infeasible", self.on_infeasible, INFEASIBLE),
        ):
            if value not in choices:
                hint = did_you_mean(value, choices)
                raise ValueError(
                    f"{option} must be one of {listed(choices)}, got {value!r}.{hint}"
                )
        for option, number in (("--alpha", self.alpha), ("--delta", self.delta)):
            if not LEAST_LEVEL <= number < 1.0:
                raise ValueError(
                    f"{option} must lie between 0 and 1, and be {LEAST_LEVEL:g} or "
                    f"more: got {number}."
                )
        if not 0.0 < self.calibration_size < math.inf:
            raise ValueError(
                "--calibration-size must be a share between 0 and 1, or a number of "
                f"rows: got {self.calibration_size}."
            )
        if self.missingness is not None and self.queries is not None:
            raise ValueError(
                "--missingness and --queries both say why values are missing: give one."
            )
        told = self.missingness is not None or self.queries is not None
        if self.deployment == "as-observed" and told and not self.ignores:
            raise ValueError(
                "--deployment as-observed needs no model of missingness, and has no "
                "use for one: leave out --missingness and --queries."
            )


@dataclass
class FittedTable:
    """A model, and what there is to say about how it came to be.

    Parameters
    ----------
    model : TableModel
    why : str
        Why the method was taken.
    warnings : list of Message
    """

    model: TableModel
    why: str
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
    if options.queries is not None:
        step("Learning why values are missing")
    models = find_missingness(table, labels, options.phi_file, options.queries)
    if not options.as_observed:
        with about_file(file):
            check_explained(table, labels, models)
    situation = _situation(table, controlled, models, options)
    method, why = choose_method(options.method, situation)
    step(f"Fitting {method} and calibrating")
    classifier = _classifier(
        METHODS[method].make(situation), controlled, models, options
    )
    told = _fitted(classifier, table, file)
    missing = {label: table.missing_counts(label) for label in labels}
    training = TrainingData(file.name, digest.result(), dict(table.counts), missing)
    covariance = None
    if options.standard_errors:
        step("Estimating standard errors")
        covariance = _covariance(classifier, table, method)
    step("Describing it for a report")
    report = describe(
        LabelledRows.read(classifier, table.X, table.y),
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
    return FittedTable(model, why, [*notes, *told])


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
    classifier: NeymanPearsonClassifier, table: LabelledTable, file: Path
) -> list[Message]:
    """Fit to a table, and what was warned of, with its names for the columns."""
    names = table.encoder.encoded_names
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            classifier.fit(table.X, table.y)
        except (DataError, NoCertificateError) as error:
            raise error.named(names).about(file) from error
        except ValueError as error:
            raise TableError(str(error)) from error
    return [
        warning.message.named(names)
        if isinstance(warning, Explained)
        else Message.plain(str(warning))
        for warning in (each.message for each in caught)
    ]


def _covariance(
    classifier: NeymanPearsonClassifier, table: LabelledTable, method: str
) -> FloatArray:
    """The covariance of a ratio's coefficients, from the rows that it was fitted on."""
    ratio = classifier.estimator_
    if not isinstance(ratio, BaseRatio):
        raise TableError(
            f"--standard-errors are for density ratios, and the method is {method}. "
            "Choose 'kliep', 'kliep-cv' or 'naive-bayes'."
        )
    fitted = np.ones(len(table.y), dtype=bool)
    fitted[classifier.calibration_index_] = False
    is_other = (table.y != classifier.certificate_.controlled_class).astype(int)
    with warnings.catch_warnings():
        # The report says it, with the table's names.
        warnings.simplefilter("ignore", UnreliableIntervalWarning)
        try:
            # Where φ was learned, it was from these rows and more of the same class.
            known = ratio_uncertainty(
                ratio, table.X[fitted], is_other[fitted], learned_on="same"
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


def _situation(
    table: LabelledTable,
    controlled: Any,
    models: Mapping[Any, Missingness],
    options: FitOptions,
) -> Situation:
    complete = table.counts[controlled] - table.missing.incomplete[controlled]
    size = options.calibration_size
    share = 1.0 - size if size < 1 else 1.0 - size / table.counts[controlled]
    if options.as_observed:
        missing = "ignored" if table.has_missing else "nothing"
    elif not models:
        missing = "nothing"
    else:
        missing = "rows" if all(m.rowwise for m in models.values()) else "values"
    numeric = table.encoder.n_numeric
    return Situation(
        numeric,
        table.encoder.width - numeric,
        missing,
        int(share * complete),
        options.seed,
    )
