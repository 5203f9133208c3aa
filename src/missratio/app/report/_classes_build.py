"""From a fitted classifier of several classes and its rows to a report."""

from __future__ import annotations

from dataclasses import asdict
from importlib.metadata import version
from typing import Any

import numpy as np

from missratio.app.report._cautions import on_band, on_weights
from missratio.app.report._classes_words import (
    error_data,
    promise_data,
    several_words,
)
from missratio.app.report._columns import Names
from missratio.app.report._confusion import SOURCES, Confusion, confusion
from missratio.app.report._missing import missing_values
from missratio.app.report._origin import Origin, estimator_name
from missratio.app.report._plain import plain
from missratio.app.report._report import FORMAT, SEVERAL_CLASSES, Report
from missratio.app.report._rows import LabelledRows
from missratio.app.report._scored import unscored
from missratio.app.report._sizes import weights_by_class
from missratio.app.report._words import percent
from missratio.classifier import PowerComparison

# Refits use at most so many rows of each class.
MOST_ROWS = 20_000
# Pairs of bounded classes that are drawn, the tightest first.
MOST_PAIRS = 3
# Levels that could hardly be less leave little room.
LITTLE_ROOM = 0.8
MUCH_UNSCORED = 0.1


def describe_classes(
    rows: LabelledRows,
    test: LabelledRows | None = None,
    *,
    title: str | None,
    names: Names,
    folds: int = 5,
    confidence: float = 0.95,
    comparison: PowerComparison | None = None,
    origin: Origin | None = None,
) -> Report:
    """What a classifier of several classes guarantees, and what that rests on.

    Parameters
    ----------
    rows : LabelledRows
        Those that its classifier was fitted with.
    test : LabelledRows, optional
    title : str or None
    names : Names
        Of the features and of their columns.
    folds : int, default=5
    confidence : float, default=0.95
    comparison, origin : optional
        The methods that were compared; the command and file that the rows came by.
    """
    classifier = rows.classifier
    certificate = classifier.certificate_
    rng = np.random.default_rng(0)
    few = rows.sampled(MOST_ROWS, rng)
    measured = confusion(few, test, folds, rng)
    errors = _errors(rows, measured, confidence)
    data: dict[str, Any] = {
        "format": FORMAT,
        "kind": SEVERAL_CLASSES,
        "title": title or "Certified classifier",
        "model": _model(rows),
        "origin": (origin or Origin()).described(classifier),
        "certificate": certificate.to_dict(),
        "words": several_words(certificate),
        "promises": [
            promise_data(certificate, each, entry["error"])
            for each, entry in zip(certificate.certificates, errors, strict=False)
        ],
        "errors": errors,
        "confusion": {
            "labels": rows.labels,
            "shares": measured.shares(),
            "source": measured.source,
            "source_words": SOURCES[measured.source],
        },
        "trade_offs": [_trade_off(t) for t in classifier.trade_offs_[:MOST_PAIRS]],
        "unscored": unscored(few),
        "missingness": missing_values(rows, few, names),
        "weights": weights_by_class(rows),
        "comparison": None if comparison is None else asdict(comparison),
    }  # fmt: skip
    data["cautions"] = _cautions(rows, data)
    return Report(plain(data))


def _model(rows: LabelledRows) -> dict[str, Any]:
    classifier = rows.classifier
    return {
        "version": version("missratio"),
        "estimator": estimator_name(classifier.scores_.estimators[0]),
        "features": classifier.n_features_in_,
        "bounded": rows.bounded,
        "rows": len(rows.y),
        "classes": [
            {"label": label, "rows": len(rows.index(label))} for label in rows.labels
        ],
        "fallback": classifier.certificate_.fallback,
        "deployment": classifier.deployment,
    }


def _errors(
    rows: LabelledRows, measured: Confusion, confidence: float
) -> list[dict[str, Any]]:
    """What becomes of each class."""
    certificate = rows.classifier.certificate_
    wrong = {e.controlled_class: list(e.other_class) for e in certificate.certificates}
    found = []
    for label in rows.labels:
        others = [each for each in rows.labels if each != label]
        error = measured.share(label, wrong.get(label, others), confidence)
        right = measured.share(label, [label], confidence)
        found.append(error_data(certificate, label, error, right))
    return found


def _trade_off(trade: Any) -> dict[str, Any]:
    return {
        "labels": trade.labels,
        "levels": trade.levels,
        "errors": trade.errors,
        "certifiable": trade.certifiable,
        "has_room": trade.has_room,
        "factor": trade.least_factor,
        "sentence": _room_words(trade),
    }


def _room_words(trade: Any) -> str:
    (a, b), (level_a, level_b) = trade.labels, trade.levels
    if not trade.has_room:
        # The rows that certify had it, or there would be no report.
        return f"By this estimate alone, {trade.sentence} The certificate was reached."
    text = f"There is room for {percent(level_a)} of {a!r} and {percent(level_b)} of "
    text += f"{b!r} to be wrong"
    least = [trade.least_factor * level for level in trade.levels]
    if trade.least_factor < 1.0:
        text += f", and by this estimate down to {percent(least[0], 2)} and "
        text += percent(least[1], 2)
    return f"{text}."


def _cautions(rows: LabelledRows, data: dict[str, Any]) -> list[dict[str, str]]:
    """What a reader should know before relying on the numbers."""
    found = [
        *on_weights(data["weights"]),
        *on_band(data["missingness"]["profiles"]),
    ]
    for trade in data["trade_offs"]:
        if trade["factor"] > LITTLE_ROOM:
            a, b = trade["labels"]
            found.append(
                (
                    f"{a} and {b} leave each other little room",
                    "Rows of either are hard to tell from the other. A few more errors "
                    "would have left no certificate, and the classes without a bound "
                    "pay for it.",
                )
            )
    if data["confusion"]["source"] == "held out":
        found.append(
            (
                "Errors may be larger than measured",
                "They were measured on rows that thresholds were chosen on, because no "
                "fit to a part of the rows could be certified. The bounds hold anyway.",
            )
        )
    found += [
        (
            f"Many rows of {entry['label']} have no score",
            f"{100.0 * entry['share']:.0f}% of them in the table are classified as "
            f"{data['model']['fallback']} without a look at their values.",
        )
        for entry in data["unscored"]
        if entry["share"] > MUCH_UNSCORED
    ]
    return [{"title": title, "text": text} for title, text in found]
