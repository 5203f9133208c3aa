"""From a table with several labels to a model that bounds the errors of some."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from missratio._files import TableFile, written_whole
from missratio.app.modelfile import (
    GroupedTableModel,
    MulticlassTableModel,
)
from missratio.app.report import LabelledRows, Origin, describe
from missratio.app.tables import LabelledTable, Wanted, find_label
from missratio.app.workflow._account import Account
from missratio.app.workflow._fit import (
    account_of,
    check_columns,
    digested,
    feature_names,
    model_of,
    told_of,
    training_of,
)
from missratio.app.workflow._methods import (
    METHODS,
    Situation,
    candidates,
    choose_method,
    said_of,
)
from missratio.app.workflow._options import FitOptions
from missratio.app.workflow._train import (
    Step,
    Trained,
    fit_classifier,
    settled,
    situation_of,
    unheard,
)
from missratio.classifier import (
    ClassSearch,
    MulticlassNeymanPearsonClassifier,
    PowerComparison,
)
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
    errors : list of dict
        What becomes of each class or group.
    warnings : list of Message
    """

    model: MulticlassTableModel | GroupedTableModel
    why: str
    account: Account
    errors: list[dict[str, Any]]
    warnings: list[Message] = field(default_factory=list)

    @property
    def findings(self) -> list[str]:
        """What becomes of each class or group, in sentences."""
        return [entry["sentence"] for entry in self.errors]


def fit_classes(
    table: LabelledTable,
    source: TableFile,
    wanted: Wanted,
    options: FitOptions,
    step: Step = unheard,
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
    with digested(table, source) as digest:
        with about_file(source.path):
            levels, order = _labels(table, wanted.target, options)
            check_columns(table)
        labels = list(table.counts)
        account = account_of(table, labels, source, wanted, options, step, None)
        situation = _situation(table, account, options)
        method, why = choose_method(options.method, situation, several=True)
        compares = options.method == "auto" and options.compare_seconds > 0.0
        if compares:
            estimator = _search(situation, sorted(labels), levels, order, options, step)
        else:
            step(f"Fitting {method} and calibrating")
            estimator = METHODS[method].make(situation)
        classifier = _classifier(estimator, levels, order, account, options)
        told = _fitted(classifier, table, account, source.path, trade_off)
        comparison = None
        if compares:
            comparison = _named(settled(classifier), classifier.classes_.tolist())
            method, why = comparison.chosen, said_of(comparison, _means(comparison))
        trained = Trained(classifier, method, why, comparison, told)
        step("Describing it for a report")
        training = training_of(table, source.path, digest)
        report = describe(
            LabelledRows.read(classifier, account.X, table.y),
            title=f"Predicting {wanted.target} in {source.path.name}",
            names=feature_names(table.encoder),
            comparison=comparison,
            origin=Origin(command, source.path.name, training.sha256),
        )
        model = model_of(MulticlassTableModel, table, wanted, trained, training, report)
        warnings = told_of(table, account, trained)
        return FittedSeveral(model, why, account, report.data["errors"], warnings)


def _search(
    situation: Situation,
    labels: list[Any],
    levels: dict[Any, float],
    order: list[Any] | None,
    options: FitOptions,
    step: Step,
) -> ClassSearch:
    """The comparison of the methods that deal with a table."""
    fitted = 1.0 - options.calibration_size - CHOICE_SIZE
    return ClassSearch(
        candidates(situation, ratios_only=False, several=True),
        alpha={labels.index(label): level for label, level in levels.items()},
        delta=options.delta,
        order=None if order is None else [labels.index(label) for label in order],
        certifying=options.calibration_size / max(fitted, 0.01),
        deployment="as-observed" if options.as_observed else "complete",
        seconds=options.compare_seconds,
        random_state=options.seed,
        on_candidate=lambda name: step(f"Comparing methods: {name}"),
    )


def _named(comparison: PowerComparison, labels: list[Any]) -> PowerComparison:
    """The same, with the table's labels for the classes."""
    names = tuple(str(labels[int(position)]) for position in comparison.compared)
    return replace(comparison, compared=names)


def _means(comparison: PowerComparison) -> str:
    """What the compared share is a share of."""
    names = [repr(name) for name in comparison.compared]
    if len(names) == 1:
        return names[0]
    return f"{', '.join(names[:-1])} and {names[-1]}, on average,"


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
    complete = min(
        rows - table.missing.incomplete[label] for label, rows in table.counts.items()
    )
    fitted = int((1.0 - options.calibration_size - CHOICE_SIZE) * complete)
    return situation_of(table.encoder, account, fitted, options)


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
