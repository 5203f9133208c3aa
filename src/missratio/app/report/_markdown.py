"""A report as text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from missratio.app.report._summary import (
    complete_case_words,
    error_rows,
    facts,
    level_rows,
    model_words,
    odds_rows,
    pattern_rows,
    pattern_words,
)
from missratio.app.report._words import number, share

Data = dict[str, Any]

_MARKUP = re.compile(r"([\\`*_{}\[\]()#+!|~$^=>-])")


def render(data: Data) -> str:
    """The text.

    Parameters
    ----------
    data : dict
        Of the report.
    """
    parts = [
        f"# {plain_text(data['title'])}",
        *_certificate(data),
        *_cautions(data["cautions"]),
        *_numbers(data),
        *_sensitivity(data),
        *_missing(data["missingness"]),
        *_weights(data),
        *_ignored(data),
        *_coefficients(data["coefficients"]),
        f"Made by missratio {plain_text(data['model']['version'])}.",
    ]
    return "\n\n".join(parts) + "\n"


def plain_text(value: Any) -> str:
    """Text that says itself: nothing in it is markup, of Markdown or of HTML."""
    text = " ".join(str(value).split())
    text = _MARKUP.sub(r"\\\1", text)
    return text.replace("&", "&amp;").replace("<", "&lt;")


def _table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A table, its first column left-aligned and the others right-aligned."""
    lines = [
        head,
        [":--", *["--:"] * (len(head) - 1)],
        *[[plain_text(cell) for cell in row] for row in rows],
    ]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _bullets(texts: Sequence[str]) -> str:
    return "\n".join(f"- {plain_text(text)}" for text in texts)


def _certificate(data: Data) -> list[str]:
    words = data["words"]
    parts = [
        f"**{plain_text(words['headline'])}**",
        plain_text(words["guarantee"]),
        plain_text(words["meaning"]),
        _table(
            ["", "", ""],
            [[fact["name"], fact["value"], fact["note"]] for fact in facts(data)],
        ),
    ]
    if data["certificate"]["certified"]:
        parts += ["## This is assumed", _bullets(words["assumptions"])]
        parts += ["## This would break it", _bullets(words["breaks"])]
    if words["checks"]:
        parts += ["## This was tested", _bullets(words["checks"])]
    if words["robustness"]:
        parts += ["## How wrong may φ be?", plain_text(words["robustness"])]
    return parts


def _cautions(cautions: list[Data]) -> list[str]:
    if not cautions:
        return []
    lines = [
        f"- **{plain_text(caution['title'])}.** {plain_text(caution['text'])}"
        for caution in cautions
    ]
    return ["## Before you rely on it", "\n".join(lines)]


def _numbers(data: Data) -> list[str]:
    errors = [
        [row[name] for name in ("name", "estimate", "interval", "confidence", "rows")]
        for row in error_rows(data)
    ]
    sources = [
        f"{row['name']}: from {row['source']}; the interval is {row['method']}."
        for row in error_rows(data)
    ]
    levels = [
        [row[name] for name in ("alpha", "threshold", "bound", "power", "interval")]
        for row in level_rows(data)
    ]
    return [
        "## The two errors",
        _table(["", "Estimate", "Interval", "Confidence", "Rows"], errors),
        _bullets(sources),
        "## Other levels",
        _table(["α", "Threshold", "Certified error", "Power", "Interval"], levels),
    ]


def _sensitivity(data: Data) -> list[str]:
    curve = data["sensitivity"]
    if curve is None:
        return []
    head = ["Odds factor Γ", "Certified error", "Power"]
    return [
        "## What if φ is wrong?",
        *[plain_text(text) for text in curve["words"]],
        _table(head, odds_rows(data)),
    ]


def _patterns(missingness: Data) -> list[str]:
    found = missingness["patterns"]
    if found is None:
        return []
    head = [
        "Missing",
        *(f"Class {plain_text(k['label'])}" for k in missingness["classes"]),
    ]
    parts = ["### Missing together", _table(head, pattern_rows(missingness))]
    if found["left_out"]:
        parts.append(f"{number(found['left_out'])} rarer patterns are left out.")
    tested = pattern_words(missingness)
    return [*parts, _bullets(tested)] if tested else parts


def _missing(missingness: Data) -> list[str]:
    parts = ["## What is missing"]
    if not missingness["any"]:
        return [*parts, "No value is missing."]
    classes = missingness["classes"]
    said = [
        f"Class {k['label']}: {number(k['complete'])} of {number(k['rows'])} rows are "
        f"complete. {model_words(k)}"
        for k in classes
    ]
    head = ["Feature"]
    for k in classes:
        label = plain_text(k["label"])
        head += [f"Class {label}", "share"]
    rows = []
    for feature in missingness["features"]:
        row = [feature["name"]]
        for count, part in zip(feature["missing"], feature["share"], strict=True):
            row += [number(count), share(part)]
        rows.append(row)
    said += [check["sentence"] for k in classes for check in k["checks"]]
    parts += [_bullets(said), _table(head, rows)]
    if missingness["left_out"]:
        parts.append(f"{number(missingness['left_out'])} more features are left out.")
    return [*parts, *_patterns(missingness)]


def _weights(data: Data) -> list[str]:
    rows = [
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
    head = ["", "Rows", "Usable", "Worth", "Largest weight", "On the heaviest 5%"]
    return ["## Weights", _table(head, rows)]


def _ignored(data: Data) -> list[str]:
    words = complete_case_words(data)
    if not words:
        return []
    return ["## Had missing values been ignored", *[plain_text(text) for text in words]]


def _coefficients(coefficients: Data | None) -> list[str]:
    if coefficients is None:
        return []
    head = ["Feature", "Coefficient"]
    rows = [
        [name, number(value)]
        for name, value in zip(
            coefficients["names"], coefficients["values"], strict=True
        )
    ]
    if coefficients["low"] is not None:
        head += ["from", "to"]
        for row, low, high in zip(
            rows, coefficients["low"], coefficients["high"], strict=True
        ):
            row += [number(low), number(high)]
    parts = ["## Coefficients", _table(head, rows)]
    return [*parts, coefficients["doubt"]] if coefficients["doubt"] else parts
