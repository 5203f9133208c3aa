"""From a fitted classifier with promises to groups, and its rows, to a report."""

from __future__ import annotations

from dataclasses import asdict, replace
from importlib.metadata import version
from typing import Any

import numpy as np

from missratio.app.report._cautions import on_band, on_weights
from missratio.app.report._columns import Names
from missratio.app.report._confusion import SOURCES, Confusion, confusion
from missratio.app.report._groups_words import group_data, group_words
from missratio.app.report._missing import missing_values
from missratio.app.report._origin import Origin, estimator_name
from missratio.app.report._plain import plain
from missratio.app.report._report import FORMAT, GROUPS, Report
from missratio.app.report._rows import LabelledRows
from missratio.app.report._scored import unscored
from missratio.app.report._sizes import weights_by_class
from missratio.app.report._words import percent
from missratio.classifier import PowerComparison

# Refits use at most so many rows of each class.
MOST_ROWS = 20_000
# A group whose power is below this part of the best group's is named.
MUCH_LESS = 0.5


def describe_groups(
    rows: LabelledRows,
    test: LabelledRows | None = None,
    *,
    title: str | None,
    names: Names,
    folds: int = 5,
    confidence: float = 0.95,
    comparison: PowerComparison | None = None,
    origin: Origin | None = None,
    column: str = "group",
) -> Report:
    """What each group is promised and gets, and what that rests on.

    Parameters
    ----------
    rows : LabelledRows
        Those that its classifier was fitted with, with their groups.
    test : LabelledRows, optional
    title : str or None
    names : Names
        Of the features and of their columns.
    folds : int, default=5
    confidence : float, default=0.95
    comparison, origin : optional
        The methods that were compared; the command and file that the rows came by.
    column : str, default="group"
        What groups are groups of.
    """
    classifier, certificate = rows.classifier, rows.classifier.certificate_
    rng = np.random.default_rng(0)
    few = rows.sampled(MOST_ROWS, rng)
    measured = confusion(few, test, folds, rng)
    data: dict[str, Any] = {
        "format": FORMAT,
        "kind": GROUPS,
        "title": title or "Certified classifier",
        "model": _model(rows, column),
        "origin": (origin or Origin()).described(classifier),
        "certificate": certificate.to_dict(),
        "words": group_words(certificate),
        "groups": _groups(rows, measured, confidence),
        "measured": {
            "source": measured.source,
            "source_words": SOURCES[measured.source],
        },
        "unscored": unscored(few),
        "missingness": missing_values(rows, few, names),
        "weights": weights_by_class(rows),
        "comparison": None if comparison is None else asdict(comparison),
    }
    data["cautions"] = _cautions(data)
    return Report(plain(data))


def _model(rows: LabelledRows, column: str) -> dict[str, Any]:
    classifier = rows.classifier
    return {
        "version": version("missratio"),
        "estimator": estimator_name(classifier.scores_.estimators[0]),
        "features": classifier.n_features_in_,
        "bounded": rows.bounded,
        "controlled": rows.controlled,
        "other": rows.other,
        "rows": len(rows.y),
        "classes": [
            {"label": label, "rows": len(rows.index(label))} for label in rows.labels
        ],
        "column": column,
        "shared": classifier.certificate_.shared,
        "fallback": rows.controlled,
        "deployment": classifier.deployment,
    }


def _groups(
    rows: LabelledRows, measured: Confusion, confidence: float
) -> list[dict[str, Any]]:
    """What each group gets."""
    certificate = rows.classifier.certificate_
    found = []
    for promise in certificate.promises:
        if promise.kind != "error":
            continue
        mine = measured
        if promise.group is not None:
            index = np.flatnonzero(measured.rows.groups == promise.group)
            mine = replace(
                measured,
                rows=measured.rows.take(index),
                predicted=measured.predicted[index],
            )
        error = mine.share(rows.controlled, [rows.other], confidence)
        power = mine.share(rows.other, [rows.other], confidence)
        found.append(group_data(certificate, promise, error, power))
    return found


def _cautions(data: dict[str, Any]) -> list[dict[str, str]]:
    """What a reader should know before relying on the numbers."""
    found = [
        *on_weights(data["weights"]),
        *on_band(data["missingness"]["profiles"]),
    ]
    lost = [entry["name"] for entry in data["groups"] if not entry["certified"]]
    if lost:
        found.append(
            (
                "Some groups get nothing",
                f"Every row of {', '.join(lost)} is classified as "
                f"{data['model']['fallback']}: their calibration rows are too few. "
                "Bring more of their rows, merge them with another group, or raise α.",
            )
        )
    powers = {
        entry["name"]: entry["power"]["estimate"]
        for entry in data["groups"]
        if entry["certified"] and entry["power"]["estimate"] is not None
    }
    if powers:
        best = max(powers.values())
        weak = [
            f"{name} ({percent(power)})"
            for name, power in powers.items()
            if power < MUCH_LESS * best
        ]
        if weak:
            found.append(
                (
                    "The same promise costs some groups more",
                    f"Of {', '.join(weak)} much fewer {data['model']['other']} are "
                    f"found than of the best group ({percent(best)}).",
                )
            )
    if data["measured"]["source"] == "held out":
        found.append(
            (
                "Errors may be larger than measured",
                "They were measured on rows that thresholds were chosen on, and power "
                "on rows that the method was fitted to, because no fit to a part of "
                "the rows could be certified. The bounds hold anyway.",
            )
        )
    return [{"title": title, "text": text} for title, text in found]
