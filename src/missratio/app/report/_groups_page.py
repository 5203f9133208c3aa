"""What a report on groups shows: a page, its figure, and the same as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from missratio.app.report._glossary import GROUPS_GLOSSARY
from missratio.app.report._markdown import (
    WEIGHT_HEAD,
    comparison_part,
    md_table,
    missing_part,
    opening_part,
    origin_part,
    plain_text,
    unscored_part,
)
from missratio.app.report._summary import compared_rows, compared_words
from missratio.app.report._tables import class_weight_cells
from missratio.app.report._words import number, percent, share, span

Data = dict[str, Any]
Cells = list[list[str]]

HEAD = [
    "Group", "Promised", "Certified", "Error", "Interval", "Power", "Interval",
    "Calibration rows",
]  # fmt: skip


def group_cells(data: Data) -> Cells:
    """What each group gets."""
    return [
        [
            entry["name"],
            f"at most {percent(entry['level'])}",
            "no" if entry["bound"] is None else percent(entry["bound"]),
            share(entry["error"]["estimate"]),
            span(entry["error"]["low"], entry["error"]["high"]),
            share(entry["power"]["estimate"]),
            span(entry["power"]["low"], entry["power"]["high"]),
            number(entry["rows"]),
        ]
        for entry in data["groups"]
    ]


def groups_context(data: Data) -> Data:
    """What the page's template is given, beside what every page has.

    Parameters
    ----------
    data : dict
        Of the report.
    """
    compared = data["comparison"]
    return {
        "drawn": _figures(data),
        "sections": _sections(data),
        "group_head": HEAD,
        "group_cells": group_cells(data),
        "weight_cells": class_weight_cells(data),
        "comparison_cells": compared_rows(compared) if compared else [],
        "comparison_words": compared_words(compared) if compared else "",
        "glossary": GROUPS_GLOSSARY,
    }


def _figures(data: Data) -> Iterator[Any]:
    from missratio.app.report._group_figures import figures

    return figures(data)


def _sections(data: Data) -> list[tuple[str, str]]:
    """The ids and names of the sections that there are."""
    every = [
        ("certificate", "Certificate", True),
        ("cautions", "Before you rely on it", data["cautions"]),
        ("groups", "What each group gets", True),
        ("missing", "What is missing", True),
        ("patterns", "Missing together", data["missingness"]["patterns"]),
        ("weights", "Weights", True),
        ("comparison", "Methods compared", data["comparison"]),
        ("words", "Words", True),
    ]
    return [(key, name) for key, name, there in every if there]


def render_text(data: Data) -> str:
    """The report as text.

    Parameters
    ----------
    data : dict
        Of the report.
    """
    parts = [
        *opening_part(data),
        "## What each group gets",
        md_table(HEAD, [[plain_text(x) for x in row] for row in group_cells(data)]),
        plain_text(f"Measured on {data['measured']['source_words']}."),
        *unscored_part(data["unscored"]),
        *missing_part(data["missingness"]),
        "## Weights",
        md_table(WEIGHT_HEAD, class_weight_cells(data)),
        *comparison_part(data["comparison"]),
        *origin_part(data),
    ]
    return "\n\n".join(parts) + "\n"
