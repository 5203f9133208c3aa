"""A classifier for a table: by the method asked for, or by the best of several."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from missratio._base.blocks import rows_with_nan
from missratio._base.typing import FloatArray
from missratio._files import open_table
from missratio.app.tables import Encoder, LabelledTable
from missratio.app.workflow._account import Account
from missratio.app.workflow._classifiers import (
    make_classifier,
    make_grouped,
)
from missratio.app.workflow._methods import (
    METHODS,
    Situation,
    candidates,
    choose_method,
    said_of,
)
from missratio.app.workflow._options import FitOptions
from missratio.classifier import (
    ClassSearch,
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
from missratio.missingness.arrays import columns_named
from missratio.ratio import JointRatio, NaiveBayesRatio
from missratio.uncertainty import UnreliableIntervalWarning, ratio_uncertainty


class Step(Protocol):
    """Told what is done next, and of how many parts it is."""

    def __call__(self, what: str, total: int | None = None, /) -> None:
        """Begin another step."""


def unheard(what: str, total: int | None = None, /) -> None:
    """A step that nobody is told of."""


Tick = Callable[[int], None]


def no_tick(parts: int) -> None:
    """Parts of a step that nobody is told of."""


@dataclass(frozen=True, eq=False)
class Trained:
    """A calibrated classifier, and how its method was chosen.

    Parameters
    ----------
    classifier : NeymanPearsonClassifier or GroupedNeymanPearsonClassifier
    method : str
    why : str
        Why the method was taken.
    comparison : PowerComparison or None
        Where methods were compared.
    warnings : list of Message
    """

    classifier: Any
    method: str
    why: str
    comparison: PowerComparison | None
    warnings: list[Message]


def train(
    table: LabelledTable,
    controlled: Any,
    account: Account,
    file: Path,
    options: FitOptions,
    step: Step,
) -> Trained:
    """Fit and calibrate by the method asked for, or by the best of several.

    Parameters
    ----------
    table : LabelledTable
    controlled : object
        The label whose error is bounded.
    account : Account
        What is done about missing values.
    file : Path
        What the table was read from, for messages.
    options : FitOptions
    step : callable
        Told what is done next.
    """
    situation = _situation(table, controlled, account, options)
    method, why = choose_method(options.method, situation)
    estimator = METHODS[method].make(situation)
    compares = options.method == "auto" and options.compare_seconds > 0.0
    if compares:
        estimator = _search(situation, account.models, options, step)
    else:
        if options.standard_errors:
            _check_standard_errors(estimator, account.models, method)
        step(f"Fitting {method} and calibrating")
    classifier: Any
    if options.groups is None:
        classifier = make_classifier(estimator, controlled, account.models, options)
    else:
        classifier = make_grouped(estimator, controlled, account.models, options, table)
    told = fit_classifier(classifier, table, account, file, _target(table, options))
    if not compares:
        return Trained(classifier, method, why, None, told)
    comparison = settled(classifier)
    if comparison.ranked:
        other = next(label for label in table.counts if label != controlled)
        method, why = comparison.chosen, said_of(comparison, repr(other))
    elif comparison.note:
        why = f"{why}; methods are not compared, as {comparison.note}"
    return Trained(classifier, method, why, comparison, told)


def _check_standard_errors(
    estimator: Any, models: Mapping[Any, Missingness], method: str
) -> None:
    """Refuse what there will be no standard errors of, before it is fitted."""
    if not isinstance(estimator, JointRatio | NaiveBayesRatio):
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


def _search(
    situation: Situation,
    models: Mapping[Any, Missingness],
    options: FitOptions,
    step: Step,
) -> PowerSearch:
    """The comparison of the methods that deal with a table."""
    compared = candidates(situation, ratios_only=options.standard_errors)
    if options.standard_errors:
        compared = {
            name: each
            for name, each in compared.items()
            if not _moves_with_phi(each, models)
        }
    return PowerSearch(
        compared,
        alpha=options.alpha,
        deployment="as-observed" if options.as_observed else "complete",
        seconds=options.compare_seconds,
        random_state=options.seed,
        on_candidate=lambda name: step(f"Comparing methods: {name}"),
    )


def settled(classifier: Any) -> PowerComparison:
    """Put the winner in the search's place: both give the same scores.

    Parameters
    ----------
    classifier : classifier
        Fitted, its estimator a search.
    """
    alone = isinstance(classifier, NeymanPearsonClassifier)
    search = classifier.estimator_ if alone else classifier.scores_.estimators[0]
    classifier.estimator = search.candidates[search.comparison_.chosen]
    if alone:
        classifier.estimator_ = search.estimator_
    elif isinstance(search, ClassSearch):
        classifier.scores_ = search.scores_
    else:
        found = (search.estimator_,)
        classifier.scores_ = replace(classifier.scores_, estimators=found)
    comparison: PowerComparison = search.comparison_
    return comparison


def _target(table: LabelledTable, options: FitOptions) -> FloatArray | None:
    """Rows of another population, as numbers; None where none is asked for."""
    if options.target_table is None:
        return None
    source = open_table(options.target_table)
    source.check_header()
    encoder = table.encoder.with_marks(source.marks)
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


def fit_classifier(
    classifier: Any,
    table: LabelledTable,
    account: Account,
    file: Path,
    target: FloatArray | None = None,
) -> list[Message]:
    """Fit to a table, and what was warned of, with its names for the columns.

    Parameters
    ----------
    classifier : classifier
        For one bounded class, several, or groups; not fitted.
    table : LabelledTable
    account : Account
    file : Path
        What the table was read from, for messages.
    target : ndarray of shape (n_rows, n_columns), optional
        Rows of the population that the certificate is for, where that is another.
    """
    more: dict[str, Any] = {} if target is None else {"target": target}
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


def covariance_of(
    trained: Trained, table: LabelledTable, account: Account
) -> FloatArray:
    """The covariance of a ratio's coefficients, from the rows that it was fitted on."""
    classifier = trained.classifier
    ratio = classifier.estimator_
    fitted = classifier.training_index_
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


def _situation(
    table: LabelledTable, controlled: Any, account: Account, options: FitOptions
) -> Situation:
    complete = table.counts[controlled] - table.missing.incomplete[controlled]
    if account.inclusion is not None:
        whole = ~rows_with_nan(account.X)
        complete = int(np.count_nonzero(whole & (table.y == controlled)))
    fitted = int((1.0 - options.calibration_size) * complete)
    return situation_of(table.encoder, account, fitted, options)


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
