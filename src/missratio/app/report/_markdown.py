"""A report as text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from missratio.app.report._summary import (
    compared_rows,
    compared_words,
    complete_case_words,
    error_rows,
    facts,
    level_rows,
    mixed_words,
    model_words,
    odds_rows,
    pattern_rows,
    pattern_words,
    thousand_rows,
)
from missratio.app.report._tables import (
    class_weight_cells,
    coefficient_cells,
    importance_cells,
    missing_cells,
    weight_cells,
)
from missratio.app.report._words import number, share

Data = dict[str, Any]

_MARKUP = re.compile(r"([\\`*_{}\[\]()#+!|~$^=>-])")


def render(data: Data) -> str:
    """The text."""
    parts = [
        *opening_part(data, facts(data)),
        *listed_entries("What to do next", data["next"]),
        *_numbers(data),
        *_sensitivity(data),
        *missing_part(data["missingness"]),
        "## Weights",
        md_table(WEIGHT_HEAD, weight_cells(data)),
        *_ignored(data),
        *_coefficients(data["coefficients"]),
        *_importance(data["importance"]),
        *comparison_part(data["comparison"]),
        *origin_part(data),
    ]
    return "\n\n".join(parts) + "\n"


def opening_part(data: Data, told: Sequence[Data] = ()) -> list[str]:
    """The title, what is guaranteed with the figures to see first, and cautions."""
    words = data["words"]
    parts = [
        f"# {plain_text(data['title'])}",
        f"**{plain_text(words['headline'])}**",
        plain_text(words["guarantee"]),
        plain_text(words["meaning"]),
    ]
    if told:
        parts.append(facts_table(told))
    # Several certificates together have no such entry: each promise says it.
    if data["certificate"].get("certified", True):
        parts += ["## This is assumed", bullets(words["assumptions"])]
        parts += ["## This would break it", bullets(words["breaks"])]
    if words["checks"]:
        parts += ["## This was tested", bullets(words["checks"])]
    if words["robustness"]:
        parts += ["## How wrong may φ be?", plain_text(words["robustness"])]
    return [*parts, *listed_entries("Before you rely on it", data["cautions"])]


def closing_parts(data: Data) -> list[str]:
    """What is missing, the weights, the methods, and where the report comes from."""
    return [
        *missing_part(data["missingness"]),
        "## Weights",
        md_table(WEIGHT_HEAD, class_weight_cells(data)),
        *comparison_part(data["comparison"]),
        *origin_part(data),
    ]


def plain_text(value: Any) -> str:
    """Text that says itself: nothing in it is markup, of Markdown or of HTML."""
    text = " ".join(str(value).split())
    text = _MARKUP.sub(r"\\\1", text)
    return text.replace("&", "&amp;").replace("<", "&lt;")


def md_table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A table, its first column left-aligned and the others right-aligned."""
    lines = [
        map(plain_text, head),
        [":--", *["--:"] * (len(head) - 1)],
        *(map(plain_text, row) for row in rows),
    ]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def facts_table(told: Sequence[Data]) -> str:
    """Figures with their names and what there is to note of them."""
    cells = [[fact["name"], fact["value"], fact["note"]] for fact in told]
    return md_table(["", "", ""], cells)


def bullets(texts: Sequence[str]) -> str:
    """A list."""
    return "\n".join(f"- {plain_text(text)}" for text in texts)


def listed_entries(title: str, entries: list[Data]) -> list[str]:
    """A section of entries with a title and a text each."""
    if not entries:
        return []
    lines = [
        f"- **{plain_text(entry['title'])}.** {plain_text(entry['text'])}"
        for entry in entries
    ]
    return [f"## {title}", "\n".join(lines)]


def _thousand(data: Data) -> list[str]:
    rows = thousand_rows(data)
    if rows is None:
        return []
    model = data["model"]
    labels = model["controlled"], model["other"]
    head = ["In truth", *(f"classified as {label}" for label in labels)]
    return [
        "### In a thousand rows",
        md_table(head, rows),
        plain_text(mixed_words(data)),
    ]


def unscored_part(unscored: list[Data]) -> list[str]:
    """Rows that can't be scored."""
    if not any(entry["share"] for entry in unscored):
        return []
    said = [
        f"{share(entry['share'])} of class {entry['label']} can't be scored."
        for entry in unscored
    ]
    return ["### Rows that can't be scored", bullets(said)]


def _numbers(data: Data) -> list[str]:
    errors = [
        [row[name] for name in ("name", "estimate", "interval", "confidence", "rows")]
        for row in error_rows(data)
    ]
    sources = [
        f"{row['name']}: measured on {row['source']}; the interval is {row['method']}."
        for row in error_rows(data)
    ]
    levels = [
        [row[name] for name in ("alpha", "threshold", "bound", "power", "interval")]
        for row in level_rows(data)
    ]
    return [
        "## The two errors",
        md_table(["", "Estimate", "Interval", "Confidence", "Rows"], errors),
        bullets(sources),
        *_thousand(data),
        *unscored_part(data["unscored"]),
        "## Other levels",
        md_table(["α", "Threshold", "Certified error", "Power", "Interval"], levels),
    ]


def _sensitivity(data: Data) -> list[str]:
    curve = data["sensitivity"]
    if curve is None:
        return []
    head = ["Odds factor Γ", "Certified error", "Power"]
    return [
        "## What if φ is wrong?",
        *[plain_text(text) for text in curve["words"]],
        md_table(head, odds_rows(data)),
    ]


def _patterns(missingness: Data) -> list[str]:
    found = missingness["patterns"]
    if found is None:
        return []
    head = ["Missing", *(f"Class {k['label']}" for k in missingness["classes"])]
    parts = ["### Missing together", md_table(head, pattern_rows(missingness))]
    if found["left_out"]:
        parts.append(f"{number(found['left_out'])} rarer patterns are left out.")
    tested = pattern_words(missingness)
    return [*parts, bullets(tested)] if tested else parts


def missing_part(missingness: Data) -> list[str]:
    """What is missing."""
    parts = ["## What is missing"]
    if not missingness["any"]:
        return [*parts, "No value is missing."]
    classes = missingness["classes"]
    said = [
        f"Class {k['label']}: {number(k['complete'])} of {number(k['rows'])} rows are "
        f"complete. {model_words(k)}"
        for k in classes
    ]
    cells = missing_cells(missingness)
    said += [check["sentence"] for k in classes for check in k["checks"]]
    parts += [bullets(said), md_table(cells["missing_head"], cells["missing_cells"])]
    if missingness["left_out"]:
        parts.append(f"{number(missingness['left_out'])} more columns are left out.")
    return [*parts, *_patterns(missingness)]


WEIGHT_HEAD = ["", "Rows", "Usable", "Effective sample size", "Largest weight",
               "On the heaviest 5%"]  # fmt: skip


def _ignored(data: Data) -> list[str]:
    words = complete_case_words(data)
    if not words:
        return []
    return [
        "## If missing values had been ignored",
        *[plain_text(text) for text in words],
    ]


def _coefficients(coefficients: Data | None) -> list[str]:
    if coefficients is None:
        return []
    head = ["Feature", "Per standard deviation"]
    if coefficients["low"] is not None:
        head += ["from", "to"]
    parts = ["## Coefficients", md_table(head, coefficient_cells(coefficients))]
    without = coefficients["no_data"]
    if without:
        named = plain_text(", ".join(without))
        parts.append(f"The fit had no data on these: {named}.")
    return [*parts, coefficients["doubt"]] if coefficients["doubt"] else parts


def _importance(importance: Data | None) -> list[str]:
    if importance is None:
        return []
    head = ["Column", "Power lost", "from", "to"]
    return ["## Which columns matter", md_table(head, importance_cells(importance))]


def comparison_part(comparison: Data | None) -> list[str]:
    """The methods that were compared, where some were."""
    if comparison is None:
        return []
    head = ["Method", "Power", "Standard error", "Time", "Note"]
    return [
        "## Methods compared",
        plain_text(compared_words(comparison)),
        md_table(head, compared_rows(comparison)),
    ]


def origin_part(data: Data) -> list[str]:
    """Where the report comes from."""
    origin = data["origin"]
    version = plain_text(data["model"]["version"])
    lines = [f"Made by missratio {version} on {plain_text(origin['date'])}."]
    if origin["seed"] is not None:
        lines.append(f"Seed: {origin['seed']}.")
    if origin["command"]:
        lines.append(f"Command: {plain_text(origin['command'])}")
    if origin["sha256"]:
        file, digest = plain_text(origin["file"]), plain_text(origin["sha256"])
        lines.append(f"Table: {file}, SHA-256 {digest}")
    return ["---", "\n".join(f"- {line}" for line in lines)]
