"""The cells of a page's tables, as texts."""

from __future__ import annotations

from typing import Any

from missratio.app.report._summary import (
    compared_rows,
    compared_words,
    error_rows,
    level_rows,
    mixed_words,
    thousand_rows,
)
from missratio.app.report._words import number, percent, share, span

Data = dict[str, Any]
Cells = list[list[str]]
ERRORS = ("name", "estimate", "interval", "confidence", "rows")
LEVELS = ("alpha", "threshold", "bound", "estimate", "power", "interval", "rule")


def tables(data: Data) -> dict[str, Any]:
    """The cells of every table, by the names that the page has for them.

    Parameters
    ----------
    data : dict
        Of the report.
    """
    thousand = thousand_rows(data)
    return {
        "error_cells": [[row[k] for k in ERRORS] for row in error_rows(data)],
        "level_cells": [[row[k] for k in LEVELS] for row in level_rows(data)],
        "thousand": thousand,
        "mixed": mixed_words(data) if thousand else "",
        "weight_cells": weight_cells(data),
        "complete_case_cells": complete_case_cells(data),
        "coefficient_cells": coefficient_cells(data["coefficients"]),
        "importance_cells": importance_cells(data["importance"]),
    }


def shared_tables(data: Data) -> dict[str, Any]:
    """The cells of tables that pages about two classes and about several have."""
    labels = [entry["label"] for entry in data["missingness"]["classes"]]
    compared = data["comparison"]
    return {
        "unscored_cells": [
            [f"Class {entry['label']}", share(entry["share"]), number(entry["rows"])]
            for entry in data["unscored"]
        ],
        **missing_cells(data["missingness"]),
        "pattern_head": ["Missing", *(f"Class {label}" for label in labels)],
        "weight_cells": class_weight_cells(data),
        "comparison_cells": compared_rows(compared) if compared else [],
        "comparison_words": compared_words(compared) if compared else "",
    }


def missing_cells(missingness: Data) -> dict[str, Any]:
    """Missing values by column: the table's head, and its cells."""
    looked_up = any(any(entry["looked_up"]) for entry in missingness["features"])
    head, rows = ["Column"], []
    for entry in missingness["classes"]:
        head += [f"Class {entry['label']}", f"Share of class {entry['label']}"]
        head += [f"Looked up, class {entry['label']}"] * looked_up
    for feature in missingness["features"]:
        row = [feature["name"]]
        for k, count in enumerate(feature["missing"]):
            row += [number(count), share(feature["share"][k])]
            row += [number(feature["looked_up"][k])] * looked_up
        rows.append(row)
    return {"missing_head": head, "missing_cells": rows}


def profile_cells(profile: Data) -> Cells:
    """φ and its band along a feature."""
    points = zip(
        profile["at"], profile["phi"], profile["low"], profile["high"], strict=True
    )
    return [[number(x), share(phi), span(low, high)] for x, phi, low, high in points]


def histogram_cells(histogram: Data | None) -> Cells:
    """Rows by weight."""
    if histogram is None:
        return []
    edges = histogram["edges"]
    return [
        [number(left), number(right), number(rows)]
        for left, right, rows in zip(
            edges[:-1], edges[1:], histogram["rows"], strict=True
        )
    ]


def class_weight_cells(data: Data) -> Cells:
    """What weights leave of each class."""
    return [
        [
            f"Class {entry['label']}",
            number(entry["rows"]),
            number(entry["observed"]),
            number(entry["kish"]),
            number(entry["largest"]),
            share(entry["heaviest_share"]),
        ]
        for entry in data["weights"]
    ]


def weight_cells(data: Data) -> Cells:
    """What weights leave of each class, and of the calibration rows."""
    certificate = data["certificate"]
    own = [certificate["rows"], certificate["observed"], certificate["effective_rows"]]
    calibration = f"Calibration, class {data['model']['controlled']}"
    return [*class_weight_cells(data), [calibration, *map(number, own), "", ""]]


def complete_case_cells(data: Data) -> Cells:
    """The error of complete-case analysis beside the one with weights."""
    case = data["complete_case"]
    if case is None:
        return []
    bound = data["certificate"]["error_bound"]
    return [
        ["Complete rows only", share(case["claimed"]), share(case["estimate"]),
         span(case["low"], case["high"])],
        ["With weights", share(case["claimed"]), share(case["with_weights"]),
         span(0.0, bound)],
    ]  # fmt: skip


def coefficient_cells(coefficients: Data | None) -> Cells:
    """Coefficients with their intervals, where they have some."""
    if coefficients is None:
        return []
    parts = [[number(value) for value in coefficients["values"]]]
    if coefficients["low"] is not None:
        parts += [[*map(number, coefficients[end])] for end in ("low", "high")]
    return [list(row) for row in zip(coefficients["names"], *parts, strict=True)]


def importance_cells(importance: Data | None) -> Cells:
    """The power lost with each column."""
    if importance is None:
        return []
    parts = [[*map(percent, importance[k])] for k in ("values", "low", "high")]
    return [list(row) for row in zip(importance["names"], *parts, strict=True)]
