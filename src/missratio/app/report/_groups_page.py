"""What a report on groups shows: a page, and the same as text."""

from __future__ import annotations

from typing import Any

from missratio.app.report._glossary import GROUPS_GLOSSARY
from missratio.app.report._markdown import (
    closing_parts,
    md_table,
    opening_part,
    plain_text,
    unscored_part,
)
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
    """What the page's template is given, beside what every page has."""
    return {
        "group_head": HEAD,
        "group_cells": group_cells(data),
        "glossary": GROUPS_GLOSSARY,
    }


def render_text(data: Data) -> str:
    """The report as text."""
    parts = [
        *opening_part(data),
        "## What each group gets",
        md_table(HEAD, group_cells(data)),
        plain_text(f"Measured on {data['measured']['source_words']}."),
        *unscored_part(data["unscored"]),
        *closing_parts(data),
    ]
    return "\n\n".join(parts) + "\n"
