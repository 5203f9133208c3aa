"""Warnings that matter for what a report says."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from missratio.app.report._origin import last_step
from missratio.app.report._rows import LabelledRows
from missratio.app.report._words import FRAGILE, number, percent, share

FEW_TAIL_ROWS = 10
MUCH_UNSCORED = 0.1
MUCH_EXTRAPOLATED = 0.05


def cautions(rows: LabelledRows, data: dict[str, Any]) -> list[dict[str, str]]:
    """What a reader should know before relying on the numbers."""
    found = [
        *_on_certificate(rows),
        *_on_estimator(rows),
        *_on_cap(rows),
        *on_weights(data["weights"]),
        *on_band(data["missingness"]["profiles"]),
        *_on_power(data["curve"]),
        *_on_unscored(rows, data["unscored"]),
    ]
    return [{"title": title, "text": text} for title, text in found]


def _on_certificate(rows: LabelledRows) -> list[tuple[str, str]]:
    certificate = rows.classifier.certificate_
    if not certificate.certified:
        return [
            (
                "Nothing is certified",
                "Every row is classified as the controlled class: the power is 0.",
            )
        ]
    found = []
    sample = rows.classifier.calibration_.sample
    tail = int((sample.values > certificate.threshold).sum())
    if tail < FEW_TAIL_ROWS:
        found.append(
            (
                "Few calibration rows",
                f"The threshold rests on the {number(tail + 1)} calibration rows that "
                "score highest. The guarantee holds, but more rows of class "
                f"{certificate.controlled_class} would give more power.",
            )
        )
    gamma = certificate.sensitivity
    if gamma is not None and gamma < FRAGILE:
        found.append(
            (
                "Little room for error in φ",
                f"Γ = {gamma:.3f}: the guarantee fails if the odds of being missing "
                f"are wrong by more than {percent(gamma - 1.0, 2)}. "
                "An odds_factor above 1 asks for more room, at the cost of power.",
            )
        )
    return found


def _on_estimator(rows: LabelledRows) -> list[tuple[str, str]]:
    if getattr(last_step(rows.classifier.estimator_), "converged_", True):
        return []
    return [
        (
            "No finite optimum",
            "The fit didn't reach an optimum, or there is none: coefficients and "
            "scores are those of its last step. The certificate holds anyway. A "
            "penalty (l2) or fewer features would give a finite optimum.",
        )
    ]


def _on_cap(rows: LabelledRows) -> list[tuple[str, str]]:
    trust = rows.classifier.calibration_.trust
    if trust.cap is None:
        return []
    shares = []
    for label in rows.labels:
        heaviest = trust.edges(rows.rows(label))[1]
        seen = heaviest[heaviest > 0.0]
        beyond = float(np.mean(seen > trust.cap)) if len(seen) else math.nan
        shares.append(f"{percent(beyond)} of class {label}")
    return [
        (
            "Rows out of reach",
            "Rows that go missing with probability above "
            f"{percent(1.0 - 1.0 / trust.cap)} are always classified as "
            f"{rows.controlled}. Of the complete rows here these are "
            f"{' and '.join(shares)}.",
        )
    ]


def _on_unscored(
    rows: LabelledRows, unscored: list[dict[str, Any]]
) -> list[tuple[str, str]]:
    if max(entry["share"] for entry in unscored) < MUCH_UNSCORED:
        return []
    some = [entry for entry in unscored if entry["share"]]
    shares = [f"{share(entry['share'])} of {entry['label']}" for entry in some]
    as_observed = rows.classifier.deployment == "as-observed"
    about = "count as not recognised in" if as_observed else "are left out of"
    return [
        (
            "Rows without a score",
            f"In the table, {' and '.join(shares)} can't be scored, because values are "
            f"missing. These rows are always classified as {rows.controlled}, and "
            f"{about} the power on this page.",
        )
    ]


def on_weights(weights: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Weights that few rows have most of."""
    return [
        ("Concentrated weights", entry["concentrated"])
        for entry in weights
        if entry["concentrated"]
    ]


def on_band(profiles: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """A φ that is used beyond the values it was learned from."""
    worst = max(profiles, key=lambda p: p["extrapolated"] or 0.0, default=None)
    if worst is None or (worst["extrapolated"] or 0.0) < MUCH_EXTRAPOLATED:
        return []
    return [
        (
            "φ is extrapolated",
            f"{percent(worst['extrapolated'])} of the observed values of "
            f"{worst['name']}, class {worst['label']}, lie beyond every value that "
            "was looked up. There, only the assumed logistic form says what φ is.",
        )
    ]


def _on_power(curve: dict[str, Any]) -> list[tuple[str, str]]:
    if curve["power"][curve["own"]] is None:
        return [
            (
                "Power unknown",
                "No row of the other class was left to measure it on: too few of "
                "them are complete. Give complete test rows.",
            )
        ]
    if curve["source"] != "training":
        return []
    return [
        (
            "Power is too good",
            "It was measured on the rows that the classifier was fitted on. Give test "
            "rows, or let it be cross-validated (folds=5).",
        )
    ]
